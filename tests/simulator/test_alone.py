"""A job's time alone: the measure that slowdowns are told in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.model import PlacedJob, Workload
from controller.model.fabrics import big_switch
from controller.scheduling.registry import policy
from controller.simulator.alone import ALONE_POLICIES, alone_times
from controller.simulator.player import player
from controller.simulator.simulate import simulate
from tests.simulator.test_simulate import RATE, coflow_job, pipeline

PLACES = {"w0": "h1", "w1": "h2"}


def test_alone_is_the_best_a_job_can_do_for_itself() -> None:
    workload = Workload(tuple(PlacedJob(pipeline(job), PLACES) for job in ("A", "B")))
    assert alone_times(workload, big_switch(2, RATE)) == pytest.approx({"A": 8.0, "B": 8.0})


@pytest.mark.parametrize("size", [0.25, 1.0, 2.0])
def test_many_iterations_are_extrapolated_exactly(size: float) -> None:
    workload = Workload((PlacedJob(pipeline("A", 3, size, 40), PLACES),))
    fabric = big_switch(2, RATE)
    played = [
        simulate(workload, fabric, policy(name)).played.jobs[0].completion_s / 40
        for name in ALONE_POLICIES
    ]
    assert alone_times(workload, fabric)["A"] == pytest.approx(min(played), rel=1e-9)


def test_a_coflow_alone_takes_the_time_of_its_busiest_link() -> None:
    placed = coflow_job("C", [("h1", "h3", 2.0), ("h2", "h3", 3.0), ("h1", "h2", 4.0)], 7.0)
    assert alone_times(Workload((placed,)), big_switch(3, RATE)) == pytest.approx({"C": 6.0})
    twice = replace(placed, job=replace(placed.job, iterations=2))
    assert alone_times(Workload((twice,)), big_switch(3, RATE)) == pytest.approx({"C": 6.0})


def test_the_player_tells_what_simulate_would() -> None:
    workload = Workload(tuple(PlacedJob(pipeline(job), PLACES) for job in ("A", "B")))
    fabric = big_switch(2, RATE)
    alone = alone_times(workload, fabric)
    outcome = player(workload, fabric, alone)(policy("echelon"))
    assert outcome.slowdown == pytest.approx({"A": 1.0, "B": 14 / 8})
    assert outcome.cost == pytest.approx(11 / 8)
    result = simulate(workload, fabric, policy("echelon"), "enforced")
    assert result.mean_slowdown(alone) == pytest.approx(outcome.cost)

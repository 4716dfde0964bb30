"""Figures of a scenario follow from its records alone."""

from __future__ import annotations

import pytest

from controller.experiments.summarize import (
    counted,
    mean_coflow_completion,
    measured_summary,
    predicted_summary,
)
from controller.model.record import FlowRecord, JobRecord, Played
from tests.experiments.played import UNIT_S, figure2


def job(*ends: float) -> JobRecord:
    return JobRecord("A", 0.0, ends)


def flow(name: str, group: str, ready: float, finish: float, ideal: float) -> FlowRecord:
    return FlowRecord("A", 0, name, group, "w0", "w1", 1e6, ready, ready, finish, ideal)


def test_first_iteration_is_discarded_where_there_are_several() -> None:
    assert counted(job(5.0, 7.0, 9.5)) == (2.0, 2.5)
    assert counted(job(5.0)) == (5.0,)


def test_measured_figures_stand_beside_the_predicted_ones() -> None:
    played = figure2("echelon")
    summary = predicted_summary("figure2", "echelon", "enforced", played, {"A": 12.0}, counted)
    slower = Played(played.flows, played.tasks, (job(12.6),))
    summary = measured_summary(summary, slower)
    assert summary.jobs[0].predicted_completion_s == pytest.approx(8 * UNIT_S)
    assert summary.jobs[0].completion_s == pytest.approx(12.6)
    assert summary.jobs[0].slowdown == pytest.approx(1.05)
    assert summary.mean_slowdown == pytest.approx(1.05)
    assert summary.predicted_mean_slowdown == pytest.approx(1.0)
    assert summary.predicted_total_tardiness_s == pytest.approx(4 * UNIT_S)


def test_p95_appears_from_twenty_counted_iterations_up() -> None:
    for iterations, expected in ((20, None), (21, 19.0)):
        ends, end = [], 0.0
        for k in range(iterations):
            end += float(k)
            ends.append(end)
        played = Played((), (), (job(*ends),))
        summary = predicted_summary("s", "fair", "enforced", played, {"A": 1.0}, counted)
        assert measured_summary(summary, played).jobs[0].p95_iteration_s == expected


def test_only_equal_ideal_finishes_make_a_coflow() -> None:
    coflow = (flow("a", "c", 1.0, 3.0, 1.0), flow("b", "c", 2.0, 5.0, 1.0))
    staggered = (flow("x", "s", 0.0, 9.0, 0.0), flow("y", "s", 0.0, 9.0, 4.0))
    assert mean_coflow_completion(Played((*coflow, *staggered), (), (job(9.0),))) == 4.0
    assert mean_coflow_completion(Played(staggered, (), (job(9.0),))) is None

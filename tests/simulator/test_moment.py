"""A decision at one moment is the one the simulation takes then."""

from __future__ import annotations

import pytest

from controller.experiments import scenarios
from controller.model.fabrics import parse_topology
from controller.scheduling.registry import policy
from controller.simulator.moment import busiest_moment, decided_at

RATE = 8.0
FABRIC = parse_topology("big-switch:2", RATE)
WORKLOAD = scenarios.figure2(1.0, RATE).workload


def test_smooth_rule_of_figure_2_shows_the_papers_rates_at_time_3() -> None:
    flows = decided_at(WORKLOAD, FABRIC, policy("echelon"), 3.0)
    assert [one.flow for one in flows] == ["a0", "a1", "a2"]
    assert [one.rate / RATE for one in flows] == pytest.approx([1 / 4, 5 / 12, 1 / 3])
    assert [one.remaining for one in flows] == pytest.approx([0.5, 1.5, 2.0])
    assert {one.class_ for one in flows} == {7}


def test_remaining_bytes_are_those_of_the_moment_between_two_events() -> None:
    flows = decided_at(WORKLOAD, FABRIC, policy("fifo"), 3.5)
    assert {one.flow: one.remaining for one in flows} == pytest.approx({"a1": 1.5, "a2": 2.0})
    assert {one.flow: one.pace / RATE for one in flows} == pytest.approx({"a1": 1.0, "a2": 0.0})


def test_busiest_moment_is_when_the_last_flow_joins() -> None:
    assert busiest_moment(WORKLOAD, FABRIC, policy("fair")) == pytest.approx(3.0)

"""What the coordinator believes of flows under way."""

from __future__ import annotations

import math

import pytest

from controller.coordinator.tracker import Tracker
from controller.model import PlacedJob
from controller.model.rule import FlowKey
from controller.scheduling.plan import compile_job
from tests.coordinator.conftest import pipeline, star

KEY = FlowKey("10.0.0.1", "10.0.0.2", 6, 40000, 5000)


@pytest.fixture
def tracker() -> Tracker:
    network = star(2)
    tracker = Tracker(network.fabric(), 0.0)
    placed = PlacedJob(pipeline(size=1e6), {"w0": "h1", "w1": "h2"})
    tracker.add_job(compile_job(placed, network.fabric()))
    return tracker


def test_remaining_is_the_last_report_carried_on_at_the_pace(tracker: Tracker) -> None:
    flow = tracker.announce(("A", 0, "a0"), KEY, 1, 10.0)
    tracker.told(flow, 7, 8e5, 10.0)  # 1e5 bytes/s
    assert tracker.remaining(flow, 12.0) == pytest.approx(8e5)
    tracker.progress(flow.name, 1.5e5, 12.0)
    assert tracker.remaining(flow, 12.0) == pytest.approx(8.5e5)
    assert tracker.remaining(flow, 13.0) == pytest.approx(7.5e5)


def test_a_change_of_pace_counts_from_when_it_was_told(tracker: Tracker) -> None:
    flow = tracker.announce(("A", 0, "a0"), KEY, 1, 0.0)
    tracker.told(flow, 7, 8e5, 0.0)
    tracker.told(flow, 7, 0.0, 1.0)
    assert tracker.remaining(flow, 5.0) == pytest.approx(9e5)


def test_the_class_a_flow_last_sent_in_outlives_a_hold(tracker: Tracker) -> None:
    flow = tracker.announce(("A", 0, "a0"), KEY, 1, 0.0)
    tracker.told(flow, 4, 0.0, 0.0)
    assert flow.sent_in is None
    tracker.told(flow, 5, 8e5, 1.0)
    tracker.told(flow, 6, 0.0, 2.0)
    assert flow.sent_in == 5


def test_an_unpaced_flow_goes_on_as_fast_as_it_was_measured(tracker: Tracker) -> None:
    flow = tracker.announce(("A", 0, "a0"), KEY, 1, 0.0)
    tracker.told(flow, 7, math.inf, 0.0)
    assert tracker.remaining(flow, 1.0) == pytest.approx(1e6)
    tracker.progress(flow.name, 2e5, 1.0)
    assert tracker.remaining(flow, 2.0) == pytest.approx(6e5)


def test_late_reports_change_nothing(tracker: Tracker) -> None:
    flow = tracker.announce(("A", 0, "a0"), KEY, 1, 0.0)
    tracker.told(flow, 7, math.inf, 0.0)
    tracker.progress(flow.name, 4e5, 2.0)
    tracker.progress(flow.name, 1e5, 1.0)
    assert tracker.remaining(flow, 2.0) == pytest.approx(6e5)


def test_a_flow_has_something_left_until_its_receiver_says_otherwise(tracker: Tracker) -> None:
    flow = tracker.announce(("A", 0, "a0"), KEY, 1, 0.0)
    tracker.told(flow, 7, 8e6, 0.0)
    state, flows = tracker.state(100.0)
    assert flows == [flow]
    assert state.remaining[0] == pytest.approx(8e6 / 8 * 0.002)  # not next to nothing
    assert tracker.finish(flow.name) is flow
    assert tracker.state(100.0)[1] == []
    assert tracker.finish(flow.name) is None


def test_reference_time_and_ideal_finish_come_from_the_head_flow(tracker: Tracker) -> None:
    head = tracker.announce(("A", 0, "a0"), KEY, 1, 5.0)
    late = tracker.announce(("A", 0, "a2"), KEY, 1, 9.0)
    assert head.ideal_finish == 5.0
    assert late.ideal_finish == pytest.approx(5.0 + 2 * 0.02)


@pytest.mark.parametrize(
    ("name", "message"), [(("B", 0, "a0"), "no job B"), (("A", 0, "zz"), "no flow zz")]
)
def test_unknown_flows_are_refused_by_name(
    tracker: Tracker, name: tuple[str, int, str], message: str
) -> None:
    with pytest.raises(KeyError, match=message):
        tracker.announce(name, KEY, 1, 0.0)


def test_a_flow_is_announced_once(tracker: Tracker) -> None:
    tracker.announce(("A", 0, "a0"), KEY, 1, 0.0)
    with pytest.raises(KeyError, match="under way"):
        tracker.announce(("A", 0, "a0"), KEY, 1, 0.0)


def test_a_removed_job_takes_its_flows_with_it(tracker: Tracker) -> None:
    tracker.announce(("A", 0, "a0"), KEY, 1, 0.0)
    tracker.remove_job("A")
    assert not tracker.flows and tracker.jobs() == []
    assert tracker.state(1.0)[1] == []


def test_policies_see_the_workloads_own_time() -> None:
    network = star(2)
    tracker = Tracker(network.fabric(), 1000.0)
    tracker.add_job(compile_job(PlacedJob(pipeline(), {"w0": "h1", "w1": "h2"}), network.fabric()))
    flow = tracker.announce(("A", 0, "a0"), KEY, 1, 1003.0)
    state, _ = tracker.state(1004.0)
    assert state.time == pytest.approx(4.0)
    assert state.release[0] == state.ideal_finish[0] == pytest.approx(3.0)
    assert flow.ideal_finish == pytest.approx(1003.0)

"""The order of change between hosts and switches."""

from __future__ import annotations

import math

import pytest

from controller.coordinator.changes import Changes, Wanted, order_changes
from controller.coordinator.tracker import LiveFlow
from controller.model.rule import FlowKey, FlowRule

KEY = FlowKey("10.0.0.1", "10.0.0.2", 6, 40000, 5000)
PATH = (0, 3)


def flow(setting: tuple[int, float] | None) -> LiveFlow:
    return LiveFlow(
        name=("J", 0, "a"),
        slot=0,
        size=1e6,
        src_host="h1",
        dst_host="h2",
        key=KEY,
        owner=1,
        ready=0.0,
        ideal_finish=0.0,
        setting=setting,
    )


def rule(class_: int, meter: float | None, path: tuple[int, ...] = PATH) -> FlowRule:
    return FlowRule(KEY, "h1", "h2", class_, path, meter)


def change(
    was: tuple[int, float] | None, in_force: FlowRule | None, class_: int, pace: float
) -> Changes:
    rules = {} if in_force is None else {KEY: in_force}
    return order_changes([Wanted(flow(was), class_, pace, PATH)], rules)


def steps(changes: Changes) -> list[str]:
    names = ["first", "rules_before", "then", "classes", "lower_meters"]
    return [name for name in names if getattr(changes, name)]


def test_a_new_flow_is_granted_after_its_rule_is_in() -> None:
    changes = change(None, None, 7, 1e7)
    assert steps(changes) == ["rules_before", "then"]
    assert changes.rules_before == [rule(7, 1e7)]


def test_a_flow_that_must_wait_is_told_so_and_needs_no_rule() -> None:
    assert steps(change(None, None, 3, 0.0)) == ["first"]


def test_the_meter_is_raised_before_the_host() -> None:
    assert steps(change((7, 1e7), rule(7, 1e7), 7, 2e7)) == ["rules_before", "then"]


def test_the_host_is_lowered_before_the_meter() -> None:
    changes = change((7, 2e7), rule(7, 2e7), 7, 1e7)
    assert steps(changes) == ["first", "lower_meters"]
    assert changes.lower_meters == [rule(7, 1e7)]


def test_another_class_at_a_lower_pace_slows_the_host_at_once() -> None:
    changes = change((7, 2e7), rule(7, 2e7), 5, 1e7)
    assert steps(changes) == ["first", "classes", "lower_meters"]
    assert changes.classes == [rule(5, 2e7)]  # the meter stays until the host is slower
    assert changes.lower_meters == [rule(5, 1e7)]


def test_nobody_waits_for_another_class_alone() -> None:
    assert steps(change((5, 1e7), rule(5, 2e7), 7, 2e7)) == ["first", "classes"]


def test_a_hold_leaves_the_rule_alone() -> None:
    assert steps(change((7, 2e7), rule(7, 2e7), 5, 0.0)) == ["first"]


def test_a_successor_on_the_same_connection_with_the_same_rule_is_granted_at_once() -> None:
    assert steps(change(None, rule(7, 2e7), 7, 2e7)) == ["first"]


def test_a_refused_rule_is_not_tried_again() -> None:
    refused = flow(None)
    refused.refused = True
    assert steps(order_changes([Wanted(refused, 0, 1e7, PATH)], {})) == ["first"]


def test_unpaced_means_no_meter() -> None:
    changes = change(None, None, 7, math.inf)
    assert changes.rules_before == [rule(7, None)]


def test_another_path_is_a_new_rule() -> None:
    assert steps(change((7, 1e7), rule(7, 1e7, (0, 1, 3)), 7, 1e7)) == ["rules_before"]


@pytest.mark.parametrize("pace", [1e7, 1e7 * (1 + 1e-4), math.inf])
def test_what_is_in_force_is_not_repeated(pace: float) -> None:
    was = 1e7 if math.isfinite(pace) else math.inf
    meter = was if math.isfinite(was) else None
    assert steps(change((7, was), rule(7, meter), 7, pace)) == []


def test_a_hold_is_not_repeated_though_its_class_changes() -> None:
    assert steps(change((5, 0.0), None, 6, 0.0)) == []

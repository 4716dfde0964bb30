"""The order of change: from a decision to what hosts and switches are told, and when."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from controller.coordinator.tracker import LiveFlow
from controller.model.fabric import Path
from controller.model.rule import FlowKey, FlowRule

SAME_PACE = 1e-3
"Relative difference below which a new pace repeats the old one."


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a decision wants of one flow."""

    flow: LiveFlow
    "The flow."
    class_: int
    "0..7."
    pace: float
    "bit/s on the wire; 0 holds, inf is unpaced."
    path: Path
    "Links it takes."
    line_rate: float = math.inf
    "bit/s of the slowest of them."


@dataclass(slots=True)
class Changes:
    """Five steps, in this order; each holds only differences from what is in force."""

    first: list[Wanted] = field(default_factory=list)
    "Hosts: holds, lower paces, and what needs no rule."
    rules_before: list[FlowRule] = field(default_factory=list)
    "Switches: what a host waits for: new rules, other paths, higher meters."
    then: list[Wanted] = field(default_factory=list)
    "Hosts: grants and higher paces that had to wait for the rules."
    classes: list[FlowRule] = field(default_factory=list)
    "Switches: other classes, for which no host waits."
    lower_meters: list[FlowRule] = field(default_factory=list)
    "Switches: lower meters."


def order_changes(wanted: Sequence[Wanted], in_force: Mapping[FlowKey, FlowRule]) -> Changes:
    """Meters are raised before the host's pace and lowered after it (design: order of change).

    A flow on hold needs no rule: it sends nothing, and its rule goes in when it is granted. A rule
    that was refused is not tried again.
    """
    changes = Changes()
    for want in wanted:
        wants_rule = want.pace > 0 and not want.flow.refused
        must_wait = wants_rule and _add_rule(want, in_force, changes)
        if not _repeats(want):
            lowers = want.flow.setting is not None and want.pace < want.flow.setting[1]
            (changes.then if must_wait and not lowers else changes.first).append(want)
    return changes


def _add_rule(want: Wanted, in_force: Mapping[FlowKey, FlowRule], changes: Changes) -> bool:
    """Queues what a flow's rule lacks; returns whether its host must wait for it."""
    if want.flow.key is None:
        return False
    slowed = _above(want.line_rate, want.pace)  # the ports keep everybody to the line rate
    rule = FlowRule(
        key=want.flow.key,
        src_host=want.flow.src_host,
        dst_host=want.flow.dst_host,
        class_=want.class_,
        path=want.path,
        meter_rate=want.pace if slowed else None,
    )
    old = in_force.get(rule.key)
    if old is None or old.path != rule.path or _above(_meter(rule), _meter(old)):
        changes.rules_before.append(rule)
        return True
    if old.class_ != rule.class_:
        changes.classes.append(replace(rule, meter_rate=old.meter_rate))
    if _above(_meter(old), _meter(rule)):
        changes.lower_meters.append(rule)
    return False


def _repeats(want: Wanted) -> bool:
    if want.flow.setting is None:
        return False
    class_, pace = want.flow.setting
    if want.pace == 0 and pace == 0:
        return True  # on hold, the class says nothing
    return class_ == want.class_ and _close(pace, want.pace)


def _meter(rule: FlowRule) -> float:
    return math.inf if rule.meter_rate is None else rule.meter_rate


def _above(a: float, b: float) -> bool:
    return a > b and not _close(a, b)


def _close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= SAME_PACE * min(a, b)

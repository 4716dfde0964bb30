"""The decision loop: when flows start or end, the policy is asked and the differences are sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from controller.coordinator.changes import Changes, Wanted, order_changes
from controller.coordinator.enforcer import FlowEnforcer
from controller.coordinator.tracker import LiveFlow, Tracker
from controller.coordinator.trickle import without_trickles
from controller.model.network import DATA_CLASSES
from controller.model.rule import FlowKey, FlowRule, RuleError
from controller.scheduling.classes import cut_classes
from controller.scheduling.policy import Policy

FIRST = DATA_CLASSES - 1
"The class that is served before all other data."

METER_SETTLES = 0.25
"""Seconds a flow's pace has to stay below its meter before the meter follows it down. Paces change
at every flow's start and end; a meter that is still high is not raised again when the pace is."""

Tell = Callable[[int, Sequence[Wanted], float], None]
"Sends settings to a session, by its number, with the moment from which they hold."


@dataclass(slots=True)
class LoopStatistics:
    """What the loop did, for the report."""

    decisions: int = 0
    "Times the policy was asked."
    settings: int = 0
    "Settings sent to hosts."
    rules: int = 0
    "Rules sent to switches."
    refused: list[RuleError] = field(default_factory=list)
    "What switches refused."
    latencies: list[float] = field(default_factory=list)
    "Seconds from each flow's ready time to its first setting."
    decide_s: float = 0.0
    "Seconds spent in the policy, in all."
    apply_s: float = 0.0
    "Seconds spent waiting for the switches, in all."


class DecisionLoop:
    """Asks `policy` about the flows of `tracker`, and carries the answer out.

    Events that arrive within `debounce` seconds are decided together. Decisions are carried out
    one after another, so that what is in force is known when the next is compared with it.
    """

    def __init__(
        self,
        tracker: Tracker,
        policy: Policy,
        enforcer: FlowEnforcer,
        tell: Tell,
        debounce: float,
        note: Callable[[str], None],
    ) -> None:
        """`note` is told, in one line each, what a report must not hide."""
        self.statistics = LoopStatistics()
        self._tracker = tracker
        self._policy = policy
        self._enforcer = enforcer
        self._tell = tell
        self._debounce = debounce
        self._note = note
        self._event = asyncio.Event()
        self._in_force: dict[FlowKey, FlowRule] = {}
        self._gone: set[FlowKey] = set()
        self._ending: set[FlowKey] = set()
        self._moment = 0.0
        self._too_high: dict[FlowKey, tuple[float, FlowRule]] = {}  # meters: when to lower to what

    def wake(self) -> None:
        """Something changed: decide soon."""
        self._event.set()

    def holds_from(self, at: float) -> None:
        """A flow is about to end or to begin `at`: decisions until then are for that moment."""
        self._moment = max(self._moment, at)

    def ends(self, key: FlowKey) -> None:
        """A flow's last bytes are on their way: they go first, or what follows would starve them."""
        self._ending.add(key)

    def forget(self, key: FlowKey) -> None:
        """A connection will carry nothing more: its rule goes with the next decision."""
        self._gone.add(key)
        self._event.set()

    async def run(self) -> None:
        """Until cancelled."""
        valid_until = float("inf")
        while True:
            due = min((due for due, _ in self._too_high.values()), default=float("inf"))
            await self._next_event(min(valid_until, due))
            if self._event.is_set() or time.monotonic() >= valid_until:
                self._event.clear()
                valid_until = await self.decide()
            await self._lower_meters()

    async def decide(self) -> float:
        """One decision, carried out: returns until when it is valid, in seconds."""
        removed = sorted(self._gone & self._in_force.keys())
        self._gone.clear()
        if removed:
            await self._set_rules(removed)
        now = time.monotonic()
        state, flows = self._tracker.state(now)
        if not flows:
            self._too_high.clear()
            return float("inf")
        decision = self._policy.decide(state)
        decision = replace(decision, pace=without_trickles(state, decision.pace))
        highest = np.array([FIRST if f.sent_in is None else f.sent_in for f in flows], np.int64)
        classes = cut_classes(state, decision, DATA_CLASSES, highest)
        self.statistics.decisions += 1
        self.statistics.decide_s += time.monotonic() - now
        wanted = [
            Wanted(
                flow,
                0 if flow.refused else class_,
                pace,
                self._tracker.path(flow),
                self._tracker.line_rate(flow),
            )
            for flow, class_, pace in zip(
                flows, classes.tolist(), decision.pace.tolist(), strict=True
            )
        ]
        changes = order_changes(wanted, self._in_force)
        changes.rules_before += self._last_bytes_first(flows)
        await self._carry_out(changes)
        return decision.valid_until + self._tracker.epoch

    async def clear(self) -> None:
        """Takes every rule out of the switches."""
        await self._set_rules(sorted(self._in_force))

    async def _carry_out(self, changes: Changes) -> None:
        moment = self._moment
        self._tell_hosts(changes.first, moment)
        await self._set_rules(changes.rules_before)
        self._tell_hosts(changes.then, moment)
        await self._set_rules(changes.classes)
        due = time.monotonic() + METER_SETTLES
        self._too_high = {
            rule.key: (self._too_high.get(rule.key, (due, rule))[0], rule)
            for rule in changes.lower_meters
        }

    def _last_bytes_first(self, flows: Sequence[LiveFlow]) -> list[FlowRule]:
        keys = self._ending - {flow.key for flow in flows}  # unless another flow took it over
        self._ending.clear()
        rules = [self._in_force[key] for key in keys if key in self._in_force]
        return [replace(rule, class_=FIRST) for rule in rules if rule.class_ != FIRST]

    async def _lower_meters(self) -> None:
        """Lowers the meters whose flows have been slower for long enough."""
        now = time.monotonic()
        settled = [rule for due, rule in self._too_high.values() if due <= now]
        for rule in settled:
            del self._too_high[rule.key]
        await self._set_rules(settled)

    def _tell_hosts(self, wanted: Iterable[Wanted], not_before: float) -> None:
        now = time.monotonic()
        by_owner: dict[int, list[Wanted]] = {}
        for want in wanted:
            flow = want.flow
            if self._tracker.flows.get(flow.name) is not flow:
                continue  # finished while the switches were asked
            if flow.refused:
                want = replace(want, class_=0)
            if flow.setting is None:
                self.statistics.latencies.append(max(0.0, now - flow.ready))
            self._tracker.told(flow, want.class_, want.pace, max(now, not_before))
            by_owner.setdefault(flow.owner, []).append(want)
        for owner, settings in by_owner.items():
            self.statistics.settings += len(settings)
            self._tell(owner, settings, not_before)

    async def _set_rules(self, rules: Sequence[FlowRule | FlowKey]) -> None:
        if not rules:
            return
        # Remembered first: if we are cancelled while the switches are asked, `clear` must know.
        for rule in rules:
            if isinstance(rule, FlowRule):
                self._in_force[rule.key] = rule
        begun = time.monotonic()
        errors = await self._enforcer.set_flows(rules)
        self.statistics.apply_s += time.monotonic() - begun
        self.statistics.rules += len(rules)
        for rule in rules:
            if not isinstance(rule, FlowRule):
                self._in_force.pop(rule, None)
        if errors:
            self._refused(errors)

    def _refused(self, errors: Sequence[RuleError]) -> None:
        self.statistics.refused += errors
        by_key: dict[FlowKey | None, LiveFlow] = {
            flow.key: flow for flow in self._tracker.flows.values()
        }
        for error in errors:
            self._in_force.pop(error.key, None)
            flow = by_key.get(error.key)
            what = "a finished flow" if flow is None else "flow " + "/".join(map(str, flow.name))
            self._note(f"{error.switch} refused the rule of {what}, now class 0: {error.reason}")
            if flow is not None:
                flow.refused = True

    async def _next_event(self, valid_until: float) -> None:
        """Waits for something to decide, then as long as further events may come with it."""
        # Never less than the debounce: a policy that wants to be asked at once, again and again,
        # must not keep the hosts from being heard.
        left = max(self._debounce, valid_until - time.monotonic())
        patience = None if valid_until == float("inf") else left
        try:
            await asyncio.wait_for(self._event.wait(), patience)
        except asyncio.TimeoutError:
            return
        await asyncio.sleep(self._debounce)

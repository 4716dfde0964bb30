"""The fabric's switches as one: forwarding, flow rules, counters, and what happens when a cable dies."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import finsy as fy

from controller.model.network import Network
from controller.model.rule import FlowKey, FlowRule, RuleError
from controller.switches.carrier import CarrierWatch
from controller.switches.counters import FabricCounters
from controller.switches.entries import Key, key_of, keyed
from controller.switches.flows import flow_key, rule_entries
from controller.switches.neighbours import Neighbours
from controller.switches.routes import Routes
from controller.switches.session import SwitchSession

LOG = logging.getLogger("echelon.switches")

_FINSY_LOG = logging.getLogger("finsy")

COMPILED = Path(__file__).resolve().parents[2] / "p4" / "compiled"

PIPELINE = (COMPILED / "echelon.p4info.txtpb", COMPILED / "echelon.json")
"P4Info and BMv2 JSON of `p4/echelon.p4`."

START_SECONDS = 30.0
"How long a switch has to answer and take the pipeline; the embedded one may compile it."

ECN_THRESHOLD = 16
"Frames in a class's queue, the switch's own or the phantom one, from which capable packets are marked."


class FabricDriver:
    """Drives all P4Runtime switches of a network; what runs already is reconciled, never wiped."""

    def __init__(
        self,
        network: Network,
        pipeline: tuple[Path, Path] = PIPELINE,
        *,
        on_links: Callable[[frozenset[int], list[FlowKey]], None] | None = None,
        on_unknown_flow: Callable[[str, FlowKey, int], None] | None = None,
    ) -> None:
        """`on_links(down, unpinned)`: the links now down, and the flows that lost their path (they go by ECMP).

        `on_unknown_flow(switch, 5-tuple, reason)`: reason 1, an edge met a flow without a rule; 2, a pinned
        path was dead. Both are called in the event loop.
        """
        self._network = network
        self._pipeline = pipeline
        self._on_links = on_links or (lambda down, unpinned: None)
        self._on_unknown_flow = on_unknown_flow or (lambda switch, key, reason: None)
        self._routes = Routes(network)
        self._rules: dict[FlowKey, FlowRule] = {}
        self._sessions: dict[str, SwitchSession] = {}
        self._carrier: CarrierWatch | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._log_handler = _FailureHandler(self._sessions)

    async def start(self) -> None:
        """Connect to all switches and make them forward. Raises WorkFailed naming the switch and the reason."""
        _FINSY_LOG.addHandler(self._log_handler)
        _FINSY_LOG.setLevel(logging.CRITICAL)
        _FINSY_LOG.propagate = False
        election_id = time.time_ns()  # rises: the newest controller holds the switches
        neighbours = Neighbours(self._network.hosts)
        for switch in self._network.switches:
            session = SwitchSession(
                switch, self._pipeline, election_id, neighbours, self._on_unknown_flow
            )
            session.defaults = [
                fy.P4TableEntry(
                    "ecn_threshold",
                    action=fy.P4TableAction("set_ecn_threshold", packets=ECN_THRESHOLD),
                    is_default_action=True,
                )
            ]
            session.ports = self._network.ports(switch.name)
            session.wanted = keyed(self._routes.entries(switch.name))
            self._sessions[switch.name] = session
        starts = [session.start(START_SECONDS) for session in self._sessions.values()]
        try:
            await _all(starts)
        except BaseException:
            await self.stop()
            raise
        self._carrier = CarrierWatch(self._network, self._carrier_changed)
        self._carrier.start()

    async def stop(self) -> None:
        """Disconnect; the switches keep forwarding (idempotent)."""
        if self._carrier is not None:
            self._carrier.stop()
            self._carrier = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(session.stop() for session in self._sessions.values()))
        self._sessions.clear()
        _FINSY_LOG.removeHandler(self._log_handler)

    async def set_flows(self, changes: Sequence[FlowRule | FlowKey]) -> list[RuleError]:
        """Put these rules in force and remove those of the bare keys; only differences are sent.

        Returns when the switches have answered. What a switch refused is in the answer and is not tried again: the
        flow travels in class 0 there.
        """
        touched: set[str] = set()
        for change in changes:
            key = change.key if isinstance(change, FlowRule) else change
            rule = change if isinstance(change, FlowRule) else None
            touched |= self._replace(self._rules.get(key), rule)
            if rule is None:
                self._rules.pop(key, None)
            else:
                self._rules[key] = rule
        return await self._apply(touched)

    async def counters(self) -> FabricCounters:
        """Read the counters of all switches. Raises WorkFailed when one does not answer."""
        read = await asyncio.gather(*(session.counters() for session in self._sessions.values()))
        return FabricCounters(dict(zip(self._sessions, read, strict=True)))

    async def set_failed_links(self, down: frozenset[int]) -> list[FlowKey]:
        """Route around the links that are down, all others being up; the flows whose pinned path is lost."""
        lost = [key for key, rule in self._rules.items() if down & set(rule.path)]
        hit = [
            rule for rule in self._rules.values() if (down | self._routes.failed) & set(rule.path)
        ]
        old = {rule.key: rule_entries(self._routes, rule) for rule in hit}
        old_static = {name: keyed(self._routes.entries(name)) for name in self._sessions}
        self._routes.fail(down)
        for name, session in self._sessions.items():
            for entry_key in old_static[name]:
                session.wanted.pop(entry_key, None)
            session.wanted |= keyed(self._routes.entries(name))
        for rule in hit:
            self._exchange(old[rule.key], rule_entries(self._routes, rule))
        await self._apply(set(self._sessions))
        return lost

    def _replace(self, old: FlowRule | None, new: FlowRule | None) -> set[str]:
        """Change what is wanted; the switches concerned."""
        before = [] if old is None else rule_entries(self._routes, old)
        after = [] if new is None else rule_entries(self._routes, new)
        return self._exchange(before, after)

    def _exchange(
        self, before: list[tuple[str, fy.P4TableEntry]], after: list[tuple[str, fy.P4TableEntry]]
    ) -> set[str]:
        for name, entry in before:
            self._sessions[name].wanted.pop(key_of(entry), None)
        for name, entry in after:
            self._sessions[name].wanted[key_of(entry)] = entry
        return {name for name, _ in before + after}

    async def _apply(self, switches: set[str]) -> list[RuleError]:
        names = sorted(switches)
        results = await asyncio.gather(*(self._sessions[name].apply() for name in names))
        errors = []
        for name, refused in zip(names, results, strict=True):
            for key, reason in refused.items():
                self._sessions[name].wanted.pop(key, None)
                errors.append(RuleError(self._rule_of(key), name, reason))
        return errors

    def _rule_of(self, key: Key) -> FlowKey:
        """The rule that an entry of `flow_policy` belongs to: its flow, or the flow it acknowledges."""
        fields = dict(key[1])
        packets = flow_key(
            *(fields.get(name, 0) for name in ("src", "dst", "protocol", "sport", "dport"))
        )
        return packets if packets in self._rules else packets.reversed()

    def _carrier_changed(self, down: frozenset[int]) -> None:
        async def reroute() -> None:
            unpinned = await self.set_failed_links(down)
            LOG.warning("%d links are down, %d flows lost their path", len(down), len(unpinned))
            self._on_links(down, unpinned)

        task = asyncio.create_task(reroute())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _FailureHandler(logging.Handler):
    """finsy logs why setting up a switch failed and tries again; whoever waits for that switch wants to know."""

    def __init__(self, sessions: dict[str, SwitchSession]) -> None:
        super().__init__(logging.CRITICAL)
        self._sessions = sessions

    def emit(self, record: logging.LogRecord) -> None:
        """A record of a failed task has the task's name, `fy:SWITCH|...`, and the exception."""
        if record.exc_info and record.exc_info[1] is not None and record.args:
            name = str(record.args[0]).removeprefix("fy:").partition("|")[0]  # type: ignore[index]
            if name in self._sessions:
                self._sessions[name].fail(record.exc_info[1])


async def _all(starts: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Wait for all, then raise the first failure, so that none is left half-way."""
    for result in await asyncio.gather(*starts, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result

"""The decision loop against an enforcer that remembers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from controller.coordinator import loop as loop_module
from controller.coordinator.changes import Wanted
from controller.coordinator.loop import DecisionLoop
from controller.coordinator.tracker import Tracker
from controller.model import PlacedJob
from controller.model.network import DATA_CLASSES
from controller.model.rule import FlowKey, FlowRule
from controller.scheduling.plan import compile_job
from controller.scheduling.registry import policy
from tests.coordinator.conftest import RATE, RecordingEnforcer, pipeline, star

TOP = DATA_CLASSES - 1
"The class that is served first among data; acknowledgements have class 7."


@dataclass
class Looped:
    """A running loop, with all that it told hosts."""

    loop: DecisionLoop
    tracker: Tracker
    enforcer: RecordingEnforcer
    told: list[tuple[str, int, float]] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)

    async def announce(self, flow: str, port: int) -> None:
        now = asyncio.get_running_loop().time()
        key = FlowKey("10.0.0.1", "10.0.0.2", 6, port, 5000)
        self.tracker.announce(("A", 0, flow), key, 1, now)
        await self.settle()

    async def finish(self, flow: str) -> None:
        self.tracker.finish(("A", 0, flow))
        await self.settle()

    async def settle(self) -> None:
        self.loop.wake()
        await asyncio.sleep(0.03)

    def meters(self) -> list[float | None]:
        return [rule.meter_rate for rule in self.enforcer.installed.values()]


@asynccontextmanager
async def looped(name: str) -> AsyncIterator[Looped]:
    fabric = star(2).fabric()
    tracker = Tracker(fabric, asyncio.get_running_loop().time())
    placed = PlacedJob(pipeline(size=1e9), {"w0": "h1", "w1": "h2"})
    tracker.add_job(compile_job(placed, fabric))
    enforcer = RecordingEnforcer()
    told: list[tuple[str, int, float]] = []
    moments: list[float] = []

    def tell(owner: int, wanted: Sequence[Wanted], not_before: float) -> None:
        told.extend((want.flow.name[2], want.class_, want.pace) for want in wanted)
        moments.extend(not_before for _ in wanted)

    loop = DecisionLoop(tracker, policy(name), enforcer, tell, 0.001, lambda note: None)
    running = asyncio.ensure_future(loop.run())
    try:
        yield Looped(loop, tracker, enforcer, told, moments)
    finally:
        running.cancel()


async def test_what_is_in_force_costs_nothing() -> None:
    async with looped("fifo") as system:
        await system.announce("a0", 1000)
        calls, told = len(system.enforcer.calls), len(system.told)
        for _ in range(3):
            await system.settle()
        assert (len(system.enforcer.calls), len(system.told)) == (calls, told)


async def test_in_order_the_second_waits_and_takes_over() -> None:
    async with looped("fifo") as system:
        await system.announce("a0", 1000)
        await system.announce("a1", 1001)
        assert [(flow, pace) for flow, _, pace in system.told] == [("a0", RATE), ("a1", 0.0)]
        assert len(system.enforcer.installed) == 1  # a waiter needs no rule
        await system.finish("a0")
        assert system.told[-1] == ("a1", TOP, RATE)


async def test_a_meter_follows_its_pace_down_only_when_it_has_stood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_module, "METER_SETTLES", 0.2)
    async with looped("echelon") as system:
        await system.announce("a0", 1000)
        assert system.meters() == [None]  # at the full rate of its path: the ports see to that
        await system.announce("a1", 1001)  # a0 is slower now
        assert system.told[-1][2] < RATE
        assert system.meters()[0] is None
        await system.finish("a1")  # and as fast as before: its meter was never touched
        assert sum(isinstance(r, FlowRule) and r.key.src_port == 1000
                   for call in system.enforcer.calls for r in call) == 1  # fmt: skip
        await system.announce("a2", 1002)
        await asyncio.sleep(0.3)
        slower = system.meters()[0]
        assert slower is not None and slower < RATE


async def test_what_a_coming_event_changes_holds_from_its_moment_on() -> None:
    async with looped("fifo") as system:
        await system.announce("a0", 1000)
        at = asyncio.get_running_loop().time() + 0.5
        system.loop.holds_from(at)
        await system.announce("a1", 1001)
        await system.finish("a0")
        assert system.moments[0] == 0.0
        assert system.moments[1:] == [at, at]


async def test_the_last_bytes_of_a_flow_go_in_the_first_class() -> None:
    async with looped("fair") as system:
        await system.announce("a0", 1000)
        await system.announce("a1", 1001)
        low, other = system.enforcer.installed
        for key in (low, other):
            system.loop._in_force[key] = replace(system.loop._in_force[key], class_=3)
        system.loop.ends(low)
        await system.finish("a0")
        assert system.enforcer.installed[low].class_ == TOP


async def test_a_closed_connection_takes_its_rule_with_it() -> None:
    async with looped("fair") as system:
        await system.announce("a0", 1000)
        (key,) = system.enforcer.installed
        system.tracker.finish(("A", 0, "a0"))
        system.loop.forget(key)
        await system.settle()
        assert not system.enforcer.installed


async def test_clearing_takes_every_rule_out() -> None:
    async with looped("fair") as system:
        await system.announce("a0", 1000)
        await system.announce("a1", 1001)
        assert len(system.enforcer.installed) == 2
        await system.loop.clear()
        assert not system.enforcer.installed


async def test_a_policy_that_wants_to_be_asked_at_once_does_not_stop_the_loop() -> None:
    async with looped("fifo") as system:
        decide = system.loop._policy.decide

        def impatient(state):  # type: ignore[no-untyped-def]
            decision = decide(state)
            decision.valid_until = state.time
            return decision

        system.loop._policy.decide = impatient  # type: ignore[method-assign]
        await system.announce("a0", 1000)
        await asyncio.sleep(0.1)
        assert system.loop.statistics.decisions > 2
        await asyncio.wait_for(system.announce("a1", 1001), 5.0)
        assert system.told[-1][0] == "a1"

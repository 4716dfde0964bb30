"""A coordinator with agents, all in one process and on the loopback addresses 127.0.1.N."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import msgspec

from controller.api import coordinator_pb2 as api
from controller.api.coordinator_pb2_grpc import CoordinatorStub
from controller.coordinator.client import LiveResult, live_result
from controller.coordinator.coordinator import Coordinator
from controller.coordinator.daemon import serving
from controller.model import Flow, Job, PlacedJob, Task, Workload
from controller.model.network import Cable, Network, NetworkHost, NetworkSwitch
from controller.model.rule import FlowKey, FlowRule, RuleError
from host_agent.agent import Agent

RATE = 400e6


def star(hosts: int, rate: float = RATE) -> Network:
    """Hosts h1..hN on one switch s1; cable i is host i's, links 2i (up) and 2i + 1 (down)."""
    names = [f"h{i + 1}" for i in range(hosts)]
    return Network(
        target="plain",
        link_rate_bps=rate,
        topology=f"big-switch:{hosts}",
        hosts=tuple(
            NetworkHost(h, f"02:00:00:00:00:{i:02x}", f"127.0.1.{i}", "::1", "s1", i)
            for i, h in enumerate(names, 1)
        ),
        switches=(NetworkSwitch("s1", 1, "127.0.0.1:1", host_ports=tuple(range(1, hosts + 1))),),
        links=tuple(Cable(h, 0, "s1", i, rate) for i, h in enumerate(names, 1)),
    )


def pipeline(name: str = "A", size: float = 2e6, seconds: float = 0.02) -> Job:
    """Two workers, three micro-batches: tasks f0..f2 at w0, flows a0..a2, tasks g0..g2 at w1."""
    batches = range(3)
    made = [Task(f"f{k}", "w0", seconds) for k in batches]
    used = [Task(f"g{k}", "w1", seconds, (f"a{k}",)) for k in batches]
    flows = [Flow(f"a{k}", "w0", "w1", size, (f"f{k}",)) for k in batches]
    return Job(name, ("w0", "w1"), (*made, *used), tuple(flows))


def placed(job: Job, *hosts: str) -> Workload:
    """A workload of one job, its workers on these hosts in order."""
    return Workload((PlacedJob(job, dict(zip(job.workers, hosts, strict=True))),))


@dataclass
class RecordingEnforcer:
    """Remembers what it was asked; refuses the rules of some flows."""

    calls: list[list[FlowRule | FlowKey]] = field(default_factory=list)
    refuse: int = 0
    "How many of the next rules to refuse."
    delay: float = 0.0
    "Seconds each call takes."

    async def set_flows(self, changes: Sequence[FlowRule | FlowKey]) -> list[RuleError]:
        self.calls.append(list(changes))
        await asyncio.sleep(self.delay)
        errors = []
        for change in changes:
            if isinstance(change, FlowRule) and self.refuse > 0:
                self.refuse -= 1
                errors.append(RuleError(change.key, "s1", "table full"))
        return errors

    async def counters(self) -> Any:
        return {"calls": len(self.calls)}

    @property
    def installed(self) -> dict[FlowKey, FlowRule]:
        """The rules in force after all calls."""
        rules: dict[FlowKey, FlowRule] = {}
        for call in self.calls:
            for change in call:
                if isinstance(change, FlowRule):
                    rules[change.key] = change
                else:
                    rules.pop(change, None)
        return rules


@dataclass
class Live:
    """A coordinator that serves, and a way to call it."""

    coordinator: Coordinator
    enforcer: RecordingEnforcer
    address: str
    stub: Any

    async def play(
        self, workload: Workload, policy: str, **fields: Any
    ) -> tuple[LiveResult, list[api.ScenarioEvent]]:
        """Plays a scenario: its result and the events before it."""
        request = api.ScenarioRequest(
            name="test",
            policy=policy,
            workload_json=msgspec.json.encode(workload).decode(),
            time_scale=1.0,
            timeout=20.0,
        )
        for key, value in fields.items():
            setattr(request, key, value)
        events = [event async for event in self.stub.RunScenario(request)]
        return live_result(events[-1].result, workload, request.time_scale), events[:-1]


@asynccontextmanager
async def live(
    tmp_path: Path,
    hosts: int = 2,
    policy: str = "echelon",
    agents: bool = True,
    enforcer: RecordingEnforcer | None = None,
    grant_timeout: float = 2.0,
) -> AsyncIterator[Live]:
    """A coordinator of a star network, with an agent for every host unless told otherwise."""
    enforcer = enforcer or RecordingEnforcer()
    coordinator = Coordinator(star(hosts), enforcer, policy, debounce=0.002)
    address = f"unix:{tmp_path / 'c.sock'}"
    running: list[asyncio.Task[None]] = []
    async with (
        serving(coordinator, address, grant_timeout),
        grpc.aio.insecure_channel(address) as channel,
    ):
        if agents:
            running = [
                asyncio.ensure_future(Agent(f"h{i + 1}", address).run()) for i in range(hosts)
            ]
            await coordinator.wait_for_agents([f"h{i + 1}" for i in range(hosts)], 10.0)
        try:
            yield Live(coordinator, enforcer, address, CoordinatorStub(channel))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

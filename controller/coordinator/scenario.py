"""One scenario: plans to the agents, a common start, and what came of it."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from controller.api import coordinator_pb2 as api
from controller.coordinator.journal import Journal
from controller.coordinator.plans import Endpoint, Plans, make_plans, wire_per_payload
from controller.coordinator.session import Session
from controller.coordinator.tracker import LiveFlow
from controller.model.errors import BadInput, WorkFailed
from controller.model.fabric import Fabric
from controller.model.job import Job, Workload
from controller.model.network import ACK_CLASS, DATA_CLASSES
from controller.scheduling.classes import cut_classes
from controller.scheduling.plan import JobPlan, compile_job
from controller.scheduling.registry import policy as make_policy
from controller.scheduling.state import LOCAL, StateBuilder

if TYPE_CHECKING:
    from controller.coordinator.coordinator import Coordinator

CONGESTION_CONTROL = "cubic"
PROGRESS_INTERVAL = 0.05
"Seconds between reports of what was acknowledged: at 40 Mbit/s, 250 KB."
KEPT_PACE = 0.9
"Part of its pace below which a flow was slowed down by something else than its policy."
_LONG = 0.5  # seconds: shorter flows are slower for their start alone
_AGENT_TIMEOUT = 10.0
_START_DELAY = 0.3
"Seconds between the word to start and the start, so that it reaches every agent before it."

Emit = Callable[[api.ScenarioEvent], None]


@dataclass(frozen=True, slots=True)
class Scales:
    """How a workload's sizes and times become live ones."""

    size: float | None
    "Live bytes per profile byte, > 0; None: each job by its reference rate."
    time: float
    "Live seconds per profile second, > 0."


class Scenario:
    """A workload played once under one policy on the attached agents."""

    def __init__(
        self,
        name: str,
        policy: str,
        workload: Workload,
        fabric: Fabric,
        link_rate: float,
        scales: Scales,
        timeout: float,
        ipv6: bool,
        emit: Emit,
    ) -> None:
        """`link_rate` in bit/s, `timeout` in seconds; `emit` takes events. Raises BadInput."""
        if not (scales.time > 0 and timeout > 0 and (scales.size is None or scales.size > 0)):
            raise BadInput(f"scenario {name}: size_scale, time_scale and timeout must be above 0")
        self.name = name
        self.policy = policy
        self.ipv6 = ipv6
        self.started = False
        "Whether agents were told to start: what they said before belongs to another scenario."
        self._workload = workload
        self._fabric = fabric
        self._time_scale = scales.time
        self._timeout = timeout
        self._emit = emit
        self._compiled = [
            (
                placed,
                compile_job(
                    placed, fabric, _size_scale(placed.job, link_rate, scales), scales.time
                ),
            )
            for placed in workload.jobs
        ]
        names = [placed.job.name for placed in workload.jobs]
        if len(set(names)) < len(names):
            raise BadInput(f"scenario {name}: two jobs have one name; they are {', '.join(names)}")
        make_policy(policy)
        self._notes: list[str] = []
        self._ready: set[str] = set()
        self._connected: set[str] = set()
        self._plans = Plans({}, {}, {}, {})
        self._agents: dict[str, Session] = {}
        self._journal = Journal({}, 0.0)
        self._turn = asyncio.Event()
        self._failure: str | None = None

    def job_plans(self) -> list[JobPlan]:
        """The compiled jobs."""
        return [plan for _, plan in self._compiled]

    async def play(self, coordinator: Coordinator) -> api.ScenarioResult:
        """From plans to result. Raises WorkFailed with the first thing that went wrong."""
        hosts = {host for placed, _ in self._compiled for host in placed.placement.values()}
        await coordinator.wait_for_agents(hosts, _AGENT_TIMEOUT)
        self._agents = {host: coordinator.agents()[host] for host in sorted(hosts)}
        self._warm_up()
        before = await coordinator.enforcer.counters()
        try:
            await self._hand_out_plans(coordinator)
            gc.collect()
            gc.freeze()  # a collection in the middle would delay a decision
            self._start(coordinator)
            await self._until(lambda: self._journal.complete, self._timeout, self._what_is_left)
        finally:
            gc.unfreeze()
            for agent in self._agents.values():
                agent.tell(api.ToHost(stop=api.Stop(scenario=self.name, reason="over")))
        finished = time.monotonic()
        after = await coordinator.enforcer.counters()
        return self._result(coordinator, finished, before, after)

    # -- what agents report -----------------------------------------------------------------

    def hear(self, session: Session, message: api.FromHost) -> None:
        """Messages that only matter to a scenario. Raises KeyError."""
        kind = message.WhichOneof("kind")
        if kind == "plan_ready" and message.plan_ready.scenario == self.name:
            self._ready.add(session.host)
        elif kind == "connected" and message.connected.scenario == self.name:
            self._connected.add(session.host)
        elif kind == "task_done":
            self._task_done(message.task_done)
        elif kind == "flow_sent":
            self._journal.sent(message.flow_sent)
            if message.flow_sent.grant_timed_out:
                self.note(f"flow {message.flow_sent.id.flow} was not granted in time: class 0")
        elif kind == "error":
            self.fail(f"{session.host}: {message.error.message}")
        self._turn.set()

    def flow_ready(self, flow: LiveFlow) -> None:
        """A flow was announced."""
        self._journal.ready(flow)

    def flow_ending(self, message: api.FlowEnding) -> bool:
        """A flow is about to end: tells who has flows that wait for it, returns whether any has."""
        name = message.id
        hosts = self._plans.successors.get((name.job, name.flow), ())
        for host in hosts:
            expected = api.Item(
                job=name.job, iteration=name.iteration, item=name.flow, at=message.at
            )
            self._agents[host].tell(api.ToHost(item_expected=expected))
        return bool(hosts)

    def flow_received(self, message: api.FlowReceived) -> None:
        """A flow arrived. Raises KeyError."""
        self._journal.received(message)
        self._relay(message.id.job, message.id.iteration, message.id.flow, message.at)
        self._turn.set()

    def note(self, message: str) -> None:
        """Something the report must not hide."""
        self._notes.append(message)
        self._emit(api.ScenarioEvent(note=api.Note(message=message)))

    def fail(self, message: str) -> None:
        """The scenario cannot be completed; the first reason is the one told."""
        self._failure = self._failure or message
        self._turn.set()

    def _task_done(self, message: api.TaskDone) -> None:
        self._relay(message.job, message.iteration, message.task, message.finish)
        iteration = self._journal.task_done(message)
        if iteration is not None:
            self._emit(api.ScenarioEvent(iteration_done=iteration))

    def _relay(self, job: str, iteration: int, item: str, at: float) -> None:
        for host in self._plans.relays.get((job, item), ()):
            done = api.Item(job=job, iteration=iteration, item=item, at=at)
            self._agents[host].tell(api.ToHost(item_done=done))

    # -- the course of a scenario -----------------------------------------------------------

    def _warm_up(self) -> None:
        """Compiles what the policy compiles on first use, before time counts."""
        builder = StateBuilder(self._fabric)
        slots = [
            builder.start(handle, row, 0, 0.0)
            for plan in self.job_plans()
            for handle in [builder.add_job(plan)]
            for row in range(min(2, len(plan.job.flows)))
        ]
        if any(slot != LOCAL for slot in slots):
            state = builder.state(0.0)
            decision = make_policy(self.policy).decide(state)
            cut_classes(state, decision, DATA_CLASSES)
            decision.rank = np.arange(state.flows)
            cut_classes(state, decision, classes=1)  # as when there are more ranks than classes

    async def _hand_out_plans(self, coordinator: Coordinator) -> None:
        endpoints = {}
        for name, agent in self._agents.items():
            host = coordinator.network.host(name)
            endpoints[name] = Endpoint(host.ipv6 if self.ipv6 else host.ipv4, agent.listen_port)
        factor = wire_per_payload(self.ipv6)
        self._plans = make_plans(self._compiled, endpoints, factor, self._time_scale)
        transport = api.TransportPlan(
            congestion_control=CONGESTION_CONTROL,
            ack_class=ACK_CLASS,
            wire_per_payload=factor,
            progress_interval=PROGRESS_INTERVAL,
        )
        for name, agent in self._agents.items():
            workers = self._plans.hosts.get(name, [])
            plan = api.Plan(scenario=self.name, workers=workers, transport=transport)
            agent.tell(api.ToHost(plan=plan))
        await self._until_all(self._ready, "to their plan")
        for agent in self._agents.values():
            agent.tell(api.ToHost(connect=api.Connect(scenario=self.name)))
        await self._until_all(self._connected, "that they are connected")

    async def _until_all(self, answered: set[str], what: str) -> None:
        await self._until(
            lambda: self._agents.keys() <= answered,
            _AGENT_TIMEOUT,
            lambda: f"no answer {what} from {', '.join(sorted(self._agents.keys() - answered))}",
        )

    def _start(self, coordinator: Coordinator) -> None:
        at = time.monotonic() + _START_DELAY
        coordinator.tracker.epoch = at
        self.started = True
        self._journal = Journal({plan.job.name: plan for plan in self.job_plans()}, at)
        for agent in self._agents.values():
            agent.tell(api.ToHost(start=api.Start(scenario=self.name, at=at)))
        started = api.ScenarioStarted(at=at, flows=self._journal.left, agents=len(self._agents))
        self._emit(api.ScenarioEvent(started=started))

    async def _until(
        self, done: Callable[[], bool], timeout: float, what_is_left: Callable[[], str]
    ) -> None:
        deadline = time.monotonic() + timeout
        while self._failure is None and not done():
            self._turn.clear()
            left = deadline - time.monotonic()
            try:
                await asyncio.wait_for(self._turn.wait(), max(0.0, left))
            except asyncio.TimeoutError:
                self.fail(f"given up after {timeout:g} s: {what_is_left()}")
        if self._failure is not None:
            raise WorkFailed(f"scenario {self.name}, policy {self.policy}: {self._failure}")

    def _note_slow(self, flows: list[api.FlowRecord]) -> None:
        """Whoever reads the result must know when it measures this machine and not the policy."""
        long = [flow for flow in flows if flow.pace_ratio > 0 and flow.finish - flow.start > _LONG]
        slow = [flow for flow in long if flow.pace_ratio < KEPT_PACE]
        if slow:
            worst = min(slow, key=lambda flow: flow.pace_ratio)
            self.note(
                f"{len(slow)} of {len(long)} paced flows of more than {_LONG:g} s got less than "
                f"{KEPT_PACE:.0%} of their pace (worst: {worst.id.job}/{worst.id.flow}, "
                f"{worst.pace_ratio:.0%}); many of them: this machine or the network is overloaded"
            )

    def _what_is_left(self) -> str:
        return f"{self._journal.left} tasks and flows were not done"

    def _result(
        self, coordinator: Coordinator, finished: float, before: object, after: object
    ) -> api.ScenarioResult:
        flows = self._journal.flows(coordinator.factor)
        self._note_slow(flows)
        return api.ScenarioResult(
            name=self.name,
            policy=self.policy,
            started=self._journal.start,
            finished=finished,
            flows=flows,
            tasks=self._journal.tasks(),
            notes=self._notes,
            counters_before_json=_json(before),
            counters_after_json=_json(after),
            decisions=decision_record(coordinator, self._journal),
            kernel=next(iter(self._agents.values())).kernel,
        )


def decision_record(coordinator: Coordinator, journal: Journal | None) -> api.DecisionRecord:
    """What the loop did so far."""
    done = coordinator.loop.statistics
    latencies = np.array(done.latencies or [0.0])
    decisions = max(1, done.decisions)
    return api.DecisionRecord(
        decisions=done.decisions,
        settings_sent=done.settings,
        rules_sent=done.rules,
        rules_refused=len(done.refused),
        grants_timed_out=0 if journal is None else journal.grants_timed_out,
        latency_mean=float(latencies.mean()),
        latency_p99=float(np.percentile(latencies, 99)),
        decide_mean=done.decide_s / decisions,
        apply_mean=done.apply_s / decisions,
    )


def _size_scale(job: Job, link_rate: float, scales: Scales) -> float:
    if scales.size is not None:
        return scales.size
    return 1.0 if job.reference_rate is None else link_rate / job.reference_rate


def _json(counters: object) -> str:
    return "" if counters is None else msgspec.json.encode(counters).decode()

"""The flows under way, as far as the coordinator knows: their state for a policy, their settings."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from controller.model.fabric import Fabric, Path
from controller.model.rule import FlowKey
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import NetworkState
from controller.scheduling.routing import Routing
from controller.scheduling.state import LOCAL, StateBuilder

FlowName = tuple[str, int, str]
"Job, iteration, id."

_LEAST_LEFT = 1514.0
"Bytes a flow has left, at least, until one of its ends says otherwise."
_LEAST_SECONDS = 0.002
"""And seconds at its pace: 4 ms before its end the sender would have said so. A flow that is later
than reckoned must not look finished, or the policy gives it next to nothing."""


@dataclass(slots=True)
class LiveFlow:
    """One flow from its announcement to its end."""

    name: FlowName
    "Which flow."
    slot: int
    "Its slot in the state; LOCAL: it never enters the network."
    size: float
    "Wire bytes."
    src_host: str
    "Sending host."
    dst_host: str
    "Receiving host."
    key: FlowKey | None
    "5-tuple of its connection; None for a local flow."
    owner: int
    "The session that announced it."
    ready: float
    "When it became ready, in seconds."
    ideal_finish: float
    "d_j in seconds."
    setting: tuple[int, float] | None = None
    "(class, pace) its host was last told; None: nothing yet."
    sent_in: int | None = None
    "The class it was last told to send in; None: it never sent."
    refused: bool = False
    "A switch refused its rule: it stays in class 0."
    history: list[tuple[float, int, float]] = field(default_factory=list)
    "(time, class, pace) of every setting."
    sent: float = 0.0
    "Wire bytes it had sent at `sent_at`."
    sent_at: float = 0.0
    "When that was known, in seconds."
    speed: float = 0.0
    "Wire bit/s it was measured at, for flows nobody paces."

    def sent_by(self, now: float) -> float:
        """Wire bytes it has sent by now: the last report, carried on at its pace."""
        pace = 0.0 if self.setting is None else self.setting[1]
        rate = self.speed if math.isinf(pace) else pace
        return self.sent + rate / 8 * max(0.0, now - self.sent_at)


class Tracker:
    """All flows of all jobs. Times in seconds on the coordinator's clock, sizes in wire bytes."""

    def __init__(self, fabric: Fabric, epoch: float, routing: Routing | None = None) -> None:
        """`epoch`: where the workload's own time, which policies see, begins."""
        self.epoch = epoch
        self.builder = StateBuilder(fabric, routing)
        self.flows: dict[FlowName, LiveFlow] = {}
        "Flows announced and not finished."
        self._plans: dict[str, tuple[int, JobPlan]] = {}
        self._by_slot: dict[int, LiveFlow] = {}

    def add_job(self, plan: JobPlan) -> None:
        """A job whose flows may be announced from now on."""
        self._plans[plan.job.name] = (self.builder.add_job(plan), plan)

    def remove_job(self, name: str) -> None:
        """Forgets a job and its flows. Raises KeyError."""
        handle, _ = self._plans.pop(name)
        for flow in [flow for flow in self.flows.values() if flow.name[0] == name]:
            self._forget(flow)
        self.builder.remove_job(handle)

    def jobs(self) -> list[str]:
        """Names of the jobs known."""
        return list(self._plans)

    def announce(self, name: FlowName, key: FlowKey | None, owner: int, at: float) -> LiveFlow:
        """A flow became ready. Raises KeyError naming a job or flow that is not known."""
        job, iteration, flow_id = name
        if job not in self._plans:
            raise KeyError(f"no job {job} is known")
        handle, plan = self._plans[job]
        if flow_id not in plan.flow_row:
            raise KeyError(f"job {job} has no flow {flow_id}")
        if name in self.flows:
            raise KeyError(f"flow {flow_id} of {job}, iteration {iteration}, is under way already")
        row = plan.flow_row[flow_id]
        slot = self.builder.start(handle, row, iteration, at - self.epoch)
        flow = LiveFlow(
            name=name,
            slot=slot,
            size=plan.size[row],
            src_host=plan.src[row],
            dst_host=plan.dst[row],
            key=key,
            owner=owner,
            ready=at,
            ideal_finish=at if slot == LOCAL else self.epoch + self.builder.ideal_finish(slot),
            sent_at=at,
        )
        self.flows[name] = flow
        if slot != LOCAL:
            self._by_slot[slot] = flow
        return flow

    def progress(self, name: FlowName, wire_bytes: float, at: float) -> None:
        """The flow had `wire_bytes` acknowledged at a moment; unknown flows are passed over."""
        flow = self.flows.get(name)
        if flow is None or at <= flow.sent_at:
            return
        flow.speed = max(0.0, wire_bytes - flow.sent) * 8 / (at - flow.sent_at)
        flow.sent, flow.sent_at = wire_bytes, at

    def told(self, flow: LiveFlow, class_: int, pace: float, at: float) -> None:
        """The flow's host is told a new setting."""
        flow.sent, flow.sent_at = flow.sent_by(at), at
        flow.setting = (class_, pace)
        if pace > 0:
            flow.sent_in = class_
        flow.history.append((at, class_, pace))

    def finish(self, name: FlowName) -> LiveFlow | None:
        """The flow's last byte arrived; None if it was not under way."""
        flow = self.flows.get(name)
        if flow is not None:
            if flow.slot != LOCAL:
                self.builder.finish(flow.slot)
            self._forget(flow)
        return flow

    def state(self, now: float) -> tuple[NetworkState, list[LiveFlow]]:
        """What a policy sees now, in the workload's own time, and the flow of each of its rows."""
        for slot, flow in self._by_slot.items():
            self.builder.set_remaining(slot, self.remaining(flow, now))
        state = self.builder.state(now - self.epoch)
        return state, [self._by_slot[slot] for slot in self.builder.rows.tolist()]

    def path(self, flow: LiveFlow) -> Path:
        """The links the flow takes."""
        return self.builder.paths[flow.slot]

    def line_rate(self, flow: LiveFlow) -> float:
        """bit/s of the slowest link the flow takes; inf for one that stays on its host."""
        links = self.builder.fabric.links
        return min((links[link].rate for link in self.path(flow)), default=math.inf)

    def remaining(self, flow: LiveFlow, now: float) -> float:
        """Wire bytes the flow has left, as far as is known."""
        pace = 0.0 if flow.setting is None else flow.setting[1]
        soon = 0.0 if math.isinf(pace) else pace / 8 * _LEAST_SECONDS
        return min(flow.size, max(_LEAST_LEFT, soon, flow.size - flow.sent_by(now)))

    def _forget(self, flow: LiveFlow) -> None:
        del self.flows[flow.name]
        self._by_slot.pop(flow.slot, None)

"""What happened in a scenario, as agents report it; becomes its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.api import coordinator_pb2 as api
from controller.coordinator.session import flow_id, flow_name
from controller.coordinator.tracker import FlowName, LiveFlow
from controller.scheduling.plan import JobPlan
from controller.scheduling.state import LOCAL


@dataclass(slots=True)
class _Entry:
    flow: LiveFlow
    received: api.FlowReceived | None = None
    sent: api.FlowSent | None = None


@dataclass(slots=True)
class Journal:
    """Every flow and task of every iteration of the scenario's jobs."""

    plans: Mapping[str, JobPlan]
    "Job -> its compiled plan."
    start: float
    "When the scenario began, in seconds on the coordinator's clock."
    _flows: dict[FlowName, _Entry] = field(default_factory=dict)
    _tasks: list[api.TaskRecord] = field(default_factory=list)
    _tasks_left: Counter[tuple[str, int]] = field(default_factory=Counter)
    _last_end: dict[tuple[str, int], float] = field(default_factory=dict)
    _left: int = 0

    def __post_init__(self) -> None:
        for name, plan in self.plans.items():
            for iteration in range(plan.job.iterations):
                self._tasks_left[name, iteration] = plan.tasks
            self._left += plan.job.iterations * (plan.tasks + len(plan.job.flows))

    @property
    def complete(self) -> bool:
        """Whether every task has ended and every flow is accounted for at both its ends."""
        return self._left == 0

    @property
    def left(self) -> int:
        """Tasks and flows not accounted for yet."""
        return self._left

    @property
    def grants_timed_out(self) -> int:
        """Flows that went in class 0 because their grant did not come."""
        return sum(e.sent is not None and e.sent.grant_timed_out for e in self._flows.values())

    def ready(self, flow: LiveFlow) -> None:
        """A flow was announced."""
        self._flows[flow.name] = _Entry(flow)

    def received(self, message: api.FlowReceived) -> None:
        """A flow's receiver has it all. Raises KeyError for a flow nobody announced."""
        entry = self._flows[flow_name(message.id)]
        entry.received = message
        if entry.sent is not None or entry.flow.slot == LOCAL:
            self._left -= 1

    def sent(self, message: api.FlowSent) -> None:
        """A flow's sender has all of it acknowledged. Raises KeyError."""
        entry = self._flows[flow_name(message.id)]
        entry.sent = message
        if entry.received is not None:
            self._left -= 1

    def task_done(self, message: api.TaskDone) -> api.IterationDone | None:
        """A task ended: the iteration, if this was its last task."""
        self._tasks.append(
            api.TaskRecord(
                job=message.job,
                iteration=message.iteration,
                task=message.task,
                worker=message.worker,
                start=message.start - self.start,
                finish=message.finish - self.start,
            )
        )
        self._left -= 1
        key = (message.job, message.iteration)
        self._tasks_left[key] -= 1
        end = max(self._last_end.get(key, 0.0), message.finish - self.start)
        self._last_end[key] = end
        if self._tasks_left[key]:
            return None
        return api.IterationDone(job=message.job, iteration=message.iteration, at=end)

    def tasks(self) -> list[api.TaskRecord]:
        """All tasks that ended."""
        return self._tasks

    def flows(self, factor: float) -> list[api.FlowRecord]:
        """All flows that arrived, in the order they became ready; `factor`: wire per payload."""
        done = [entry for entry in self._flows.values() if entry.received is not None]
        done.sort(key=lambda entry: (entry.flow.ready, entry.flow.name))
        return [self._record(entry, factor) for entry in done]

    def _record(self, entry: _Entry, factor: float) -> api.FlowRecord:
        flow, received, sent = entry.flow, entry.received, entry.sent
        assert received is not None
        job, _, name = flow.name
        plan = self.plans[job]
        row = plan.flow_row[name]
        record = api.FlowRecord(
            id=flow_id(flow.name),
            src=plan.job.flows[row].src,
            dst=plan.job.flows[row].dst,
            echelonflow=plan.group_names[plan.group[row]],
            bytes=received.bytes,
            wire_bytes=flow.size,
            ready=flow.ready - self.start,
            start=flow.ready - self.start,
            finish=received.at - self.start,
            ideal_finish=flow.ideal_finish - self.start,
            classes=[
                api.ClassChange(at=at - self.start, class_=class_, pace=pace)
                for at, class_, pace in flow.history
            ],
        )
        if flow.key is not None:
            record.key.CopyFrom(api.FiveTuple(**flow.key._asdict()))
        if sent is not None:
            record.ready = sent.ready - self.start
            record.start = sent.granted - self.start
            record.retransmits = sent.retransmits
            record.segments = sent.segments
            record.smoothed_rtt = sent.smoothed_rtt
            record.congestion_control = sent.congestion_control
            record.grant_timed_out = sent.grant_timed_out
            record.reused = sent.reused
            if sent.allowed_bits > 0:
                record.pace_ratio = received.bytes * factor * 8 / sent.allowed_bits
        return record

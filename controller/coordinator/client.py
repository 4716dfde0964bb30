"""What experiments and the command line call: a running coordinator, from outside."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import msgspec

from controller.api import coordinator_pb2 as api
from controller.api.coordinator_pb2_grpc import CoordinatorStub
from controller.model.errors import BadInput, WorkFailed
from controller.model.job import PlacedJob, Workload
from controller.model.record import FlowRecord, JobRecord, Played, TaskRecord

_MAX_MESSAGE = 256 * 1024 * 1024
_CONNECT_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class LiveResult:
    """What came of one scenario."""

    played: Played
    "Flows, tasks and jobs, as the simulator also gives them."
    raw: api.ScenarioResult
    "All that was reported: paces, round-trip times, decisions, notes."
    counters_before: Any
    "The switches' counters before; None without switches."
    counters_after: Any
    "And after."


class CoordinatorClient:
    """A channel to a coordinator; errors come as BadInput or WorkFailed in one line."""

    def __init__(self, address: str) -> None:
        """`address`: `unix:PATH` or `HOST:PORT`."""
        self._address = address
        self._channel = grpc.insecure_channel(
            address, options=[("grpc.max_receive_message_length", _MAX_MESSAGE)]
        )
        self._stub = CoordinatorStub(self._channel)

    def wait_ready(self, timeout: float = _CONNECT_TIMEOUT) -> None:
        """Until the coordinator answers. Raises WorkFailed."""
        try:
            grpc.channel_ready_future(self._channel).result(timeout)
        except grpc.FutureTimeoutError:
            raise WorkFailed(f"no controller answers at {self._address} in {timeout:g} s") from None

    def play(
        self,
        name: str,
        workload: Workload,
        policy: str,
        *,
        size_scale: float | None = None,
        time_scale: float = 1.0,
        seed: int = 0,
        timeout: float = 600.0,
        ipv6: bool = False,
        on_event: Callable[[api.ScenarioEvent], None] = lambda event: None,
    ) -> LiveResult:
        """Plays a workload live; `on_event` sees starts, iterations and notes as they happen.

        `size_scale`: live bytes per profile byte; None scales each job by its reference rate, as
        the simulator does. Raises BadInput, WorkFailed.
        """
        request = api.ScenarioRequest(
            name=name,
            policy=policy,
            workload_json=msgspec.json.encode(workload).decode(),
            size_scale=size_scale or 0.0,
            time_scale=time_scale,
            seed=seed,
            timeout=timeout,
            ipv6=ipv6,
        )
        with self._errors():
            for event in self._stub.RunScenario(request):
                if event.WhichOneof("kind") == "result":
                    return live_result(event.result, workload, time_scale)
                on_event(event)
        raise WorkFailed(f"scenario {name}: the controller ended it without a result")

    def add_jobs(self, jobs: tuple[PlacedJob, ...]) -> None:
        """Makes jobs known whose flows framework clients will announce."""
        workload = msgspec.json.encode(Workload(jobs)).decode()
        with self._errors():
            self._stub.AddJobs(api.AddJobsRequest(workload_json=workload))

    def remove_job(self, job: str) -> None:
        """Forgets a job."""
        with self._errors():
            self._stub.RemoveJob(api.RemoveJobRequest(job=job))

    def status(self) -> api.StatusReply:
        """What is attached and in force."""
        with self._errors():
            reply: api.StatusReply = self._stub.Status(api.StatusRequest(), timeout=10)
            return reply

    def close(self) -> None:
        """Closes the channel."""
        self._channel.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            if code == grpc.StatusCode.INVALID_ARGUMENT:
                raise BadInput(details) from None
            if code == grpc.StatusCode.ABORTED:
                raise WorkFailed(details) from None
            raise WorkFailed(f"controller at {self._address}: {details}") from None


def live_result(raw: api.ScenarioResult, workload: Workload, time_scale: float) -> LiveResult:
    """The result in the simulator's own records."""
    flows = tuple(_flow_record(flow) for flow in raw.flows)
    tasks = tuple(
        TaskRecord(t.job, t.iteration, t.task, t.worker, t.start, t.finish) for t in raw.tasks
    )
    jobs = tuple(_job_record(placed, time_scale, flows, tasks) for placed in workload.jobs)
    weights = {placed.job.name: placed.weight for placed in workload.jobs}
    return LiveResult(
        Played(flows, tasks, jobs, weights),
        raw,
        _counters(raw.counters_before_json),
        _counters(raw.counters_after_json),
    )


def _flow_record(flow: api.FlowRecord) -> FlowRecord:
    classes = [change.class_ for change in flow.classes]
    return FlowRecord(
        job=flow.id.job,
        iteration=flow.id.iteration,
        flow=flow.id.flow,
        echelonflow=flow.echelonflow,
        src=flow.src,
        dst=flow.dst,
        bytes=flow.wire_bytes,
        ready=flow.ready,
        start=flow.start,
        finish=flow.finish,
        ideal_finish=flow.ideal_finish,
        classes=tuple(c for i, c in enumerate(classes) if i == 0 or classes[i - 1] != c),
        retransmits=flow.retransmits,
    )


def _job_record(
    placed: PlacedJob,
    time_scale: float,
    flows: tuple[FlowRecord, ...],
    tasks: tuple[TaskRecord, ...],
) -> JobRecord:
    """An iteration ends with its last task; of a job that only sends, with its last flow."""
    job = placed.job
    ends = [0.0] * job.iterations
    for record in tasks if job.tasks else flows:
        if record.job == job.name:
            ends[record.iteration] = max(ends[record.iteration], record.finish)
    return JobRecord(job.name, placed.arrival * time_scale, tuple(ends))


def _counters(text: str) -> Any:
    return json.loads(text) if text else None

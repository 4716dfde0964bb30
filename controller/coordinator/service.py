"""The coordinator's gRPC face."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import grpc
import msgspec

from controller.api import PROTOCOL
from controller.api import coordinator_pb2 as api
from controller.api.boot import boot_id
from controller.api.coordinator_pb2_grpc import CoordinatorServicer
from controller.coordinator.coordinator import Coordinator
from controller.coordinator.scenario import Scales, Scenario, decision_record
from controller.coordinator.session import Session, flow_id
from controller.model.errors import BadInput, EchelonError
from controller.model.job import Workload

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Service(CoordinatorServicer):
    """Turns calls into the coordinator's methods, and its errors into one-line statuses."""

    def __init__(self, coordinator: Coordinator, grant_timeout: float) -> None:
        """`grant_timeout`: seconds after which agents let an unanswered flow go in class 0."""
        self._coordinator = coordinator
        self._grant_timeout = grant_timeout

    async def Attach(
        self, requests: AsyncIterator[api.FromHost], context: Context
    ) -> AsyncIterator[api.ToHost]:
        """Serves one host until either side goes."""
        first = await anext(requests, api.FromHost())
        session = Session(first.hello)
        try:
            _check_protocol(first)
            await self._coordinator.attach(session)
        except EchelonError as error:
            await context.abort(_status(error), str(error))
        session.tell(api.ToHost(welcome=self._welcome(session.host)))
        hearing = asyncio.get_running_loop().create_task(self._hear(session, requests))
        try:
            async for message in session.outgoing():
                yield message
        finally:
            hearing.cancel()
            self._coordinator.detach(session)

    async def RunScenario(
        self, request: api.ScenarioRequest, context: Context
    ) -> AsyncIterator[api.ScenarioEvent]:
        """Plays one scenario; the last event is its result."""
        events: asyncio.Queue[api.ScenarioEvent | None] = asyncio.Queue()
        playing = asyncio.get_running_loop().create_task(self._play(request, events))
        playing.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield api.ScenarioEvent(result=await playing)
        except EchelonError as error:
            await context.abort(_status(error), str(error))
        finally:
            playing.cancel()

    async def AddJobs(self, request: api.AddJobsRequest, context: Context) -> api.AddJobsReply:
        """Makes clients' jobs known."""
        try:
            workload = _workload(request.workload_json)
            self._coordinator.add_jobs(workload.jobs)
        except EchelonError as error:
            await context.abort(_status(error), str(error))
        return api.AddJobsReply(jobs=[placed.job.name for placed in workload.jobs])

    async def RemoveJob(
        self, request: api.RemoveJobRequest, context: Context
    ) -> api.RemoveJobReply:
        """Forgets a job."""
        try:
            self._coordinator.remove_job(request.job)
        except EchelonError as error:
            await context.abort(_status(error), str(error))
        return api.RemoveJobReply()

    async def Status(self, request: api.StatusRequest, context: Context) -> api.StatusReply:
        """What is attached and in force."""
        coordinator = self._coordinator
        scenario = coordinator.scenario
        reply = api.StatusReply(
            policy=coordinator.policy if scenario is None else scenario.policy,
            scenario="" if scenario is None else scenario.name,
            jobs=coordinator.tracker.jobs(),
            decisions=decision_record(coordinator, None),
            notes=coordinator.notes,
        )
        agents = coordinator.agents()
        for host in coordinator.fabric.hosts:
            reply.hosts.add(host=host, role="agent", attached=host in agents)
        for session in coordinator.sessions.values():
            if session.role != "agent":
                reply.hosts.add(host=session.host, role=session.role, attached=True)
        now = coordinator.now()
        for flow in coordinator.tracker.flows.values():
            class_, pace = flow.setting or (0, 0.0)
            status = reply.flows.add(
                id=flow_id(flow.name),
                class_=class_,
                pace=pace,
                remaining=coordinator.tracker.remaining(flow, now),
            )
            if flow.key is not None:
                status.key.CopyFrom(api.FiveTuple(**flow.key._asdict()))
        return reply

    async def _hear(self, session: Session, requests: AsyncIterator[api.FromHost]) -> None:
        try:
            async for message in requests:
                self._coordinator.hear(session, message)
        finally:
            session.close()

    async def _play(
        self, request: api.ScenarioRequest, events: asyncio.Queue[api.ScenarioEvent | None]
    ) -> api.ScenarioResult:
        scenario = Scenario(
            request.name,
            request.policy,
            _workload(request.workload_json),
            self._coordinator.fabric,
            self._coordinator.network.link_rate_bps,
            Scales(request.size_scale or None, request.time_scale),
            request.timeout,
            request.ipv6,
            events.put_nowait,
        )
        return await self._coordinator.play(scenario)

    def _welcome(self, name: str) -> api.Welcome:
        host = self._coordinator.network.host(name)
        return api.Welcome(
            boot_id=boot_id(),
            ipv4=host.ipv4,
            ipv6=host.ipv6,
            grant_timeout=self._grant_timeout,
        )


def _check_protocol(first: api.FromHost) -> None:
    """Raises BadInput unless a stream begins as this protocol wants."""
    if first.WhichOneof("kind") != "hello":
        raise BadInput("the first message of a host must be Hello")
    if first.hello.protocol != PROTOCOL:
        raise BadInput(
            f"the coordinator speaks protocol {PROTOCOL}, {first.hello.host} speaks "
            f"{first.hello.protocol}: install one version of echelon on both"
        )


def _workload(text: str) -> Workload:
    try:
        return msgspec.json.decode(text, type=Workload)
    except msgspec.MsgspecError as error:
        raise BadInput(f"workload: {error}") from None


def _status(error: EchelonError) -> grpc.StatusCode:
    if isinstance(error, BadInput):
        return grpc.StatusCode.INVALID_ARGUMENT
    return grpc.StatusCode.ABORTED

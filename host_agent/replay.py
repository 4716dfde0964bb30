"""The job replayer: one host's workers compute, send and receive in the order of their job's DAG."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from controller.api import coordinator_pb2 as api
from host_agent.board import Board, Item
from host_agent.clock import Clock
from host_agent.connection import Connection, ConnectionPool
from host_agent.pacing import SocketPacer
from host_agent.receiver import Receiver
from host_agent.sender import LEAD, OutgoingFlow, Sent

FlowName = tuple[str, int, str]
"Job, iteration, id."

Pair = tuple[str, str, str]
"Job, sending worker, receiving worker."

OPEN_AHEAD = 8
"Connections opened before the start for each pair of workers, at most one a flow."

Report = Callable[[api.FromHost], None]


class Replay:
    """One scenario on one host, from its plan to its last flow.

    Times of tasks are nominal: a task starts the moment what it waits for was done and ends
    `seconds` later, however late this process woke up, so that the machine's delays do not add up.
    """

    def __init__(
        self,
        plan: api.Plan,
        addresses: tuple[str, str],
        receiver: Receiver,
        clock: Clock,
        grant_timeout: float,
        report: Report,
    ) -> None:
        """`addresses` are this host's IPv4 and IPv6 address; `report` takes what to tell."""
        self.scenario = plan.scenario
        self._plan = plan
        self._transport = plan.transport
        self._ipv4, self._ipv6 = addresses
        self._clock = clock
        self._grant_timeout = grant_timeout
        self._report = report
        self._pacer = SocketPacer(plan.transport.wire_per_payload)
        self._board = Board()
        self._pool = ConnectionPool()
        self._active: dict[FlowName, OutgoingFlow] = {}
        self._expected = {
            receive.number: (worker.job, receive.id, receive.bytes)
            for worker in plan.workers
            for receive in worker.receives
        }
        self._running: set[asyncio.Task[None]] = set()
        receiver.set_ack_class(plan.transport.ack_class)

    def connect(self) -> None:
        """Opens connections before time counts, then says so.

        A SYN lost in a full queue is repeated after a second: under policies that let queues
        fill, that would be measured instead of the policy.
        """
        self._spawn(self._open_all())

    def start(self, at: float) -> None:
        """Plays from the moment `at` on; every failure is reported, none is raised."""
        for worker in self._plan.workers:
            self._spawn(self._work(worker, at + worker.arrival))
        if self._transport.progress_interval > 0:
            self._spawn(self._tell_progress())

    def set(self, settings: api.Settings) -> None:
        """New classes and paces of flows under way; those already finished are passed over."""
        for setting in settings.flows:
            flow = self._active.get(_name(setting.id))
            if flow is not None:
                flow.set(setting.class_, setting.pace, setting.not_before)

    def item_done(self, done: api.Item) -> None:
        """Something this host waits for is done elsewhere."""
        self._board.post((done.job, done.iteration, done.item), done.at)

    def item_expected(self, expected: api.Item) -> None:
        """Something that flows of this host wait for will be done in a moment."""
        self._board.expect((expected.job, expected.iteration, expected.item), expected.at)

    def arrived(self, number: int, iteration: int, size: int, at: float) -> None:
        """The receiver has all of a flow."""
        expected = self._expected.get(number)
        if expected is None or expected[2] != size:
            self._fail(f"received flow number {number} of {size} bytes, which the plan lacks")
            return
        job, flow, _ = expected
        self._board.post((job, iteration, flow), at)
        self._report(
            api.FromHost(
                flow_received=api.FlowReceived(id=_id((job, iteration, flow)), at=at, bytes=size)
            )
        )

    def stop(self) -> None:
        """Ends everything at once and closes the connections."""
        for task in self._running:
            task.cancel()
        self._pool.close()

    async def _open_all(self) -> None:
        opened: Counter[Pair] = Counter()
        for worker in self._plan.workers:
            for send in worker.sends:
                pair = _pair(worker, send)
                if send.dst_ip and opened[pair] < OPEN_AHEAD:
                    opened[pair] += 1
                    connection = self._connection(send)
                    # One after another: the SYNs of all hosts at once overflow a port's queue.
                    await connection.connect()
                    self._pool.give_back(pair, connection)
        self._report(api.FromHost(connected=api.Connected(scenario=self.scenario)))

    async def _work(self, worker: api.WorkerPlan, begin: float) -> None:
        turns = [asyncio.get_running_loop().create_future() for _ in range(worker.iterations)]
        for send in worker.sends:
            self._spawn(self._send_each_iteration(worker, send, turns))
        for iteration, turn in enumerate(turns):
            await self._sleep_until(begin - LEAD)
            turn.set_result(begin)
            await self._sleep_until(begin)
            end = await self._compute(worker, iteration, begin)
            held = [(worker.job, iteration, item) for item in worker.holds]
            begin = max(end, await self._board.when(held))

    async def _compute(self, worker: api.WorkerPlan, iteration: int, begin: float) -> float:
        """Runs the worker's tasks of one iteration: returns when the last one ended."""
        for task in worker.tasks:
            needed = [(worker.job, iteration, item) for item in task.after]
            start = max(begin, await self._board.when(needed))
            begin = start + task.seconds
            item = (worker.job, iteration, task.id)
            await self._sleep_until(begin - LEAD)
            self._board.expect(item, begin)
            await self._sleep_until(begin)
            self._board.post(item, begin)
            self._report(
                api.FromHost(
                    task_done=api.TaskDone(
                        job=worker.job,
                        iteration=iteration,
                        task=task.id,
                        worker=worker.worker,
                        start=start,
                        finish=begin,
                    )
                )
            )
        return begin

    async def _send_each_iteration(
        self, worker: api.WorkerPlan, send: api.SendPlan, turns: list[asyncio.Future[float]]
    ) -> None:
        """A flow that waits for nothing else waits for its worker's turn.

        It is announced as soon as it is known when it will be ready, so that it is granted by then.
        """
        for iteration, turn in enumerate(turns):
            needed = [(worker.job, iteration, item) for item in send.after]
            expected = (
                await self._board.when_expected(needed) if needed else await asyncio.shield(turn)
            )
            self._spawn(self._send(worker, send, iteration, expected, needed))

    async def _send(
        self,
        worker: api.WorkerPlan,
        send: api.SendPlan,
        iteration: int,
        expected: float,
        needed: list[Item],
    ) -> None:
        name = (worker.job, iteration, send.id)
        if not send.dst_ip:  # sender and receiver share this host: no network between them
            ready = await self._ready(expected, needed)
            self._tell_ready(name, ready, None)
            self.arrived(send.number, iteration, send.bytes, ready)
            return
        pair = _pair(worker, send)
        connection = self._pool.take(pair) or self._connection(send)
        reused = connection.flows > 0
        connection.flows += 1
        flow = OutgoingFlow(connection, send.number, iteration, send.bytes, self._clock.now)
        self._active[name] = flow
        self._tell_ready(name, expected, connection)
        ready = await self._ready(expected, needed)
        sent = await flow.run(self._grant_timeout, lambda at: self._tell_ending(name, at))
        del self._active[name]
        self._pool.give_back(pair, connection)
        self._tell_sent(name, send.bytes, ready, sent, connection.congestion_control, reused)

    async def _ready(self, expected: float, needed: list[Item]) -> float:
        """Waits until all a flow needs is done: returns when that was."""
        ready = await self._board.when(needed) if needed else expected
        await self._sleep_until(ready)
        return ready

    def _connection(self, send: api.SendPlan) -> Connection:
        source = self._ipv6 if ":" in send.dst_ip else self._ipv4
        target = (send.dst_ip, send.dst_port)
        connection = Connection(source, target, self._transport.congestion_control, self._pacer)
        self._pool.add(connection)
        return connection

    async def _tell_progress(self) -> None:
        while True:
            await asyncio.sleep(self._transport.progress_interval)
            if self._active:
                flows = [
                    api.Progress(id=_id(name), acked=flow.acked)
                    for name, flow in self._active.items()
                    if flow.connection.flows
                ]
                progress = api.FlowProgress(flows=flows, at=self._clock.now())
                self._report(api.FromHost(flow_progress=progress))

    def _tell_ready(self, name: FlowName, ready: float, connection: Connection | None) -> None:
        message = api.FlowReady(id=_id(name), at=ready)
        if connection is not None:
            message.key.CopyFrom(api.FiveTuple(**connection.key._asdict()))
        self._report(api.FromHost(flow_ready=message))

    def _tell_ending(self, name: FlowName, at: float) -> None:
        self._report(api.FromHost(flow_ending=api.FlowEnding(id=_id(name), at=at)))

    def _tell_sent(
        self,
        name: FlowName,
        size: int,
        ready: float,
        sent: Sent,
        congestion_control: str,
        reused: bool,
    ) -> None:
        self._report(
            api.FromHost(
                flow_sent=api.FlowSent(
                    id=_id(name),
                    granted=sent.granted,
                    at=sent.finished,
                    bytes=size,
                    retransmits=sent.retransmits,
                    segments=sent.segments,
                    smoothed_rtt=sent.smoothed_rtt,
                    congestion_control=congestion_control,
                    allowed_bits=sent.allowed_bits,
                    grant_timed_out=sent.grant_timed_out,
                    reused=reused,
                    ready=ready,
                )
            )
        )

    async def _sleep_until(self, at: float) -> None:
        wait = at - self._clock.now()
        if wait > 0:
            await asyncio.sleep(wait)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(str(error) or type(error).__name__)

    def _fail(self, message: str) -> None:
        self._report(api.FromHost(error=api.HostError(message=f"{self.scenario}: {message}")))


def _pair(worker: api.WorkerPlan, send: api.SendPlan) -> Pair:
    return (worker.job, worker.worker, send.dst_worker)


def _id(name: FlowName) -> api.FlowId:
    job, iteration, flow = name
    return api.FlowId(job=job, iteration=iteration, flow=flow)


def _name(message: api.FlowId) -> FlowName:
    return (message.job, message.iteration, message.flow)

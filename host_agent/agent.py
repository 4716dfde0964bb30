"""A host's agent: attached to the coordinator for as long as both live."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import grpc

from controller.api import PROTOCOL
from controller.api import coordinator_pb2 as api
from controller.api.boot import boot_id
from controller.api.coordinator_pb2_grpc import CoordinatorStub
from controller.model.errors import WorkFailed
from host_agent import kernel
from host_agent.clock import Clock
from host_agent.receiver import Receiver
from host_agent.replay import Replay

_PINGS = 8
_ATTACH_TIMEOUT = 10.0  # seconds


class Agent:
    """Takes plans and settings from the coordinator, reports what its host does."""

    def __init__(self, host: str, coordinator: str) -> None:
        """`coordinator` is a gRPC address: `unix:PATH` or `HOST:PORT`."""
        self._host = host
        self._coordinator = coordinator
        self._clock = Clock()
        self._out: asyncio.Queue[api.FromHost] = asyncio.Queue()
        self._welcome = api.Welcome()
        self._replay: Replay | None = None

    async def run(self) -> None:
        """Serves until the coordinator goes away. Raises WorkFailed in one line."""
        receiver = Receiver(self._arrived, self._stray, self._clock.now)
        receiver.start()
        try:
            async with grpc.aio.insecure_channel(self._coordinator) as channel:
                await self._serve(channel, receiver)
        finally:
            self._stop(receiver)
            receiver.close()

    async def _serve(self, channel: grpc.aio.Channel, receiver: Receiver) -> None:
        self._tell(
            api.FromHost(
                hello=api.Hello(
                    host=self._host,
                    role="agent",
                    protocol=PROTOCOL,
                    listen_port=receiver.port,
                    boot_id=boot_id(),
                    kernel=kernel.recorded_sysctls(),
                )
            )
        )
        try:
            await asyncio.wait_for(channel.channel_ready(), _ATTACH_TIMEOUT)
            stream = CoordinatorStub(channel).Attach(self._outgoing())
            async for message in stream:
                self._handle(message, receiver)
        except asyncio.TimeoutError:
            raise WorkFailed(
                f"host agent {self._host}: no coordinator answers at {self._coordinator}; "
                "start `echelon controller` first"
            ) from None
        except grpc.aio.AioRpcError as error:
            gone = error.code() == grpc.StatusCode.UNAVAILABLE
            raise WorkFailed(
                f"host agent {self._host}: coordinator at {self._coordinator}: "
                + ("it is gone, so this agent ends" if gone else str(error.details()))
            ) from None

    def _handle(self, message: api.ToHost, receiver: Receiver) -> None:
        kind = message.WhichOneof("kind")
        replay = self._replay
        if kind == "settings" and replay is not None:
            replay.set(message.settings)
        elif kind == "item_done" and replay is not None:
            replay.item_done(message.item_done)
        elif kind == "item_expected" and replay is not None:
            replay.item_expected(message.item_expected)
        elif kind == "welcome":
            self._welcome = message.welcome
            if message.welcome.boot_id != boot_id():
                for _ in range(_PINGS):
                    self._tell(api.FromHost(ping=api.Ping(sent=time.monotonic())))
        elif kind == "pong":
            self._clock.learn(message.pong.sent, message.pong.now, time.monotonic())
        elif kind == "connect" and replay is not None:
            replay.connect()
        elif kind == "plan":
            self._replay = Replay(
                message.plan,
                (self._welcome.ipv4, self._welcome.ipv6),
                receiver,
                self._clock,
                self._welcome.grant_timeout,
                self._tell,
            )
            self._tell(api.FromHost(plan_ready=api.PlanReady(scenario=message.plan.scenario)))
        elif kind == "start" and replay is not None:
            replay.start(message.start.at)
        elif kind == "stop":
            self._stop(receiver)

    def _stop(self, receiver: Receiver) -> None:
        if self._replay is not None:
            self._replay.stop()
            self._replay = None
        receiver.drop_connections()

    def _arrived(self, number: int, iteration: int, size: int, at: float) -> None:
        if self._replay is not None:
            self._replay.arrived(number, iteration, size, at)

    def _stray(self, message: str) -> None:
        # Connections break when a scenario is stopped; only in the middle of one is that news.
        if self._replay is not None:
            self._tell(api.FromHost(error=api.HostError(message=message)))

    def _tell(self, message: api.FromHost) -> None:
        self._out.put_nowait(message)

    async def _outgoing(self) -> AsyncIterator[api.FromHost]:
        while True:
            yield await self._out.get()

"""TCP connections of one host: bound before they are granted, reused flow after flow."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Hashable

from controller.model.rule import FlowKey
from host_agent import kernel
from host_agent.pacing import SocketPacer
from host_agent.tagging import tag

SEGMENT = 1448
"Payload bytes of a full segment. Less than that goes out as a frame of its own, at full headers."

MIN_UNSENT, MAX_UNSENT = 3 * SEGMENT, 724 * SEGMENT
UNSENT_SECONDS = 0.007
"""How much of a flow may stand unsent in the kernel, in time at its rate: enough to bridge the
moments in which a busy machine does not run us, little enough that a hold acts at once."""

UNSENT_UNPACED = 45 * SEGMENT

_PROBE_WAIT, _PROBE_POLL = 0.01, 0.0005  # seconds


class Connection:
    """A sending connection. It carries one flow at a time."""

    def __init__(self, source: str, target: tuple[str, int], congestion: str, pacer: SocketPacer):
        """Binds to `source` (an address of this host) but does not connect. Raises OSError."""
        family = socket.AF_INET6 if ":" in source else socket.AF_INET
        self._sock = socket.socket(family, socket.SOCK_STREAM)
        self._sock.setblocking(False)
        self._pacer = pacer
        self._class: int | None = None
        self._pace: float | None = None
        self._target = target
        self._connected = False
        self._raised = False
        self._most_unsent = UNSENT_UNPACED
        self.flows = 0
        "Flows it was given so far."
        try:
            self.congestion_control = kernel.pin_congestion_control(self._sock, congestion)
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sock.bind((source, 0))
        except OSError:
            self._sock.close()
            raise
        port = self._sock.getsockname()[1]
        self.key = FlowKey(source, target[0], socket.IPPROTO_TCP, port, target[1])
        "Its 5-tuple."

    def set(self, class_: int, pace: float) -> None:
        """Class and rate (bit/s on the wire, > 0) of what is sent from now on."""
        if class_ != self._class:
            tag(self._sock, class_)
            self._class = class_
        if pace != self._pace:
            self._raised = self._pace is not None and pace > self._pace
            self._pacer.set_rate(self._sock, pace)
            self._most_unsent = _most_unsent(pace)
            kernel.limit_unsent(self._sock, self._most_unsent)
            self._pace = pace

    def seconds_to_send(self, more: int) -> float:
        """How long what it was handed, and `more` bytes, take to leave at its pace.

        Unpaced, that is not known until all is handed over: inf, then 0.
        """
        if self._pace is None or self._pace == float("inf"):
            return float("inf") if more else 0.0
        return (self.info().unsent + more) / self._pacer.bytes(self._pace)

    async def renew_rate(self, probe: memoryview) -> int:
        """Where the pace was raised while nothing was under way: sends some of `probe`, and waits
        for its acknowledgement. Returns the bytes sent.

        The kernel computes a socket's rate anew when an acknowledgement comes. Until then the first
        bytes count at the old rate, and what follows waits for them: for 150 ms after 1 Mbit/s.
        """
        if not self._raised:
            return 0
        self._raised = False
        info = self.info()
        if info.unacked or info.unsent or not self._connected:
            return 0
        taken, deadline = self.try_send(probe), time.monotonic() + _PROBE_WAIT
        while self.info().unacked and time.monotonic() < deadline:
            await asyncio.sleep(_PROBE_POLL)
        return taken

    async def connect(self) -> None:
        """Connects unless it is. Raises OSError naming the target."""
        if self._connected:
            return
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(self._sock, self._target)
        except OSError as error:
            raise OSError(error.errno, f"connect to {self._target}: {error.strerror}") from error
        self._connected = True

    def try_send(self, data: memoryview) -> int:
        """Bytes the kernel took: 0 when it has enough for now. Raises OSError.

        Enough is half of what may stand unsent, as for `writable`. The kernel itself looks at that
        limit only where a new buffer begins, and one holds 64 KB: 87 ms at 6 Mbit/s, in which no
        hold would act.
        """
        unsent = self.info().unsent
        if 2 * unsent >= self._most_unsent:
            return 0
        room = self._most_unsent - unsent
        try:
            return self._sock.send(data[: room - room % SEGMENT])
        except BlockingIOError:
            return 0

    async def writable(self) -> None:
        """Until the kernel wants more."""
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_writer(self._sock, _finish, ready)
        try:
            await ready
        finally:
            loop.remove_writer(self._sock)

    def info(self) -> kernel.TcpInfo:
        """What the kernel says of it; zeros before it is connected."""
        return kernel.tcp_info(self._sock)

    def close(self) -> None:
        """Closes it; what is unsent is lost."""
        self._sock.close()


def _most_unsent(pace: float) -> int:
    if pace == float("inf"):
        return UNSENT_UNPACED
    segments = round(pace / 8 * UNSENT_SECONDS / SEGMENT)
    return min(MAX_UNSENT, max(MIN_UNSENT, segments * SEGMENT))


class ConnectionPool:
    """Idle connections by the pair of workers they join; every scenario begins with none."""

    def __init__(self) -> None:
        self._idle: dict[Hashable, list[Connection]] = {}
        self._all: list[Connection] = []

    def take(self, pair: Hashable) -> Connection | None:
        """An idle connection of the pair, the one used last."""
        idle = self._idle.get(pair)
        return idle.pop() if idle else None

    def add(self, connection: Connection) -> None:
        """A new connection, to be closed with the pool."""
        self._all.append(connection)

    def give_back(self, pair: Hashable, connection: Connection) -> None:
        """The connection may carry another flow."""
        self._idle.setdefault(pair, []).append(connection)

    def close(self) -> None:
        """Closes every connection, idle or not."""
        for connection in self._all:
            connection.close()
        self._all.clear()
        self._idle.clear()


def _finish(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)

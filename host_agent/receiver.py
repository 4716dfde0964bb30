"""Flows on their way in: one listening socket a host, every byte counted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from host_agent import framing, kernel
from host_agent.tagging import tag

_BUFFER = 262_144
_WAKE_EVERY = 32_768
"""Bytes to let arrive before we are woken: at 40 Mbit/s on eight hosts, waking for every frame
takes most of a core."""

FlowArrived = Callable[[int, int, int, float], None]
"""Called with a flow's number, iteration, payload bytes and the time its last byte arrived."""


class Receiver:
    """Accepts connections and drains them, flow after flow."""

    def __init__(
        self, arrived: FlowArrived, stray: Callable[[str], None], now: Callable[[], float]
    ):
        """`stray` is told, in one line, of connections that end in the middle of a flow."""
        self._arrived = arrived
        self._stray = stray
        self._now = now
        self._connections: dict[asyncio.Task[None], socket.socket] = {}
        self._sock = _listening_socket()
        self._accepting: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The TCP port it listens on."""
        port: int = self._sock.getsockname()[1]
        return port

    def start(self) -> None:
        """Begins to accept; needs a running event loop."""
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    def set_ack_class(self, class_: int) -> None:
        """The class of what connections accepted from now on send back, SYN-ACK included."""
        tag(self._sock, class_)
        if self._sock.family == socket.AF_INET6:
            # A dual-stack listener answers IPv4 with IP_TOS.
            self._sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, (class_ << 3) << 2)

    def drop_connections(self) -> None:
        """Closes what was accepted; the listening socket stays."""
        for task, sock in self._connections.items():
            task.cancel()
            sock.close()
        self._connections.clear()

    def close(self) -> None:
        """Stops listening and drops all."""
        if self._accepting is not None:
            self._accepting.cancel()
        self.drop_connections()
        self._sock.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            sock, peer = await loop.sock_accept(self._sock)
            sock.setblocking(False)
            task = loop.create_task(self._drain(sock, str(peer[0])))
            self._connections[task] = sock
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        sock = self._connections.pop(task, None)
        if sock is not None:
            sock.close()

    async def _drain(self, sock: socket.socket, peer: str) -> None:
        buffer = memoryview(bytearray(_BUFFER))
        try:
            while await _read(sock, buffer, framing.SIZE):
                number, iteration, size = framing.unpack(bytes(buffer[: framing.SIZE]))
                left = size - framing.SIZE
                while left > 0:
                    taken = await _read(sock, buffer, min(left, _WAKE_EVERY))
                    if not taken:
                        self._stray(
                            f"{peer} closed its connection {left} bytes before a flow's end"
                        )
                        return
                    left -= taken
                self._arrived(number, iteration, size, self._now())
                kernel.ack_at_once(sock)  # the next flow's sender waits for its first one
        except OSError as error:
            self._stray(f"connection from {peer}: {error.strerror}")


async def _read(sock: socket.socket, buffer: memoryview, size: int) -> int:
    """Reads exactly `size` bytes, waking once for all of them; 0 at the end of the stream."""
    loop = asyncio.get_running_loop()
    done = 0
    while done < size:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size - done)
        taken = await loop.sock_recv_into(sock, buffer[done:size])
        if not taken:
            return 0
        done += taken
    return done


def _listening_socket() -> socket.socket:
    """Dual-stack where the kernel has IPv6, else IPv4; on a port the kernel chooses."""
    if socket.has_dualstack_ipv6():
        sock = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    else:
        sock = socket.create_server(("0.0.0.0", 0))
    sock.listen(1024)
    sock.setblocking(False)
    return sock

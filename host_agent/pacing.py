"""Pacing: the kernel keeps a flow to the rate its policy gave it."""

from __future__ import annotations

import math
import socket
import struct
from typing import Protocol

_SO_MAX_PACING_RATE = 47  # unnamed in Debian's Python 3.11
_UNLIMITED = 2**64 - 2
"""No limit, but TCP's own pacing stays on, as for every flow that has one: it spreads a window over the
round trip instead of sending it in one burst. 2**64 - 1 would turn that off."""


class Pacer(Protocol):
    """Keeps one connection to a rate."""

    def set_rate(self, sock: socket.socket, rate: float) -> None:
        """At most `rate` bit/s on the wire from now on; inf is unpaced."""
        ...


class SocketPacer:
    """TCP's own pacing timer, which needs no qdisc.

    The kernel counts payload, so a wire rate is divided by the wire bytes per payload byte of a
    full frame. Raising the rate does not re-arm a timer that is already set: a flow that must wait
    is held by its sender, never trickled.
    """

    def __init__(self, wire_per_payload: float) -> None:
        self._wire_per_payload = wire_per_payload

    def set_rate(self, sock: socket.socket, rate: float) -> None:
        """At most `rate` bit/s on the wire from now on; inf is unpaced."""
        sock.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("=Q", self.bytes(rate)))

    def bytes(self, rate: float) -> int:
        """A wire rate in bit/s as the kernel's payload bytes/s."""
        if math.isinf(rate):
            return _UNLIMITED
        return max(1, round(rate / 8 / self._wire_per_payload))

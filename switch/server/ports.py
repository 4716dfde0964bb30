"""Ports as P4Runtime names them, and whether they are up."""

from __future__ import annotations

from switch.dataplane import Dataplane
from switch.server.errors import invalid

MAX_PORT = 511
"""v1model's ports have 9 bits."""


def port_number(value: bytes) -> int:
    """A port from its binary string. Raises INVALID_ARGUMENT if it is empty or beyond 9 bits."""
    if not value:
        raise invalid("a port must not be an empty string")
    return checked_port(int.from_bytes(value, "big"))


def checked_port(port: int) -> int:
    """A port number. Raises INVALID_ARGUMENT beyond 9 bits."""
    if not 0 <= port <= MAX_PORT:
        raise invalid(f"port {port} is not within 0..{MAX_PORT}")
    return port


class Ports:
    """Link states, asked once and kept up to date by the data plane's events."""

    def __init__(self, dataplane: Dataplane, cpu_port: int | None) -> None:
        self._dataplane = dataplane
        self._cpu_port = cpu_port
        self._up: dict[int, bool] = {}

    def is_up(self, port: int) -> bool:
        """Whether a port's link is up; one without an interface is down, except the CPU port."""
        if port == self._cpu_port:
            return True
        if port not in self._up:
            self._up[port] = port in self._dataplane.ports() and self._dataplane.port_up(port)
        return self._up[port]

    def changed(self, port: int, up: bool) -> None:
        """Note an event."""
        self._up[port] = up

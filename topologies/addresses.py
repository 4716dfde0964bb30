"""Where P4Runtime servers on this machine listen: ports of the loopback address that nobody has."""

from __future__ import annotations

import random
import socket

from topologies.runfile import DEFAULT_INSTANCE, instance

FIRST_PORT = 50050
"Switch 1 listens on the next port, if nobody else does."

OTHER_PORTS = range(20000, 30000)
"Below those that the kernel gives to outgoing connections."


def free_address(number: int) -> str:
    """127.0.0.1:PORT that nobody listens on, never the same twice.

    A run's switch 1 gets 50051 if that is free, since P4Runtime tools try it first; other instances stay away.
    """
    if instance() == DEFAULT_INSTANCE and _take(FIRST_PORT + number):
        return f"127.0.0.1:{FIRST_PORT + number}"
    port = random.choice(OTHER_PORTS)
    while not _take(port):
        port = random.choice(OTHER_PORTS)
    return f"127.0.0.1:{port}"


_taken: set[int] = set()


def _take(port: int) -> bool:
    """Whether a port can be bound and was not given away before."""
    if port in _taken:
        return False
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    _taken.add(port)
    return True

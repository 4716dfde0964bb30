"""Watches the carrier of switch ports whose interfaces are on this machine.

P4Runtime has no port status. Where a switch is elsewhere, a dead path is known from its digests.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from controller.model.network import Network

_RTMGRP_LINK = 1


class CarrierWatch:
    """Calls back with the links that are down, whenever that set changes."""

    def __init__(self, network: Network, on_change: Callable[[frozenset[int]], None]) -> None:
        """`on_change` gets directed links of the fabric; it is first called when one goes down."""
        self._network = network
        self._on_change = on_change
        self._down: frozenset[int] = frozenset()
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setblocking(False)

    def start(self) -> None:
        """Begin; the kernel's notices only say when to look."""
        self._socket.bind((0, _RTMGRP_LINK))
        asyncio.get_running_loop().add_reader(self._socket, self._notice)
        self._look()

    def stop(self) -> None:
        """End."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _notice(self) -> None:
        with suppress(BlockingIOError, OSError):  # ENOBUFS: notices were lost; looking is enough
            while self._socket.recv(65536):
                pass
        self._look()

    def _look(self) -> None:
        down = frozenset(
            link
            for switch in self._network.switches
            for port, interface in switch.interfaces.items()
            if not _has_carrier(interface)
            for link in self._network.links_at(switch.name, port)
        )
        if down != self._down:
            self._down = down
            self._on_change(down)


def _has_carrier(interface: str) -> bool:
    try:
        return Path("/sys/class/net", interface, "carrier").read_text().strip() == "1"
    except OSError:  # not there, or administratively down
        return False

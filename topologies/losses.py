"""Frames that switches lost, by what the kernel counted at their ports: the same on every target.

A switch's queues are inside it (embedded) or in tc (BMv2); what entered and did not leave is lost either way.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from controller.model.network import Network


class FrameCount(NamedTuple):
    """Frames at all ports of one switch since it was plugged in."""

    entered: int
    "Received from cables."
    left: int
    "Sent into cables."


def frame_counts(network: Network) -> dict[str, FrameCount]:
    """Switch -> its counts, for the switches whose interfaces are on this machine."""
    return {
        switch.name: FrameCount(
            _sum(switch.interfaces.values(), "rx_packets"),
            _sum(switch.interfaces.values(), "tx_packets"),
        )
        for switch in network.switches
        if switch.interfaces
    }


def lost_frames(before: dict[str, FrameCount], after: dict[str, FrameCount]) -> dict[str, int]:
    """Switch -> frames that entered between two counts and did not leave.

    What waits in a queue at the end counts as lost, and what the controller took or sent (ARP) counts too: let the
    network fall silent before counting, and expect a handful.
    """
    return {
        name: max(0, (late.entered - before[name].entered) - (late.left - before[name].left))
        for name, late in after.items()
    }


def _sum(interfaces: Iterable[str], counter: str) -> int:
    return sum(
        int(Path("/sys/class/net", name, "statistics", counter).read_text()) for name in interfaces
    )

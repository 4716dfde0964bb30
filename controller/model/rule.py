"""What the fabric should do with one flow: its class, its path and the rate it may not exceed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controller.model.fabric import Path


class FlowKey(NamedTuple):
    """The 5-tuple that names a flow's packets."""

    src_ip: str
    "Source address, IPv4 or IPv6, as text."
    dst_ip: str
    "Destination address, of the same family."
    protocol: int
    "IP protocol: 6 is TCP."
    src_port: int
    "Source port."
    dst_port: int
    "Destination port."

    def reversed(self) -> FlowKey:
        """The 5-tuple of the packets that travel back (acknowledgements)."""
        return FlowKey(self.dst_ip, self.src_ip, self.protocol, self.dst_port, self.src_port)


@dataclass(frozen=True, slots=True)
class FlowRule:
    """One scheduled flow as the switches should treat it."""

    key: FlowKey
    "The 5-tuple its packets carry."
    src_host: str
    "Host that sends."
    dst_host: str
    "Host that receives."
    class_: int
    "0..7, 7 is served first."
    path: Path
    "Links it takes, source to destination."
    meter_rate: float | None
    "Wire rate in bit/s that its host is told; the edge polices 5 % above it. None: not policed."


@dataclass(frozen=True, slots=True)
class RuleError:
    """A rule that a switch refused; the flow stays in class 0 there."""

    key: FlowKey
    "The flow concerned."
    switch: str
    "The switch that refused."
    reason: str
    "Why, in words a user can act on."

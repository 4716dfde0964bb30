"""Mininet links of a P4 network: veth pairs with our own names, no offloads, and a rate."""

from __future__ import annotations

from typing import Any

from mininet.link import Intf, Link

from topologies.layout import interface_name
from topologies.runfile import current
from topologies.shell import run_lines

OFFLOADS = ("tx", "rx", "tso", "gso", "gro", "sg")
"Turned off at both ends: a switch that reads frames from a packet socket sees half-made ones otherwise."

MTU = 1500


class P4Interface(Intf):  # type: ignore[misc]
    """One end of a cable."""

    rate_bps: float

    def config(self, rate_bps: float = 0.0, **_: Any) -> dict[str, Any]:
        """Bring the interface up; the node adds what its kind needs (`link_setup`)."""
        self.rate_bps = rate_bps
        off = " ".join(f"{name} off" for name in OFFLOADS)
        lines = [
            f"ethtool -K {self.name} {off} >/dev/null",
            *self.node.link_setup(self),
            f"ip link set {self.name} mtu {MTU} up",
        ]
        run_lines(self.node, lines)
        return {}


class P4Link(Link):  # type: ignore[misc]
    """A cable with the same rate in both directions."""

    def __init__(self, node1: Any, node2: Any, rate_bps: float = 40e6, **params: Any) -> None:
        """Make the pair; `rate_bps` in bit/s."""
        params.setdefault("cls1", P4Interface)
        params.setdefault("cls2", P4Interface)
        super().__init__(node1, node2, rate_bps=rate_bps, **params)

    def intfName(self, node: Any, n: int) -> str:
        """Our own name, listed in the run file before the interface is made."""
        name = interface_name(current().instance, node.name, n)
        if not node.inNamespace:
            current().add_interface(name)
        return name

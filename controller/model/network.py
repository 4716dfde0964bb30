"""The network that carries a fabric: addresses, switch ports and the P4Runtime server of every switch."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from controller.model.fabric import Fabric, Link, Path

CPU_PORT = 510
"Port number by which a switch reaches its controller (BMv2 drops at 511)."

CLASSES = 8
"Queues of a switch port; class 7 is served first."

ACK_CLASS = CLASSES - 1
"""Class of acknowledgements, under every policy alike.

They must not wait behind data: with data in both directions of a link and acknowledgements among
them, TCP filled 83 % of it (and 98 % without, which is all but the acknowledgements' own bytes).
"""

DATA_CLASSES = CLASSES - 1
"Classes that live data is cut into: 0 .. 6."


@dataclass(frozen=True, slots=True)
class NetworkHost:
    """A machine of the fabric, as the switches see it."""

    name: str
    "h1..hN."
    mac: str
    "`02:00:00:00:00:01`."
    ipv4: str
    "Address in the fabric's one IPv4 subnet."
    ipv6: str
    "Address in the fabric's one IPv6 subnet."
    switch: str
    "The edge switch it hangs on."
    port: int
    "That switch's port."


@dataclass(frozen=True, slots=True)
class NetworkSwitch:
    """A P4Runtime target."""

    name: str
    "Unique in the network."
    device_id: int
    "P4Runtime device id, >= 1."
    address: str
    "`host:port` or `unix:PATH` of its P4Runtime server."
    cpu_port: int = CPU_PORT
    "Its port towards the controller."
    host_ports: tuple[int, ...] = ()
    "Ports that face hosts; all others face switches."
    interfaces: dict[int, str] = field(default_factory=dict)
    "Port -> network interface on this machine; empty where the switch is elsewhere."


@dataclass(frozen=True, slots=True)
class Cable:
    """Two ports joined, each direction at the same rate. A host's port is 0."""

    a: str
    "One end: host or switch."
    a_port: int
    "Its port."
    b: str
    "The other end."
    b_port: int
    "Its port."
    rate_bps: float
    "bit/s in each direction, > 0."


@dataclass(frozen=True)
class Network:
    """What `network.yaml` (`echelon/network/v1`) says.

    Cable i is links 2i (a to b) and 2i + 1 (b to a) of `fabric`, so `link ^ 1` is a link's way back.
    """

    target: str
    "`embedded` or `bmv2`."
    link_rate_bps: float
    "Rate of a host's link, bit/s."
    topology: str
    "How it was asked for: `leaf-spine:2x2x4`."
    hosts: tuple[NetworkHost, ...]
    "In order h1..hN."
    switches: tuple[NetworkSwitch, ...]
    "All switches."
    links: tuple[Cable, ...]
    "All cables, those of hosts included."

    def fabric(self) -> Fabric:
        """The graph with capacities that policies schedule on."""
        directed = []
        for cable in self.links:
            directed.append(Link(cable.a, cable.b, cable.rate_bps))
            directed.append(Link(cable.b, cable.a, cable.rate_bps))
        return Fabric(
            self.topology,
            tuple(host.name for host in self.hosts),
            tuple(switch.name for switch in self.switches),
            tuple(directed),
        )

    def egress(self, link: int) -> tuple[str, int]:
        """The node and the port of it that send on a directed link."""
        cable = self.links[link >> 1]
        return (cable.a, cable.a_port) if link % 2 == 0 else (cable.b, cable.b_port)

    def links_at(self, node: str, port: int) -> Path:
        """Both directions of the cable in a port; empty when there is none."""
        cable = self._cable_at.get((node, port))
        return () if cable is None else (2 * cable, 2 * cable + 1)

    def rate_at(self, node: str, port: int) -> float:
        """bit/s of the cable in a port. Raises KeyError when there is none."""
        return self.links[self._cable_at[node, port]].rate_bps

    def ports(self, node: str) -> list[int]:
        """A node's ports that have a cable, ascending."""
        return sorted(port for name, port in self._cable_at if name == node)

    def host(self, name: str) -> NetworkHost:
        """The host of that name. Raises KeyError."""
        return self._host_of[name]

    def switch(self, name: str) -> NetworkSwitch:
        """The switch of that name. Raises KeyError."""
        return self._switch_of[name]

    @cached_property
    def _cable_at(self) -> dict[tuple[str, int], int]:
        ends = {}
        for index, cable in enumerate(self.links):
            ends[cable.a, cable.a_port] = index
            ends[cable.b, cable.b_port] = index
        return ends

    @cached_property
    def _host_of(self) -> dict[str, NetworkHost]:
        return {host.name: host for host in self.hosts}

    @cached_property
    def _switch_of(self) -> dict[str, NetworkSwitch]:
        return {switch.name: switch for switch in self.switches}


def back(path: Path) -> Path:
    """The links of a network's path in the other direction: what acknowledgements take."""
    return tuple(link ^ 1 for link in reversed(path))

"""Static forwarding: which ports of a switch lead to which host, and the table entries that say so."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

import finsy as fy

from controller.model.fabric import DisconnectedFabric, Fabric
from controller.model.network import Network

PHANTOM_HEADROOM = 1.02
"""A port's phantom queues drain this much faster than its link. Flows that are paced to all of the link overlap for
some milliseconds when one follows another; at the link's own rate what that leaves would stand there, and mark, until
the link falls idle. Mininet's ports are faster still, so that data wait here and not in the real queue.
"""


class Routes:
    """Shortest-path forwarding over the links that are up.

    A destination behind one port is routed to that port, behind several to a group of them (ECMP). Group ids are
    given in a fixed order, so that a restarted controller finds on the switches what it would write.
    """

    def __init__(self, network: Network) -> None:
        """All links up."""
        self.network = network
        self._healthy = network.fabric()
        self._fabric = self._healthy
        self._groups: dict[str, dict[tuple[int, ...], int]] = {}
        for switch in network.switches:
            sets = {self.uplinks(switch.name, host.name) for host in network.hosts}
            several = sorted(ports for ports in sets if len(ports) > 1)
            self._groups[switch.name] = {ports: number for number, ports in enumerate(several, 1)}

    @property
    def failed(self) -> frozenset[int]:
        """Links that are down."""
        return self._fabric.failed

    def fail(self, links: Iterable[int]) -> None:
        """Say which links are down, all others being up."""
        self._fabric = self._healthy.without(links)

    def next_hops(self, switch: str, host: str) -> tuple[int, ...]:
        """Ports on shortest paths that are up, ascending; empty when the host cannot be reached."""
        return self._ports(self._fabric, switch, host)

    def uplinks(self, switch: str, host: str) -> tuple[int, ...]:
        """Ports on shortest paths when everything is up."""
        return self._ports(self._healthy, switch, host)

    def entries(self, switch: str) -> list[fy.P4TableEntry]:
        """All entries of a switch but those of flows."""
        facing_hosts = self.network.switch(switch).host_ports
        entries = []
        for port in self.network.ports(switch):
            role = "face_host" if port in facing_hosts else "face_switch"
            entries.append(_entry("port_role", {"port": port}, fy.P4TableAction(role)))
            entries.append(_entry("phantom_queue", {"port": port}, self._drain(switch, port)))
            if not self.failed & set(self.network.links_at(switch, port)):
                entries.append(
                    _entry("live_port", {"port": port}, fy.P4TableAction("port_is_live"))
                )
        used: dict[int, tuple[int, ...]] = {}
        for host in self.network.hosts:
            ports = self.next_hops(switch, host.name)
            if not ports:
                continue
            if len(ports) == 1:
                action = fy.P4TableAction("to_port", port=ports[0])
            else:
                number = self._group(switch, ports)
                used[number] = ports
                action = fy.P4TableAction("to_group", group=number)
            entries.append(
                _entry("ipv4_forward", {"dst": (int(ip_address(host.ipv4)), 32)}, action)
            )
            entries.append(
                _entry("ipv6_forward", {"dst": (int(ip_address(host.ipv6)), 128)}, action)
            )
        for number, ports in used.items():
            members = [1 * fy.P4TableAction("to_port", port=port) for port in ports]
            entries.append(_entry("ecmp_group", {"group": number}, fy.P4IndirectAction(members)))
        return entries

    def _drain(self, switch: str, port: int) -> fy.P4TableAction:
        """The time that the link of a port takes to send a byte, in 1/65536 microseconds."""
        rate = PHANTOM_HEADROOM * self.network.rate_at(switch, port)
        return fy.P4TableAction("drain", time_a_byte=max(1, round(8e6 / rate * 65536)))

    def _ports(self, fabric: Fabric, switch: str, host: str) -> tuple[int, ...]:
        try:
            found = fabric.paths(switch, host)
        except DisconnectedFabric:
            return ()
        return tuple(sorted({self.network.egress(path[0])[1] for path in found}))

    def _group(self, switch: str, ports: tuple[int, ...]) -> int:
        groups = self._groups[switch]
        return groups.setdefault(ports, len(groups) + 1)


def _entry(
    table: str, match: dict[str, object], action: fy.P4TableAction | fy.P4IndirectAction
) -> fy.P4TableEntry:
    return fy.P4TableEntry(table, match=fy.P4TableMatch(match), action=action)

"""From a fabric to a network: addresses for hosts, port numbers for switches, cables from links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from controller.model.errors import BadInput
from controller.model.fabric import Fabric, Link
from controller.model.network import CPU_PORT, Cable, Network, NetworkHost, NetworkSwitch

MAX_HOSTS = 4094
IPV4_PREFIX = 16
IPV6_PREFIX = 64


def network_of(fabric: Fabric, link_rate_bps: float, target: str) -> Network:
    """The network that realises a fabric; the addresses of its switches are still open.

    A switch's ports are numbered from 1 in the order of the fabric's links, so hosts come first.
    Raises BadInput for a fabric that cables cannot realise: a one-way link, a host with several links.
    """
    if len(fabric.hosts) > MAX_HOSTS:
        raise BadInput(
            f"{fabric.name}: {len(fabric.hosts)} hosts, at most {MAX_HOSTS} have addresses"
        )
    used: dict[str, int] = defaultdict(int)

    def next_port(node: str) -> int:
        if node in fabric.hosts:
            return 0
        used[node] += 1
        return used[node]

    cables = [
        Cable(link.src, next_port(link.src), link.dst, next_port(link.dst), link.rate)
        for link in _one_way(fabric)
    ]
    hosts = tuple(
        _host(name, number, *_attachment(fabric, name, cables))
        for number, name in enumerate(fabric.hosts, 1)
    )
    switches = tuple(
        NetworkSwitch(
            name, number, "", CPU_PORT, tuple(host.port for host in hosts if host.switch == name)
        )
        for number, name in enumerate(fabric.switches, 1)
    )
    return Network(target, link_rate_bps, fabric.name, hosts, switches, tuple(cables))


def with_addresses(network: Network, addresses: Sequence[str], prefix: str) -> Network:
    """The network with P4Runtime addresses and interface names, for switches on this machine."""
    switches = []
    for switch, address in zip(network.switches, addresses, strict=True):
        ports = network.ports(switch.name)
        interfaces = {port: interface_name(prefix, switch.name, port) for port in ports}
        switches.append(replace(switch, address=address, interfaces=interfaces))
    return replace(network, switches=tuple(switches))


def interface_name(prefix: str, node: str, port: int) -> str:
    """`ech-s1-5`. Raises BadInput where Linux's 15 characters do not suffice."""
    name = f"{prefix}-{node}-{port}"
    if len(name) > 15:
        raise BadInput(f"interface name {name}: Linux allows 15 characters; shorten {node!r}")
    return name


def _one_way(fabric: Fabric) -> list[Link]:
    """One link of every pair of opposite links."""
    waiting: dict[tuple[str, str, float], list[Link]] = defaultdict(list)
    one_way = []
    for link in fabric.links:
        opposite = waiting[link.dst, link.src, link.rate]
        if opposite:
            opposite.pop()
        else:
            waiting[link.src, link.dst, link.rate].append(link)
            one_way.append(link)
    for lonely in waiting.values():
        for link in lonely:
            raise BadInput(
                f"{fabric.name}: the link {link.src} -> {link.dst} has no way back at the same rate; "
                "a network needs both directions"
            )
    return one_way


def _attachment(fabric: Fabric, host: str, cables: list[Cable]) -> tuple[str, int]:
    ends = [(cable.b, cable.b_port) for cable in cables if cable.a == host]
    ends += [(cable.a, cable.a_port) for cable in cables if cable.b == host]
    if len(ends) != 1 or ends[0][0] not in fabric.switches:
        raise BadInput(
            f"{fabric.name}: host {host} has {len(ends)} links, expected one, to a switch"
        )
    return ends[0]


def _host(name: str, number: int, switch: str, port: int) -> NetworkHost:
    return NetworkHost(
        name=name,
        mac=f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}",
        ipv4=f"10.0.{number >> 8}.{number & 255}",
        ipv6=f"fd00::{number:x}",
        switch=switch,
        port=port,
    )

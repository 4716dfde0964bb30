"""Fabrics from lists of cables, as fabric files give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.model import Fabric, Link

Cable = tuple[str, str, float]
"(one end, other end, bit/s each way)."

DEFAULT_RATE = 100e9
"Where a file names no rate, in bit/s."


def fabric_of(
    name: str, hosts: Sequence[str], switches: Sequence[str], cables: Iterable[Cable]
) -> Fabric:
    """The fabric with both directions of every cable."""
    links = [Link(a, b, rate) for x, y, rate in cables for a, b in ((x, y), (y, x))]
    return Fabric(name, tuple(hosts), tuple(switches), tuple(links))


def unreached(fabric: Fabric) -> str | None:
    """A host or switch that the first host has no way to; None when all hang together."""
    peers: dict[str, list[str]] = {}
    for link in fabric.links:
        peers.setdefault(link.src, []).append(link.dst)
    seen, todo = {fabric.hosts[0]}, [fabric.hosts[0]]
    hosts = set(fabric.hosts)
    for node in todo:  # grows while it is read
        if node in hosts and node != fabric.hosts[0]:
            continue  # hosts do not forward
        for peer in peers.get(node, ()):
            if peer not in seen:
                seen.add(peer)
                todo.append(peer)
    return next((host for host in fabric.hosts if host not in seen), None)

"""The fabric: hosts and switches, directed links with capacities, and the paths between hosts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a cable."""

    src: str
    "Node that sends."
    dst: str
    "Node that receives."
    rate: float
    "Capacity in bit/s, > 0; a failed link is left out of `Fabric.links_up`."


Path = tuple[int, ...]
"Indices into `Fabric.links`, from source to destination. Empty: source and destination are one host."


@dataclass(frozen=True)
class Fabric:
    """Nodes, links and routes. Immutable: a failure makes a new fabric (`without`, `degraded`)."""

    name: str
    "How it was asked for: `leaf-spine:2x2x4`."
    hosts: tuple[str, ...]
    "Names of the hosts, h1..hN."
    switches: tuple[str, ...]
    "Names of the switches."
    links: tuple[Link, ...]
    "All directed links; an index into this tuple is a link's identity everywhere."
    failed: frozenset[int] = frozenset()
    "Links that are down."
    _cache: dict[tuple[str, str], tuple[Path, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def paths(self, src: str, dst: str) -> tuple[Path, ...]:
        """All shortest paths that are up between two hosts, in a fixed order.

        Raises `DisconnectedFabric` when there is none.
        """
        key = (src, dst)
        if key not in self._cache:
            self._cache[key] = self._shortest_paths(src, dst)
        return self._cache[key]

    def without(self, failed: Iterable[int]) -> Fabric:
        """The fabric with further links down."""
        return replace(self, failed=self.failed | frozenset(failed), _cache={})

    def degraded(self, index: int, rate: float) -> Fabric:
        """The fabric with one link at another rate, in bit/s."""
        links = list(self.links)
        links[index] = replace(links[index], rate=rate)
        return replace(self, links=tuple(links), _cache={})

    def _shortest_paths(self, src: str, dst: str) -> tuple[Path, ...]:
        if src == dst:
            return ((),)
        out: dict[str, list[int]] = {}
        for index, link in enumerate(self.links):
            if index not in self.failed:
                out.setdefault(link.src, []).append(index)
        hosts = set(self.hosts)
        distance = {src: 0}
        frontier = [src]
        while frontier and dst not in distance:
            reached = []
            for node in frontier:
                if node in hosts and node != src:
                    continue  # hosts do not forward
                for index in out.get(node, ()):
                    peer = self.links[index].dst
                    if peer not in distance:
                        distance[peer] = distance[node] + 1
                        reached.append(peer)
            frontier = reached
        if dst not in distance:
            raise DisconnectedFabric(f"{self.name}: no path that is up from {src} to {dst}")
        found: list[Path] = []

        def extend(node: str, path: Path) -> None:
            if node == dst:
                found.append(path)
                return
            if node in hosts and node != src:
                return
            for index in out.get(node, ()):
                peer = self.links[index].dst
                if distance.get(peer) == distance[node] + 1:
                    extend(peer, (*path, index))

        extend(src, ())
        return tuple(found)


class DisconnectedFabric(ValueError):
    """Two hosts have no path between them."""

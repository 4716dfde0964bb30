"""The fabric: hosts and switches, directed links with capacities, and the paths between hosts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from controller.model.errors import BadInput


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

    def paths(self, src: str, dst: str) -> tuple[Path, ...]:
        """All shortest paths that are up between two hosts, in a fixed order.

        Hosts do not forward. Computed once per pair of edge switches, so that a fabric of a
        thousand hosts costs no more than its switches. Raises `DisconnectedFabric` when there is
        none.
        """
        if src == dst:
            return ((),)
        if (src, dst) not in self._found:
            self._found[src, dst] = self._host_paths(src, dst)
        if not self._found[src, dst]:
            raise DisconnectedFabric(f"{self.name}: no path that is up from {src} to {dst}")
        return self._found[src, dst]

    def without(self, failed: Iterable[int]) -> Fabric:
        """The fabric with further links down."""
        return replace(self, failed=self.failed | frozenset(failed))

    def degraded(self, index: int, rate: float) -> Fabric:
        """The fabric with one link at another rate, in bit/s > 0. Raises `BadInput`."""
        if not 0 < rate < float("inf"):
            raise BadInput(f"{self.name}: link {index} would have rate {rate}: expected bit/s > 0")
        links = list(self.links)
        links[index] = replace(links[index], rate=rate)
        return replace(self, links=tuple(links))

    @cached_property
    def host_row(self) -> dict[str, int]:
        """Host -> its place in `hosts`."""
        return {host: row for row, host in enumerate(self.hosts)}

    @cached_property
    def host_rate(self) -> float:
        """The rate of the fastest host link, in bit/s: what the fabric calls its link rate."""
        return max(
            link.rate
            for link in self.links
            if link.src in self.host_row or link.dst in self.host_row
        )

    def capacities(self) -> list[float]:
        """(links,) bit/s; 0 for a link that is down."""
        return [0.0 if i in self.failed else link.rate for i, link in enumerate(self.links)]

    @cached_property
    def _out(self) -> dict[str, list[int]]:
        """Node -> its outgoing links that are up."""
        out: dict[str, list[int]] = {node: [] for node in (*self.hosts, *self.switches)}
        for index, link in enumerate(self.links):
            if index not in self.failed:
                out[link.src].append(index)
        return out

    @cached_property
    def _in(self) -> dict[str, list[int]]:
        """Node -> its incoming links that are up."""
        into: dict[str, list[int]] = {node: [] for node in (*self.hosts, *self.switches)}
        for index, link in enumerate(self.links):
            if index not in self.failed:
                into[link.dst].append(index)
        return into

    @cached_property
    def _found(self) -> dict[tuple[str, str], tuple[Path, ...]]:
        return {}

    @cached_property
    def _distances(self) -> dict[str, dict[str, int]]:
        return {}

    def _only_link(self, host: str, up: bool) -> int | None:
        """The one link between a host and its switch; None when it has several."""
        links = self._out[host] if up else self._in[host]
        if len(links) != 1:
            return None
        peer = self.links[links[0]].dst if up else self.links[links[0]].src
        return None if peer in self.host_row else links[0]

    def _host_paths(self, src: str, dst: str) -> tuple[Path, ...]:
        first, last = self._only_link(src, up=True), self._only_link(dst, up=False)
        if first is None or last is None:
            return self._between(src, dst)
        middle = self._between(self.links[first].dst, self.links[last].src)
        return tuple((first, *path, last) for path in middle)

    def _between(self, src: str, dst: str) -> tuple[Path, ...]:
        """All shortest paths between any two nodes on which no host forwards; none: empty."""
        if (src, dst) not in self._found:
            distance = self._distance_from(src)
            reached = self._walk_back(src, dst, distance) if dst in distance else []
            self._found[src, dst] = tuple(sorted(reached))
        return self._found[src, dst]

    def _distance_from(self, src: str) -> dict[str, int]:
        """Hops from a node to every node it reaches without passing through a host."""
        if src not in self._distances:
            distance = {src: 0}
            queue = deque([src])
            while queue:
                node = queue.popleft()
                if node in self.host_row and node != src:
                    continue
                for index in self._out[node]:
                    peer = self.links[index].dst
                    if peer not in distance:
                        distance[peer] = distance[node] + 1
                        queue.append(peer)
            self._distances[src] = distance
        return self._distances[src]

    def _walk_back(self, src: str, dst: str, distance: dict[str, int]) -> list[Path]:
        """The shortest paths, grown from the destination one hop at a time."""
        grown: list[tuple[str, Path]] = [(dst, ())]
        for hop in reversed(range(distance[dst])):
            grown = [
                (self.links[index].src, (index, *path))
                for node, path in grown
                for index in self._in[node]
                if distance.get(self.links[index].src) == hop
                and (hop == 0 or self.links[index].src not in self.host_row)
            ]
        return [path for _, path in grown]


class DisconnectedFabric(BadInput):
    """Two hosts have no path between them."""

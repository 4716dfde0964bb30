"""Which of its paths a flow takes: one fixed, one by hash, one chosen, or the least loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

from controller.model.errors import BadInput
from controller.model.fabric import Fabric, Path
from controller.scheduling.policy import Floats


class Routing(Protocol):
    """Says which paths a flow may take; of these it gets the least loaded when it becomes ready,
    and keeps it until it has finished."""

    def choices(self, fabric: Fabric, src: str, dst: str, key: str) -> tuple[Path, ...]:
        """Paths between two hosts, at least one.

        `key` identifies the flow as its 5-tuple does on the wire. Raises `DisconnectedFabric`.
        """
        ...


def least_loaded(paths: tuple[Path, ...], load: Floats) -> Path:
    """The path whose busiest link between switches has the least to carry, the first of equals.

    `load` is (links,) seconds of work that the active flows' sizes put on each link.
    """
    if len(paths) == 1:
        return paths[0]
    return min(paths, key=lambda path: max(load[link] for link in path[1:-1] or path))


class SinglePath:
    """Always the first shortest path."""

    def choices(self, fabric: Fabric, src: str, dst: str, key: str) -> tuple[Path, ...]:
        """The first path in the fabric's order."""
        return fabric.paths(src, dst)[:1]


class EcmpHash:
    """Equal-cost multi-path: a hash of the flow decides, load does not."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def choices(self, fabric: Fabric, src: str, dst: str, key: str) -> tuple[Path, ...]:
        """The path a hash of (seed, source, destination, key) falls on: the same in every run."""
        paths = fabric.paths(src, dst)
        return (paths[crc32(f"{self._seed}/{src}/{dst}/{key}".encode()) % len(paths)],)


class LeastLoaded:
    """Any shortest path: greedy, flow by flow, in the order flows become ready."""

    def choices(self, fabric: Fabric, src: str, dst: str, key: str) -> tuple[Path, ...]:
        """All shortest paths."""
        return fabric.paths(src, dst)


Pin = tuple[str, str, str]
"Source, destination, and what identifies the flow (see `Routing.choices`)."


@dataclass(frozen=True)
class Pinned:
    """Chosen paths; flows that are not named take any shortest path."""

    paths: Mapping[Pin, int]
    "Flow -> which of its shortest paths."

    def choices(self, fabric: Fabric, src: str, dst: str, key: str) -> tuple[Path, ...]:
        """The chosen path, counted round where links that failed have left fewer."""
        paths = fabric.paths(src, dst)
        chosen = self.paths.get((src, dst, key))
        return paths if chosen is None else (paths[chosen % len(paths)],)


ROUTINGS: dict[str, Callable[[int], Routing]] = {
    "single": lambda seed: SinglePath(),
    "ecmp": EcmpHash,
    "least-loaded": lambda seed: LeastLoaded(),
}


def routing(name: str, seed: int = 0) -> Routing:
    """A routing by name. Raises BadInput that lists the names there are."""
    if name not in ROUTINGS:
        raise BadInput(f"no routing is called {name!r}; there are {', '.join(ROUTINGS)}")
    return ROUTINGS[name](seed)

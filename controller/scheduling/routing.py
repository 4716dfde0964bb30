"""Which of its paths a flow takes: one fixed, one by hash, or the one with the least to carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from zlib import crc32

import numpy as np

from controller.model.errors import BadInput
from controller.model.fabric import Fabric, Path
from controller.scheduling.policy import Floats, Ints


class Routing(Protocol):
    """Picks a path when a flow becomes ready; it keeps it until it has finished."""

    def route(self, fabric: Fabric, src: str, dst: str, key: str, load: Floats) -> Path:
        """A path between two hosts.

        `key` identifies the flow as its 5-tuple does on the wire; `load` is (links,) seconds of
        work that the active flows' sizes put on each link. Raises `DisconnectedFabric`.
        """
        ...


class SinglePath:
    """Always the first shortest path."""

    def route(self, fabric: Fabric, src: str, dst: str, key: str, load: Floats) -> Path:
        """The first path in the fabric's order."""
        return fabric.paths(src, dst)[0]


class EcmpHash:
    """Equal-cost multi-path: a hash of the flow decides, load does not."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def route(self, fabric: Fabric, src: str, dst: str, key: str, load: Floats) -> Path:
        """The path a hash of (seed, source, destination, key) falls on: the same in every run."""
        paths = fabric.paths(src, dst)
        return paths[crc32(f"{self._seed}/{src}/{dst}/{key}".encode()) % len(paths)]


class LeastLoaded:
    """The path whose busiest link between switches has the least to carry, the first of equals."""

    def __init__(self) -> None:
        self._fabric: Fabric | None = None
        self._inner: dict[tuple[str, str], Ints] = {}  # (paths, hops) links between switches

    def route(self, fabric: Fabric, src: str, dst: str, key: str, load: Floats) -> Path:
        """Greedy, flow by flow, in the order flows become ready."""
        paths = fabric.paths(src, dst)
        if len(paths) == 1:
            return paths[0]
        if fabric is not self._fabric:
            self._fabric, self._inner = fabric, {}
        inner = self._inner.get((src, dst))
        if inner is None:
            inner = np.array([path[1:-1] or path for path in paths], np.int64)
            self._inner[src, dst] = inner
        return paths[int(load[inner].max(axis=1).argmin())]


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

"""Idle time-outs: which entries have not been hit for their time to live.

A heap of deadlines: an entry is asked for its last hit only when it could have expired, so that watching 100,000
entries costs nothing between their deadlines.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

_SLACK = 1024
"""Places of entries modified or deleted since that the heap may hold beside as many as it has entries."""


class Watched(Protocol):
    """What an entry must have."""

    handle: int
    idle_timeout_ns: int


_E = TypeVar("_E", bound=Watched)


class IdleTimeouts(Generic[_E]):
    """The watched entries of one table."""

    def __init__(self, last_hit: Callable[[int], float]) -> None:
        """`last_hit`: seconds since the entry of a handle was hit."""
        self._last_hit = last_hit
        self._heap: list[tuple[float, int, _E]] = []
        self._sequence = itertools.count()
        self._due: dict[int, int] = {}
        """Handle -> the sequence number of its valid place in the heap."""

    def watch(self, entry: _E) -> None:
        """Start (or restart) an entry's timer."""
        self._schedule(entry, time.monotonic() + entry.idle_timeout_ns * 1e-9)

    def forget(self, entry: _E) -> None:
        """Stop an entry's timer."""
        self._due.pop(entry.handle, None)

    def next_due(self) -> float | None:
        """When `expired` is worth calling next (time.monotonic()), None while nothing is watched."""
        return self._heap[0][0] if self._heap else None

    def expired(self) -> list[_E]:
        """The entries whose time to live has passed without a hit; their timers start anew."""
        now = time.monotonic()
        result: list[_E] = []
        while self._heap and self._heap[0][0] <= now:
            _, sequence, entry = heapq.heappop(self._heap)
            if self._due.get(entry.handle) != sequence:
                continue  # modified or deleted since
            ttl = entry.idle_timeout_ns * 1e-9
            idle = self._last_hit(entry.handle)
            if idle >= ttl:
                result.append(entry)
                self._schedule(entry, now + ttl)
            else:
                self._schedule(entry, now + ttl - idle)
        return result

    def _schedule(self, entry: _E, due: float) -> None:
        sequence = self._due[entry.handle] = next(self._sequence)
        heapq.heappush(self._heap, (due, sequence, entry))
        if len(self._heap) > 2 * len(self._due) + _SLACK:
            self._heap = [e for e in self._heap if self._due.get(e[2].handle) == e[1]]
            heapq.heapify(self._heap)

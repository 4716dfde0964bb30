"""The network as a fluid: flows drain at constant rates between decisions, part by part.

Active flows that share a link or an EchelonFlow, directly or through others, form a *part*. An
event touches the parts it belongs to and no others: only they are advanced, decided again, merged
or split. So its cost grows with them, not with the cluster.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.model.errors import WorkFailed
from controller.model.fabric import Fabric
from controller.scheduling.kernels import compiled
from controller.scheduling.policy import Floats, Ints
from controller.scheduling.state import StateBuilder
from controller.simulator.allocation import Allocator

INSTANT = 4e-13
"Events closer than this, relative to the time (at least to one second), happen at one instant."


def same_instant(time: float) -> float:
    """The latest time that counts as the same instant as `time`, in seconds."""
    return time + INSTANT * max(1.0, time)


@dataclass(slots=True)
class _Part:
    """Flows that may influence each other, and their rates since the last decision."""

    slots: Ints
    "(flows,) their slots in the state builder."
    links: Ints
    "Links they use, with repetitions."
    groups: Ints
    "Slots of their EchelonFlows, with repetitions."
    rate: Floats
    "(flows,) bytes per second."
    end: Floats
    "(flows,) when each would finish at that rate, in seconds."
    since: float
    "When the rates were decided, or the flows last advanced, in seconds."


class FluidNetwork:
    """Active flows on a fabric under an allocator. The caller owns the clock."""

    def __init__(
        self, fabric: Fabric, builder: StateBuilder, allocator: Allocator, local: bool
    ) -> None:
        """`local`: a decision about a part does not depend on the others. If not, all is one."""
        self.builder = builder
        self.started: Floats = np.full(64, np.nan)
        "(slots,) when the flow's rate first rose above zero, in seconds; NaN until then."
        self.classes: dict[int, list[int]] = {}
        "Slot -> the classes it was given, in order of time."
        self._allocator = allocator
        self._local = local
        self._parts: dict[int, _Part] = {}
        self._due: list[tuple[float, int]] = []
        self._part_of_link: Ints = np.full(len(fabric.links), -1, np.int64)
        self._part_of_group: Ints = np.full(64, -1, np.int64)
        self._touched: dict[int, _Part] = {}
        self._new: list[int] = []
        self._next_part = 0

    @property
    def due(self) -> float:
        """When something happens in the network next, in seconds; inf: never."""
        while self._due and self._due[0][1] not in self._parts:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else float("inf")

    def start(self, slot: int) -> None:
        """A flow joins; its rate is decided by the next `settle`."""
        self._new.append(slot)
        group = self.builder.group(slot)
        if slot >= len(self.started):
            self.started = _longer(self.started, slot, np.nan)
        if group >= len(self._part_of_group):
            self._part_of_group = _longer(self._part_of_group, group, -1)
        self.started[slot] = np.nan
        self._touch(self._part_of_group[group])
        for link in self.builder.paths[slot]:
            self._touch(self._part_of_link[link])

    def finished(self, now: float) -> list[int]:
        """Advance the parts that are due, and take out the flows that finish at this instant.

        The caller then tells the builder, and calls `settle`.
        """
        limit = same_instant(now)
        while self.due <= limit:
            self._touch(self._due[0][1])
        out: list[int] = []
        for part in self._touched.values():
            over = part.end <= limit
            if over.any():
                out += part.slots[over].tolist()
                keep = ~over
                part.slots, part.rate = part.slots[keep], part.rate[keep]
                part.end = part.end[keep]
        return out

    def settle(self, now: float) -> None:
        """Decide again for all flows that the events of this instant touched."""
        if not self._local:
            for number in list(self._parts):
                self._touch(number)
        slots = [part.slots for part in self._touched.values()]
        for part in self._touched.values():
            self.builder.progress(part.slots, part.rate * (now - part.since))
        flows = np.concatenate([*slots, np.array(self._new, np.int64)])
        self._touched, self._new = {}, []
        if len(flows):
            for slots_of_part in self._split(flows):
                self._decide(slots_of_part, now)

    def stuck(self) -> list[int]:
        """Slots of the flows that have no rate."""
        return [
            int(s) for part in self._parts.values() for s in part.slots[part.rate <= 0.0]
        ]

    def _touch(self, number: int | np.int64) -> None:
        """The part is no more; its flows wait for `settle`. -1 is no part."""
        if number >= 0:
            part = self._touched[int(number)] = self._parts.pop(int(number))
            self._part_of_link[part.links] = -1
            self._part_of_group[part.groups] = -1

    def _split(self, flows: Ints) -> Iterable[Ints]:
        """The flows by part; one part unless the allocator is local."""
        if not self._local or len(flows) == 1:
            return [flows]
        start, links = self.builder.paths_of(flows)
        groups = self.builder.groups(flows)
        label, parts = connected(start, links, groups, self._part_of_link, self._part_of_group)
        if parts == 1:
            return [flows]
        return [flows[label == number] for number in range(parts)]

    def _decide(self, flows: Ints, now: float) -> None:
        state = self.builder.state(now, flows)
        allocation = self._allocator.allocate(state)
        rate = allocation.rate / 8.0
        if not np.all(rate >= 0.0):
            raise WorkFailed(f"at {now:g} s a policy gave a rate that is negative or not a number")
        with np.errstate(divide="ignore"):
            end = now + state.remaining / rate
        groups = self.builder.groups(flows)
        part = _Part(flows, state.path_links, groups, rate, end, now)
        number = self._next_part
        self._next_part += 1
        self._parts[number] = part
        self._part_of_link[state.path_links] = number
        self._part_of_group[groups] = number
        heapq.heappush(self._due, (min(float(end.min()), allocation.valid_until), number))
        begun = flows[(rate > 0.0) & np.isnan(self.started[flows])]
        self.started[begun] = now
        if allocation.classes is not None:
            for slot, class_ in zip(flows.tolist(), allocation.classes.tolist(), strict=True):
                history = self.classes.setdefault(slot, [])
                if not history or history[-1] != class_:
                    history.append(class_)


def _longer(values: NDArray[Any], index: int, fill: float) -> NDArray[Any]:
    """The array, extended beyond an index."""
    return np.concatenate([values, np.full(index + len(values), fill, values.dtype)])


@compiled
def connected(
    start: Ints, links: Ints, groups: Ints, by_link: Ints, by_group: Ints
) -> tuple[Ints, int]:
    """Label flows 0.. so that flows with a common link or group have one label.

    Flow i has links[start[i]:start[i + 1]] and groups[i]. `by_link` and `by_group` are scratch, -1
    at these flows' links and groups before and after. Union-find: nearly O(path entries).
    """
    flows = len(groups)
    parent = np.arange(flows)
    for i in range(flows):
        if by_group[groups[i]] < 0:
            by_group[groups[i]] = i
        else:
            _unite(parent, by_group[groups[i]], i)
        for e in range(start[i], start[i + 1]):
            if by_link[links[e]] < 0:
                by_link[links[e]] = i
            else:
                _unite(parent, by_link[links[e]], i)
    for link in links:
        by_link[link] = -1
    for group in groups:
        by_group[group] = -1
    label = np.full(flows, -1, np.int64)
    parts = 0
    for i in range(flows):
        root = _root(parent, i)
        if label[root] < 0:
            label[root] = parts
            parts += 1
        label[i] = label[root]
    return label, parts


@compiled
def _unite(parent: Ints, a: int, b: int) -> None:
    a, b = _root(parent, a), _root(parent, b)
    if a < b:
        parent[b] = a
    else:
        parent[a] = b


@compiled
def _root(parent: Ints, i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i

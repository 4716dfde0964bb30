"""The network as a fluid: flows drain at constant rates between decisions, part by part.

Active flows that share a link or an EchelonFlow, directly or through others, form a *part*. An
event touches the parts it belongs to and no others: only they are advanced, decided again, merged
or split. So its cost grows with them, not with the cluster.
"""

from __future__ import annotations

import heapq
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
        """`local`: a decision about a part does not depend on the others, and flows that share no
        link are not held back (`Policy.local`). If not, everything is one part."""
        self.builder = builder
        self.started: Floats = np.full(64, np.nan)
        "(slots,) when the flow's rate first rose above zero, in seconds; NaN until then."
        self.classes: dict[int, list[int]] = {}
        "Slot -> the classes it was given, in order of time."
        self._allocator = allocator
        self._highest = allocator.highest
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
            self._allocate(flows, now)

    def advance(self, now: float) -> None:
        """Bring what every flow has left up to this moment, and decide for all again."""
        for number in list(self._parts):
            self._touch(number)
        self.settle(now)

    def stuck(self) -> list[int]:
        """Slots of the flows that have no rate."""
        return [int(s) for part in self._parts.values() for s in part.slots[part.rate <= 0.0]]

    def _touch(self, number: int | np.int64) -> None:
        """The part is no more; its flows wait for `settle`. -1 is no part."""
        if number >= 0:
            part = self._touched[int(number)] = self._parts.pop(int(number))
            self._part_of_link[part.links] = -1
            self._part_of_group[part.groups] = -1

    def _allocate(self, flows: Ints, now: float) -> None:
        """Split the flows into parts and give every part its rates."""
        start, links = self.builder.paths_of(flows)
        if not self._local:
            self._decide(flows, links, now)
            return
        label, contended = survey(
            start, links, self.builder.groups(flows), self._part_of_link, self._part_of_group
        )
        if len(contended) == 1 and contended[0]:
            self._decide(flows, links, now)
            return
        for number, shared in enumerate(contended.tolist()):
            mine = flows if len(contended) == 1 else flows[label == number]
            own_start, own = (start, links) if mine is flows else self.builder.paths_of(mine)
            if shared:
                self._decide(mine, own, now)
            else:
                rate = narrowest(own_start, own, self.builder.capacity)
                self._form(mine, own, rate, now, float("inf"), self._highest)

    def _decide(self, flows: Ints, links: Ints, now: float) -> None:
        """Flows that contend: ask for their rates."""
        allocation = self._allocator.allocate(self.builder.state(now, flows))
        self._form(flows, links, allocation.rate, now, allocation.valid_until, allocation.classes)

    def _form(
        self,
        flows: Ints,
        links: Ints,
        rate: Floats,
        now: float,
        until: float,
        classes: Ints | None,
    ) -> None:
        """The flows are a part with these rates (bit/s) until one ends, or `until`."""
        speed, end, first, valid = ends(now, rate, self.builder.left_of(flows))
        if not valid:
            raise WorkFailed(f"at {now:g} s a policy gave a rate that is negative or not a number")
        groups = self.builder.groups(flows)
        number = self._next_part
        self._next_part += 1
        self._parts[number] = _Part(flows, links, groups, speed, end, now)
        self._part_of_link[links] = number
        self._part_of_group[groups] = number
        heapq.heappush(self._due, (min(first, until), number))
        begin(flows, speed, self.started, now)
        if classes is not None:
            for slot, class_ in zip(flows.tolist(), np.broadcast_to(classes, len(flows)).tolist()):
                history = self.classes.setdefault(slot, [])
                if not history or history[-1] != class_:
                    history.append(class_)


def _longer(values: NDArray[Any], index: int, fill: float) -> NDArray[Any]:
    """The array, extended beyond an index."""
    return np.concatenate([values, np.full(index + len(values), fill, values.dtype)])


@compiled
def survey(
    start: Ints, links: Ints, groups: Ints, by_link: Ints, by_group: Ints
) -> tuple[Ints, NDArray[np.bool_]]:
    """Label flows 0.. so that flows with a common link or group have one label.

    Also tells for each label whether any two of its flows share a link. Flow i has
    links[start[i]:start[i + 1]] and groups[i]. `by_link` and `by_group` are scratch, -1 at these
    flows' links and groups before and after. Union-find: nearly O(path entries).
    """
    flows = len(groups)
    parent = np.arange(flows)
    shares = np.zeros(flows, np.bool_)
    for i in range(flows):
        if by_group[groups[i]] < 0:
            by_group[groups[i]] = i
        else:
            _unite(parent, by_group[groups[i]], i)
        for e in range(start[i], start[i + 1]):
            if by_link[links[e]] < 0:
                by_link[links[e]] = i
            else:
                shares[i] = True
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
    contended = np.zeros(parts, np.bool_)
    for i in range(flows):
        if shares[i]:
            contended[label[i]] = True
    return label, contended


@compiled
def narrowest(start: Ints, links: Ints, capacity: Floats) -> Floats:
    """(flows,) bit/s of the narrowest link of each path."""
    rate = np.full(len(start) - 1, np.inf)
    for i in range(len(rate)):
        for e in range(start[i], start[i + 1]):
            rate[i] = min(rate[i], capacity[links[e]])
    return rate


@compiled
def ends(now: float, rate: Floats, left: Floats) -> tuple[Floats, Floats, float, bool]:
    """Bytes per second, when each flow would end, the first end, and whether rates are rates."""
    speed, end = rate / 8.0, np.empty(len(rate))
    first, valid = np.inf, True
    for i in range(len(rate)):
        valid = valid and speed[i] >= 0.0
        end[i] = now + left[i] / speed[i]
        first = min(first, end[i])
    return speed, end, first, valid


@compiled
def begin(flows: Ints, speed: Floats, started: Floats, now: float) -> None:
    """Note which flows send for the first time."""
    for i in range(len(flows)):
        if speed[i] > 0.0 and np.isnan(started[flows[i]]):
            started[flows[i]] = now


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

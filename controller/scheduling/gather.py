"""Copies a `NetworkState` out of the tables that hold all active flows and their EchelonFlows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.scheduling.compiling import compiled
from controller.scheduling.policy import Floats, Ints, JobState, NetworkState

Columns = Any
"Arrays by name: `Table.column`, or a structured array."


def network_state(
    time: float,
    capacity: Floats,
    flow: Columns,
    owner: Columns,
    rows: Ints,
    paths: tuple[Ints, Ints],
    job_state: Callable[[int], JobState],
    scratch: Ints,
) -> NetworkState:
    """What a policy sees of some active flows, their EchelonFlows and jobs. Its arrays are copies.

    `rows` (flows,) are the flows' places in `flow`, whose `group` is a place in `owner`; `paths`
    are `path_start` and `path_links` of the state. `scratch` is -1 everywhere before and after,
    and longer than any group's or job's number. O(rows + path entries).
    """
    groups, group = dense(flow["group"][rows], scratch)
    jobs, group_job = dense(owner["job"][groups], scratch)
    size, remaining = flow["size"][rows], flow["remaining"][rows]
    return NetworkState(
        time=time,
        capacity=capacity,
        size=size,
        remaining=remaining,
        release=flow["release"][rows],
        ideal_finish=flow["ideal_finish"][rows],
        group=group,
        path_start=paths[0],
        path_links=paths[1],
        tie=flow["tie"][rows],
        group_reference=owner["reference"][groups],
        group_weight=owner["weight"][groups],
        group_job=group_job,
        group_index=owner["index"][groups],
        group_sent=owner["sent"][groups] + sent(group, len(groups), size, remaining),
        group_tie=owner["tie"][groups],
        jobs=[job_state(int(job)) for job in jobs],
    )


class Table:
    """Columns of equal length with free slots, doubled when they run out."""

    def __init__(self, **columns: type) -> None:
        self.column: dict[str, NDArray[Any]] = {k: np.zeros(64, d) for k, d in columns.items()}
        self._free = list(range(63, -1, -1))

    def take(self) -> int:
        """A free slot. Arrays taken out of `column` before are stale once it had to grow."""
        if not self._free:
            length = len(next(iter(self.column.values())))
            for name, values in self.column.items():
                self.column[name] = np.concatenate([values, np.zeros_like(values)])
            self._free.extend(range(2 * length - 1, length - 1, -1))
        return self._free.pop()

    def give_back(self, slot: int) -> None:
        """The slot may be taken again."""
        self._free.append(slot)


@compiled
def paths_of(slots: Ints, hops: Ints, links: Ints) -> tuple[Ints, Ints]:
    """Path entries of some flows one after another: (flows + 1,) starts, and the links.

    `links` is (slots, longest path), `hops` how many of them count.
    """
    start = np.zeros(len(slots) + 1, np.int64)
    for i in range(len(slots)):
        start[i + 1] = start[i] + hops[slots[i]]
    out = np.empty(start[-1], np.int64)
    for i in range(len(slots)):
        for k in range(hops[slots[i]]):
            out[start[i] + k] = links[slots[i], k]
    return start, out


@compiled
def dense(values: Ints, scratch: Ints) -> tuple[Ints, Ints]:
    """Number the distinct values 0.. as they first appear: (the values, each row's number).

    `scratch` is -1 everywhere before and after, and longer than the largest value.
    """
    distinct = np.empty(len(values), np.int64)
    number = np.empty(len(values), np.int64)
    count = 0
    for i in range(len(values)):
        if scratch[values[i]] < 0:
            scratch[values[i]] = count
            distinct[count] = values[i]
            count += 1
        number[i] = scratch[values[i]]
    for i in range(count):
        scratch[distinct[i]] = -1
    return distinct[:count].copy(), number


@compiled
def sent(group: Ints, groups: int, size: Any, remaining: Any) -> Any:
    """(groups,) bytes that the active flows of each group have sent."""
    out = np.zeros(groups)
    for i in range(len(group)):
        out[group[i]] += size[i] - remaining[i]
    return out

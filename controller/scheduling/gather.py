"""Copies a `NetworkState` out of the tables that hold all active flows and their EchelonFlows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.scheduling.compiling import compiled
from controller.scheduling.policy import Floats, Ints, JobState, NetworkState

Rows = Any
"A structured array; compiled code reads its fields as attributes, which numpy's types do not know."


def network_state(
    time: float,
    capacity: Floats,
    flows: Rows,
    owners: Rows,
    rows: Ints,
    paths: tuple[Ints, Ints],
    job_state: Callable[[int], JobState],
    scratch: Ints,
) -> NetworkState:
    """What a policy sees of some active flows, their EchelonFlows and jobs. Its arrays are copies.

    `rows` (flows,) are the flows' places in `flows`, whose `group` is a place in `owners`; `paths`
    are `path_start` and `path_links` of the state. `scratch` is -1 everywhere before and after,
    and longer than any group's or job's number. O(rows + path entries).
    """
    flow, group, jobs = columns(flows, owners, rows, scratch)
    size, remaining, release, ideal_finish, tie, owner = flow
    reference, weight, group_job, index, sent, group_tie = group
    return NetworkState(
        time=time,
        capacity=capacity,
        size=size,
        remaining=remaining,
        release=release,
        ideal_finish=ideal_finish,
        group=owner,
        path_start=paths[0],
        path_links=paths[1],
        tie=tie,
        group_reference=reference,
        group_weight=weight,
        group_job=group_job,
        group_index=index,
        group_sent=sent,
        group_tie=group_tie,
        jobs=[job_state(job) for job in jobs.tolist()],
    )


class Table:
    """Rows with free slots, doubled when they run out."""

    def __init__(self, **columns: type) -> None:
        self.column: NDArray[Any] = np.zeros(64, list(columns.items()))
        self._free = list(range(63, -1, -1))

    def take(self) -> int:
        """A free slot. What was taken out of `column` before is stale once it had to grow."""
        if not self._free:
            length = len(self.column)
            self.column = np.concatenate([self.column, np.zeros_like(self.column)])
            self._free.extend(range(2 * length - 1, length - 1, -1))
        return self._free.pop()

    def give_back(self, slot: int) -> None:
        """The slot may be taken again."""
        self._free.append(slot)


@compiled
def columns(
    flows: Rows, owners: Rows, rows: Ints, scratch: Ints
) -> tuple[
    tuple[Floats, Floats, Floats, Floats, Ints, Ints],
    tuple[Floats, Floats, Ints, Ints, Floats, Ints],
    Ints,
]:
    """What a state says of flows, of EchelonFlows, and the jobs' numbers.

    (flows,) size, remaining, release, ideal finish, tie and group; (groups,) reference, weight,
    job, index, bytes sent and tie. For `scratch` see `network_state`.
    """
    owner = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        owner[i] = flows[rows[i]].group
    groups, group = dense(owner, scratch)
    job = np.empty(len(groups), np.int64)
    for i in range(len(groups)):
        job[i] = owners[groups[i]].job
    jobs, group_job = dense(job, scratch)
    size, remaining, release, ideal_finish, tie = _of_flows(flows, rows)
    reference, weight, index, sent, group_tie = _of_groups(owners, groups, group, size, remaining)
    return (
        (size, remaining, release, ideal_finish, tie, group),
        (reference, weight, group_job, index, sent, group_tie),
        jobs,
    )


@compiled
def _of_flows(flows: Rows, rows: Ints) -> tuple[Floats, Floats, Floats, Floats, Ints]:
    """(flows,) size, remaining, release, ideal finish and tie."""
    count = len(rows)
    size, remaining = np.empty(count), np.empty(count)
    release, ideal_finish = np.empty(count), np.empty(count)
    tie = np.empty(count, np.int64)
    for i in range(count):
        flow = flows[rows[i]]
        size[i], remaining[i], tie[i] = flow.size, flow.remaining, flow.tie
        release[i], ideal_finish[i] = flow.release, flow.ideal_finish
    return size, remaining, release, ideal_finish, tie


@compiled
def _of_groups(
    owners: Rows, groups: Ints, group: Ints, size: Floats, remaining: Floats
) -> tuple[Floats, Floats, Ints, Floats, Ints]:
    """(groups,) reference, weight, index, bytes sent and tie."""
    count = len(groups)
    reference, weight, sent = np.empty(count), np.empty(count), np.empty(count)
    index, tie = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        owner = owners[groups[i]]
        reference[i], weight[i], sent[i] = owner.reference, owner.weight, owner.sent
        index[i], tie[i] = owner.index, owner.tie
    for i in range(len(group)):
        sent[group[i]] += size[i] - remaining[i]
    return reference, weight, index, sent, tie


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

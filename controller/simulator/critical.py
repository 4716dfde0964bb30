"""Heads and tails: the least time before and after every flow of a job, whatever the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from controller.model.fabric import Fabric
from controller.scheduling.kernels import compiled
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Floats, Ints

Resource = frozenset[int]
"Links of which every path of a flow takes exactly one: together they carry all of it."


@dataclass(frozen=True, slots=True)
class Demand:
    """What one job asks of one resource, over all its iterations."""

    seconds: Floats
    "(flows,) time of the whole resource that each flow takes."
    head: Floats
    "(flows,) least time from the job's arrival to the flow's first byte, in seconds."
    tail: Floats
    "(flows,) least time from the flow's last byte to the end of the job, in seconds."


@dataclass(frozen=True, slots=True)
class Critical:
    """What no schedule can change about a job."""

    least: float
    "Seconds from its arrival to its end, at least."
    demands: dict[Resource, Demand]
    "What it asks of every resource."


def critical(plan: JobPlan, fabric: Fabric) -> Critical:
    """Longest paths through all iterations, every flow at the rate of its widest path; then, per
    resource, Jackson's preemptive schedule of heads and tails (the exact optimum of one resource).

    Source: Carlier, "The one-machine sequencing problem", EJOR 11, 1982. Valid for any routing
    over shortest paths. O(iterations * nodes + flows log flows).
    """
    seconds = np.array([*plan.seconds, *_alone_on_the_wire(plan, fabric)])
    head, tail = _longest_paths(plan, seconds)
    least = float(np.max(head + seconds + tail, initial=0.0))
    demands = {
        resource: _demand(plan, fabric, resource, rows, head, tail)
        for resource, rows in _users(plan, fabric).items()
    }
    for demand in demands.values():
        if len(demand.head) > 1:
            least = max(least, preemptive(demand.head, demand.seconds, demand.tail))
    return Critical(least, demands)


def resources(fabric: Fabric, src: str, dst: str) -> tuple[Resource, ...]:
    """The links that a flow between two hosts can take at each hop."""
    return tuple(frozenset(hop) for hop in zip(*fabric.paths(src, dst), strict=True))


def rate_of(fabric: Fabric, resource: Resource) -> float:
    """bit/s of all its links."""
    return sum(fabric.links[link].rate for link in resource)


def preemptive(head: Floats, seconds: Floats, tail: Floats) -> float:
    """Least max of (finish + tail) on one machine, jobs preemptible: longest tail first."""
    order = np.argsort(head, kind="stable")
    return float(_preemptive(head[order], seconds[order], tail[order]))


def most_done(head: Floats, seconds: Floats, until: Floats) -> Floats:
    """The most work one machine can have done by each time of `until` (ascending)."""
    order = np.argsort(head, kind="stable")
    out: Floats = _most_done(head[order], seconds[order], until)
    return out


def _alone_on_the_wire(plan: JobPlan, fabric: Fabric) -> list[float]:
    rate: dict[tuple[str, str], float] = {}
    for ends in {*zip(plan.src, plan.dst, strict=True)}:
        rate[ends] = max(
            min((fabric.links[link].rate for link in path), default=np.inf)
            for path in fabric.paths(*ends)
        )
    return [
        8 * size / rate[src, dst]
        for src, dst, size in zip(plan.src, plan.dst, plan.size, strict=True)
    ]


def _users(plan: JobPlan, fabric: Fabric) -> dict[Resource, list[int]]:
    """The flows (rows) on every resource."""
    between: dict[tuple[str, str], list[int]] = {}
    for row, ends in enumerate(zip(plan.src, plan.dst, strict=True)):
        between.setdefault(ends, []).append(row)
    users: dict[Resource, list[int]] = {}
    for (src, dst), rows in between.items():
        for resource in resources(fabric, src, dst):
            users.setdefault(resource, []).extend(rows)
    return users


def _demand(
    plan: JobPlan, fabric: Fabric, resource: Resource, rows: list[int], head: Floats, tail: Floats
) -> Demand:
    nodes = [plan.tasks + row for row in rows]
    seconds = 8 * np.array([plan.size[row] for row in rows]) / rate_of(fabric, resource)
    return Demand(
        np.tile(seconds, plan.job.iterations), head[:, nodes].ravel(), tail[:, nodes].ravel()
    )


def _longest_paths(plan: JobPlan, seconds: Floats) -> tuple[Floats, Floats]:
    """(iterations, nodes) least time before each node starts, and after it ends."""
    order = _topological(plan)
    frees = _flat(plan.frees)
    begins = _flat(plan.begins)
    holds = _flat(plan.holds)
    head, tail = _passes(plan.job.iterations, order, seconds, *frees, *begins, *holds)
    return head, tail


def _topological(plan: JobPlan) -> Ints:
    waits = [0] * len(plan.needs)
    for others in plan.frees:
        for other in others:
            waits[other] += 1
    line = [node for node, count in enumerate(waits) if not count]
    for node in line:  # grows while it is walked
        for other in plan.frees[node]:
            waits[other] -= 1
            if not waits[other]:
                line.append(other)
    return np.array(line, np.int64)


def _flat(lists: list[list[int]] | list[tuple[int, ...]]) -> tuple[Ints, Ints]:
    start = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return start, np.array([x for part in lists for x in part], np.int64)


@compiled
def _passes(
    iterations: int,
    order: Ints,
    seconds: Floats,
    free_start: Ints,
    frees: Ints,
    begin_start: Ints,
    begins: Ints,
    hold_start: Ints,
    holds: Ints,
) -> tuple[Floats, Floats]:
    """Forwards, then backwards, through all iterations; `_longest_paths`."""
    nodes, workers = len(order), len(begin_start) - 1
    head = np.zeros((iterations, nodes))
    tail = np.zeros((iterations, nodes))
    turn = np.zeros(workers)
    for k in range(iterations):
        for w in range(workers):
            for e in range(begin_start[w], begin_start[w + 1]):
                head[k, begins[e]] = max(head[k, begins[e]], turn[w])
        for node in order:
            end = head[k, node] + seconds[node]
            for e in range(free_start[node], free_start[node + 1]):
                head[k, frees[e]] = max(head[k, frees[e]], end)
            for e in range(hold_start[node], hold_start[node + 1]):
                turn[holds[e]] = max(turn[holds[e]], end)
    for k in range(iterations - 1, -1, -1):
        after = np.zeros(workers)
        if k + 1 < iterations:
            for w in range(workers):
                for e in range(begin_start[w], begin_start[w + 1]):
                    node = begins[e]
                    after[w] = max(after[w], seconds[node] + tail[k + 1, node])
        for i in range(nodes - 1, -1, -1):
            node = order[i]
            longest = 0.0
            for e in range(free_start[node], free_start[node + 1]):
                longest = max(longest, seconds[frees[e]] + tail[k, frees[e]])
            for e in range(hold_start[node], hold_start[node + 1]):
                longest = max(longest, after[holds[e]])
            tail[k, node] = longest
    return head, tail


@compiled
def _preemptive(head: Floats, seconds: Floats, tail: Floats) -> float:
    waiting = [(-tail[0], seconds[0])]
    worst, now, i = 0.0, head[0], 1
    while len(waiting) > 0 or i < len(head):
        if len(waiting) == 0:
            now = max(now, head[i])
            heappush(waiting, (-tail[i], seconds[i]))
            i += 1
            continue
        key, left = heappop(waiting)
        if i < len(head) and head[i] < now + left:
            if head[i] > now:
                left -= head[i] - now
                now = head[i]
            heappush(waiting, (key, left))
            heappush(waiting, (-tail[i], seconds[i]))
            i += 1
            continue
        now += left
        worst = max(worst, now - key)
    return worst


@compiled
def _most_done(head: Floats, seconds: Floats, until: Floats) -> Floats:
    out = np.empty(len(until))
    done, waiting, now, i = 0.0, 0.0, 0.0, 0
    for k in range(len(until)):
        while i < len(head) and head[i] < until[k]:
            if head[i] > now:
                step = min(waiting, head[i] - now)
                done, waiting, now = done + step, waiting - step, head[i]
            waiting += seconds[i]
            i += 1
        if until[k] > now:
            step = min(waiting, until[k] - now)
            done, waiting, now = done + step, waiting - step, until[k]
        out[k] = done
    return out

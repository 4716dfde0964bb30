"""Heads and tails: the least time before and after every flow of a job, whatever the schedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from controller.model.fabric import Fabric
from controller.scheduling.compiling import compiled
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Floats, Ints

DENSE = 4_000_000
"Pairs of nodes above which a job's ancestors are not listed."
Resource = frozenset[int]
"Links of which every path of a flow takes exactly one: together they carry all of it."


Load = tuple[Ints, Floats]
"The nodes that use a resource, and the seconds each takes of all of it."


@dataclass(frozen=True, slots=True)
class Timed:
    """The nodes of a job, by iteration."""

    seconds: Floats
    "(nodes,) least durations."
    head: Floats
    "(iterations, nodes) least time from the job's arrival to each one's start."
    tail: Floats
    "(iterations, nodes) least time from each one's end to the job's; -inf: the end needs it not."
    loads: dict[Resource, Load]
    "What uses each resource, in every iteration."


@dataclass(frozen=True, slots=True)
class Demand:
    """What one job asks of one resource, over all its iterations."""

    seconds: Floats
    "(flows,) time of the whole resource that each flow takes; flows that no task waits for left out."
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
    """Longest paths through all iterations, every flow at the rate of its widest path; what a node
    waits for cannot pass a resource faster than one after another; then, per resource, Jackson's
    preemptive schedule of heads and tails (the exact optimum of one resource).

    Source: Carlier, "The one-machine sequencing problem", EJOR 11, 1982. Valid for any routing
    over shortest paths. O(iterations * nodes * path entries), or O(iterations * nodes) where a
    job has more than `DENSE` pairs of nodes.
    """
    timed = heads_and_tails(plan, fabric)
    head, tail = timed.head, timed.tail
    least = float(np.max(head + timed.seconds + tail, initial=0.0))
    demands = {
        resource: _demand(times, head[:, nodes], tail[:, nodes])
        for resource, (nodes, times) in timed.loads.items()
    }
    for demand in demands.values():
        if len(demand.head) > 1:
            least = max(least, preemptive(demand.head, demand.seconds, demand.tail))
    return Critical(least, demands)


def _demand(times: Floats, head: Floats, tail: Floats) -> Demand:
    """(iterations, flows) heads and tails of one resource, without what the job's end needs not."""
    needed = np.isfinite(tail)
    return Demand(np.broadcast_to(times, head.shape)[needed], head[needed], tail[needed])


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How a job repeats on the idle fabric."""

    period_s: float
    "Seconds from one iteration to the next."
    silent_s: float
    "The longest time in a period in which it sends nothing, in seconds."
    first_group: int
    "Row of the EchelonFlow that ends that silence; -1: it is never silent, or sends nothing."


def rhythm(plan: JobPlan, fabric: Fabric) -> Rhythm:
    """Period and longest silence, from the least heads of a few iterations."""
    few = replace(plan, job=replace(plan.job, iterations=4))
    timed = heads_and_tails(few, fabric)
    seconds, head = timed.seconds, timed.head
    period = float(np.median(head[3] - head[2]))
    sends = [plan.tasks + row for row in range(len(plan.size)) if plan.src[row] != plan.dst[row]]
    if not sends or period <= 0:
        return Rhythm(period, 0.0, -1)
    begin = head[3, sends]
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate((begin + seconds[sends])[order])
    gaps = np.append(begin[1:], begin[0] + period) - end
    longest = int(np.argmax(gaps))
    first = sends[int(order[(longest + 1) % len(sends)])] - plan.tasks
    if gaps[longest] <= 0:
        return Rhythm(period, 0.0, -1)
    return Rhythm(period, float(gaps[longest]), plan.group[first])


def tails_of(plan: JobPlan, fabric: Fabric) -> list[float]:
    """(flows,) least seconds from a flow's last byte to the end of its job, if it is played once;
    -inf for a flow that no task waits for."""
    once = replace(plan, job=replace(plan.job, iterations=1))
    return [float(value) for value in heads_and_tails(once, fabric).tail[0, plan.tasks :]]


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


def _loads(
    plan: JobPlan, fabric: Fabric, users: dict[Resource, list[int]]
) -> tuple[Floats, list[Load]]:
    """(nodes,) least duration of every node, and what uses each resource."""
    loads = [
        (
            np.array(rows, np.int64) + plan.tasks,
            8 * np.array([plan.size[row] for row in rows]) / rate_of(fabric, resource),
        )
        for resource, rows in users.items()
    ]
    return np.array([*plan.seconds, *_alone_on_the_wire(plan, fabric)]), loads


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


@dataclass(frozen=True, slots=True)
class _Dag:
    """One iteration, read forwards or backwards."""

    order: Ints
    "(nodes,) every node after those it waits for."
    before: tuple[Ints, Ints]
    "What each node waits for, one after another: starts and nodes."
    between: Floats
    """(nodes, nodes) least seconds from the end of the column's node to the start of the row's;
    -inf where the row does not wait for the column; (0, 0) where there are too many nodes."""


def heads_and_tails(plan: JobPlan, fabric: Fabric) -> Timed:
    """Least time before each node starts, and after it ends.

    A worker's turn is a node too, at the beginning and at the end of every iteration: all that the
    turn waits for must have passed the links before it comes.
    """
    users = _users(plan, fabric)
    least, loads = _loads(plan, fabric, users)
    nodes, workers, count = len(plan.needs), len(plan.held), plan.job.iterations
    begin, end = np.arange(nodes, nodes + workers), np.arange(nodes + workers, nodes + 2 * workers)
    frees = [
        others + [int(end[worker]) for worker in holds]
        for others, holds in zip(plan.frees, plan.holds, strict=True)
    ]
    frees += plan.begins + [[] for _ in range(workers)]
    seconds = np.append(least, np.zeros(2 * workers))
    forwards, backwards = _dag(frees, seconds), _dag(reverse(frees), seconds)
    head, tail = np.zeros((count, len(frees))), np.full((count, len(frees)), -np.inf)
    for k in range(count):
        if k:
            head[k, begin] = head[k - 1, end]
        _settle(forwards, seconds, loads, head[k])
    # A job ends with its last task: what no task waits for may come later (without tasks, nothing).
    tail[:, : plan.tasks or nodes] = 0.0
    for k in range(count - 1, -1, -1):
        if k + 1 < count:
            tail[k, end] = tail[k + 1, begin]
        _settle(backwards, seconds, loads, tail[k])
    by_resource = dict(zip(users, loads, strict=True))
    return Timed(least, head[:, :nodes], tail[:, :nodes], by_resource)


def _dag(frees: list[list[int]], seconds: Floats) -> _Dag:
    order, before = topological(frees), flat(reverse(frees))
    if len(frees) ** 2 > DENSE:
        return _Dag(order, before, np.empty((0, 0)))
    return _Dag(order, before, _between(order, *before, seconds))


def _settle(dag: _Dag, seconds: Floats, loads: list[Load], earliest: Floats) -> None:
    """Raise `earliest` (nodes,) to longest paths, and to the one-machine bound of what each node
    waits for on every resource."""
    start, nodes = flat([users.tolist() for users, _ in loads])
    times = np.concatenate([np.empty(0), *(times for _, times in loads)])
    _earliest(dag.order, *dag.before, dag.between, seconds, start, nodes, times, earliest)


def reverse(frees: list[list[int]]) -> list[list[int]]:
    """For each node, the nodes that free it."""
    before: list[list[int]] = [[] for _ in frees]
    for node, others in enumerate(frees):
        for other in others:
            before[other].append(node)
    return before


def topological(frees: list[list[int]]) -> Ints:
    """Every node after those that free it."""
    waits = [0] * len(frees)
    for others in frees:
        for other in others:
            waits[other] += 1
    line = [node for node, count in enumerate(waits) if not count]
    for node in line:  # grows while it is walked
        for other in frees[node]:
            waits[other] -= 1
            if not waits[other]:
                line.append(other)
    return np.array(line, np.int64)


def flat(lists: list[list[int]]) -> tuple[Ints, Ints]:
    """Where each list starts, and all of them one after another."""
    start = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return start, np.array([x for part in lists for x in part], np.int64)


@compiled
def _between(order: Ints, start: Ints, before: Ints, seconds: Floats) -> Floats:
    out = np.full((len(order), len(order)), -np.inf)
    for node in order:
        for e in range(start[node], start[node + 1]):
            other = before[e]
            out[node, other] = max(out[node, other], 0.0)
            for m in range(len(order)):
                if out[other, m] >= 0.0:
                    out[node, m] = max(out[node, m], out[other, m] + seconds[other])
    return out


@compiled
def _earliest(
    order: Ints,
    start: Ints,
    before: Ints,
    between: Floats,
    seconds: Floats,
    user_start: Ints,
    users: Ints,
    times: Floats,
    earliest: Floats,
) -> None:
    head, length, tail = np.empty(len(users)), np.empty(len(users)), np.empty(len(users))
    for node in order:
        for e in range(start[node], start[node + 1]):
            other = before[e]
            earliest[node] = max(earliest[node], earliest[other] + seconds[other])
        for r in range(len(user_start) - 1 if len(between) else 0):
            count = 0
            for u in range(user_start[r], user_start[r + 1]):
                other = users[u]
                if between[node, other] >= 0.0 and earliest[other] > -np.inf:
                    head[count], length[count] = earliest[other], times[u]
                    tail[count] = between[node, other]
                    count += 1
            if count > 1:
                line = np.argsort(head[:count])
                end = _preemptive(head[:count][line], length[:count][line], tail[:count][line])
                earliest[node] = max(earliest[node], end)


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

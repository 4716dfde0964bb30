"""Heads and tails: the least time before and after every flow of a job, whatever the schedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from controller.model.fabric import Fabric
from controller.scheduling.kernels import compiled
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Floats, Ints

DENSE = 4_000_000
"Pairs of nodes above which a job's ancestors are not listed."
ROUNDS = 8
"How often longest paths and one-machine bounds may raise each other."

Resource = frozenset[int]
"Links of which every path of a flow takes exactly one: together they carry all of it."


Load = tuple[Ints, Floats]
"The nodes that use a resource, and the seconds each takes of all of it."


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
    users = _users(plan, fabric)
    seconds, loads = _loads(plan, fabric, users)
    head, tail = _heads_and_tails(plan, seconds, loads)
    least = float(np.max(head + seconds + tail, initial=0.0))
    demands = {
        resource: _demand(times, head[:, nodes], tail[:, nodes])
        for resource, (nodes, times) in zip(users, loads, strict=True)
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
    seconds, loads = _loads(few, fabric, _users(few, fabric))
    head = _heads_and_tails(few, seconds, loads)[0]
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
    seconds, loads = _loads(once, fabric, _users(once, fabric))
    tail = _heads_and_tails(once, seconds, loads)[1]
    return [float(value) for value in tail[0, plan.tasks :]]


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
    after: tuple[Ints, Ints]
    "What waits for each node, one after another: starts and nodes."
    reach: Floats | None
    "(nodes, nodes) 1 where the row waits for the column, directly or not; None: too many."


def _heads_and_tails(plan: JobPlan, seconds: Floats, loads: list[Load]) -> tuple[Floats, Floats]:
    """(iterations, nodes) least time before each node starts, and after it ends."""
    nodes, count = len(plan.needs), plan.job.iterations
    order = _topological(plan)
    before: list[list[int]] = [[] for _ in range(nodes)]
    for node, others in enumerate(plan.frees):
        for other in others:
            before[other].append(node)
    reach = _reach(plan.frees, order) if nodes * nodes <= DENSE else None
    forwards = _Dag(order, _flat(plan.frees), reach)
    backwards = _Dag(order[::-1].copy(), _flat(before), None if reach is None else reach.T.copy())
    head, tail = np.zeros((count, nodes)), np.zeros((count, nodes))
    turn = np.zeros(len(plan.held))
    for k in range(count):
        for worker, starts in enumerate(plan.begins):
            head[k, starts] = np.maximum(head[k, starts], turn[worker])
        _settle(forwards, seconds, loads, head[k])
        ends = head[k] + seconds
        for node, workers in enumerate(plan.holds):
            for worker in workers:
                turn[worker] = max(turn[worker], ends[node])
    # A job ends with its last task: what no task waits for may come later (without tasks, nothing).
    ends_it = np.arange(nodes) < plan.tasks if plan.tasks else np.ones(nodes, bool)
    after: Floats = np.full(len(plan.held), -np.inf)
    for k in range(count - 1, -1, -1):
        for node, workers in enumerate(plan.holds):
            tail[k, node] = max((after[worker] for worker in workers), default=-np.inf)
        tail[k, ends_it] = np.maximum(tail[k, ends_it], 0.0)
        _settle(backwards, seconds, loads, tail[k])
        reached = tail[k] + seconds
        after = np.array([max(reached[starts], default=-np.inf) for starts in plan.begins])
    return head, tail


def _settle(dag: _Dag, seconds: Floats, loads: list[Load], earliest: Floats) -> None:
    """Raise `earliest` (nodes,) until longest paths and one-machine bounds agree with it."""
    for _ in range(ROUNDS):
        _propagate(dag.order, *dag.after, seconds, earliest)
        if dag.reach is None:
            return
        raised = earliest.copy()
        for nodes, times in loads:
            line = np.argsort(earliest[nodes], kind="stable")
            waits = dag.reach[:, nodes[line]]
            left = np.cumsum((waits * times[line])[:, ::-1], axis=1)[:, ::-1]
            end = np.where(waits > 0, left + earliest[nodes[line]], -np.inf)
            raised = np.maximum(raised, end.max(axis=1))
        if np.all(raised <= earliest * (1 + 1e-12)):
            return
        earliest[:] = raised
    _propagate(dag.order, *dag.after, seconds, earliest)


def _reach(frees: list[list[int]], order: Ints) -> Floats:
    reach = np.zeros((len(order), len(order)), bool)
    for node in order.tolist():
        for other in frees[node]:
            reach[other] |= reach[node]
            reach[other, node] = True
    return reach.astype(np.float64)


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


def _flat(lists: list[list[int]]) -> tuple[Ints, Ints]:
    start = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return start, np.array([x for part in lists for x in part], np.int64)


@compiled
def _propagate(order: Ints, start: Ints, after: Ints, seconds: Floats, earliest: Floats) -> None:
    """Longest paths: nothing starts before what it waits for has ended."""
    for node in order:
        end = earliest[node] + seconds[node]
        for e in range(start[node], start[node + 1]):
            earliest[after[e]] = max(earliest[after[e]], end)


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

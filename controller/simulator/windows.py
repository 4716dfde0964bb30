"""Windows: when each task and flow of a workload can run, if every job must end by a deadline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from controller.model.fabric import Fabric
from controller.scheduling.compiling import compiled
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Floats, Ints
from controller.simulator.critical import Resource, flat, heads_and_tails, reverse, topological

ROUNDS = 50
"Times that windows are narrowed in turn by what waits for what and by each resource."
EXACT = 1e-9
"Of a workload's time, by which windows must miss each other before they count as impossible."
CALL = 20_000
"Steps that a call counts for by itself."
WORTH = 1e-4
"Of the first deadline, less than which a window is not narrowed again for."


class Sets(NamedTuple):
    """Sets of flows, those of each resource one after another."""

    first: Ints
    "(resources + 1,) the first set of each."
    node: Ints
    "(sets,) the node that waits for all of the set, or that all of it wait for."
    start: Ints
    "(sets + 1,) where each begins in `flows`."
    flows: Ints
    "Places among the resource's flows."


@dataclass(frozen=True, slots=True)
class Unrolled:
    """All iterations of all jobs. Nodes: tasks, flows, and the turns of workers to begin one."""

    seconds: Floats
    "(nodes,) least durations; of a turn 0."
    head: Floats
    "(nodes,) least time from the start of the workload to each one's start."
    tail: Floats
    "(nodes,) least time from each one's end to the end of its job; -inf: the end may come first."
    job: Ints
    "(nodes,) rows of their jobs."
    order: Ints
    "(nodes,) every node after those it waits for."
    before: tuple[Ints, Ints]
    "What each node waits for, one after another: starts and nodes."
    after: tuple[Ints, Ints]
    "What waits for each node."
    sharers: tuple[Ints, Ints]
    "The flows on each resource: starts and nodes."
    share: Floats
    "(sharers,) seconds that each takes of all of the resource."
    joined: Sets
    "Flows on one resource that one node waits for."
    forked: Sets
    "Flows on one resource that wait for one node."

    @property
    def comparisons(self) -> int:
        """Of two flows, in one pass over all resources."""
        return int((np.diff(self.sharers[0]) ** 2).sum())

    def ends(self, head: Floats, jobs: int) -> Floats:
        """(jobs,) earliest ends, if nodes start no sooner than `head`."""
        out = np.zeros(jobs)
        counted = np.isfinite(self.tail)
        np.maximum.at(out, self.job[counted], (head + self.seconds + self.tail)[counted])
        return out


def unroll(plans: Sequence[JobPlan], fabric: Fabric) -> Unrolled:
    """The graph of a workload. O(iterations * (nodes + edges)) in memory."""
    graph = _Graph()
    for job, plan in enumerate(plans):
        graph.add(job, plan, fabric)
    order = topological(graph.frees)
    tail = np.array(graph.tail)
    for node in order[::-1]:  # of turns, which `heads_and_tails` does not give
        for other in graph.frees[node]:
            tail[node] = max(tail[node], graph.seconds[other] + tail[other])
    shared = [users for users in graph.users.values() if len(users) > 1]
    nodes = [[node for node, _ in users] for users in shared]
    backwards = reverse(graph.frees)
    return Unrolled(
        seconds=np.array(graph.seconds),
        head=np.array(graph.head),
        tail=tail,
        job=np.array(graph.job, np.int64),
        order=order,
        before=flat(backwards),
        after=flat(graph.frees),
        sharers=flat(nodes),
        share=np.array([seconds for users in shared for _, seconds in users]),
        joined=_sets(nodes, graph.frees),
        forked=_sets(nodes, backwards),
    )


def _sets(resources: list[list[int]], frees: list[list[int]]) -> Sets:
    """Two flows or more of one resource that free the same node."""
    count: list[int] = []
    freed: list[int] = []
    flows: list[list[int]] = []
    for nodes in resources:
        by_freed: dict[int, list[int]] = {}
        for place, node in enumerate(nodes):
            for other in frees[node]:
                by_freed.setdefault(other, []).append(place)
        several = {node: places for node, places in by_freed.items() if len(places) > 1}
        count.append(len(several))
        freed += several.keys()
        flows += several.values()
    return Sets(np.cumsum([0, *count]), np.array(freed, np.int64), *flat(flows))


class _Graph:
    """Nodes as they are added."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.head: list[float] = []
        self.tail: list[float] = []
        self.job: list[int] = []
        self.frees: list[list[int]] = []
        self.users: dict[Resource, list[tuple[int, float]]] = {}

    def add(self, job: int, plan: JobPlan, fabric: Fabric) -> None:
        """All iterations of a job: of each its nodes, then its workers' turns."""
        timed = heads_and_tails(plan, fabric)
        nodes, turns = len(plan.needs), len(plan.held)
        for k in range(plan.job.iterations):
            first, following = len(self.job), len(self.job) + nodes + turns
            last = k == plan.job.iterations - 1
            for others, holds in zip(plan.frees, plan.holds, strict=True):
                next_turns = [] if last else [following + nodes + turn for turn in holds]
                self.frees.append([first + other for other in others] + next_turns)
            self.frees += [[first + other for other in others] for others in plan.begins]
            self.seconds += [*timed.seconds, *[0.0] * turns]
            self.head += [*(timed.head[k] + plan.arrival), *[plan.arrival] * turns]
            self.tail += [*timed.tail[k], *[-np.inf] * turns]
            self.job += [job] * (nodes + turns)
            for resource, (users, seconds) in timed.loads.items():
                self.users.setdefault(resource, []).extend(
                    (first + int(node), float(share))
                    for node, share in zip(users, seconds, strict=True)
                    if np.isfinite(timed.tail[k, node])
                )


def narrow(graph: Unrolled, deadline: Floats) -> tuple[Floats | None, int]:
    """(nodes,) earliest starts if each job ends by its (jobs,) deadline, in seconds from the start
    of the workload, and the steps this took; None if no schedule does.

    Windows follow from longest paths, and on each resource from preemptive one-machine scheduling
    with heads and deadlines: work that must lie within an interval can be no longer than it, and a
    flow, or flows that one node waits for, that do not fit beside that work end after it. Valid for
    any rates and any routing over shortest paths. Source: Carlier, Pinson, "Adjustment of heads and
    tails for the job-shop problem", EJOR 78, 1994, of which the preemptive half.
    """
    head, mirror = graph.head.copy(), graph.tail - deadline[graph.job]
    steps = _narrow(
        graph.order,
        *graph.before,
        *graph.after,
        graph.seconds,
        *graph.sharers,
        graph.share,
        graph.joined,
        graph.forked,
        head,
        mirror,
        EXACT * float(deadline.max()),
        WORTH * float(deadline.min()),
    )
    return (head if steps > 0 else None), abs(steps)


@compiled
def _narrow(
    order: Ints,
    before_start: Ints,
    before: Ints,
    after_start: Ints,
    after: Ints,
    seconds: Floats,
    sharers_start: Ints,
    sharers: Ints,
    share: Floats,
    joined: Sets,
    forked: Sets,
    head: Floats,
    mirror: Floats,
    exact: float,
    worth: float,
) -> int:
    # Latest ends are kept as heads of the same graph read backwards in time: `mirror` = -latest end.
    end, begin = head + seconds, mirror + seconds
    seen, mirror_seen = np.full(len(sharers), -np.inf), np.full(len(sharers), -np.inf)
    steps = CALL
    for _ in range(ROUNDS):
        _longest(order, before_start, before, seconds, head, end)
        _longest(order[::-1], after_start, after, seconds, mirror, begin)
        steps += len(order)
        if np.any(end + mirror > exact) or np.any(begin + head > exact):
            return -steps
        settled = True
        for r in range(len(sharers_start) - 1):
            a, b = sharers_start[r], sharers_start[r + 1]
            nodes, taken = sharers[a:b], share[a:b]
            heads, mirrors = head[nodes], mirror[nodes]
            if np.all(heads <= seen[a:b] + worth) and np.all(mirrors <= mirror_seen[a:b] + worth):
                continue
            settled = False
            seen[a:b], mirror_seen[a:b] = heads, mirrors
            steps += len(nodes) ** 2
            if not _one_machine(nodes, r, joined, heads, -mirrors, taken, exact, end, head):
                return -steps
            _one_machine(nodes, r, forked, mirrors, -heads, taken, exact, begin, mirror)
        if settled:
            break
    return steps


@compiled
def _longest(
    order: Ints, start: Ints, before: Ints, seconds: Floats, head: Floats, end: Floats
) -> None:
    for node in order:
        for e in range(start[node], start[node + 1]):
            head[node] = max(head[node], end[before[e]])
        end[node] = max(end[node], head[node] + seconds[node])


@compiled
def _one_machine(
    nodes: Ints,
    resource: int,
    sets: Sets,
    head: Floats,
    deadline: Floats,
    seconds: Floats,
    exact: float,
    end: Floats,
    freed: Floats,
) -> bool:
    """Raises the ends of flows, and the heads of what several of them free; False if the machine
    cannot do all within their windows. O(n^2)."""
    by_head, by_deadline = np.argsort(head), np.argsort(deadline)
    deadlines, heads, work = deadline[by_deadline], head[by_deadline], seconds[by_deadline]
    full = np.full(len(nodes), -np.inf)  # by deadline, latest of begin + work in between
    freeing, begins, dues, sums = _together(sets, resource, head, deadline, seconds)
    line, at = np.argsort(begins), 0
    i, passed = 0, 0
    while i < len(nodes):
        begin, within = head[by_head[i]], 0.0
        while deadlines[passed] <= begin and passed < len(nodes) - 1:
            passed += 1
        for k in range(passed, len(nodes)):
            if heads[k] >= begin:
                within += work[k]
            full[k] = max(full[k], begin + within)
            if within > 0 and begin + within > deadlines[k] + exact:
                return False
        while i < len(nodes) and head[by_head[i]] == begin:
            one = by_head[i]
            late = _beside(deadlines, full, deadline[one], seconds[one], exact)
            end[nodes[one]] = max(end[nodes[one]], late)
            i += 1
        while at < len(line) and begins[line[at]] == begin:
            one = line[at]
            late = _beside(deadlines, full, dues[one], sums[one], exact)
            freed[freeing[one]] = max(freed[freeing[one]], late)
            at += 1
    return True


@compiled
def _together(
    sets: Sets, resource: int, head: Floats, deadline: Floats, seconds: Floats
) -> tuple[Ints, Floats, Floats, Floats]:
    """What the sets of a resource free, and each as if it were one flow."""
    first, last = sets.first[resource], sets.first[resource + 1]
    begins, dues = np.full(last - first, np.inf), np.full(last - first, np.inf)
    sums = np.zeros(last - first)
    for s in range(last - first):
        for f in range(sets.start[first + s], sets.start[first + s + 1]):
            flow = sets.flows[f]
            begins[s], dues[s] = min(begins[s], head[flow]), min(dues[s], deadline[flow])
            sums[s] += seconds[flow]
    return sets.node[first:last], begins, dues, sums


@compiled
def _beside(
    deadlines: Floats, full: Floats, deadline: float, seconds: float, exact: float
) -> float:
    """Least end of what takes so many seconds, beside all that must end before its deadline."""
    k = np.searchsorted(deadlines, deadline) - 1
    while k >= 0 and full[k] + seconds <= deadlines[k] + exact:
        k -= 1
    return full[k] + seconds if k >= 0 else -np.inf

"""Cuts the order a policy gives into the few classes that switches have queues for."""

from __future__ import annotations

import numpy as np

from controller.scheduling.compiling import compiled
from controller.scheduling.policy import Decision, Floats, Ints, NetworkState

CLASSES = 8
"Strict-priority queues of a port; class 7 is served first."

PLACES = 256
"Longer orders may only be cut where 256 equal shares of their bytes begin."


def cut_classes(
    state: NetworkState,
    decision: Decision,
    classes: int = CLASSES,
    highest: Ints | None = None,
) -> Ints:
    """(flows,) a class for every flow, `classes - 1` (served first) .. 0. Never against the order:
    of two flows that send on a common link, the one of smaller rank has the same class or a higher
    one.

    Source: algorithms.md, section 5. Cost of a cut: bytes of the flows that share class and link
    with a flow of another rank; flows that are held (`pace` 0) send nothing and cost nothing.
    Two orders are cut into at most `classes` runs of least cost by dynamic programming, and the
    cheaper taken: the ranks as they are, and the depths. A flow's depth is one more than the
    deepest of the smaller ranks that send on a link it uses, so that whoever has its links for
    itself is in the first class: when it is held for another, what it has under way does not starve
    behind that. Flows of one rank that are unpaced share by their class, and so their depth. Ties:
    the depths. O(n log n + path entries + classes * 256^2) for n flows.
    """
    if not state.flows:
        return np.empty(0, np.int64)
    order = np.argsort(decision.rank, kind="stable")
    anew = np.zeros(state.flows, np.int64)
    for least in (anew,) if highest is None else (classes - 1 - highest, anew):
        depth = depths(
            order,
            decision.rank,
            decision.pace,
            least,
            state.path_start,
            state.path_links,
            len(state.capacity),
        )
        if depth.max() < classes:
            top: Ints = classes - 1 - depth
            return top
    weight = np.where(decision.pace > 0.0, state.remaining, 0.0)
    run, cost = _cut(state, depth, weight, classes)
    if cost > 0.0:
        place = np.empty(state.flows, np.int64)
        place[order] = np.cumsum(np.diff(decision.rank[order], prepend=decision.rank[order[0]]) > 0)
        by_rank, cost_by_rank = _cut(state, place, weight, classes)
        if cost_by_rank < cost:
            run = by_rank
    return classes - 1 - run


def shared_bytes(state: NetworkState, decision: Decision, classes: Ints) -> float:
    """Bytes of the flows that send and share class and link with another rank: the cost of a cut."""
    seen: dict[tuple[int, int], set[int]] = {}
    entries = [
        state.path_links[a:b].tolist()
        for a, b in zip(state.path_start, state.path_start[1:], strict=False)
    ]
    sends = np.flatnonzero(decision.pace > 0.0).tolist()
    for row in sends:
        for link in entries[row]:
            seen.setdefault((link, int(classes[row])), set()).add(int(decision.rank[row]))
    return float(
        sum(
            state.remaining[row]
            for row in sends
            if any(len(seen[link, int(classes[row])]) > 1 for link in entries[row])
        )
    )


def _cut(state: NetworkState, place: Ints, weight: Floats, classes: int) -> tuple[Ints, float]:
    """(flows,) run 0.. of each flow, and the cost, for an order given as places 0, 1, 2, .."""
    places = int(place.max()) + 1
    before, after = neighbours(
        np.argsort(place, kind="stable"),
        place,
        weight,
        state.path_start,
        state.path_links,
        len(state.capacity),
    )
    if places > PLACES:
        bucket = _equal_shares(place, weight, places)
        place, places = bucket[place], int(bucket[-1]) + 1
        before = np.where(before < 0, -1, bucket[before])
        after = np.where(after >= len(bucket), places, bucket[np.minimum(after, len(bucket) - 1)])
    run_of_place, cost = best_runs(place, before, after, weight, places, classes)
    return run_of_place[place], cost


def _equal_shares(place: Ints, weight: Floats, places: int) -> Ints:
    """(places,) which of at most `PLACES` shares, equal in bytes, each place falls into."""
    cumulated = np.cumsum(np.bincount(place, weight, places))
    share = np.floor(PLACES * (1 - 1e-12) * cumulated / max(cumulated[-1], 1e-300))
    bucket: Ints = np.unique(share, return_inverse=True)[1].astype(np.int64)
    return bucket


@compiled
def depths(
    order: Ints,
    rank: Ints,
    pace: Floats,
    least: Ints,
    path_start: Ints,
    path_links: Ints,
    links: int,
) -> Ints:
    """(flows,) depth of each flow, not below `least`; `order` lists the rows by rank."""
    deepest = np.full(links, -1, np.int64)
    out = np.empty(len(order), np.int64)
    first = 0
    while first < len(order):
        last = first
        shared = 0
        while last < len(order) and rank[order[last]] == rank[order[first]]:
            row = order[last]
            depth = least[row]
            for e in range(path_start[row], path_start[row + 1]):
                depth = max(depth, deepest[path_links[e]] + 1)
            out[row] = depth
            if np.isinf(pace[row]):
                shared = max(shared, depth)
            last += 1
        for i in range(first, last):
            row = order[i]
            if np.isinf(pace[row]):
                out[row] = shared
            if pace[row] > 0.0:
                for e in range(path_start[row], path_start[row + 1]):
                    deepest[path_links[e]] = max(deepest[path_links[e]], out[row])
        first = last
    return out


@compiled
def neighbours(
    order: Ints, place: Ints, weight: Floats, path_start: Ints, path_links: Ints, links: int
) -> tuple[Ints, Ints]:
    """(flows,) the nearest place before, and after, where a flow that sends shares a link.

    -1 and a number beyond all places where there is none. `order` lists the rows by place.
    """
    flows = len(order)
    before = np.full(flows, -1, np.int64)
    after = np.full(flows, np.iinfo(np.int64).max, np.int64)
    here = np.full(links, -1, np.int64)
    other = np.full(links, -1, np.int64)
    for row in order:
        if weight[row] > 0.0:
            for e in range(path_start[row], path_start[row + 1]):
                link = path_links[e]
                if here[link] != place[row]:
                    other[link] = here[link]
                    here[link] = place[row]
                before[row] = max(before[row], other[link])
    here[:] = after[0]
    other[:] = after[0]
    for row in order[::-1]:
        if weight[row] > 0.0:
            for e in range(path_start[row], path_start[row + 1]):
                link = path_links[e]
                if here[link] != place[row]:
                    other[link] = here[link]
                    here[link] = place[row]
                after[row] = min(after[row], other[link])
    return before, after


@compiled
def best_runs(
    place: Ints, before: Ints, after: Ints, weight: Floats, places: int, classes: int
) -> tuple[Ints, float]:
    """(places,) the run of each place, and the cost of the best cut into at most `classes` runs.

    A run i..j of places costs the bytes of its flows that have a neighbour in it: all of them but
    those with before < i and after > j. Those are a rectangle of (i, j) for each flow, so one
    difference array and two running sums give the cost of all runs.
    """
    free = np.zeros((places + 1, places + 1))
    bytes_at = np.zeros(places + 1)
    for f in range(len(place)):
        if weight[f] > 0.0:
            p = place[f]
            bytes_at[p + 1] += weight[f]
            low, high = min(before[f] + 1, p), max(min(after[f], places), p + 1)
            free[low, p] += weight[f]
            free[p + 1, p] -= weight[f]
            free[low, high] -= weight[f]
            free[p + 1, high] += weight[f]
    for i in range(places + 1):
        for j in range(1, places + 1):
            free[i, j] += free[i, j - 1]
    for i in range(1, places + 1):
        for j in range(places + 1):
            free[i, j] += free[i - 1, j]
    total = np.cumsum(bytes_at)
    negligible = 1e-12 * total[places]
    best = np.full((classes + 1, places + 1), np.inf)
    begin = np.zeros((classes + 1, places + 1), np.int64)
    best[0, 0] = 0.0
    for k in range(1, classes + 1):
        for end in range(1, places + 1):
            for i in range(end):
                cost = total[end] - total[i] - free[i, end - 1]
                cost = best[k - 1, i] + (cost if cost > negligible else 0.0)
                if cost < best[k, end]:
                    best[k, end] = cost
                    begin[k, end] = i
    runs = np.argmin(best[:, places])
    out = np.empty(places, np.int64)
    end = places
    for k in range(runs, 0, -1):
        out[begin[k, end] : end] = k - 1
        end = begin[k, end]
    return out, best[runs, places]

"""Released flows on one big switch under max-min fairness, played in one compiled loop.

Flows between the same two ports have the same rate at every moment, so they are one *pair*: how far
each has come is one number a pair (`served`), and the next to finish is the top of a heap. An event
costs O(pairs), however many flows there are.
"""

from __future__ import annotations

import numpy as np

from controller.scheduling.kernels import compiled
from controller.scheduling.maxmin import fill_one_class
from controller.scheduling.policy import Floats, Ints


@compiled
def play(
    release: Floats,
    first: Ints,
    src: Ints,
    dst: Ints,
    size: Floats,
    capacity: Floats,
    instant: float,
) -> tuple[Floats, bool]:
    """Finish of every flow in seconds, and whether all finished.

    Batch g, in order of release, has flows first[g] .. first[g + 1] - 1; flow f moves size[f] bits
    over the links src[f] and dst[f] of `capacity` bit/s. Events closer than `instant` (relative, at
    least to a second) are one.
    """
    pair, path_links, heap_start = _pairs(src, dst, len(capacity))
    pairs, flows = len(heap_start) - 1, len(size)
    path_start = np.arange(0, 2 * pairs + 1, 2)
    heap, level = np.empty(flows, np.int64), np.empty(flows)  # level: `served` at which it ends
    waiting = np.zeros(pairs, np.int64)
    served, rate = np.zeros(pairs), np.zeros(pairs)
    no_pace, place = np.full(pairs, np.inf), np.full(len(capacity), -1, np.int64)
    active, is_active = np.empty(pairs, np.int64), np.zeros(pairs, np.bool_)
    finish = np.full(flows, np.inf)
    count, coming, now = 0, 0, 0.0
    while count or coming < len(release):
        if not count:
            now = max(now, release[coming])
        limit = now + instant * max(1.0, now)
        while coming < len(release) and release[coming] <= limit:
            for f in range(first[coming], first[coming + 1]):
                p = pair[f]
                level[f] = served[p] + size[f]
                _push(heap[heap_start[p] : heap_start[p + 1]], waiting[p], f, level)
                waiting[p] += 1
                if not is_active[p]:
                    is_active[p] = True
                    active[count] = p
                    count += 1
            coming += 1
        members = active[:count]
        residual = capacity.copy()
        fill_one_class(
            members, waiting, path_start, path_links, capacity, no_pace, residual, place, rate
        )
        then = np.inf if coming == len(release) else release[coming]
        for p in members:
            if rate[p] > 0.0:
                then = min(then, now + (level[heap[heap_start[p]]] - served[p]) / rate[p])
        if then == np.inf:
            return finish, False
        limit = then + instant * max(1.0, then)
        still = 0
        for p in members:
            mine = heap[heap_start[p] : heap_start[p + 1]]
            while waiting[p] and rate[p] > 0.0:
                f = mine[0]
                if now + (level[f] - served[p]) / rate[p] > limit:
                    break
                finish[f] = then
                waiting[p] -= 1
                _pop(mine, waiting[p], level)
            served[p] += rate[p] * (then - now)
            if waiting[p]:
                active[still] = p
                still += 1
            else:
                is_active[p] = False
                served[p] = 0.0
        count, now = still, then
    return finish, True


@compiled
def _pairs(src: Ints, dst: Ints, links: int) -> tuple[Ints, Ints, Ints]:
    """Each flow's pair, the two links of every pair, and where the pairs' heaps start."""
    number = np.full((links, links), -1, np.int32)
    pair = np.empty(len(src), np.int64)
    path_links = np.empty(2 * len(src), np.int64)
    start = np.zeros(len(src) + 1, np.int64)
    pairs = 0
    for f in range(len(src)):
        if number[src[f], dst[f]] < 0:
            number[src[f], dst[f]] = pairs
            path_links[2 * pairs], path_links[2 * pairs + 1] = src[f], dst[f]
            pairs += 1
        pair[f] = number[src[f], dst[f]]
        start[pair[f] + 1] += 1
    return pair, path_links[: 2 * pairs].copy(), np.cumsum(start[: pairs + 1])


@compiled
def _push(heap: Ints, size: int, f: int, level: Floats) -> None:
    i = size
    while i > 0 and level[heap[(i - 1) // 2]] > level[f]:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = f


@compiled
def _pop(heap: Ints, size: int, level: Floats) -> None:
    """Remove the top of a heap that then has `size` flows."""
    f = heap[size]
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and level[heap[child + 1]] < level[heap[child]]:
            child += 1
        if level[heap[child]] >= level[f]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = f

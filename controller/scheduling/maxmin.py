"""Max-min fair rates, exact: with caps per flow, and class by class under strict priority.

Progressive filling (Bertsekas, Gallager, "Data Networks", section 6.5.2): the link that would give
its flows the least is filled first, its flows are settled, and so on. The share of a link can only
grow as others are settled, so a heap of shares never has to move an entry up: O(entries log links).
"""

from __future__ import annotations

import numpy as np

from controller.scheduling.compiling import compiled
from controller.scheduling.kernels import NOTHING
from controller.scheduling.policy import Floats, Ints, NetworkState


def max_min(state: NetworkState, pace: Floats | None = None) -> Floats:
    """(flows,) bit/s, max-min fair under the links and `pace`; inf where nothing limits a flow.

    `pace` is (flows,) bit/s, inf where there is no limit.
    """
    return priority_max_min(state, np.zeros(state.flows, np.int64), pace)


def priority_max_min(state: NetworkState, classes: Ints, pace: Floats | None = None) -> Floats:
    """(flows,) bit/s of strict-priority queues: max-min within a class, on what higher ones leave.

    `classes` is (flows,), a higher number is served first, whatever the numbers are. `pace` is
    (flows,) bit/s that the sender keeps to, inf where it does not.
    """
    rate: Floats = fill_classes(
        np.argsort(-classes, kind="stable"),
        classes,
        state.path_start,
        state.path_links,
        state.capacity,
        np.full(state.flows, np.inf) if pace is None else pace,
    )
    return rate


@compiled
def fill_classes(
    order: Ints, classes: Ints, path_start: Ints, path_links: Ints, capacity: Floats, pace: Floats
) -> Floats:
    """`priority_max_min` over plain arrays; `order` lists the rows, highest class first."""
    rate = np.zeros(len(order))
    residual = capacity.copy()
    place = np.full(len(capacity), -1, np.int64)
    first = 0
    while first < len(order):
        last = first + 1
        while last < len(order) and classes[order[last]] == classes[order[first]]:
            last += 1
        fill_one_class(
            order[first:last],
            path_start,
            path_links,
            capacity,
            pace,
            residual,
            place,
            rate,
        )
        first = last
    return rate


@compiled
def fill_one_class(
    members: Ints,
    path_start: Ints,
    path_links: Ints,
    capacity: Floats,
    pace: Floats,
    residual: Floats,
    place: Ints,
    rate: Floats,
) -> None:
    """Max-min among `members` on `residual`, which is lowered; `place` is -1 before and after."""
    used, start, flows_on = _flows_by_link(members, path_start, path_links, place)
    count = np.empty(len(used), np.int64)
    share = np.empty(len(used))
    heap = np.arange(len(used))
    for i in range(len(used)):
        count[i] = start[i + 1] - start[i]
        share[i] = residual[used[i]] / count[i]
    for i in range(len(used) // 2 - 1, -1, -1):
        _sift_down(heap, share, i, len(used))
    capped = members[pace[members] < np.inf]
    capped = capped[np.argsort(pace[capped], kind="mergesort")]
    settled = np.zeros(len(rate), np.bool_)
    next_capped = 0
    size = len(used)
    while size > 0:
        link = heap[0]
        if count[link] == 0:
            size -= 1
            heap[0] = heap[size]
            _sift_down(heap, share, 0, size)
            continue
        now = max(0.0, residual[used[link]]) / count[link]
        if now > share[link]:
            share[link] = now
            _sift_down(heap, share, 0, size)
            continue
        while next_capped < len(capped) and settled[capped[next_capped]]:
            next_capped += 1
        if next_capped < len(capped) and pace[capped[next_capped]] <= now:
            row = capped[next_capped]
            _settle(row, pace[row], path_start, path_links, residual, place, count, rate)
            settled[row] = True
            continue
        for k in range(start[link], start[link + 1]):
            row = flows_on[k]
            if not settled[row]:
                _settle(row, now, path_start, path_links, residual, place, count, rate)
                settled[row] = True
        residual[used[link]] = 0.0
    for row in members:
        if path_start[row] == path_start[row + 1]:
            rate[row] = pace[row]
    for link in used:
        place[link] = -1
        if residual[link] < NOTHING * capacity[link]:
            residual[link] = 0.0


@compiled
def _settle(
    row: int,
    value: float,
    path_start: Ints,
    path_links: Ints,
    residual: Floats,
    place: Ints,
    count: Ints,
    rate: Floats,
) -> None:
    rate[row] = value
    for e in range(path_start[row], path_start[row + 1]):
        residual[path_links[e]] -= value
        count[place[path_links[e]]] -= 1


@compiled
def _flows_by_link(
    members: Ints, path_start: Ints, path_links: Ints, place: Ints
) -> tuple[Ints, Ints, Ints]:
    """The links in use, and the flows on each: link i has flows_on[start[i]:start[i + 1]].

    Leaves in `place` where each link stands in `used`.
    """
    entries = 0
    for row in members:
        entries += path_start[row + 1] - path_start[row]
    used = np.empty(min(entries, len(place)), np.int64)
    start = np.zeros(len(used) + 1, np.int64)
    links = 0
    for row in members:
        for e in range(path_start[row], path_start[row + 1]):
            link = path_links[e]
            if place[link] < 0:
                place[link] = links
                used[links] = link
                links += 1
            start[place[link] + 1] += 1
    for i in range(links):
        start[i + 1] += start[i]
    end = start.copy()
    flows_on = np.empty(entries, np.int64)
    for row in members:
        for e in range(path_start[row], path_start[row + 1]):
            i = place[path_links[e]]
            flows_on[end[i]] = row
            end[i] += 1
    return used[:links].copy(), start, flows_on


@compiled
def _sift_down(heap: Ints, key: Floats, i: int, size: int) -> None:
    """Restore the heap below entry i, whose key has grown; ties by index."""
    moved = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        right = child + 1
        if right < size and _before(heap[right], heap[child], key):
            child = right
        if not _before(heap[child], moved, key):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = moved


@compiled
def _before(a: int, b: int, key: Floats) -> bool:
    return bool(key[a] < key[b] or (key[a] == key[b] and a < b))

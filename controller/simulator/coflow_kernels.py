"""Released coflows on one big switch, played in one compiled loop: SEBF with MADD, or BSSI in order.

The schedule is that of the policies (`varys`, `echelon` on coflows; `sincronia`), the bookkeeping is
not. A coflow served by MADD drains all its flows in proportion, so one factor a coflow (`left`)
stands for all of them; only flows that got more by backfill, at most one a port, are touched one by
one. What waits costs nothing: ports that are used up are bits in masks, and a coflow, or a run of
flows into one port, is passed over when it has no port left. An event costs
O(coflows + ports of those served), not O(flows).
"""

from __future__ import annotations

import numpy as np

from controller.scheduling.compiling import compiled
from controller.scheduling.kernels import NOTHING, last_first, rounded
from controller.scheduling.policy import Floats, Ints
from controller.simulator.bits import (
    NO_BITS,
    ONE,
    Bits,
    exclude,
    include,
    lowest,
    not_empty,
    within,
)

SEBF_MADD, BSSI_IN_ORDER = 0, 1
"Rules that `play` knows."

FILL = np.dtype(
    [
        ("flow", int),  # that gets more than MADD gives it
        ("coflow", int),
        ("run", int),
        ("at_src", int),  # entry of its sending port
        ("rate", float),  # what it gets more, in bit/s
        ("lasts", float),  # seconds in which it would finish
    ]
)


@compiled
def play(
    rule: int,
    release: Floats,
    weight: Floats,
    first: Ints,
    src: Ints,
    dst: Ints,
    size: Floats,
    capacity: Floats,
    instant: float,
) -> tuple[Floats, Floats, bool]:
    """Start and finish of every flow in seconds, and whether all finished.

    Coflow g, in order of release and tie, has flows first[g] .. first[g + 1] - 1 in order of tie;
    flow f moves size[f] bits over the links src[f] and dst[f] of `capacity` bit/s. Events closer
    than `instant` (relative, at least to a second) are one.
    """
    groups, flows, links = len(release), len(size), len(capacity)
    begin, entry_link, of_src, of_dst, owner = _entries(first, src, dst, links)
    load = np.zeros(len(entry_link))  # bits of an entry's flows, over `left` of its coflow
    users = np.zeros(len(entry_link), np.int64)
    for f in range(flows):
        for e in (of_src[f], of_dst[f]):
            load[e] += size[f]
            users[e] += 1
    live_entry, entry_place = np.arange(len(entry_link)), np.arange(len(entry_link))
    entries = begin[1:] - begin[:-1]  # how many entries of each coflow are live
    sources, source, rank = _sources(first, of_src)
    run, run_first, base = _runs(first, dst, rank)
    words = links // 64 + 1
    live = np.zeros((len(run_first) - 1, words), np.uint64)  # ranks of a run's flows that are left
    mask = np.zeros((groups, words), np.uint64)
    is_src = np.zeros(words, np.uint64)
    for f in range(flows):
        include(live[run[f]], rank[f])
        include(mask[owner[f]], src[f])
        include(mask[owner[f]], dst[f])
        include(is_src, src[f])
    run_after = np.arange(1, len(run_first))  # the runs of a coflow that are left
    run_before = run_after - 2
    first_run = np.empty(groups + 1, np.int64)
    for g in range(groups):
        first_run[g] = run[first[g]]
    first_run[groups] = len(run_first) - 1
    head_run = first_run[:-1].copy()

    bits = size.copy()  # of a flow, over `left` of its coflow
    left = np.ones(groups)
    flows_left = first[1:] - first[:-1]
    start, finish = np.full(flows, np.inf), np.full(flows, np.inf)
    served_since = np.full(groups, np.inf)
    tightest = np.full(groups, -1.0)  # max load / capacity, over `left`; -1: to be found
    gamma, key = np.full(groups, np.inf), np.zeros(groups)
    ebb = np.zeros(groups)  # 1 / gamma: the share of its bytes that MADD sends in a second
    residual, floor = np.empty(links), NOTHING * capacity
    usable = np.where(capacity > 0, capacity, 1.0)
    up, open_ = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    free = np.zeros(words, np.uint64)
    for link in range(links):
        if capacity[link] > 0.0:
            include(up, link)
    fills = np.zeros(links + 1, FILL)  # each uses up a port
    order = np.empty(groups, np.int64)
    active, coming, now = 0, 0, 0.0
    while active or coming < groups:
        if not active:
            now = max(now, release[coming])
        while coming < groups and release[coming] <= now + instant * max(1.0, now):
            order[active] = coming
            active += 1
            coming += 1
        if active > 1 and rule == SEBF_MADD:
            for i in range(active):
                g = order[i]
                if tightest[g] < 0.0:
                    for k in range(begin[g], begin[g] + entries[g]):
                        e = live_entry[k]
                        if capacity[entry_link[e]] > 0.0:
                            tightest[g] = max(tightest[g], load[e] / capacity[entry_link[e]])
                        else:
                            tightest[g] = np.inf
                key[g] = rounded(left[g] * tightest[g] / weight[g])
            _sort(order, active, key)
        elif active > 1:
            _bssi(
                order, active, begin, entries, live_entry, entry_link, load, usable, weight, links
            )
        residual[:] = capacity
        open_[:] = up
        step = np.inf
        if rule == SEBF_MADD:
            for i in range(active):
                g = order[i]
                gamma[g], ebb[g] = np.inf, 0.0
                if not within(mask[g], open_):
                    continue
                slowest = 0.0
                for k in range(begin[g], begin[g] + entries[g]):
                    e = live_entry[k]
                    slowest = max(slowest, load[e] / residual[entry_link[e]])
                gamma[g] = left[g] * slowest
                ebb[g] = 1.0 / gamma[g]
                step = min(step, gamma[g])
                served_since[g] = min(served_since[g], now)
                for k in range(begin[g], begin[g] + entries[g]):
                    e = live_entry[k]
                    _draw(entry_link[e], load[e] / slowest, residual, floor, open_)
        count = 0
        for i in range(active):
            g = order[i]
            if not _usable(mask[g], open_, is_src):
                continue
            free[:] = 0
            for k in range(sources[g + 1] - sources[g]):
                if residual[entry_link[source[sources[g] + k]]] > 0.0:
                    include(free, k)
            r = head_run[g]
            while r < first_run[g + 1]:
                d = dst[run_first[r]]
                for w in range((sources[g + 1] - sources[g] + 63) >> 6):
                    found = live[r, w] & free[w]
                    while found != NO_BITS and residual[d] > 0.0:
                        k = (w << 6) + lowest(found)
                        found &= found - ONE
                        fill = fills[count]
                        count += 1
                        fill.coflow, fill.run, fill.at_src = g, r, source[sources[g] + k]
                        fill.flow = base[r] + k if base[r] >= 0 else _find(k, r, run_first, rank)
                        s = entry_link[fill.at_src]
                        fill.rate = min(residual[s], residual[d])
                        _draw(s, fill.rate, residual, floor, open_)
                        _draw(d, fill.rate, residual, floor, open_)
                        if residual[s] == 0.0:
                            exclude(free, k)
                        u = left[g] * bits[fill.flow]
                        fill.lasts = u / (fill.rate + u * ebb[g])
                        step = min(step, fill.lasts)
                r = run_after[r]
        then = now + step
        if coming < groups:
            then = min(then, release[coming])
        if then == np.inf:
            return start, finish, False
        limit = then + instant * max(1.0, then)
        # Backfilled flows first: their shares refer to `left` as it was.
        for fill in fills[:count]:
            f, g, at_dst = fill.flow, fill.coflow, of_dst[run_first[fill.run]]
            start[f] = min(start[f], now)
            if now + fill.lasts <= limit:
                finish[f] = then
            elif now + gamma[g] > limit:
                sent = fill.rate * (then - now) / (left[g] * (1.0 - (then - now) * ebb[g]))
                bits[f] = max(bits[f] - sent, 0.0)
                load[fill.at_src] = max(load[fill.at_src] - sent, 0.0)
                load[at_dst] = max(load[at_dst] - sent, 0.0)
            tightest[g] = -1.0
        still = 0
        for fill in fills[:count]:
            if now + fill.lasts <= limit:
                f, g = fill.flow, fill.coflow
                flows_left[g] -= 1
                start[f] = min(start[f], served_since[g])
                exclude(live[fill.run], rank[f])
                if not not_empty(live[fill.run]):
                    _take_out_run(fill.run, g, run_after, run_before, head_run)
                for e in (of_src[f], of_dst[f]):
                    load[e] -= bits[f]
                    users[e] -= 1
                    if not users[e]:
                        entries[g] -= 1
                        _swap(entry_place[e], begin[g] + entries[g], live_entry, entry_place)
                        exclude(mask[g], entry_link[e])
                    elif load[e] < 0.0:
                        load[e] = 0.0
        for i in range(active):
            g = order[i]
            if gamma[g] < np.inf:
                if now + gamma[g] <= limit:
                    flows_left[g] = 0
                else:
                    left[g] *= 1.0 - (then - now) * ebb[g]
            if flows_left[g]:
                order[still] = g
                still += 1
            else:
                for f in range(first[g], first[g + 1]):
                    finish[f] = min(finish[f], then)
                    start[f] = min(start[f], served_since[g])
        active, now = still, then
    return start, finish, True


@compiled
def _entries(first: Ints, src: Ints, dst: Ints, links: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """One entry for each link a coflow uses.

    Returns where each coflow's entries begin, the links, each flow's entries at both ends, and its
    coflow.
    """
    begin = np.zeros(len(first), np.int64)
    link_of = np.empty(2 * len(src), np.int64)
    of_src, of_dst = np.empty(len(src), np.int64), np.empty(len(src), np.int64)
    owner = np.empty(len(src), np.int64)
    place = np.full(links, -1, np.int64)
    count = 0
    for g in range(len(first) - 1):
        for f in range(first[g], first[g + 1]):
            for link in (src[f], dst[f]):
                if place[link] < begin[g]:
                    place[link] = count
                    link_of[count] = link
                    count += 1
            of_src[f], of_dst[f], owner[f] = place[src[f]], place[dst[f]], g
        begin[g + 1] = count
    return begin, link_of[:count].copy(), of_src, of_dst, owner


@compiled
def _sources(first: Ints, of_src: Ints) -> tuple[Ints, Ints, Ints]:
    """The sending ports of every coflow as they first appear, and each flow's rank among them.

    Coflow g has the ports of the entries source[begin[g]:begin[g + 1]].
    """
    begin = np.zeros(len(first), np.int64)
    source, rank = np.empty(len(of_src), np.int64), np.empty(len(of_src), np.int64)
    place = np.full(2 * len(of_src), -1, np.int64)
    count = 0
    for g in range(len(first) - 1):
        for f in range(first[g], first[g + 1]):
            if place[of_src[f]] < 0:
                place[of_src[f]] = count
                source[count] = of_src[f]
                count += 1
            rank[f] = place[of_src[f]] - begin[g]
        begin[g + 1] = count
    return begin, source[:count].copy(), rank


@compiled
def _runs(first: Ints, dst: Ints, rank: Ints) -> tuple[Ints, Ints, Ints]:
    """Runs of consecutive flows of one coflow into one port, by ascending rank of their sender.

    Returns each flow's run, each run's first flow, and by how much a run's flows exceed their
    ranks; -1 where a rank is left out.
    """
    run = np.empty(len(dst), np.int64)
    run_first = np.empty(len(dst) + 1, np.int64)
    base = np.empty(len(dst), np.int64)
    count = 0
    for g in range(len(first) - 1):
        for f in range(first[g], first[g + 1]):
            if f == first[g] or dst[f] != dst[f - 1] or rank[f] <= rank[f - 1]:
                run_first[count] = f
                base[count] = f - rank[f]
                count += 1
            elif rank[f] != rank[f - 1] + 1:
                base[count - 1] = -1
            run[f] = count - 1
    run_first[count] = len(dst)
    return run, run_first[: count + 1].copy(), base[:count].copy()


@compiled
def _find(k: int, run: int, run_first: Ints, rank: Ints) -> int:
    """The flow of rank k in a run."""
    low, high = run_first[run], run_first[run + 1]
    while rank[low] != k:
        middle = (low + high) // 2
        if rank[middle] > k:
            high = middle
        else:
            low = middle
    return int(low)


@compiled
def _take_out_run(r: int, g: int, after: Ints, before: Ints, head: Ints) -> None:
    """A run leaves its coflow; `after` of the last is the first of the next coflow."""
    if head[g] == r:
        head[g] = after[r]
    else:
        after[before[r]] = after[r]
    if after[r] < len(before):
        before[after[r]] = before[r]


@compiled
def _swap(a: int, b: int, items: Ints, place: Ints) -> None:
    """Two items of a list change places."""
    items[a], items[b] = items[b], items[a]
    place[items[a]], place[items[b]] = a, b


@compiled
def _draw(link: int, rate: float, residual: Floats, floor: Floats, open_: Bits) -> None:
    residual[link] -= rate
    if residual[link] < floor[link]:
        residual[link] = 0.0
        exclude(open_, link)


@compiled
def _usable(mask: Bits, open_: Bits, is_src: Bits) -> bool:
    """Whether a coflow has a sending and a receiving port that are not used up."""
    sends, receives = False, False
    for w in range(len(mask)):
        both = mask[w] & open_[w]
        sends = sends or both & is_src[w] != NO_BITS
        receives = receives or both & ~is_src[w] != NO_BITS
    return sends and receives


@compiled
def _sort(order: Ints, count: int, key: Floats) -> None:
    """Coflows by (key, number); nearly sorted as they come."""
    for i in range(1, count):
        g = order[i]
        j = i
        while j > 0 and (
            key[order[j - 1]] > key[g] or (key[order[j - 1]] == key[g] and order[j - 1] > g)
        ):
            order[j] = order[j - 1]
            j -= 1
        order[j] = g


@compiled
def _bssi(
    order: Ints,
    count: int,
    begin: Ints,
    entries: Ints,
    live_entry: Ints,
    entry_link: Ints,
    load: Floats,
    usable: Floats,
    weight: Floats,
    links: int,
) -> None:
    """Put the first `count` coflows of `order` in the order of `sincronia`."""
    present = np.sort(order[:count])
    total = 0
    for g in present:
        total += entries[g]
    start = np.zeros(count + 1, np.int64)
    at, seconds = np.empty(total, np.int64), np.empty(total)
    k = 0
    for i in range(count):
        g = present[i]
        for e in live_entry[begin[g] : begin[g] + entries[g]]:
            at[k], seconds[k] = entry_link[e], load[e] / usable[entry_link[e]]
            k += 1
        start[i + 1] = k
    places = last_first(start, at, seconds, weight[present], present, links)
    for i in range(count):
        order[i] = present[places[i]]

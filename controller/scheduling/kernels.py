"""The hot loops shared by the policies, compiled; plain arrays in, plain arrays out.

Bytes become bits here (factor 8), so that times are seconds and rates bit/s. A row is a flow of
`NetworkState`; `start`/`rows` list the rows of every group one after another (see `group_rows`).
"""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np

from controller.scheduling.compiling import compiled
from controller.scheduling.policy import Floats, Ints

# A residual below this fraction of a link counts as nothing: no flow is started at 1e-12 bit/s.
NOTHING = 1e-11


@compiled
def sort_rows(rows: Ints, low: int, high: int, key: Floats, tie: Ints, spare: Ints) -> None:
    """Sort rows[low:high] by (key, tie): merge sort; linear where they are in order already."""
    in_order = True
    for i in range(low + 1, high):
        a, b = rows[i - 1], rows[i]
        if key[a] > key[b] or (key[a] == key[b] and tie[a] > tie[b]):
            in_order = False
            break
    if in_order:
        return
    for first in range(low, high, 16):
        for i in range(first + 1, min(first + 16, high)):
            moved = rows[i]
            j = i
            while j > first:
                a = rows[j - 1]
                if key[a] < key[moved] or (key[a] == key[moved] and tie[a] < tie[moved]):
                    break
                rows[j] = a
                j -= 1
            rows[j] = moved
    width = 16
    while width < high - low:
        for first in range(low, high, 2 * width):
            middle, last = min(first + width, high), min(first + 2 * width, high)
            i, j = first, middle
            for k in range(first, last):
                left = j >= last
                if not left and i < middle:
                    a, b = rows[i], rows[j]
                    left = key[a] < key[b] or (key[a] == key[b] and tie[a] < tie[b])
                if left:
                    spare[k] = rows[i]
                    i += 1
                else:
                    spare[k] = rows[j]
                    j += 1
        for k in range(low, high):
            rows[k] = spare[k]
        width *= 2


@compiled
def group_rows(group: Ints, groups: int, key: Floats, tie: Ints) -> tuple[Ints, Ints]:
    """The rows of every group, within a group by (key, tie).

    Returns start (groups + 1,) and rows (flows,): group g has rows[start[g]:start[g + 1]].
    """
    flows = len(group)
    start = np.zeros(groups + 1, np.int64)
    for row in range(flows):
        start[group[row] + 1] += 1
    for g in range(groups):
        start[g + 1] += start[g]
    place = start[:-1].copy()
    rows = np.empty(flows, np.int64)
    for row in range(flows):
        rows[place[group[row]]] = row
        place[group[row]] += 1
    spare = np.empty(flows, np.int64)
    for g in range(groups):
        sort_rows(rows, start[g], start[g + 1], key, tie, spare)
    return start, rows


@compiled
def rounded(key: float) -> float:
    """Keys closer than 1e-12 of their size made equal."""
    mantissa, exponent = frexp(key)
    return ldexp(np.rint(mantissa * 2.0**40), exponent)


@compiled
def all_rounded(key: Floats) -> Floats:
    """`rounded` for every key."""
    out = np.empty(len(key))
    for i in range(len(key)):
        out[i] = rounded(key[i])
    return out


@compiled
def ordered(key: Floats, tie: Ints) -> Ints:
    """Indices by ascending (rounded) key, then tie."""
    order = np.arange(len(key))
    sort_rows(order, 0, len(key), all_rounded(key), tie, np.empty(len(key), np.int64))
    return order


@compiled
def sequence(order: Ints, start: Ints, rows: Ints) -> Ints:
    """The rows of all groups, group after group in `order`."""
    out = np.empty(len(rows), np.int64)
    k = 0
    for g in order:
        for i in range(start[g], start[g + 1]):
            out[k] = rows[i]
            k += 1
    return out


@compiled
def _lateness(
    mine: Ints,
    slack: Floats,
    remaining: Floats,
    path_start: Ints,
    path_links: Ints,
    capacity: Floats,
    load: Floats,
) -> float:
    """max over links and flows k of (u_1 + .. + u_k) / R - slack_k; `mine` in order of slack.

    inf where a link has no capacity. `load` is scratch, all zero before and after.
    """
    worst = -np.inf
    for row in mine:
        for e in range(path_start[row], path_start[row + 1]):
            link = path_links[e]
            load[link] += 8.0 * remaining[row]
            if capacity[link] <= 0.0:
                worst = np.inf
            else:
                worst = max(worst, load[link] / capacity[link] - slack[row])
        if worst == np.inf:
            break
    for row in mine:
        for e in range(path_start[row], path_start[row + 1]):
            load[path_links[e]] = 0.0
    return worst


@compiled
def lateness(
    start: Ints,
    rows: Ints,
    slack: Floats,
    remaining: Floats,
    path_start: Ints,
    path_links: Ints,
    capacity: Floats,
) -> Floats:
    """`_lateness` of every group: tau_H where slack is d - t, Gamma_H where slack is zero."""
    groups = len(start) - 1
    load = np.zeros(len(capacity))
    out = np.empty(groups)
    for g in range(groups):
        mine = rows[start[g] : start[g + 1]]
        out[g] = _lateness(mine, slack, remaining, path_start, path_links, capacity, load)
    return out


@compiled
def _take(
    row: int,
    wanted: float,
    path_start: Ints,
    path_links: Ints,
    residual: Floats,
    floor: Floats,
) -> float:
    """Give a flow up to `wanted` bit/s of what its path has left, and return what it got."""
    got = wanted
    for e in range(path_start[row], path_start[row + 1]):
        got = min(got, residual[path_links[e]])
    if got <= 0.0:
        return 0.0
    for e in range(path_start[row], path_start[row + 1]):
        link = path_links[e]
        residual[link] -= got
        if residual[link] < floor[link]:
            residual[link] = 0.0
    return got


@compiled
def fill(
    order: Ints,
    path_start: Ints,
    path_links: Ints,
    capacity: Floats,
    residual: Floats,
    rate: Floats,
) -> None:
    """Each flow in order takes all that its path has left; adds to `rate`, lowers `residual`.

    A flow with an empty path gets inf.
    """
    floor = NOTHING * capacity
    for row in order:
        rate[row] += _take(row, np.inf, path_start, path_links, residual, floor)


@compiled
def _spread(
    mine: Ints,
    slack: Floats,
    tau: float,
    remaining: Floats,
    path_start: Ints,
    path_links: Ints,
    free: Floats,
    load: Floats,
    rate: Floats,
) -> None:
    """The smooth rule for one group: the rate of each flow now, written to `rate`.

    From the latest flows to the earliest: flows of one ideal finish send the share `late` of
    their bytes in the interval that ends with it, as much as their links have free there, and the
    rest at one rate from now up to that interval. So every link is loaded evenly over all earlier
    intervals, and one number a link (`free`) describes them.
    """
    last = len(mine)
    while last > 0:
        first = last - 1
        while first > 0 and slack[mine[first - 1]] == slack[mine[last - 1]]:
            first -= 1
        batch = mine[first:last]
        if first == 0:
            for row in batch:
                rate[row] = 8.0 * remaining[row] / (slack[row] + tau)
        else:
            length = slack[batch[0]] - slack[mine[first - 1]]
            span = slack[mine[first - 1]] + tau
            for row in batch:
                for e in range(path_start[row], path_start[row + 1]):
                    load[path_links[e]] += 8.0 * remaining[row]
            for row in batch:
                late = 1.0
                for e in range(path_start[row], path_start[row + 1]):
                    link = path_links[e]
                    late = min(late, max(0.0, free[link]) * length / load[link])
                rate[row] = (1.0 - late) * 8.0 * remaining[row] / span
            for row in batch:
                for e in range(path_start[row], path_start[row + 1]):
                    free[path_links[e]] -= rate[row]
                    load[path_links[e]] = 0.0
        last = first


@compiled
def smooth(
    order: Ints,
    start: Ints,
    rows: Ints,
    slack: Floats,
    remaining: Floats,
    path_start: Ints,
    path_links: Ints,
    capacity: Floats,
    residual: Floats,
) -> Floats:
    """Rates by the smooth rule, group after group in `order`, each on what the ones before leave.

    A group that meets a full link gets nothing here (only from a later `fill`). Where links
    disagree, so that the rates would not fit, the flow with the earliest ideal finish goes first.
    Lowers `residual`. O(path entries + sorting).
    """
    rate = np.zeros(len(remaining))
    free = np.empty(len(capacity))
    load = np.zeros(len(capacity))
    floor = NOTHING * capacity
    for g in order:
        mine = rows[start[g] : start[g + 1]]
        tau = _lateness(mine, slack, remaining, path_start, path_links, residual, load)
        if not np.isfinite(tau):
            continue
        for row in mine:
            for e in range(path_start[row], path_start[row + 1]):
                free[path_links[e]] = residual[path_links[e]]
        _spread(mine, slack, tau, remaining, path_start, path_links, free, load, rate)
        for row in mine:
            if path_start[row] < path_start[row + 1]:
                rate[row] = _take(row, rate[row], path_start, path_links, residual, floor)
    return rate


@compiled
def demands(
    start: Ints,
    rows: Ints,
    remaining: Floats,
    path_start: Ints,
    path_links: Ints,
    capacity: Floats,
) -> tuple[Ints, Ints, Floats]:
    """Seconds of every link that each group still needs, sparse.

    Returns begin (groups + 1,), links and seconds: group g needs seconds[k] of links[k] for
    begin[g] <= k < begin[g + 1]. inf where the link is down.
    """
    groups = len(start) - 1
    begin = np.zeros(groups + 1, np.int64)
    links = np.empty(len(path_links), np.int64)
    seconds = np.empty(len(path_links))
    place = np.full(len(capacity), -1, np.int64)
    k = 0
    for g in range(groups):
        for i in range(start[g], start[g + 1]):
            row = rows[i]
            for e in range(path_start[row], path_start[row + 1]):
                link = path_links[e]
                if place[link] < begin[g]:
                    place[link] = k
                    links[k] = link
                    seconds[k] = 0.0
                    k += 1
                seconds[place[link]] += 8.0 * remaining[row] / capacity[link]
        begin[g + 1] = k
    return begin, links[:k], seconds[:k]


@compiled
def last_first(
    begin: Ints, links: Ints, seconds: Floats, weight: Floats, tie: Ints, count: int
) -> Ints:
    """Bottleneck-select-scale-iterate: the groups in order, found from the last place backwards.

    `count` is the number of links. O(groups * (links + groups that share one)).
    """
    groups = len(begin) - 1
    load = np.zeros(count)
    users = np.zeros(count + 1, np.int64)
    for k in range(len(links)):
        load[links[k]] += seconds[k]
        users[links[k] + 1] += 1
    for link in range(count):
        users[link + 1] += users[link]
    place = users[:-1].copy()
    user, amount = np.empty(len(links), np.int64), np.empty(len(links))
    for g in range(groups):
        for k in range(begin[g], begin[g + 1]):
            user[place[links[k]]], amount[place[links[k]]] = g, seconds[k]
            place[links[k]] += 1
    left = weight.copy()
    waiting = np.ones(groups, np.bool_)
    order = np.empty(groups, np.int64)
    for position in range(groups - 1, -1, -1):
        link = int(np.argmax(load))
        last, least, share = -1, np.inf, 0.0
        for k in range(users[link], users[link + 1]):
            g = user[k]
            if waiting[g] and amount[k] > 0.0:
                ratio = left[g] / amount[k]
                equal = abs(ratio - least) <= 1e-12 * max(ratio, least)
                if last < 0 or (ratio < least and not equal) or (equal and tie[g] > tie[last]):
                    last, least, share = g, ratio, amount[k]
        if last < 0:  # what is left needs no link: by tie
            for g in range(groups):
                if waiting[g] and (last < 0 or tie[g] > tie[last]):
                    last = g
        else:
            paid = left[last] / share
            for k in range(users[link], users[link + 1]):
                g = user[k]
                if waiting[g]:
                    cut = paid * amount[k]
                    left[g] = left[g] - cut if left[g] - cut > 1e-12 * left[g] else 0.0
        waiting[last] = False
        order[position] = last
        for k in range(begin[last], begin[last + 1]):
            load[links[k]] -= seconds[k]
            if load[links[k]] < 1e-12 * seconds[k]:
                load[links[k]] = 0.0
    return order


@compiled
def even(
    order: Ints,
    start: Ints,
    rows: Ints,
    path_start: Ints,
    path_links: Ints,
    capacity: Floats,
    residual: Floats,
    rate: Floats,
) -> None:
    """Groups in `order`; the flows of one share what each link has left evenly.

    Each flow gets the least of its links' even shares. Adds to `rate`, lowers `residual`.
    """
    floor = NOTHING * capacity
    users = np.zeros(len(capacity), np.int64)
    for g in order:
        mine = rows[start[g] : start[g + 1]]
        for row in mine:
            for e in range(path_start[row], path_start[row + 1]):
                users[path_links[e]] += 1
        share = np.full(len(mine), np.inf)
        for i, row in enumerate(mine):
            for e in range(path_start[row], path_start[row + 1]):
                link = path_links[e]
                share[i] = min(share[i], residual[link] / users[link])
        for i, row in enumerate(mine):
            if path_start[row] < path_start[row + 1]:
                rate[row] += _take(row, share[i], path_start, path_links, residual, floor)
            for e in range(path_start[row], path_start[row + 1]):
                users[path_links[e]] = 0

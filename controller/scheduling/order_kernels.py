"""Ranks and rates of flows in levels, compiled: what `echelon-search`'s order decides."""

from __future__ import annotations

import numpy as np

from controller.scheduling import kernels
from controller.scheduling.compiling import compiled
from controller.scheduling.policy import Floats, Ints

SMOOTH, IN_ORDER, IN_TURN, SRPT, EDF, FIFO = range(6)
"Rules within a level, see `echelon_search.RULES`."


@compiled
def decide(
    rule: int,
    level: Ints,
    now: float,
    capacity: Floats,
    flows: tuple[Floats, Floats, Floats, Floats, Ints, Ints],
    groups: tuple[Floats, Floats, Ints, Ints, Floats, Ints],
    paths: tuple[Ints, Ints],
) -> tuple[Ints, Floats]:
    """(flows,) ranks, and (flows,) rates in bit/s, which fit on the links.

    `level` is (groups,); `flows`, `groups` and `paths` are as `gather.columns` and `fluid.paths_of`
    give them. O(n log n + path entries).
    """
    _, remaining, release, ideal_finish, tie, group = flows
    path_start, path_links = paths
    if rule >= SRPT:
        key = remaining if rule == SRPT else ideal_finish if rule == EDF else release
        place = _by(level[group].astype(np.float64), _by(key, _by(release, tie)))
        order = _order(place)
        rate = np.zeros(len(order))
        kernels.fill(order, path_start, path_links, capacity, capacity.copy(), rate)
        return place, rate
    start, rows = kernels.group_rows(group, len(level), ideal_finish, tie)
    by_group = _by_group(rule, level, capacity, start, rows, remaining, paths, groups)
    order = kernels.sequence(_order(by_group), start, rows)
    residual = capacity.copy()
    rate = np.zeros(len(order))
    if rule == SMOOTH:
        rate = kernels.smooth(
            _order(by_group), start, rows, ideal_finish - now, remaining, path_start, path_links,
            capacity, residual,
        )  # fmt: skip
    kernels.fill(order, path_start, path_links, capacity, residual, rate)
    return by_group[group] if rule == SMOOTH else _order(order), rate


@compiled
def _by_group(
    rule: int,
    level: Ints,
    capacity: Floats,
    start: Ints,
    rows: Ints,
    remaining: Floats,
    paths: tuple[Ints, Ints],
    groups: tuple[Floats, Floats, Ints, Ints, Floats, Ints],
) -> Ints:
    """(groups,) the place of every EchelonFlow: by level, then Gamma / w; in turn: by level, then
    Gamma / w of the job's oldest EchelonFlow, then age."""
    reference, weight, job, _, _, tie = groups
    slack = np.zeros(len(remaining))
    key = kernels.lateness(start, rows, slack, remaining, paths[0], paths[1], capacity) / weight
    place = tie
    if rule == IN_TURN:
        place = _by(reference, tie)
        key = _of_oldest(key, job, place)
    out: Ints = _by(level.astype(np.float64), _by(kernels.all_rounded(key), place))
    return out


@compiled
def _of_oldest(key: Floats, job: Ints, age: Ints) -> Floats:
    """Every group's key replaced by that of its job's oldest group: the one of least `age`."""
    oldest = np.full(job.max() + 1, -1, np.int64)
    for g in range(len(key)):
        if oldest[job[g]] < 0 or age[g] < age[oldest[job[g]]]:
            oldest[job[g]] = g
    out = np.empty(len(key))
    for g in range(len(key)):
        out[g] = key[oldest[job[g]]]
    return out


@compiled
def _by(key: Floats, tie: Ints) -> Ints:
    """The place of every index in the order of ascending key, then tie (each of which is unique)."""
    order = np.arange(len(key))
    kernels.sort_rows(order, 0, len(key), key, tie, np.empty(len(key), np.int64))
    place: Ints = _order(order)
    return place


@compiled
def _order(place: Ints) -> Ints:
    """The inverse of a permutation: indices in order from places, or places from an order."""
    out = np.empty(len(place), np.int64)
    for i in range(len(place)):
        out[place[i]] = i
    return out

"""Plays an order of `echelon-search` without leaving compiled code: the search plays thousands."""

from __future__ import annotations

import numpy as np

from controller.scheduling import gather, order_kernels
from controller.scheduling.compiling import compiled
from controller.scheduling.policy import Ints
from controller.simulator import events, fluid
from controller.simulator.tables import Run


@compiled
def play(run: Run, until: float, rule: int, level: Ints) -> int:
    """`events.play` under a `FixedOrder` that needs no decision from outside.

    `level` is (formations,), `rule` the place of the order's in `RULES`. Every flow is paced to its
    rate, and the rates fit: so it makes no difference which classes are cut from the order, and
    none is.
    """
    scratch = np.full(max(len(run.groups), len(run.jobs)), -1, np.int64)
    needed: int = events.play(run, until, True, -1)
    while needed == events.DECISION:
        for part in range(run.clock[0].asked):
            _decide(run, run.members[run.asked[part] : run.asked[part + 1]], rule, level, scratch)
        needed = events.play(run, until, True, -1)
    return needed


@compiled
def _decide(run: Run, members: Ints, rule: int, level: Ints, scratch: Ints) -> None:
    """Rates of the flows of a part, until one of them ends."""
    tie = np.empty(len(members), np.int64)
    for i in range(len(members)):
        tie[i] = run.rows[members[i]].tie
    rows = members[np.argsort(tie)]  # as `Simulation` shows them to a policy
    flows, groups, jobs = gather.columns(run.rows, run.groups, rows, scratch)
    levels = np.empty(len(groups[2]), np.int64)
    for g in range(len(levels)):
        levels[g] = level[run.jobs[jobs[groups[2][g]]].formation + groups[3][g]]
    paths = fluid.paths_of(rows, run.rows, run.path_start, run.path_links)
    now = run.clock[0].now
    _, rate = order_kernels.decide(rule, levels, now, run.capacity, flows, groups, paths)
    fluid.decide(run, rows, rate, np.inf, rows[:0])

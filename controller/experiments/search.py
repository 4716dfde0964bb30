"""Lets `echelon-search` play a workload on the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np

from controller.experiments.inputs import Problem
from controller.model.fabric import Fabric
from controller.model.job import Workload
from controller.scheduling import kernels
from controller.scheduling.echelon_search import Adopted, FixedOrder, Item
from controller.scheduling.order_search import Found, search
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Floats
from controller.scheduling.registry import POLICIES
from controller.scheduling.routing import Pin, least_loaded
from controller.scheduling.state import job_state
from controller.simulator.alone import alone_times
from controller.simulator.critical import tails_of
from controller.simulator.player import player
from controller.simulator.simulate import plans_of

BUDGET = 200
"Plays beyond those of the baselines."


def search_policy(problem: Problem, model: str, seed: int) -> FixedOrder | Adopted:
    """The policy that `echelon-search` finds for a workload on its fabric.

    Its `spelled` is a policy name that another process can be given.
    """
    return searched(problem.workload, problem.fabric, model, seed=seed).policy


def searched(
    workload: Workload,
    fabric: Fabric,
    model: str,
    baselines: Iterable[str] = tuple(POLICIES),
    budget: int = BUDGET,
    seed: int = 0,
) -> Found:
    """Search with the simulator as the player; the cost is the mean slowdown under `model`."""
    alone = alone_times(workload, fabric)
    plays = player(workload, fabric, alone, model)
    plans = plans_of(workload, fabric)
    items = {plan.job.name: len(plan.group_names) for plan in plans}
    chosen = [POLICIES[name]() for name in baselines]
    seconds = {plan.job.name: plan.job.iterations * alone[plan.job.name] for plan in plans}
    shortest = sorted(items, key=lambda job: seconds[job])
    return search(
        plays,
        chosen,
        items,
        [shortest, least_held_up(plans, fabric, seconds)],
        longest_after(plans, fabric),
        budget,
        seed,
        routes_of(plans, fabric),
        rivals_of(plans, fabric),
    )


def least_held_up(
    plans: Sequence[JobPlan], fabric: Fabric, seconds: Mapping[str, float]
) -> list[str]:
    """A line of jobs: whole jobs by BSSI (see `sincronia`), each as one coflow of all its
    iterations' bytes, weighed by one over its `seconds` alone."""
    begin, links, busy = [0], [], []
    for plan in plans:
        for link, size in sorted(job_state(plan, fabric).link_bytes.items()):
            links.append(link)
            busy.append(plan.job.iterations * 8 * size / fabric.links[link].rate)
        begin.append(len(links))
    weight = np.array([1.0 / seconds[plan.job.name] for plan in plans])
    order = kernels.last_first(
        np.array(begin),
        np.array(links, np.int64),
        np.array(busy),
        weight,
        np.arange(len(plans)),
        len(fabric.links),
    )
    return [plans[k].job.name for k in order]


def rivals_of(plans: Sequence[JobPlan], fabric: Fabric) -> dict[str, list[str]]:
    """Job -> the jobs that may share a link with it."""
    used = {plan.job.name: job_state(plan, fabric).link_bytes.keys() for plan in plans}
    return {
        job: [other for other in used if other != job and not links.isdisjoint(used[other])]
        for job, links in used.items()
    }


def longest_after(plans: Sequence[JobPlan], fabric: Fabric) -> dict[Item, int]:
    """A start for the search: within each job, EchelonFlows with most still to come after them
    (the mean of their flows' tails) first."""
    level: dict[Item, int] = {}
    for plan in plans:
        tails: dict[int, list[float]] = {}
        for group, tail in zip(plan.group, tails_of(plan, fabric), strict=True):
            tails.setdefault(group, []).append(tail)
        line = sorted(tails, key=lambda group: -fmean(tails[group]))
        level |= {(plan.job.name, group): k for k, group in enumerate(line)}
    return level


def routes_of(plans: Sequence[JobPlan], fabric: Fabric) -> dict[str, list[dict[Pin, int]]]:
    """Ways for every job that has a choice to choose its paths: its own bytes spread evenly over
    the links, all of them or those of each EchelonFlow, beginning with each of the paths."""
    routes = {}
    for plan in plans:
        ends = set(zip(plan.src, plan.dst, strict=True))
        most = max((len(fabric.paths(src, dst)) for src, dst in ends if src != dst), default=1)
        if most > 1:
            routes[plan.job.name] = [
                _spread(plan, fabric, first, apart)
                for apart in (False, True)
                for first in range(most)
            ]
    return routes


def _spread(plan: JobPlan, fabric: Fabric, first: int, apart: bool) -> dict[Pin, int]:
    """Flow by flow the path with the least of the job's bytes (`apart`: of the EchelonFlow's)."""
    loads: dict[int, Floats] = {}
    pins: dict[Pin, int] = {}
    for row, (src, dst) in enumerate(zip(plan.src, plan.dst, strict=True)):
        paths = fabric.paths(src, dst)
        if src == dst or len(paths) == 1:
            continue
        load = loads.setdefault(plan.group[row] if apart else 0, np.zeros(len(fabric.links)))
        turn = first % len(paths)
        path = least_loaded(paths[turn:] + paths[:turn], load)
        for link in path:
            load[link] += 8.0 * plan.size[row] / fabric.links[link].rate
        pins[src, dst, plan.job.flows[row].id] = paths.index(path)
    return pins

"""Lets `echelon-search` play a workload on the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from controller.experiments.inputs import Problem
from controller.model.fabric import Fabric
from controller.model.job import Workload
from controller.scheduling.echelon_search import WHOLE, Adopted, FixedOrder, Found, Item, search
from controller.scheduling.plan import JobPlan
from controller.scheduling.registry import POLICIES
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
    iterations = {plan.job.name: plan.job.iterations for plan in plans}
    items = {plan.job.name: len(plan.group_names) for plan in plans}
    chosen = [POLICIES[name]() for name in baselines]
    shortest = sorted(items, key=lambda job: alone[job] * iterations[job])
    starts = [
        {(job, WHOLE): k for k, job in enumerate(shortest)},
        longest_after(plans, fabric),
    ]
    return search(plays, chosen, items, starts, budget, seed)


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

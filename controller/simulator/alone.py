"""How long an iteration of each job takes when it has the fabric for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.model.fabric import Fabric
from controller.model.job import PlacedJob, Workload
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Policy
from controller.scheduling.registry import policy
from controller.scheduling.routing import Routing
from controller.simulator.coflows import only_coflows
from controller.simulator.simulate import plans_of, play

ALONE_POLICIES = ("fair", "fifo", "edf", "srpt", "echelon", "echelon-edf")
"A job contends with itself too: its time alone is the best that one of these makes of it."

_WARM_UP = 4
"Iterations played before asking how much longer one more takes."


def alone_times(
    workload: Workload,
    fabric: Fabric,
    iterations: int | None = None,
    routing: Routing | None = None,
) -> dict[str, float]:
    """Job -> mean iteration time on the idle fabric, in seconds, over as many iterations as it has.

    `iterations` overrides the jobs' own. Where one iteration more, and another one, make the job
    equally longer, so does every further one: with nobody else there, they repeat.
    """
    policies = [policy(name) for name in ALONE_POLICIES]
    plans = plans_of(workload, fabric, iterations)
    return {
        placed.job.name: _bottleneck(plan, fabric)
        if only_coflows(plan) and _single_paths(plan, fabric)
        else _alone(placed, fabric, policies, iterations, routing)
        for placed, plan in zip(workload.jobs, plans, strict=True)
    }


def _single_paths(plan: JobPlan, fabric: Fabric) -> bool:
    pairs = set(zip(plan.src, plan.dst, strict=True))
    return all(len(fabric.paths(src, dst)) == 1 for src, dst in pairs)


def _bottleneck(plan: JobPlan, fabric: Fabric) -> float:
    """Completion of coflows that are released together: their busiest link's time, by MADD."""
    capacity = fabric.capacities()
    seconds = [0.0] * len(capacity)
    for src, dst, size in zip(plan.src, plan.dst, plan.size, strict=True):
        for link in fabric.paths(src, dst)[0]:
            seconds[link] += 8.0 * size / capacity[link]
    return max(seconds, default=0.0)


def _alone(
    placed: PlacedJob,
    fabric: Fabric,
    policies: Sequence[Policy],
    iterations: int | None,
    routing: Routing | None,
) -> float:
    workload = Workload((replace(placed, arrival=0.0),))
    count = placed.job.iterations if iterations is None else iterations
    return min(_mean(workload, fabric, each, count, routing) for each in policies)


def _mean(
    workload: Workload, fabric: Fabric, policy: Policy, count: int, routing: Routing | None
) -> float:
    """Mean iteration time of a job alone over `count` iterations."""

    def completion(iterations: int) -> float:
        plans = plans_of(workload, fabric, iterations)
        played = play(plans, fabric, policy, routing=routing, records=False)
        return played.played.jobs[0].completion_s

    shorter = _WARM_UP
    while shorter + 2 < count:
        first, second, third = (completion(shorter + more) for more in range(3))
        step = third - second
        if abs(step - (second - first)) <= 1e-9 * step:
            return (third + (count - shorter - 2) * step) / count
        shorter *= 2
    return completion(count) / count

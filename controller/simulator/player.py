"""The player that `echelon-search` evaluates orders with: one workload, again and again."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model.fabric import Fabric
from controller.model.job import Workload
from controller.scheduling.climb import Outcome, Player
from controller.scheduling.policy import Policy
from controller.scheduling.routing import Routing
from controller.simulator.simulate import plans_of, play


def player(
    workload: Workload,
    fabric: Fabric,
    alone: Mapping[str, float],
    model: str = "enforced",
    routing: Routing | None = None,
    iterations: int | None = None,
) -> Player:
    """Plays the workload under a policy and tells the slowdowns against `alone` (seconds by job).

    The jobs are compiled once. `iterations` overrides the jobs' own: a few are enough to compare.
    """
    plans = plans_of(workload, fabric, iterations)

    def evaluate(policy: Policy) -> Outcome:
        result = play(plans, fabric, policy, model, routing, name=workload.name, records=False)
        slowdown = result.slowdowns(dict(alone))
        return Outcome(sum(slowdown.values()) / len(slowdown), slowdown)

    return evaluate

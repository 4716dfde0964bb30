"""Runs a workload under policies on the fluid simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from controller.experiments.inputs import Problem
from controller.experiments.summarize import predicted_summary
from controller.experiments.summary import Summary
from controller.model.errors import BadInput
from controller.model.record import JobRecord, Played
from controller.scheduling.policy import Policy
from controller.scheduling.registry import policy as named_policy
from controller.simulator.alone import alone_times
from controller.simulator.simulate import simulate

MODELS = ("ideal", "enforced")

DEFAULT_POLICIES = ("fair", "fifo", "varys", "echelon")
"What is compared unless the user names policies."


def play(
    problem: Problem,
    policies: Iterable[str],
    model: str,
    seed: int = 0,
    progress: Callable[[str], None] = lambda policy: None,
) -> tuple[Summary, dict[str, Played]]:
    """Plays the workload under each policy; the summary, and what was played by policy.

    Raises BadInput for an unknown policy or model, WorkFailed when a job can never finish.
    """
    if model not in MODELS:
        raise BadInput(f"model {model!r}: expected {' or '.join(MODELS)}")
    began = time.monotonic()
    chosen = [make_policy(name, problem, model, seed) for name in dict.fromkeys(policies)]
    alone = alone_times(problem.workload, problem.fabric)
    played: dict[str, Played] = {}
    summary = Summary.new(
        target="simulator",
        topology=problem.fabric.name,
        link_rate_bps=problem.fabric.host_rate,
        settings={"notes": list(problem.notes)} if problem.notes else {},
    )
    for policy in chosen:
        progress(policy.name)
        result = simulate(problem.workload, problem.fabric, policy, model)
        played[policy.name] = result.played
        summary.scenarios.append(
            predicted_summary(
                problem.workload.name,
                policy.name,
                model,
                result.played,
                alone,
                JobRecord.iteration_times,
            )
        )
    summary.wall_s = time.monotonic() - began
    return summary, played


def make_policy(name: str, problem: Problem, model: str, seed: int) -> Policy:
    """The policy of that name; the search is handed the player that it evaluates with."""
    if name != "echelon-search":
        return named_policy(name)
    from controller.experiments.search import search_policy

    return search_policy(problem, model, seed)

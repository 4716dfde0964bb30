"""Runs a workload under policies on the fluid simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from controller.experiments.inputs import Problem
from controller.experiments.search import search_policy
from controller.experiments.summarize import predicted_summary
from controller.experiments.summary import JobSummary, ScenarioSummary, Summary
from controller.model.errors import BadInput
from controller.model.record import JobRecord, Played
from controller.scheduling.policy import Policy
from controller.scheduling.registry import SEARCH
from controller.scheduling.registry import policy as named_policy
from controller.simulator.alone import alone_times
from controller.simulator.bounds import workload_bound
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


def set_bounds(problem: Problem, summary: Summary) -> None:
    """Puts beside every scenario of `play` the mean slowdown that no schedule can go below."""
    alone = {job.job: job.alone_s for job in summary.scenarios[0].jobs}
    least = workload_bound(problem.workload, problem.fabric, alone).mean_slowdown
    for scenario in summary.scenarios:
        scenario.bound_mean_slowdown = least


def bound_summary(problem: Problem) -> Summary:
    """Each job alone on the idle fabric, and the least mean slowdown, as a summary."""
    alone = alone_times(problem.workload, problem.fabric)
    least = workload_bound(problem.workload, problem.fabric, alone)
    jobs = [
        JobSummary(
            job=placed.job.name,
            iterations=placed.job.iterations,
            alone_s=alone[placed.job.name],
            predicted_completion_s=least.completion_s[placed.job.name],
            predicted_iteration_s=least.completion_s[placed.job.name] / placed.job.iterations,
        )
        for placed in problem.workload.jobs
    ]
    for job in jobs:
        job.predicted_slowdown = job.predicted_iteration_s / job.alone_s if job.alone_s else 1.0
    scenario = ScenarioSummary(
        name=problem.workload.name,
        policy="bound",
        model=least.method,
        jobs=jobs,
        predicted_mean_slowdown=least.mean_slowdown,
        bound_mean_slowdown=least.mean_slowdown,
    )
    return Summary.new(
        target="simulator",
        topology=problem.fabric.name,
        link_rate_bps=problem.fabric.host_rate,
        scenarios=[scenario],
    )


def make_policy(name: str, problem: Problem, model: str, seed: int) -> Policy:
    """The policy of that name; the search is handed the player that it evaluates with."""
    if name != SEARCH:
        return named_policy(name)
    return search_policy(problem, model, seed)

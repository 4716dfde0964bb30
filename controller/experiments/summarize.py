"""From what was played to the figures of a scenario: measured beside predicted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from controller.experiments.summary import JobSummary, ScenarioSummary
from controller.model.record import JobRecord, Played

P95_FROM = 20
"Iterations from which a 95th percentile is worth printing."


def predicted_summary(
    name: str,
    policy: str,
    model: str,
    predicted: Played,
    alone: dict[str, float],
    times: Callable[[JobRecord], Sequence[float]],
    bound: float | None = None,
) -> ScenarioSummary:
    """A scenario that was only simulated. `alone`: job -> seconds of an iteration on idle links.

    `times` picks the iterations that enter a job's mean: `counted`, as live, or all of them.
    """
    jobs = [_predicted_job(job, times(job), alone[job.job]) for job in predicted.jobs]
    return ScenarioSummary(
        name=name,
        policy=policy,
        model=model,
        jobs=jobs,
        predicted_mean_slowdown=fmean(job.predicted_slowdown for job in jobs),
        bound_mean_slowdown=bound,
        total_tardiness_s=predicted.total_tardiness(),
        mean_coflow_completion_s=mean_coflow_completion(predicted),
    )


def measured_summary(scenario: ScenarioSummary, measured: Played) -> ScenarioSummary:
    """Adds what was measured to a predicted scenario; the model's sums move to their own keys."""
    jobs = [
        _measured_job(job, record) for job, record in zip(scenario.jobs, measured.jobs, strict=True)
    ]
    scenario.predicted_total_tardiness_s = scenario.total_tardiness_s
    scenario.predicted_mean_coflow_completion_s = scenario.mean_coflow_completion_s
    scenario.jobs = jobs
    scenario.mean_slowdown = fmean(job.slowdown or math.nan for job in jobs)
    scenario.total_tardiness_s = measured.total_tardiness()
    scenario.mean_coflow_completion_s = mean_coflow_completion(measured)
    return scenario


def counted(job: JobRecord) -> Sequence[float]:
    """The iteration times that count: all but the first, or the only one there is."""
    times = job.iteration_times()
    return times[1:] if len(times) > 1 else times


def mean_coflow_completion(played: Played) -> float | None:
    """Mean over the EchelonFlows that are coflows of (last finish - first ready); None: no coflow.

    A coflow is an EchelonFlow all of whose flows have one ideal finish time.
    """
    first: dict[tuple[str, int, str], float] = {}
    last: dict[tuple[str, int, str], float] = {}
    ideal: dict[tuple[str, int, str], set[float]] = {}
    for flow in played.flows:
        key = (flow.job, flow.iteration, flow.echelonflow)
        first[key] = min(first.get(key, math.inf), flow.ready)
        last[key] = max(last.get(key, -math.inf), flow.finish)
        ideal.setdefault(key, set()).add(round(flow.ideal_finish, 9))
    times = [last[key] - first[key] for key in first if len(ideal[key]) == 1]
    return fmean(times) if times else None


def _predicted_job(job: JobRecord, times: Sequence[float], alone: float) -> JobSummary:
    mean = fmean(times)
    return JobSummary(
        job=job.job,
        iterations=len(job.iteration_ends),
        alone_s=alone,
        predicted_completion_s=job.completion_s,
        predicted_iteration_s=mean,
        predicted_slowdown=mean / alone if alone > 0 else 1.0,
    )


def _measured_job(job: JobSummary, record: JobRecord) -> JobSummary:
    times = sorted(counted(record))
    job.counted_iterations = len(times)
    job.completion_s = record.completion_s
    job.mean_iteration_s = fmean(times)
    if len(times) >= P95_FROM:
        job.p95_iteration_s = times[math.ceil(0.95 * len(times)) - 1]
    job.slowdown = job.mean_iteration_s / job.alone_s if job.alone_s > 0 else 1.0
    return job

"""Sizes to the link rate of an emulation: sizes scale, times stay, so the contention is the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

from controller.model import Job, Workload
from controller.model.collectives import schedule
from controller.model.errors import BadInput
from controller.model.units import format_rate


@dataclass(frozen=True, slots=True)
class Scaled:
    """A workload whose sizes fit the emulated links."""

    workload: Workload
    "Its jobs have the emulated rate as reference rate."
    factors: dict[str, float]
    "Job -> factor its sizes were multiplied by."
    ratios: dict[str, float]
    "Job -> seconds its busiest worker sends at line rate / seconds it computes, an iteration."

    def lines(self) -> list[str]:
        """What was done, a line a job."""
        return [
            f"{name}: sizes x {factor:.6g}, communication / computation {self.ratios[name]:.3g}"
            for name, factor in self.factors.items()
        ]


def scale(workload: Workload, link_rate: float) -> Scaled:
    """Sizes times `link_rate` / reference rate of each job; jobs without one are left as they are.

    Raises `BadInput` when the rate is not above 0.
    """
    if not link_rate > 0:
        raise BadInput(f"link rate {format_rate(link_rate)}: expected more than 0")
    factors, ratios, jobs = {}, {}, []
    for placed in workload.jobs:
        factor = link_rate / (placed.job.reference_rate or link_rate)
        job = resized(placed.job, factor, link_rate)
        factors[job.name] = factor
        ratios[job.name] = communication_ratio(job, link_rate)
        jobs.append(replace(placed, job=job))
    return Scaled(replace(workload, jobs=tuple(jobs)), factors, ratios)


def resized(job: Job, factor: float, reference_rate: float | None) -> Job:
    """The job with all sizes multiplied by a factor, and another reference rate in bit/s."""
    return replace(
        job,
        flows=tuple(replace(flow, bytes=flow.bytes * factor) for flow in job.flows),
        collectives=tuple(replace(c, bytes=c.bytes * factor) for c in job.collectives),
        reference_rate=reference_rate,
    )


def communication_ratio(job: Job, rate: float) -> float:
    """Seconds the busiest worker would send at `rate` / seconds the busiest one computes."""
    sent = dict.fromkeys(job.workers, 0.0)
    for flow in job.flows:
        sent[flow.src] += flow.bytes
    for c in job.collectives:
        for step in schedule(c.kind, c.algorithm, len(c.workers)):
            for sender, _, share in step:
                sent[c.workers[sender]] += share * c.bytes
    computed = dict.fromkeys(job.workers, 0.0)
    for task in job.tasks:
        computed[task.worker] += task.seconds
    longest = max(computed.values())
    seconds = max(sent.values()) * 8 / rate
    return seconds / longest if longest else float("inf") if seconds else 0.0

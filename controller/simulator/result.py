"""What a simulation found: iterations, completions, tardiness, and every flow if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller.model.record import FlowRecord, JobRecord, Played, TaskRecord
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Floats
from controller.simulator.tables import Table


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """One workload under one policy."""

    workload: str
    "Name of the workload."
    policy: str
    "Name of the policy."
    model: str
    "ideal or enforced."
    played: Played
    "Jobs, and the flows and tasks if records were kept."
    total_tardiness_s: float
    "Sum of w_H t_H over the EchelonFlows of all iterations, in seconds."
    mean_coflow_completion_s: float | None
    "Mean over the EchelonFlows that are coflows, in seconds; None when there are none."

    def mean_iterations(self) -> dict[str, float]:
        """Job -> mean iteration time in seconds."""
        return {
            record.job: record.completion_s / len(record.iteration_ends)
            for record in self.played.jobs
        }

    def slowdowns(self, alone: dict[str, float]) -> dict[str, float]:
        """Job -> mean iteration time over its time alone (`alone.alone_times`)."""
        return {job: mean / alone[job] for job, mean in self.mean_iterations().items()}

    def mean_slowdown(self, alone: dict[str, float]) -> float:
        """Mean of the jobs' slowdowns."""
        slowdowns = self.slowdowns(alone)
        return sum(slowdowns.values()) / len(slowdowns)


@dataclass(frozen=True, slots=True)
class Log:
    """What a run found, in numbers; `result_of` puts the names to it."""

    ends: Sequence[Floats]
    "(jobs,) of (iterations,): when the last task (flow, if there are no tasks) ended, in seconds."
    flows_ended: int
    "Flows that have finished."
    tardiness_s: float
    "Sum of w_H t_H over the EchelonFlows, in seconds."
    coflows: int
    "EchelonFlows that are coflows and have ended."
    coflow_s: float
    "The sum of their completion times, in seconds."
    flows: Table
    "(flows,) FLOW_LOG; empty where no records were kept."
    tasks: Table
    "(tasks,) TASK_LOG, the same."
    classes: Table
    "CLASS_LOG: what classes flows were given, in order of time; the same."


def result_of(
    plans: Sequence[JobPlan], log: Log, workload: str, policy: str, model: str
) -> SimulationResult:
    """The result of a run that is over."""
    jobs = tuple(
        JobRecord(plan.job.name, plan.arrival, tuple(ends.tolist()))
        for plan, ends in zip(plans, log.ends, strict=True)
    )
    weights = {plan.job.name: plan.weight for plan in plans}
    return SimulationResult(
        workload=workload,
        policy=policy,
        model=model,
        played=Played(_flows(plans, log), _tasks(plans, log), jobs, weights),
        total_tardiness_s=log.tardiness_s,
        mean_coflow_completion_s=log.coflow_s / log.coflows if log.coflows else None,
    )


def _flows(plans: Sequence[JobPlan], log: Log) -> tuple[FlowRecord, ...]:
    """Every flow, in order of finish, job, iteration and plan."""
    classes: dict[int, list[int]] = {}
    for tie, class_ in log.classes.tolist():
        classes.setdefault(tie, []).append(class_)
    order = np.lexsort([log.flows[key] for key in ("flow", "iteration", "job", "finish")])
    records = []
    for job, iteration, row, ready, start, finish, ideal_finish, tie in log.flows[order].tolist():
        plan = plans[job]
        flow = plan.job.flows[row]
        records.append(
            FlowRecord(
                job=plan.job.name,
                iteration=iteration,
                flow=flow.id,
                echelonflow=plan.group_names[plan.group[row]],
                src=flow.src,
                dst=flow.dst,
                bytes=plan.size[row],
                ready=ready,
                start=start,
                finish=finish,
                ideal_finish=ideal_finish,
                classes=tuple(classes.get(tie, ())),
            )
        )
    return tuple(records)


def _tasks(plans: Sequence[JobPlan], log: Log) -> tuple[TaskRecord, ...]:
    """Every task, in order of finish, job, iteration and plan."""
    records = []
    order = np.lexsort([log.tasks[key] for key in ("task", "iteration", "job", "finish")])
    for job, iteration, row, finish in log.tasks[order].tolist():
        plan = plans[job]
        task = plan.job.tasks[row]
        start = finish - plan.seconds[row]
        records.append(TaskRecord(plan.job.name, iteration, task.id, task.worker, start, finish))
    return tuple(records)

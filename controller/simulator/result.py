"""What a simulation found: iterations, completions, tardiness, and every flow if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from controller.model.record import FlowRecord, JobRecord, Played, TaskRecord
from controller.scheduling.plan import JobPlan


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


@dataclass(slots=True)
class _Formation:
    """An EchelonFlow of one iteration while it has flows that have not finished."""

    left: int
    "Flows that have not finished."
    worst: float = float("-inf")
    "Largest tardiness so far, in seconds."


@dataclass(slots=True)
class Recorder:
    """Told what ended when, makes the result."""

    plans: list[JobPlan]
    "The jobs of the workload."
    keep: bool
    "Whether to keep every flow and task."
    flows_ended: int = 0
    "Flows that have finished."
    _flows: list[FlowRecord] = field(default_factory=list)
    _tasks: list[TaskRecord] = field(default_factory=list)
    _ends: dict[int, list[float]] = field(default_factory=dict)
    _open: dict[tuple[int, int, int], _Formation] = field(default_factory=dict)
    _tardiness: float = 0.0
    _coflow_s: float = 0.0
    _coflows: int = 0

    def task(self, job: int, iteration: int, node: int, end: float) -> None:
        """A task has ended."""
        plan = self.plans[job]
        self._ended(job, iteration, end)
        if self.keep:
            task = plan.job.tasks[node]
            start = end - plan.seconds[node]
            self._tasks.append(
                TaskRecord(plan.job.name, iteration, task.id, task.worker, start, end)
            )

    def flow(
        self,
        job: int,
        iteration: int,
        node: int,
        ready: float,
        start: float,
        finish: float,
        ideal_finish: float,
        classes: Sequence[int],
    ) -> None:
        """A flow has finished."""
        plan = self.plans[job]
        self.flows_ended += 1
        row = node - plan.tasks
        if not plan.tasks:
            self._ended(job, iteration, finish)
        group = plan.group[row]
        self._late(job, iteration, group, finish - ideal_finish)
        if self.keep:
            flow = plan.job.flows[row]
            self._flows.append(
                FlowRecord(
                    job=plan.job.name,
                    iteration=iteration,
                    flow=flow.id,
                    echelonflow=plan.group_names[group],
                    src=flow.src,
                    dst=flow.dst,
                    bytes=plan.size[row],
                    ready=ready,
                    start=start,
                    finish=finish,
                    ideal_finish=ideal_finish,
                    classes=tuple(classes),
                )
            )

    def result(self, workload: str, policy: str, model: str) -> SimulationResult:
        """The result of a run that is over."""
        jobs = tuple(
            JobRecord(plan.job.name, plan.arrival, tuple(self._ends.get(job, [plan.arrival])))
            for job, plan in enumerate(self.plans)
        )
        weights = {plan.job.name: plan.weight for plan in self.plans}
        return SimulationResult(
            workload=workload,
            policy=policy,
            model=model,
            played=Played(tuple(self._flows), tuple(self._tasks), jobs, weights),
            total_tardiness_s=self._tardiness,
            mean_coflow_completion_s=self._coflow_s / self._coflows if self._coflows else None,
        )

    def _ended(self, job: int, iteration: int, end: float) -> None:
        """The iteration ends with its last task (its last flow, if the job computes nothing)."""
        ends = self._ends.setdefault(job, [])
        if iteration == len(ends):
            ends.append(end)
        else:
            ends[iteration] = max(ends[iteration], end)

    def _late(self, job: int, iteration: int, group: int, tardiness: float) -> None:
        plan = self.plans[job]
        key = (job, iteration, group)
        formation = self._open.get(key)
        if formation is None:
            formation = self._open[key] = _Formation(plan.group_flows[group])
        formation.worst = max(formation.worst, tardiness)
        formation.left -= 1
        if not formation.left:
            del self._open[key]
            self._tardiness += plan.weight * formation.worst
            if plan.coflow[group]:
                self._coflows += 1
                self._coflow_s += formation.worst

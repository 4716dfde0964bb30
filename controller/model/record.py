"""What happened to flows, tasks and iterations: the same records from the simulator and live."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class FlowRecord:
    """One flow of one iteration. All times in seconds from the start of the scenario."""

    job: str
    "Name of the job."
    iteration: int
    "0 for the first."
    flow: str
    "Id of the flow in its (expanded) job."
    echelonflow: str
    "Id of its EchelonFlow."
    src: str
    "Sending worker."
    dst: str
    "Receiving worker."
    bytes: float
    "Wire bytes, after scaling."
    ready: float
    "When its dependencies were met."
    start: float
    "When its first byte was sent (simulator: when its rate first rose above 0)."
    finish: float
    "When its last byte arrived."
    ideal_finish: float
    "d_j = r + a_j, r the ready time of the head flow."
    classes: tuple[int, ...] = ()
    "Classes it was given, in order of time."
    retransmits: int = 0
    "Live: segments its connection sent again."

    @property
    def tardiness(self) -> float:
        """finish - ideal finish, signed, in seconds."""
        return self.finish - self.ideal_finish


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One task of one iteration."""

    job: str
    "Name of the job."
    iteration: int
    "0 for the first."
    task: str
    "Id of the task."
    worker: str
    "The worker that computed."
    start: float
    "Seconds from the start of the scenario."
    finish: float
    "Seconds from the start of the scenario."


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job: when its iterations ended."""

    job: str
    "Name of the job."
    arrival: float
    "Seconds from the start of the scenario."
    iteration_ends: tuple[float, ...]
    "When the last task of each iteration ended, in seconds from the start of the scenario."

    @property
    def completion_s(self) -> float:
        """End of the last task minus the arrival."""
        return self.iteration_ends[-1] - self.arrival

    def iteration_times(self) -> tuple[float, ...]:
        """Time from one iteration's end to the next (the first: from the arrival)."""
        ends = (self.arrival, *self.iteration_ends)
        return tuple(later - earlier for earlier, later in pairwise(ends))


@dataclass(frozen=True, slots=True)
class Played:
    """A whole scenario as it was played, by the simulator or live."""

    flows: tuple[FlowRecord, ...]
    "Every flow of every iteration."
    tasks: tuple[TaskRecord, ...]
    "Every task of every iteration."
    jobs: tuple[JobRecord, ...]
    "In the workload's order."
    weights: dict[str, float] = field(default_factory=dict)
    "job -> weight, for the total tardiness."

    def tardiness(self) -> dict[tuple[str, int, str], float]:
        """(job, iteration, EchelonFlow) -> t_H, the largest tardiness of its flows, in seconds."""
        worst: dict[tuple[str, int, str], float] = {}
        for flow in self.flows:
            key = (flow.job, flow.iteration, flow.echelonflow)
            worst[key] = max(worst.get(key, float("-inf")), flow.tardiness)
        return worst

    def total_tardiness(self) -> float:
        """Sum of w_H t_H over the EchelonFlows, in seconds."""
        return sum(
            self.weights.get(job, 1.0) * late for (job, _, _), late in self.tardiness().items()
        )

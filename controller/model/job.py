"""A training job: one iteration's DAG of computations and transfers, and how often it repeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Task:
    """A computation on one worker."""

    id: str
    "Unique among the tasks, flows and collectives of its job."
    worker: str
    "The worker that computes; it runs its tasks one at a time, in the order the job lists them."
    seconds: float
    "Duration in seconds, >= 0."
    after: tuple[str, ...] = ()
    "Tasks, flows and collectives that must end first."


@dataclass(frozen=True, slots=True)
class Flow:
    """One transfer of known size between two workers."""

    id: str
    "Unique among the tasks, flows and collectives of its job."
    src: str
    "The sending worker."
    dst: str
    "The receiving worker."
    bytes: float
    "Bytes on the wire at the job's reference rate, > 0."
    after: tuple[str, ...] = ()
    "Tasks, flows and collectives that must end first."


@dataclass(frozen=True, slots=True)
class Collective:
    """An operation of several workers; `expand` turns it into flows."""

    id: str
    "Unique among the tasks, flows and collectives of its job."
    kind: str
    "all_reduce, reduce_scatter, all_gather, broadcast or all_to_all."
    algorithm: str
    "ring, halving_doubling, tree, parameter_server or direct."
    workers: tuple[str, ...]
    "The participants, in ring order."
    bytes: float
    "Size of the whole buffer, in bytes (see `controller.model.collectives` for each kind)."
    after: tuple[str, ...] = ()
    "Tasks, flows and collectives that must end first, at every participant."


@dataclass(frozen=True, slots=True)
class EchelonFlow:
    """Flows of one job whose ideal finish times hang together by an arrangement."""

    id: str
    "Unique among the EchelonFlows of its job."
    flows: tuple[str, ...]
    "Ids of its flows (or collectives, which stand for all their flows)."
    arrangement: tuple[float, ...]
    "Ideal finish offsets from the reference time, in seconds, one per entry of `flows`; first is 0."

    @property
    def is_coflow(self) -> bool:
        """Whether all ideal finish times are equal."""
        return not any(self.arrangement)


@dataclass(frozen=True, slots=True)
class Job:
    """A job profile (`echelon/job/v1`)."""

    name: str
    "Name of the job, unique in its workload."
    workers: tuple[str, ...]
    "Its workers (ranks)."
    tasks: tuple[Task, ...] = ()
    "Computations; the tasks of one worker run in this order."
    flows: tuple[Flow, ...] = ()
    "Transfers."
    collectives: tuple[Collective, ...] = ()
    "Collective operations not yet expanded into flows."
    echelonflows: tuple[EchelonFlow, ...] = ()
    "Declared EchelonFlows; when empty they are derived (`controller.model.arrangement`)."
    iterations: int = 1
    "How often the DAG is played, >= 1."
    reference_rate: float | None = None
    "Link rate in bit/s at which sizes were recorded; None: sizes are taken as they are."

    def tasks_of(self, worker: str) -> Iterator[Task]:
        """The tasks of one worker, in the order it runs them."""
        return (task for task in self.tasks if task.worker == worker)


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job as it stands in a workload: when it arrives, and where its workers run."""

    job: Job
    "The profile."
    placement: dict[str, str] = field(default_factory=dict)
    "worker -> host. Two workers on one host exchange data without the network."
    arrival: float = 0.0
    "Seconds from the start of the workload."
    weight: float = 1.0
    "Importance of its tardiness, > 0."


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs that share a fabric (`echelon/workload/v1`)."""

    jobs: tuple[PlacedJob, ...]
    "In the order the file lists them; ties between jobs are broken in this order."
    name: str = "workload"
    "What reports call it."

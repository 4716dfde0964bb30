"""What can be wrong with a job or a workload, found before it is played."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from controller.model import dag
from controller.model.collectives import ALGORITHMS, KINDS, supported
from controller.model.errors import BadInput
from controller.model.job import Job, Workload


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where."""

    key: tuple[str | int, ...]
    "Where in the profile: `('flows', 3, 'bytes')`."
    message: str
    "What was found and what was expected."

    @property
    def place(self) -> str:
        """`flows[3].bytes`."""
        return place(self.key)


class InvalidJob(BadInput):
    """A job or workload that cannot be played; says where and why."""


def place(key: tuple[str | int, ...]) -> str:
    """`('flows', 3, 'bytes')` -> `flows[3].bytes`."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def require_valid(subject: Job | Workload) -> None:
    """Raise `InvalidJob` with the first problem of a job or workload, if it has one."""
    found = job_problems(subject) if isinstance(subject, Job) else workload_problems(subject)
    for problem in found:
        raise InvalidJob(f"{subject.name}: {problem.place}: {problem.message}")


def job_problems(job: Job) -> Iterator[Problem]:
    """Everything wrong with a job: the cheap checks first, circles last."""
    local = [*_header(job), *_ids(job), *_values(job)]
    yield from local
    if local:
        return
    dangling = list(_dangling(job))
    yield from dangling
    yield from _echelonflows(job)
    if not dangling:
        yield from _circles(job)


def workload_problems(workload: Workload) -> Iterator[Problem]:
    """Everything wrong with a workload, its jobs included."""
    if not workload.jobs:
        yield Problem(("jobs",), "no jobs: expected at least one")
    names: dict[str, int] = {}
    for index, placed in enumerate(workload.jobs):
        here = ("jobs", index)
        job = placed.job
        if job.name in names:
            yield Problem(
                (*here, "job"),
                f"job {job.name!r} is listed twice (first at jobs[{names[job.name]}])",
            )
        names.setdefault(job.name, index)
        if not _at_least(placed.arrival, 0):
            yield Problem((*here, "arrival"), f"{placed.arrival!r}: expected seconds >= 0")
        if not _positive(placed.weight):
            yield Problem((*here, "weight"), f"{placed.weight!r}: expected a number > 0")
        workers = set(job.workers)
        for worker in placed.placement:
            if worker not in workers:
                yield Problem(
                    (*here, "placement", worker), f"job {job.name!r} has no worker {worker!r}"
                )
        if placed.placement:
            for worker in job.workers:
                if worker not in placed.placement:
                    yield Problem((*here, "placement"), f"worker {worker!r} has no host")
        for problem in job_problems(job):
            yield Problem((*here, "profile", *problem.key), problem.message)


def _header(job: Job) -> Iterator[Problem]:
    if not job.name:
        yield Problem(("job",), "expected a name")
    if isinstance(job.iterations, bool) or job.iterations < 1:
        yield Problem(("iterations",), f"{job.iterations!r}: expected a whole number >= 1")
    if job.reference_rate is not None and not _positive(job.reference_rate):
        yield Problem(("reference_rate",), f"{job.reference_rate!r}: expected a rate > 0")
    if not job.workers:
        yield Problem(("workers",), "no workers: expected at least one")
    seen: set[str] = set()
    for index, worker in enumerate(job.workers):
        if not worker or worker in seen:
            yield Problem(("workers", index), f"{worker!r}: expected a name that is not yet used")
        seen.add(worker)


def _ids(job: Job) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for part, entries in dag.parts(job):
        for index, entry in enumerate(entries):
            if not entry.id:
                yield Problem((part, index, "id"), "expected an id that is not empty")
            elif entry.id in seen:
                yield Problem(
                    (part, index, "id"), f"{entry.id!r} is already the id of {seen[entry.id]}"
                )
            else:
                seen[entry.id] = f"{part}[{index}]"


def _values(job: Job) -> Iterator[Problem]:
    workers = set(job.workers)

    def worker(part: str, index: int, key: str, name: str) -> Iterator[Problem]:
        if name not in workers:
            yield Problem((part, index, key), f"{name!r}: expected one of the job's workers")

    for i, task in enumerate(job.tasks):
        yield from worker("tasks", i, "worker", task.worker)
        if not _at_least(task.seconds, 0):
            yield Problem(("tasks", i, "seconds"), f"{task.seconds!r}: expected seconds >= 0")
    for i, flow in enumerate(job.flows):
        if flow.src not in workers:
            yield from worker("flows", i, "src", flow.src)
        if flow.dst not in workers:
            yield from worker("flows", i, "dst", flow.dst)
        if flow.src == flow.dst:
            yield Problem(("flows", i, "dst"), f"{flow.dst!r} is the sender too")
        if not _positive(flow.bytes):
            yield Problem(("flows", i, "bytes"), f"{flow.bytes!r}: expected bytes > 0")
    for i, c in enumerate(job.collectives):
        if c.kind not in KINDS:
            yield Problem(
                ("collectives", i, "kind"), f"{c.kind!r}: expected one of {', '.join(KINDS)}"
            )
        elif c.algorithm not in ALGORITHMS or not supported(c.kind, c.algorithm):
            known = ", ".join(a for a in ALGORITHMS if supported(c.kind, a))
            yield Problem(
                ("collectives", i, "algorithm"),
                f"{c.algorithm!r}: expected an algorithm of {c.kind}: {known}",
            )
        if not c.workers or len(set(c.workers)) < len(c.workers):
            yield Problem(("collectives", i, "workers"), "expected workers, each once")
        for k, name in enumerate(c.workers):
            if name not in workers:
                yield Problem(
                    ("collectives", i, "workers", k), f"{name!r}: expected one of the job's workers"
                )
        if not _positive(c.bytes):
            yield Problem(("collectives", i, "bytes"), f"{c.bytes!r}: expected bytes > 0")


def _dangling(job: Job) -> Iterator[Problem]:
    known = dag.nodes(job)
    for part, entries in dag.parts(job):
        for i, entry in enumerate(entries):
            for k, other in enumerate(entry.after):
                if other not in known:
                    yield Problem(
                        (part, i, "after", k),
                        f"{other!r}: expected the id of a task, flow or collective of this job",
                    )


def _echelonflows(job: Job) -> Iterator[Problem]:
    known = {entry.id for _, part in dag.parts(job)[1:] for entry in part}
    ids: set[str] = set()
    owner: dict[str, str] = {}
    for i, group in enumerate(job.echelonflows):
        here = ("echelonflows", i)
        if not group.id or group.id in ids:
            yield Problem((*here, "id"), f"{group.id!r}: expected an id that is not yet used")
        ids.add(group.id)
        if not group.flows:
            yield Problem((*here, "flows"), "expected at least one flow")
        for k, flow in enumerate(group.flows):
            if flow not in known:
                yield Problem(
                    (*here, "flows", k), f"{flow!r}: expected the id of a flow or collective"
                )
            elif flow in owner:
                yield Problem((*here, "flows", k), f"{flow!r} is already in {owner[flow]!r}")
            owner.setdefault(flow, group.id)
        if len(group.arrangement) != len(group.flows):
            yield Problem(
                (*here, "arrangement"),
                f"{len(group.arrangement)} offsets for {len(group.flows)} flows: expected one each",
            )
        elif any(not math.isfinite(a) for a in group.arrangement) or group.arrangement[:1] != (0,):
            yield Problem(
                (*here, "arrangement"), "expected finite offsets in seconds, the first of them 0"
            )


def _circles(job: Job) -> Iterator[Problem]:
    try:
        dag.order(job)
    except dag.CircularJob as error:
        first = error.circle[0]
        for part, entries in dag.parts(job):
            for i, entry in enumerate(entries):
                if entry.id == first:
                    yield Problem((part, i, "after"), str(error))
                    return


def _at_least(value: float, least: float) -> bool:
    return math.isfinite(value) and value >= least


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0

"""The user's own placement: a YAML or JSON file, job -> worker -> host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from controller.model import PlacedJob, Workload
from controller.model.errors import BadInput
from controller.profiles.documents import Document
from controller.profiles.placement import POLICIES
from controller.profiles.reader import Reader, shown


def read_placement(workload: Workload, placement: str) -> tuple[Workload, str]:
    """What `--placement` means: the workload with the hosts a file names, and a policy for the rest.

    `placement` is one of `placement.POLICIES`, which leaves the workload as it is, or the path of a
    file like `gpt: {w0: h1, w1: h2}`. A file's hosts go before the workload's own; jobs it does not
    name keep theirs, or are packed. Raises BadInput with file, line and key.
    """
    if placement in POLICIES:
        return workload, placement
    path = Path(placement)
    if not path.exists():
        known = ", ".join(POLICIES)
        raise BadInput(
            f"--placement {placement}: expected {known}, or a file: job -> worker -> host"
        )
    reader = Reader(Document.load(path))
    found = reader.document.value
    if not isinstance(found, dict):
        raise reader.fail((), f"{shown(found)}: expected job: {{worker: host}}")
    jobs = {placed.job.name: placed for placed in workload.jobs}
    for name in found:
        if name not in jobs:
            known = ", ".join(list(jobs)[:20])
            raise reader.fail((name,), f"the workload has no job {name!r}: expected one of {known}")
    return replace(
        workload,
        jobs=tuple(
            replace(placed, placement=_hosts(reader, found[name], placed)) if name in found else placed
            for name, placed in jobs.items()
        ),
    ), "packed"  # fmt: skip


def _hosts(reader: Reader, value: object, placed: PlacedJob) -> dict[str, str]:
    """Worker -> host of one job; every worker has one."""
    name, workers = placed.job.name, placed.job.workers
    if not isinstance(value, dict):
        raise reader.fail((name,), f"{shown(value)}: expected worker: host")
    for worker in value:
        if worker not in workers:
            known = ", ".join(workers[:20])
            raise reader.fail((name, worker), f"no worker of {name}: expected one of {known}")
    for worker in workers:
        if worker not in value:
            raise reader.fail((name,), f"worker {worker!r} has no host")
    return {worker: reader.text(value[worker], (name, worker)) for worker in workers}

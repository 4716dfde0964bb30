"""What a command is pointed at -> a placed workload and the fabric it runs on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from controller.model import Fabric, Workload
from controller.model.errors import BadInput
from controller.model.fabrics import parse_topology
from controller.model.units import parse_rate
from controller.profiles.importers.report import Options
from controller.profiles.load import load, load_fabric
from controller.profiles.placement import place
from controller.profiles.placement_file import read_placement

DEFAULT_RATE = "100gbit"
"Link rate of a simulated fabric when neither the user nor the input says one."

NARROW = 10
"Flows up to which a coflow counts as narrow."


@dataclass(frozen=True, slots=True)
class Problem:
    """A workload on a fabric."""

    workload: Workload
    "Every worker has a host."
    fabric: Fabric
    "Where it runs."
    notes: tuple[str, ...] = ()
    "What an importer understood, assumed and could not know."


def read_problem(
    path: Path,
    topology: str | None = None,
    link_rate: str | None = None,
    placement: str = "packed",
    seed: int = 0,
    iterations: int | None = None,
    options: Options | None = None,
    change: Callable[[Workload], Workload] = lambda workload: workload,
) -> Problem:
    """Reads a workload, a profile or a trace of a known format. Raises BadInput.

    A trace brings its own fabric unless `topology` or `link_rate` says otherwise; a workload
    without one runs on the smallest big switch that holds it, links at the rate it was recorded.
    `placement` is packed, spread, random or a file; `iterations` overrides how often the jobs repeat;
    `options` are for a trace's importer; `change` comes before the placement.
    """
    loaded = load(path, options)
    workload, policy = read_placement(change(loaded.workload), placement)
    fabric = _fabric(workload, loaded.topology, loaded.link_rate, topology, link_rate)
    notes = list(loaded.notes)
    if loaded.is_trace:
        workload = folded(workload, fabric, notes)
    workload = repeated(place(workload, fabric, policy, seed), iterations)
    return Problem(workload, fabric, tuple(notes))


def stretched(workload: Workload, factor: float) -> Workload:
    """Times and sizes multiplied by `factor`: the same contention, slower. Raises BadInput."""
    if not 0 < factor < math.inf:
        raise BadInput(f"--time-scale {factor}: expected a number above 0")
    jobs = []
    for placed in workload.jobs:
        job = placed.job
        slow = replace(
            job,
            tasks=tuple(replace(task, seconds=task.seconds * factor) for task in job.tasks),
            flows=tuple(replace(flow, bytes=flow.bytes * factor) for flow in job.flows),
            collectives=tuple(replace(c, bytes=c.bytes * factor) for c in job.collectives),
            echelonflows=tuple(
                replace(group, arrangement=tuple(a * factor for a in group.arrangement))
                for group in job.echelonflows
            ),
        )
        jobs.append(replace(placed, job=slow, arrival=placed.arrival * factor))
    return replace(workload, jobs=tuple(jobs))


def spaced(workload: Workload, factor: float) -> Workload:
    """Arrivals multiplied by `factor`: below 1 the jobs come closer. Raises BadInput."""
    if not 0 <= factor < math.inf:
        raise BadInput(f"--arrival-scale {factor}: expected a number, 0 or more")
    jobs = tuple(replace(placed, arrival=placed.arrival * factor) for placed in workload.jobs)
    return replace(workload, jobs=jobs)


def retimed(
    workload: Workload, coflows: int | None, time_scale: float, arrival_scale: float
) -> Workload:
    """The first narrow coflows (None: all jobs), stretched, and arrivals scaled. Raises BadInput."""
    chosen = workload if coflows is None else first_narrow(workload, coflows)
    return spaced(stretched(chosen, time_scale), arrival_scale)


def first_narrow(workload: Workload, count: int) -> Workload:
    """The first `count` jobs of at most `NARROW` flows, the first arriving at 0. Raises BadInput."""
    narrow = [placed for placed in workload.jobs if len(placed.job.flows) <= NARROW][:count]
    if len(narrow) < count:
        raise BadInput(f"--coflows {count}: only {len(narrow)} have at most {NARROW} flows")
    begin = min(placed.arrival for placed in narrow)
    jobs = tuple(replace(placed, arrival=placed.arrival - begin) for placed in narrow)
    return replace(workload, jobs=jobs)


def recorded_at(workload: Workload, rate: float) -> Workload:
    """Jobs without a reference rate get that of the trace's fabric, so that their sizes scale."""
    jobs = tuple(
        replace(placed, job=replace(placed.job, reference_rate=placed.job.reference_rate or rate))
        for placed in workload.jobs
    )
    return replace(workload, jobs=jobs)


def folded(workload: Workload, fabric: Fabric, notes: list[str]) -> Workload:
    """A trace's hosts h1, h2, .. on the hosts of a smaller fabric, round and round; said in `notes`.

    Flows between hosts that become one are local. Workloads that fit stay as they are.
    """
    known = fabric.host_row

    def host(name: str) -> str:
        if name in known or not (name[:1] == "h" and name[1:].isdigit()):
            return name
        return fabric.hosts[(int(name[1:]) - 1) % len(fabric.hosts)]

    jobs = tuple(
        replace(placed, placement={worker: host(name) for worker, name in placed.placement.items()})
        for placed in workload.jobs
    )
    if any(host not in known for placed in workload.jobs for host in placed.placement.values()):
        notes.append(
            f"hosts are folded onto the {len(fabric.hosts)} of {fabric.name}, round and round"
        )
    return replace(workload, jobs=jobs)


def repeated(workload: Workload, iterations: int | None) -> Workload:
    """Every job played that often; None leaves them as they are. Raises BadInput."""
    if iterations is None:
        return workload
    if iterations < 1:
        raise BadInput(f"--iterations {iterations}: expected at least 1")
    jobs = tuple(
        replace(placed, job=replace(placed.job, iterations=iterations)) for placed in workload.jobs
    )
    return replace(workload, jobs=jobs)


def _fabric(
    workload: Workload,
    own_topology: str | None,
    own_rate: float | None,
    topology: str | None,
    link_rate: str | None,
) -> Fabric:
    rates = [placed.job.reference_rate for placed in workload.jobs if placed.job.reference_rate]
    rate = own_rate or max(rates, default=parse_rate(DEFAULT_RATE))
    if link_rate is not None:
        rate = parse_rate(link_rate)
    if topology is not None and ":" not in topology:
        return load_fabric(Path(topology), parse_rate(link_rate) if link_rate else None)
    return parse_topology(topology or own_topology or _smallest(workload), rate)


def _smallest(workload: Workload) -> str:
    hosts = {host for placed in workload.jobs for host in placed.placement.values()}
    numbers = [int(host[1:]) for host in hosts if host[:1] == "h" and host[1:].isdigit()]
    if len(numbers) < len(hosts):
        odd = sorted(host for host in hosts if not (host[:1] == "h" and host[1:].isdigit()))
        raise BadInput(f"host {odd[0]!r} is on no fabric that was named: give --topology FILE")
    unplaced = sum(len(placed.job.workers) for placed in workload.jobs if not placed.placement)
    return f"big-switch:{max([*numbers, unplaced, 2])}"

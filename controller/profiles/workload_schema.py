"""`echelon/workload/v1`: jobs with arrivals, placements and weights as a document, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from controller.model import Job, PlacedJob, Workload
from controller.model.check import workload_problems
from controller.profiles.documents import Key
from controller.profiles.job_schema import job_from, job_value
from controller.profiles.reader import Reader, shown

SCHEMA = "echelon/workload/v1"
"What a document's `schema` says."


def workload_from(reader: Reader, value: Any, open_profile: Callable[[str], Job]) -> Workload:
    """The workload of a document; `open_profile` reads the profiles named by path.

    Raises `ProfileError`.
    """
    found = reader.mapping(value, (), ("schema", "jobs"), ("name",))
    if found["schema"] != SCHEMA:
        raise reader.fail(("schema",), f"{shown(found['schema'])}: expected {SCHEMA}")
    entries = reader.entries(found["jobs"], ("jobs",))
    workload = Workload(
        tuple(_placed(reader, entry, ("jobs", i), open_profile) for i, entry in enumerate(entries)),
        reader.text(found.get("name", "workload"), ("name",)),
    )
    for problem in workload_problems(workload):
        raise reader.fail(problem.key, problem.message)
    return workload


def workload_value(workload: Workload) -> dict[str, Any]:
    """The workload as plain values, its profiles inline. `workload_from` of it equals it."""
    return {
        "schema": SCHEMA,
        "name": workload.name,
        "jobs": [
            {
                "arrival": placed.arrival,
                "weight": placed.weight,
                **({"placement": dict(placed.placement)} if placed.placement else {}),
                "profile": job_value(placed.job),
            }
            for placed in workload.jobs
        ],
    }


def _placed(reader: Reader, value: Any, at: Key, open_profile: Callable[[str], Job]) -> PlacedJob:
    found = reader.mapping(value, at, ("profile",), ("job", "arrival", "placement", "weight"))
    profile = found["profile"]
    if isinstance(profile, str):
        job = open_profile(profile)
    else:
        job = job_from(reader, profile, (*at, "profile"))
    if "job" in found:
        job = replace(job, name=reader.text(found["job"], (*at, "job")))
    placement = found.get("placement") or {}
    if not isinstance(placement, dict):
        raise reader.fail((*at, "placement"), f"{shown(placement)}: expected worker: host")
    return PlacedJob(
        job,
        {w: reader.text(host, (*at, "placement", w)) for w, host in placement.items()},
        reader.seconds(found.get("arrival", 0), (*at, "arrival")),
        reader.number(found.get("weight", 1), (*at, "weight")),
    )

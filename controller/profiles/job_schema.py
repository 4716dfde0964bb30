"""`echelon/job/v1`: a job profile as a document, and back."""

from __future__ import annotations

from typing import Any

from controller.model import Collective, EchelonFlow, Flow, Job, Task
from controller.model.check import job_problems
from controller.profiles.documents import Key
from controller.profiles.reader import Reader, shown

SCHEMA = "echelon/job/v1"
"What a document's `schema` says."

_OPTIONAL = (
    "schema", "iterations", "reference_rate", "tasks", "flows", "collectives", "echelonflows",
)  # fmt: skip


def job_from(reader: Reader, value: Any, at: Key = ()) -> Job:
    """The job at a place of a document. Raises `ProfileError`."""
    found = reader.mapping(value, at, ("job", "workers"), _OPTIONAL)
    if found.get("schema", SCHEMA) != SCHEMA:
        raise reader.fail((*at, "schema"), f"{shown(found['schema'])}: expected {SCHEMA}")

    def all_of(part: str, one: Any) -> tuple[Any, ...]:
        entries = reader.entries(found.get(part), (*at, part))
        return tuple(one(reader, entry, (*at, part, i)) for i, entry in enumerate(entries))

    rate = found.get("reference_rate")
    job = Job(
        name=reader.text(found["job"], (*at, "job")),
        workers=reader.texts(found["workers"], (*at, "workers")),
        tasks=all_of("tasks", _task),
        flows=all_of("flows", _flow),
        collectives=all_of("collectives", _collective),
        echelonflows=all_of("echelonflows", _echelonflow),
        iterations=reader.whole(found.get("iterations", 1), (*at, "iterations")),
        reference_rate=None if rate is None else reader.rate(rate, (*at, "reference_rate")),
    )
    for problem in job_problems(job):
        raise reader.fail((*at, *problem.key), problem.message)
    return job


def job_value(job: Job) -> dict[str, Any]:
    """The job as plain values, defaults left out. `job_from` of it equals the job."""
    value: dict[str, Any] = {"schema": SCHEMA, "job": job.name, "iterations": job.iterations}
    if job.reference_rate is not None:
        value["reference_rate"] = job.reference_rate
    value["workers"] = list(job.workers)
    parts = {
        "tasks": [
            {"id": t.id, "worker": t.worker, "seconds": t.seconds, **_after(t)} for t in job.tasks
        ],
        "flows": [
            {"id": f.id, "src": f.src, "dst": f.dst, "bytes": f.bytes, **_after(f)}
            for f in job.flows
        ],
        "collectives": [
            {
                "id": c.id,
                "kind": c.kind,
                "algorithm": c.algorithm,
                "workers": list(c.workers),
                "bytes": c.bytes,
                **_after(c),
            }
            for c in job.collectives
        ],
        "echelonflows": [
            {"id": g.id, "flows": list(g.flows), "arrangement": _arrangement_value(g)}
            for g in job.echelonflows
        ],
    }
    return value | {part: entries for part, entries in parts.items() if entries}


def _after(node: Task | Flow | Collective) -> dict[str, list[str]]:
    return {"after": list(node.after)} if node.after else {}


def _task(reader: Reader, value: Any, at: Key) -> Task:
    found = reader.mapping(value, at, ("id", "worker", "seconds"), ("after",))
    return Task(
        reader.text(found["id"], (*at, "id")),
        reader.text(found["worker"], (*at, "worker")),
        reader.seconds(found["seconds"], (*at, "seconds")),
        reader.texts(found.get("after"), (*at, "after")),
    )


def _flow(reader: Reader, value: Any, at: Key) -> Flow:
    found = reader.mapping(value, at, ("id", "src", "dst", "bytes"), ("after",))
    return Flow(
        reader.text(found["id"], (*at, "id")),
        reader.text(found["src"], (*at, "src")),
        reader.text(found["dst"], (*at, "dst")),
        reader.size(found["bytes"], (*at, "bytes")),
        reader.texts(found.get("after"), (*at, "after")),
    )


def _collective(reader: Reader, value: Any, at: Key) -> Collective:
    found = reader.mapping(value, at, ("id", "kind", "workers", "bytes"), ("algorithm", "after"))
    return Collective(
        reader.text(found["id"], (*at, "id")),
        reader.text(found["kind"], (*at, "kind")),
        reader.text(found.get("algorithm", "ring"), (*at, "algorithm")),
        reader.texts(found["workers"], (*at, "workers")),
        reader.size(found["bytes"], (*at, "bytes")),
        reader.texts(found.get("after"), (*at, "after")),
    )


def _echelonflow(reader: Reader, value: Any, at: Key) -> EchelonFlow:
    found = reader.mapping(value, at, ("id", "flows"), ("arrangement",))
    flows = reader.texts(found["flows"], (*at, "flows"))
    return EchelonFlow(
        reader.text(found["id"], (*at, "id")),
        flows,
        _arrangement(reader, found.get("arrangement"), (*at, "arrangement"), len(flows)),
    )


def _arrangement(reader: Reader, value: Any, at: Key, flows: int) -> tuple[float, ...]:
    """`{kind: coflow}` (also when absent), `{kind: staggered, step: S}`, or a list of offsets."""
    if value is None:
        return (0.0,) * flows
    if isinstance(value, list):
        return tuple(reader.seconds(entry, (*at, i)) for i, entry in enumerate(value))
    found = reader.mapping(value, at, ("kind",), ("step", "offsets"))
    kind = found["kind"]
    if kind == "coflow":
        reader.mapping(value, at, ("kind",))
        return (0.0,) * flows
    if kind == "staggered":
        reader.mapping(value, at, ("kind", "step"))
        step = reader.seconds(found["step"], (*at, "step"))
        return tuple(step * j for j in range(flows))
    if kind == "offsets":
        reader.mapping(value, at, ("kind", "offsets"))
        return _arrangement(
            reader, reader.entries(found["offsets"], (*at, "offsets")), (*at, "offsets"), flows
        )
    raise reader.fail((*at, "kind"), f"{shown(kind)}: expected coflow, staggered or offsets")


def _arrangement_value(group: EchelonFlow) -> Any:
    return {"kind": "coflow"} if group.is_coflow else list(group.arrangement)

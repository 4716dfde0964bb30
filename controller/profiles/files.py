"""Job profiles and workloads on disk: read, written, YAML or JSON."""

from __future__ import annotations

from pathlib import Path

from controller.model import Job, PlacedJob, Workload
from controller.profiles import job_schema, workload_schema
from controller.profiles.documents import Document, read_text, to_json, to_yaml
from controller.profiles.errors import ProfileError
from controller.profiles.reader import Reader, shown

__all__ = [
    "ProfileError",
    "as_workload",
    "format_profile",
    "parse",
    "read",
    "read_job",
    "read_workload",
    "write",
]


def read(path: str | Path) -> Job | Workload:
    """The job profile or workload in a file, told apart by its `schema`. Raises `ProfileError`."""
    return parse(read_text(path), str(path))


def parse(text: str, source: str) -> Job | Workload:
    """The job profile or workload in a text; profiles it names are looked for beside `source`.

    Raises `ProfileError`.
    """
    document = Document(source, text)
    reader = Reader(document)
    if not isinstance(document.value, dict):
        raise document.error((), f"{shown(document.value)}: expected a job profile or a workload")
    schema = document.value.get("schema")
    if schema == job_schema.SCHEMA:
        return job_schema.job_from(reader, document.value)
    if schema == workload_schema.SCHEMA:
        folder = Path(source).parent
        return workload_schema.workload_from(
            reader, document.value, lambda name: read_job(folder / name)
        )
    expected = f"expected {job_schema.SCHEMA} or {workload_schema.SCHEMA}"
    if schema is None:
        raise document.error((), f"schema is missing: {expected}")
    raise document.error(("schema",), f"{shown(schema)}: {expected}")


def read_job(path: str | Path) -> Job:
    """The job profile in a file. Raises `ProfileError`, also when it holds a workload."""
    found = read(path)
    if isinstance(found, Workload):
        raise ProfileError(str(path), "is a workload: expected a job profile")
    return found


def read_workload(path: str | Path) -> Workload:
    """The workload in a file; a job profile is a workload of one job. Raises `ProfileError`."""
    return as_workload(read(path))


def as_workload(subject: Job | Workload) -> Workload:
    """The workload itself, or one of the single job, arriving at 0 and not yet placed."""
    return (
        subject if isinstance(subject, Workload) else Workload((PlacedJob(subject),), subject.name)
    )


def write(subject: Job | Workload, path: str | Path) -> None:
    """Write a profile or workload; JSON where the name ends in .json, else YAML.

    Reading it again gives an equal value. Raises `ProfileError` when it cannot be written.
    """
    try:
        Path(path).write_text(
            format_profile(subject, "json" if str(path).endswith(".json") else "yaml"),
            encoding="utf-8",
        )
    except OSError as error:
        raise ProfileError(str(path), f"cannot be written: {error.strerror or error}") from None


def format_profile(subject: Job | Workload, form: str) -> str:
    """The text of a profile or workload, `form` yaml or json."""
    if isinstance(subject, Job):
        value = job_schema.job_value(subject)
    else:
        value = workload_schema.workload_value(subject)
    return to_json(value) if form == "json" else to_yaml(value)

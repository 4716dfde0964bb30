"""Job traces of clusters: Muri, Tiresias, Gavel, Philly, Helios, Alibaba -> a workload.

A trace says when a job arrives, on how many GPUs, for how long, and sometimes which model. The profile
comes from the catalogue of published models: data parallel, in buckets. Its computing time is the
trace's time of an iteration where there is one, else what an A100 takes.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from controller.model import Job, PlacedJob, Workload
from controller.model.errors import BadInput
from controller.profiles import catalogue
from controller.profiles.builders import Spec, build, layers_of
from controller.profiles.errors import ProfileError
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Imported, ImportReport, Options

NAME = "cluster job trace"
_MOST_GPUS = 512
_DEFAULT_MODEL = "resnet50"
_DEFAULT_BATCH = 32


@dataclass(frozen=True, slots=True)
class _Entry:
    """One job of a trace."""

    line: int
    id: str
    gpus: int
    arrival: float
    "Seconds."
    duration: float | None
    "Seconds."
    iterations: float | None
    iteration_s: float | None
    model: str
    batch: int


def recognise(head: Head) -> bool:
    """The columns of one of the traces, Gavel's tab-separated lines, or Philly's JSON."""
    if head.is_json:
        return head.has_key("jobid") and head.has_key("attempts")
    columns = set(head.columns())
    if any(needed <= columns for needed, _ in _FORMATS.values()):
        return True
    return bool(head.lines) and len(head.lines[0].split("\t")) == 10


def load(paths: list[Path], options: Options) -> Imported:
    """A workload of the jobs on two GPUs and more. Raises `ProfileError` with line and column."""
    (path,) = paths
    report = ImportReport(NAME)
    entries = list(_read(path, report))[: options.limit]
    if not entries:
        raise ProfileError(str(path), "holds no jobs")
    large = [entry for entry in entries if entry.gpus > _MOST_GPUS]
    if large:
        raise ProfileError(
            str(path), f"{large[0].gpus} GPUs: expected at most {_MOST_GPUS}", large[0].line
        )
    chosen = [entry for entry in entries if entry.gpus > 1]
    if not chosen:
        raise ProfileError(str(path), "every job has one GPU: none of them sends anything")
    builder = _Builder(options, report)
    start = min(entry.arrival for entry in chosen)
    jobs = [PlacedJob(builder.job(e), {}, e.arrival - start) for e in chosen]
    report.understood.append(
        f"{len(entries)} jobs, {len(chosen)} of them on 2 to {max(e.gpus for e in chosen)} GPUs; "
        "jobs on one GPU send nothing and are left out"
    )
    counts = [e.iterations for e in chosen if e.iterations]
    if counts:
        report.understood.append(
            f"{min(counts):.0f} to {max(counts):.0f} iterations a job in the trace; "
            f"{options.iterations} imported (--iterations)"
        )
    report.assumed.append("jobs are data parallel, one worker a GPU; the first arrives at 0")
    return Imported(Workload(tuple(jobs), options.name or path.stem), report)


class _Builder:
    """Makes the profiles; jobs that are alike share the work."""

    def __init__(self, options: Options, report: ImportReport) -> None:
        self._options, self._report = options, report
        self._made: dict[tuple[object, ...], Job] = {}

    def job(self, entry: _Entry) -> Job:
        """The profile of one job."""
        key = (entry.model, entry.batch, entry.gpus, entry.iteration_s)
        if key not in self._made:
            self._made[key] = self._build(entry)
        return replace(self._made[key], name=f"job{entry.id}")

    def _build(self, entry: _Entry) -> Job:
        try:
            model = catalogue.model(entry.model)
        except BadInput:
            model = catalogue.model(_DEFAULT_MODEL)
            named = f"model {entry.model!r} is not in the catalogue" if entry.model else "models"
            self._note(f"{named}: taken as {_DEFAULT_MODEL}")
        layers = layers_of(model, entry.batch, element_bytes=4)
        total = sum(layer.forward + layer.backward for layer in layers)
        if entry.iteration_s:
            factor = entry.iteration_s / total
            layers = tuple(
                replace(layer, forward=layer.forward * factor, backward=layer.backward * factor)
                for layer in layers
            )
            self._note("computing takes the trace's time of an iteration")
        else:
            self._note("computing takes what an A100 at 40 % of its peak needs")
        spec = Spec(
            "job", layers, data=entry.gpus, algorithm=self._options.algorithm,
            iterations=self._options.iterations, reference_rate=self._options.reference_rate,
        )  # fmt: skip
        return build(spec)

    def _note(self, text: str) -> None:
        if text not in self._report.assumed:
            self._report.assumed.append(text)


class _Row:
    """One line of a trace; every wrong column is an error with line and name."""

    def __init__(self, path: Path, line: int, values: dict[str, Any]) -> None:
        self._path, self.line, self._values = path, line, values

    def text(self, key: str) -> str:
        """A word; empty where there is none."""
        value = self._values.get(key)
        return value.strip() if isinstance(value, str) else "" if value is None else str(value)

    def number(self, key: str, least: float = 0.0) -> float:
        """A number."""
        try:
            value = float(self.text(key))
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and least <= value < 1e15):
            raise self.error(key, f"expected a number >= {least:g}")
        return value

    def time(self, key: str) -> float:
        """Seconds, from a number or a date."""
        word = self.text(key)
        try:
            return (
                float(word)
                if re.fullmatch(r"[0-9.]+", word)
                else datetime.fromisoformat(word).timestamp()
            )
        except (ValueError, OverflowError):
            raise self.error(key, "expected a time") from None

    def error(self, key: str, expected: str) -> ProfileError:
        """The error about one column."""
        return ProfileError(str(self._path), f"{self.text(key)[:30]!r}: {expected}", self.line, key)


def _muri(row: _Row) -> _Entry:
    return _Entry(
        row.line, row.text("job_id"), int(row.number("num_gpu")), row.number("submit_time") / 1e3,
        row.number("duration") / 1e3, row.number("iterations", 1), row.number("iteration_time") / 1e3,
        row.text("model_name"), int(row.number("batch_size", 1)),
    )  # fmt: skip


def _tiresias(row: _Row) -> _Entry:
    iterations, duration = row.number("iterations", 1), row.number("duration")
    return _Entry(
        row.line, row.text("job_id"), int(row.number("num_gpu")), row.number("submit_time"),
        duration, iterations, duration / iterations, row.text("model_name"), _DEFAULT_BATCH,
    )  # fmt: skip


def _helios(row: _Row) -> _Entry:
    return _Entry(
        row.line, row.text("job_id"), int(row.number("gpu_num")), row.time("submit_time"),
        row.number("duration"), None, None, "", _DEFAULT_BATCH,
    )  # fmt: skip


def _alibaba(row: _Row) -> _Entry:
    per_instance = row.number("plan_gpu") / 100 if row.text("plan_gpu") else 0.0
    gpus = int(row.number("inst_num") * per_instance) if row.text("inst_num") else 0
    start = row.number("start_time") if row.text("start_time") else 0.0
    return _Entry(row.line, row.text("job_name"), gpus, start, None, None, None, "", _DEFAULT_BATCH)


_FORMATS: dict[str, tuple[set[str], Callable[[_Row], _Entry]]] = {
    "Muri": ({"job_id", "num_gpu", "submit_time", "iterations", "model_name", "iteration_time"}, _muri),
    "Tiresias": ({"job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration"}, _tiresias),
    "Helios": ({"job_id", "gpu_num", "submit_time", "duration"}, _helios),
    "Alibaba PAI": ({"job_name", "task_name", "inst_num", "plan_gpu"}, _alibaba),
}  # fmt: skip
"Name -> (columns it needs, reader of a line); the first that fits."


def _read(path: Path, report: ImportReport) -> Iterator[_Entry]:
    head = Head.of(path)
    if head.is_json:
        entries = _philly(path, report)
    else:
        entries = _gavel(path, report) if "\t" in head.text else _csv(path, head, report)
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise ProfileError(str(path), f"job {entry.id!r} is listed twice", entry.line)
        seen.add(entry.id)
        yield entry


def _csv(path: Path, head: Head, report: ImportReport) -> Iterator[_Entry]:
    columns = set(head.columns())
    name, reader = next((n, r) for n, (needed, r) in _FORMATS.items() if needed <= columns)
    report.understood.append(f"the columns of {name}")
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            for line, row in enumerate(csv.DictReader(file), 2):
                values = {(key or "").strip().lower(): value for key, value in row.items()}
                if None in row or None in row.values():
                    raise ProfileError(str(path), "more or fewer fields than columns", line)
                yield reader(_Row(path, line, values))
        except csv.Error as error:
            raise ProfileError(str(path), f"not valid CSV: {error}") from None


def _gavel(path: Path, report: ImportReport) -> Iterator[_Entry]:
    """Job type, command, directory, steps option, data?, steps, scale, weight, deadline, arrival."""
    report.understood.append("the columns of Gavel")
    keys = (
        "type",
        "command",
        "dir",
        "option",
        "data",
        "steps",
        "scale_factor",
        "weight",
        "slo",
        "arrival",
    )
    with path.open(encoding="utf-8", errors="replace") as file:
        for line, text in enumerate(file, 1):
            if not text.strip():
                continue
            words = text.rstrip("\n").split("\t")
            if len(words) != len(keys):
                raise ProfileError(str(path), f"{len(words)} fields: expected {len(keys)}", line)
            row = _Row(path, line, dict(zip(keys, words, strict=True)))
            batch = re.search(r"batch size (\d{1,6})", words[0])
            yield _Entry(
                line, str(line), int(row.number("scale_factor")), row.number("arrival"), None,
                row.number("steps"), None, words[0].split(" (")[0],
                int(batch[1]) or 1 if batch else _DEFAULT_BATCH,
            )  # fmt: skip


def _philly(path: Path, report: ImportReport) -> Iterator[_Entry]:
    report.understood.append("the job log of Philly")
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ProfileError(str(path), f"not valid JSON: {error}") from None
    if not isinstance(document, list):
        raise ProfileError(str(path), "expected a list of jobs")
    for place, job in enumerate(document):
        key = f"[{place}]"
        if not isinstance(job, dict):
            raise ProfileError(str(path), "expected a job", key=key)
        attempts = job.get("attempts")
        if not isinstance(attempts, list):
            raise ProfileError(str(path), "expected a list of attempts", key=f"{key}.attempts")
        row = _Row(path, 0, {"submitted_time": job.get("submitted_time")})
        yield _Entry(
            0, str(job.get("jobid", place)), _gpus_of(attempts), row.time("submitted_time"), None, None, None, "",
            _DEFAULT_BATCH,
        )  # fmt: skip


def _gpus_of(attempts: list[Any]) -> int:
    """GPUs of a Philly job's first attempt; 0 where it never ran."""
    detail = attempts[0].get("detail") if attempts and isinstance(attempts[0], dict) else None
    listed = [
        host.get("gpus")
        for host in (detail if isinstance(detail, list) else [])
        if isinstance(host, dict)
    ]
    return sum(len(gpus) for gpus in listed if isinstance(gpus, list))

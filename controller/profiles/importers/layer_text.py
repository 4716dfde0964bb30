"""ASTRA-sim 1.0, SimAI and AICB workload text: a row a layer, its computing and its collectives.

First line: the parallel policy and, after it, `key: value` pairs. Second: the number of rows. A row:
`name -1 forward COMM size  input-gradient COMM size  weight-gradient COMM size  update`. Sources: the
workload readers of astra-sim 1.0 and SimAI. Order of play: forward row by row, each collective waited
for; backward from the last row, weight gradients first, whose collective is not waited for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from controller.model import Collective, Job, Task
from controller.profiles.errors import ProfileError
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Imported, ImportReport, Options

NAME = "ASTRA-sim / SimAI / AICB text workload"
_POLICIES = (
    "DATA", "MODEL", "MICRO", "TRANSFORMER", "HYBRID_DLRM", "HYBRID_TRANSFORMER",
    "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_CUSTOMIZED", "DISTRIBUTED_INFERENCE",
    "TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
)  # fmt: skip
_KINDS = {
    "ALLREDUCE": "all_reduce", "ALLGATHER": "all_gather", "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all", "BROADCAST": "broadcast", "ALLREDUCEALLTOALL": "all_reduce",
}  # fmt: skip
_DEFAULT_RANKS = 8
_MOST_RANKS = 1024
_MOST_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class _Work:
    """One computation of a row and the collective behind it."""

    seconds: float
    kind: str
    "Empty for none."
    group: str
    "TP, DP, EP or DP_EP: which ranks take part."
    bytes: float


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    forward: _Work
    input_gradient: _Work
    weight_gradient: _Work
    update: float


def recognise(head: Head) -> bool:
    """A policy's name, a number, and rows with -1 behind the name."""
    lines = head.lines
    if len(lines) < 2 or not lines[0].split() or lines[0].split()[0] not in _POLICIES:
        return False
    return lines[1].strip().isdigit()


def load(paths: list[Path], options: Options) -> Imported:
    """The job profile of one iteration. Raises `ProfileError` with line and field."""
    (path,) = paths
    report = ImportReport(NAME)
    reader = _Reader(str(path), options)
    rows = list(reader.rows(path.read_text(encoding="utf-8", errors="replace").splitlines()))
    tensor = reader.header.get("model_parallel_npu_group", 1)
    expert = reader.header.get("ep", 1)
    ranks = _ranks(reader, options, report, tensor, expert)
    job = _Assembly(rows, reader.policy, ranks, tensor, expert, options).job(
        options.name or path.stem
    )
    report.understood.append(
        f"policy {reader.policy}, {len(rows)} rows, "
        f"{len(job.collectives)} collectives on {ranks} ranks"
    )
    for key in ("pp", "vpp"):
        if reader.header.get(key, 1) > 1:
            report.unknown.append(
                f"{key}: {reader.header[key]}: the format holds one stage; what passes between "
                "stages is left out"
            )
    unit = options.time_unit or 1e-9
    if tensor > 1:
        report.assumed.append(
            f"forward and input-gradient collectives among {tensor} tensor ranks, "
            "weight gradients among replicas, unless a suffix says otherwise"
        )
    report.assumed += [
        f"1 unit of time is {unit:g} s (--time-unit)",
        "the size of an all-gather is "
        + ("its whole result" if options.gather_size == "total" else "what each rank gives")
        + " (--gather-size)",
        f"collectives by {options.algorithm}, all-to-all direct (--algorithm)",
    ]
    if options.reference_rate is None:
        report.unknown.append("the link rate that the sizes belong to (--reference-rate)")
    return Imported(job, report)


def _ranks(
    reader: _Reader, options: Options, report: ImportReport, tensor: int, expert: int
) -> int:
    unit = tensor * expert
    whole = reader.header.get("all_gpus")
    if options.world_size:
        ranks = options.world_size
    elif whole and whole <= 64:
        ranks = whole
    else:
        ranks = max(unit, _DEFAULT_RANKS) if unit > 1 else _DEFAULT_RANKS
        said = f" of {whole}" if whole else ""
        report.assumed.append(f"{ranks}{said} ranks (--world-size)")
    if ranks > _MOST_RANKS or ranks % tensor or (ranks // tensor) % expert:
        raise reader.error(
            f"{ranks} ranks: expected a multiple of {unit} (tensor {tensor} x expert {expert}), "
            f"at most {_MOST_RANKS}"
        )
    return ranks


class _Reader:
    """Reads the lines and remembers where it is."""

    def __init__(self, file: str, options: Options) -> None:
        self.policy = ""
        self.header: dict[str, int] = {}
        self._file = file
        self._number = 0
        self._unit = options.time_unit or 1e-9
        self._gather = options.gather_size

    def error(self, message: str, key: str = "") -> ProfileError:
        """The error about the current line."""
        return ProfileError(self._file, message, self._number or None, key)

    def rows(self, lines: list[str]) -> Iterator[_Row]:
        """All rows; the header is read first."""
        self._number = 1
        self._header(lines[0] if lines else "")
        self._number = 2
        count = lines[1].strip() if len(lines) > 1 else ""
        if not (count.isascii() and count.isdigit() and 0 < int(count[:9]) <= _MOST_ROWS):
            raise self.error(f"{count[:30]!r}: expected the number of rows")
        found = 0
        for self._number, line in enumerate(lines[2:], 3):
            words = line.split()
            if not words:
                continue
            if found == int(count):
                raise self.error(f"more than the {count} rows that line 2 announces")
            found += 1
            yield self._row(words)
        if found < int(count):
            raise self.error(f"{found} rows: line 2 announces {count}; is it truncated?")

    def _header(self, line: str) -> None:
        words = line.replace(":", " : ").split()
        self.policy = words[0] if words else ""
        if self.policy not in _POLICIES:
            raise self.error(
                f"{self.policy[:30]!r}: expected a policy: {', '.join(_POLICIES)}", "policy"
            )
        rest = words[1:]
        if self.policy == "HYBRID_DLRM" and rest and rest[0].isdigit():
            self.header["model_layers"] = int(rest[0][:6])
        for key, colon, value in zip(rest, rest[1:], rest[2:], strict=False):
            if colon == ":" and value.isascii() and value.isdigit():
                self.header[key.lower()] = int(value[:9])
        for key in ("model_parallel_npu_group", "ep"):
            if self.header.get(key) == 0:
                self.header[key] = 1

    def _row(self, words: list[str]) -> _Row:
        if len(words) not in (12, 13):
            raise self.error(f"{len(words)} fields: expected 12", words[0])
        return _Row(
            words[0],
            self._work(words, 2, "forward"),
            self._work(words, 5, "input gradient"),
            self._work(words, 8, "weight gradient"),
            self._number_of(words[11], "update") * self._unit,
        )

    def _work(self, words: list[str], at: int, what: str) -> _Work:
        seconds = self._number_of(words[at], f"{what} time") * self._unit
        size = self._number_of(words[at + 2], f"{what} size")
        name, _, group = words[at + 1].upper().partition("_")
        if name == "NONE" or not size:
            return _Work(seconds, "", "", 0.0)
        if name not in _KINDS or group not in ("", "TP", "DP", "EP", "DP_EP"):
            raise self.error(
                f"unknown collective {words[at + 1][:30]!r}: expected NONE or one of "
                f"{', '.join(_KINDS)}, with _EP or _DP_EP",
                f"{what} collective",
            )
        return _Work(seconds, _KINDS[name], group, size)

    def _number_of(self, word: str, what: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and 0 <= value < 1e18):
            raise self.error(f"{word[:30]!r}: expected a number >= 0", what)
        return value


@dataclass
class _Assembly:
    """Plays the rows on every rank."""

    rows: list[_Row]
    policy: str
    ranks: int
    tensor: int
    expert: int
    options: Options
    tasks: list[Task] = field(default_factory=list)
    collectives: dict[str, Collective] = field(default_factory=dict)

    def job(self, name: str) -> Job:
        """The job profile."""
        for rank in range(self.ranks):
            self._rank(rank)
        return Job(
            re.sub(r"\s+", "-", name),
            tuple(f"w{rank}" for rank in range(self.ranks)),
            tuple(self.tasks),
            (),
            tuple(self.collectives.values()),
            iterations=self.options.iterations,
            reference_rate=self.options.reference_rate,
        )

    def _rank(self, rank: int) -> None:
        steps = [(f"F{i}", row.forward, True) for i, row in enumerate(self.rows)]
        for i, row in reversed(list(enumerate(self.rows))):
            steps.append((f"W{i}", row.weight_gradient, False))
            steps.append((f"I{i}", row.input_gradient, True))
        pending: list[str] = []
        waits: list[str] = []
        seconds = 0.0
        for name, work, blocking in steps:
            seconds += work.seconds
            if not work.kind:
                continue
            task = f"{name}/w{rank}"
            self.tasks.append(Task(task, f"w{rank}", seconds, tuple(waits)))
            seconds, waits = 0.0, []
            joined = self._join(name, work, rank, blocking, task)
            if blocking:
                waits = joined
            else:
                pending += joined
        update = seconds + sum(row.update for row in self.rows)
        self.tasks.append(Task(f"step/w{rank}", f"w{rank}", update, (*waits, *pending)))

    def _join(self, name: str, work: _Work, rank: int, blocking: bool, task: str) -> list[str]:
        label, members = self._group(work, rank, blocking)
        if len(members) < 2:
            return []
        id_ = f"{name}.{label}"
        known = self.collectives.get(id_)
        size = work.bytes
        if work.kind == "all_gather" and self.options.gather_size == "rank":
            size *= len(members)
        self.collectives[id_] = Collective(
            id_,
            work.kind,
            "direct" if work.kind == "all_to_all" else self.options.algorithm,
            tuple(f"w{member}" for member in members),
            size,
            (*(known.after if known else ()), task),
        )
        return [id_]

    def _group(self, work: _Work, rank: int, blocking: bool) -> tuple[str, list[int]]:
        """(name, ranks) of who takes part: by the suffix, else by policy and direction."""
        replica, place = divmod(rank, self.tensor)
        replicas = self.ranks // self.tensor
        group = work.group or self._usual(blocking)
        if group == "ALL":
            return "all", list(range(self.ranks))
        if group == "TP":
            return f"t{replica}", [replica * self.tensor + i for i in range(self.tensor)]
        if group == "EP":
            first = replica - replica % self.expert
            chosen = range(first, first + self.expert)
            return f"e{first}.{place}", [r * self.tensor + place for r in chosen]
        if group == "DP_EP":
            chosen = range(replica % self.expert, replicas, self.expert)
            return f"x{replica % self.expert}.{place}", [r * self.tensor + place for r in chosen]
        return f"d{place}", [r * self.tensor + place for r in range(replicas)]

    def _usual(self, blocking: bool) -> str:
        if self.tensor > 1 and "DLRM" not in self.policy:
            return "TP" if blocking else "DP"
        return "ALL"

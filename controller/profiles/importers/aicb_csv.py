"""AICB's CSV: the collectives of one iteration in order, without computing times."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from controller.model import Collective, Job
from controller.profiles.errors import ProfileError
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Imported, ImportReport, Options

NAME = "AICB CSV workload"
_KINDS = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
    "broadcast": "broadcast", "all_to_all": "all_to_all", "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter", "reduce": "broadcast",
}  # fmt: skip
_SILENT = ("epoch_end", "barrier", "computation")
_TRANSFERS = ("isend", "irecv", "send", "recv")
_MOST_RANKS = 1024
_MOST_ROWS = 100_000


def recognise(head: Head) -> bool:
    """The columns comm_type, comm_group, ..., behind a line that may name the ranks."""
    return any(line.startswith("comm_type,comm_group") for line in head.lines[:3])


def load(paths: list[Path], options: Options) -> Imported:
    """The job profile of the first iteration. Raises `ProfileError` with line and column."""
    (path,) = paths
    report = ImportReport(NAME)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = file.read().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("comm_type,comm_group"))
    rows = list(_rows(path, lines, start))
    epochs = _epochs(rows)
    chosen = next((e for e in epochs if not all("init" in r["stage"] for _, r in e)), None)
    if not chosen:
        raise ProfileError(str(path), "no collective outside the initialisation")
    ranks = _ranks(path, chosen, lines[0] if start else "", options)
    tensor = next(
        (int(r["comm_group_size"]) for _, r in chosen if r["comm_group"] == "tp_group"), 1
    )
    collectives = _Assembly(path, ranks, tensor, options, report).collectives(chosen)
    report.understood += [
        f"{len(epochs)} iterations, the first of them {len(chosen)} rows, on {ranks} ranks",
        f"{len(collectives)} collectives, each behind the one before it on its ranks",
    ]
    report.unknown.append("computing times: this format has none; every task takes 0 s")
    report.assumed.append(f"collectives by {options.algorithm}, all-to-all direct (--algorithm)")
    job = Job(
        options.name or path.stem,
        tuple(f"w{rank}" for rank in range(ranks)),
        collectives=tuple(collectives),
        iterations=options.iterations,
        reference_rate=options.reference_rate,
    )
    return Imported(job, report)


_Row = tuple[int, dict[str, str]]


def _rows(path: Path, lines: list[str], start: int) -> list[_Row]:
    found = []
    for number, row in enumerate(csv.DictReader(lines[start:]), start + 2):
        plain = {k: (v if isinstance(v, str) else "") for k, v in row.items() if k}
        plain["comm_type"] = plain.get("comm_type", "").removeprefix("CommType.")
        plain["comm_group"] = plain.get("comm_group", "").removeprefix("CommGroup.")
        kind = plain["comm_type"]
        if kind not in (*_KINDS, *_SILENT, *_TRANSFERS):
            raise ProfileError(
                str(path),
                f"unknown collective {kind[:30]!r}: expected one of {', '.join(_KINDS)}",
                number,
                "comm_type",
            )
        if kind in _KINDS and plain.get("msg_size") != "0":
            for key in ("comm_group_size", "msg_size"):
                _positive(path, number, key, plain.get(key, ""))
        plain.setdefault("stage", "")
        found.append((number, plain))
        if len(found) > _MOST_ROWS:
            raise ProfileError(str(path), f"more than {_MOST_ROWS} rows", number)
    return found


def _positive(path: Path, number: int, key: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    whole = key != "comm_group_size" or (word.isascii() and word.isdigit())
    if not (math.isfinite(value) and 0 < value < 1e18 and whole):
        expected = "a number > 0" if key == "msg_size" else "a whole number > 0"
        raise ProfileError(str(path), f"{word[:30]!r}: expected {expected}", number, key)
    return value


def _epochs(rows: list[_Row]) -> list[list[_Row]]:
    epochs: list[list[_Row]] = [[]]
    for number, row in rows:
        if row["comm_type"] == "epoch_end":
            epochs.append([])
        else:
            epochs[-1].append((number, row))
    return [epoch for epoch in epochs if epoch]


def _ranks(path: Path, rows: list[_Row], first: str, options: Options) -> int:
    digits = "".join(c if c.isdigit() else " " for c in first).split()
    said = int(digits[-1][:6]) + 1 if digits else 0
    largest = max(
        (
            int(float(r["comm_group_size"]))
            for _, r in rows
            if r["comm_type"] in _KINDS and r["msg_size"] != "0"
        ),
        default=1,
    )
    ranks = options.world_size or said or largest
    if not 2 <= ranks <= _MOST_RANKS:
        raise ProfileError(str(path), f"{ranks} ranks: expected 2 to {_MOST_RANKS} (--world-size)")
    return ranks


class _Assembly:
    """Makes the collectives of every group."""

    def __init__(
        self, path: Path, ranks: int, tensor: int, options: Options, report: ImportReport
    ) -> None:
        self._path, self._ranks, self._tensor = path, ranks, tensor
        self._options, self._report = options, report

    def collectives(self, rows: list[_Row]) -> list[Collective]:
        """All of them, in order."""
        found: list[Collective] = []
        last: dict[int, str] = {}
        transfers = 0
        for i, (number, row) in enumerate(rows):
            kind = row["comm_type"]
            transfers += kind in _TRANSFERS
            if kind not in _KINDS or row["msg_size"] == "0":
                continue
            size = float(row["msg_size"])
            for g, members in enumerate(self._groups(number, row)):
                if len(members) < 2:
                    continue
                whole = size * len(members) if self._gathers_per_rank(kind) else size
                id_ = f"{_KINDS[kind]}{i}.{g}"
                before = tuple(dict.fromkeys(last[m] for m in members if m in last))
                algorithm = "direct" if kind == "all_to_all" else self._options.algorithm
                names = tuple(f"w{m}" for m in members)
                found.append(Collective(id_, _KINDS[kind], algorithm, names, whole, before))
                last.update(dict.fromkeys(members, id_))
        if transfers:
            self._report.unknown.append(
                f"{transfers} sends and receives between stages: the file is of one rank, left out"
            )
        return found

    def _gathers_per_rank(self, kind: str) -> bool:
        return kind.startswith("all_gather") and self._options.gather_size == "rank"

    def _groups(self, number: int, row: dict[str, str]) -> list[list[int]]:
        """Ranks of every group: neighbours for tensor groups, else strided by the tensor degree."""
        size = min(int(float(row["comm_group_size"])), self._ranks)
        stride = 1 if row["comm_group"] in ("tp_group", "ep_tp_group") else self._tensor
        if self._options.world_size and row["comm_group"] == "dp_group":
            size = max(self._ranks // self._tensor, 1)  # fewer ranks are fewer replicas
        if self._ranks % (size * stride):
            if size * stride > self._ranks and self._ranks % size == 0:
                stride = self._ranks // size
            else:
                raise ProfileError(
                    str(self._path),
                    f"groups of {size} do not divide {self._ranks} ranks",
                    number,
                    "comm_group_size",
                )
        block = size * stride
        return [
            [first + offset + k * stride for k in range(size)]
            for first in range(0, self._ranks, block)
            for offset in range(stride)
        ]

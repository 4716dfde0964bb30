"""The files of a run: `summary.json`, `flows.csv`, `flows.parquet` and `report.html`."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from controller.experiments import report, summary
from controller.experiments.report import Key
from controller.experiments.summary import Summary
from controller.model.record import Played

_NAME = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
_COLUMNS: dict[str, pyarrow.DataType] = {
    **dict.fromkeys(("scenario", "policy", "kind", "job"), _NAME),
    "iteration": pyarrow.int64(),
    **dict.fromkeys(("flow", "echelonflow", "src", "dst"), _NAME),
    "bytes": pyarrow.float64(),
    "ready_s": pyarrow.float64(),
    "start_s": pyarrow.float64(),
    "finish_s": pyarrow.float64(),
    "ideal_finish_s": pyarrow.float64(),
    "tardiness_s": pyarrow.float64(),
    "classes": pyarrow.list_(pyarrow.int8()),
    "retransmits": pyarrow.int64(),
}
"The columns of both files of flows; `kind` is measured or predicted."


def new_folder(root: Path = Path("results")) -> Path:
    """`results/<time>`, made; a second run within the second gets a number behind it."""
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S")
    for suffix in ("", *(f".{number}" for number in range(2, 100))):
        folder = root / f"{stamp}{suffix}"
        if not folder.exists():
            folder.mkdir(parents=True)
            return folder
    raise FileExistsError(f"{root / stamp}: too many runs in one second")


def write_results(
    folder: Path,
    found: Summary,
    measured: Mapping[Key, Played],
    predicted: Mapping[Key, Played],
) -> None:
    """Writes all four files. `flows.parquet` has the numbers as they are, `flows.csv` rounds them
    (bytes to whole ones, seconds to microseconds). Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    summary.write(found, folder / "summary.json")
    flows = [*_rows("measured", measured), *_rows("predicted", predicted)]
    with (folder / "flows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        writer.writerows(map(_rounded, flows))
    parquet.write_table(_table(flows), folder / "flows.parquet")
    report.write(found, measured, predicted, folder / "report.html")


_Row = tuple[Any, ...]
"A flow: one entry a column."


def _rows(kind: str, scenarios: Mapping[Key, Played]) -> Iterator[_Row]:
    for (name, policy), played in scenarios.items():
        for flow in played.flows:
            yield (
                name, policy, kind, flow.job, flow.iteration, flow.flow, flow.echelonflow,
                flow.src, flow.dst, flow.bytes, flow.ready, flow.start, flow.finish,
                flow.ideal_finish, flow.tardiness, flow.classes, flow.retransmits,
            )  # fmt: skip


def _rounded(row: _Row) -> Iterator[object]:
    for name, value in zip(_COLUMNS, row, strict=True):
        if name == "bytes":
            yield round(value)
        elif name == "classes":
            yield "-".join(map(str, value))
        else:
            yield f"{value:.6f}" if isinstance(value, float) else value


def _table(rows: list[_Row]) -> pyarrow.Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(_COLUMNS)
    return pyarrow.table(
        [
            pyarrow.array(column, type_)
            for column, type_ in zip(columns, _COLUMNS.values(), strict=True)
        ],
        names=list(_COLUMNS),
    )

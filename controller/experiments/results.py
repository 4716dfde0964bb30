"""The files of a run: `summary.json`, `flows.csv` and `report.html` in one folder."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from controller.experiments import report, summary
from controller.experiments.report import Key
from controller.experiments.summary import Summary
from controller.model.record import FlowRecord, Played

COLUMNS = (
    "scenario", "policy", "kind", "job", "iteration", "flow", "echelonflow", "src", "dst", "bytes",
    "ready_s", "start_s", "finish_s", "ideal_finish_s", "tardiness_s", "classes", "retransmits",
)  # fmt: skip


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
    """Writes all three files. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    summary.write(found, folder / "summary.json")
    with (folder / "flows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for kind, scenarios in (("measured", measured), ("predicted", predicted)):
            for (name, policy), played in scenarios.items():
                writer.writerows((name, policy, kind, *row) for row in map(_row, played.flows))
    report.write(found, measured, predicted, folder / "report.html")


def _row(flow: FlowRecord) -> Iterator[object]:
    yield from (flow.job, flow.iteration, flow.flow, flow.echelonflow, flow.src, flow.dst)
    yield round(flow.bytes)
    for seconds in (flow.ready, flow.start, flow.finish, flow.ideal_finish, flow.tardiness):
        yield f"{seconds:.6f}"
    yield "-".join(map(str, flow.classes))
    yield flow.retransmits

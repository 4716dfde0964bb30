"""How fast scheduling and simulation are: `python -m bench.scheduling [--part PART ..] [--quick]`.

Writes results/bench/scheduling.json. Times are CPU seconds of one core, of checking and compiling
the jobs and playing them; starting Python and reading the file are left out, but for the row that
says otherwise. CoflowSim is a Java program that is not run here: the time to beat is that of its quickest
policy on the machine the documents' figures come from (docs/simulator.md has the command).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.decision import INCREMENTAL_MS, SCRATCH_MS, cluster_state, decision_ms
from bench.scheduling.cluster import HOUR
from bench.scheduling.one import TRACE

RESULTS = Path(__file__).parents[2] / "results" / "bench" / "scheduling.json"
POLICIES = ("fair", "varys", "sincronia", "echelon")
COFLOWSIM_S = 5.5
"CoflowSim, FAIR, first 100 coflows of FB2010; its SEBF takes 7.6."

Row = dict[str, Any]


def main() -> None:
    """Measure, print, write: the rows of the parts asked for are new, the others stay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=list(PARTS), action="append", help="default: all parts")
    parser.add_argument("--quick", action="store_true", help="a tenth of the hour")
    asked = parser.parse_args()
    rows: dict[str, Row] = {}
    if asked.part and RESULTS.exists():
        rows = {row["what"]: row for row in json.loads(RESULTS.read_text())}
    for part in asked.part or PARTS:
        for row in PARTS[part](HOUR / 10 if asked.quick else HOUR):
            rows[row["what"]] = row
            met = "met" if row["met"] else "MISSED"
            print(f"| {row['what']} | {row['ours']:.3g} {row['unit']} | {row['target']} | {met} |", flush=True)  # fmt: skip
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(list(rows.values()), indent=1) + "\n")


def traces(seconds: float) -> Iterator[Row]:
    """The Facebook trace."""
    if not TRACE.exists():
        print(f"{TRACE.name} is not there (set ECHELON_DATA): its rows are left out")
        return
    for name in POLICIES:
        yield from whole_trace(name)
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first-100.txt"
        lines = TRACE.read_text().splitlines()[1:101]
        first.write_text("\n".join([f"150 {len(lines)}", *lines]) + "\n")
        for name in POLICIES:
            run = measured("trace", name, str(first))
            what = f"FB2010 first 100 coflows, {name}"
            yield at_most(what, run["cpu_s"], COFLOWSIM_S / 10, "s")
        yield whole_command("varys", first)


def wide(seconds: float) -> Iterator[Row]:
    """The cluster in which few flows contend."""
    for model in ("ideal", "enforced"):
        for placement in ("packed", "random"):
            yield one_hour(model, "wide", placement, seconds)


def narrow(seconds: float) -> Iterator[Row]:
    """The cluster in which many do."""
    for model in ("ideal", "enforced"):
        yield one_hour(model, "narrow", "random", seconds)


def whole_trace(name: str) -> list[Row]:
    """FB2010: 526 coflows, 706,397 flows, 150 ports."""
    run = measured("trace", name, str(TRACE))
    return [
        at_most(f"FB2010 whole trace, {name}", run["cpu_s"], 60.0, "s"),
        at_most(f"FB2010 whole trace, {name}: memory", run["peak_mb"], 1000.0, "MB"),
    ]


def whole_command(name: str, first: Path) -> Row:
    """`echelon simulate` on the first 100 coflows: starting Python, reading the file, times alone,
    playing with a record of every flow, and the summary."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "controller.cli.main", "simulate", str(first), "--policy", name],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = os.times()
    took = after.children_user + after.children_system
    took -= before.children_user + before.children_system
    return at_most(f"`echelon simulate` of the first 100, {name}", took, COFLOWSIM_S, "s")


def decisions(seconds: float) -> Iterator[Row]:
    """One live decision of `echelon`: 10,000 flows of 1,000 EchelonFlows on fat-tree:10."""
    took = float(np.percentile(decision_ms("echelon", cluster_state(10_000, 1_000), 200), 99))
    yield at_most("live decision from scratch, p99", took, SCRATCH_MS, "ms")
    yield at_most("live decision after one arrival, p99", took, INCREMENTAL_MS, "ms")


def one_hour(model: str, fabric: str, placement: str, seconds: float) -> Row:
    """1,024 GPUs, 100 jobs; a part of the hour is held against its part of the target."""
    run = measured("hour", "echelon", model, fabric, placement, "100", str(seconds))
    what = f"{seconds:g} s of 1,024 GPUs, 100 jobs: {fabric}, {placement}, {model}"
    row = at_most(what, run["cpu_s"], 120.0 * seconds / HOUR, "s")
    return row | {key: run[key] for key in ("flows", "decisions", "flows_decided")}


def growth(seconds: float) -> Iterator[Row]:
    """CPU time of playing 100 jobs over that of 25, on the same cluster.

    Where few flows contend, a flow; where many do, a flow that a decision is about: that is how
    many flows an event touches.
    """
    for fabric, placement, unit in (
        ("wide", "packed", "flows"),
        ("narrow", "random", "flows_decided"),
    ):
        few, many = (
            measured("hour", "echelon", "ideal", fabric, placement, jobs, str(seconds / 6))
            for jobs in ("25", "100")
        )
        ratio = (many["play_s"] / many[unit]) / (few["play_s"] / few[unit])
        yield at_most(f"CPU time by {unit}, {fabric}: 100 jobs over 25", ratio, 1.2, "")


PARTS: dict[str, Callable[[float], Iterator[Row]]] = {
    "trace": traces,
    "decision": decisions,
    "wide": wide,
    "narrow": narrow,
    "growth": growth,
}
"Part -> its rows, where an hour lasts so many simulated seconds."


def measured(*arguments: str) -> dict[str, Any]:
    """What `bench.scheduling.one` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.scheduling.one", *arguments],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def at_most(what: str, ours: float, target: float, unit: str) -> Row:
    """A row whose figure must not be above the target."""
    return {
        "what": what,
        "ours": ours,
        "peer": None,
        "peer_name": None,
        "unit": unit,
        "ratio": ours / target,
        "target": f"<= {target:g}",
        "met": ours <= target,
    }


if __name__ == "__main__":
    main()

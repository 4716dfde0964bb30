"""How fast scheduling and simulation are: `python -m bench.scheduling [--quick]`.

Writes results/bench/scheduling.json. Times are CPU seconds of one core. CoflowSim and Sincronia's
simulator are Java programs that are not run here: the time to beat is the lower one that others
report for CoflowSim's first 100 coflows (4 to 15 s).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench.decision import INCREMENTAL_MS, SCRATCH_MS, cluster_state, decision_ms
from bench.scheduling.one import TRACE

RESULTS = Path(__file__).parents[2] / "results" / "bench" / "scheduling.json"
POLICIES = ("fair", "varys", "sincronia", "echelon")
COFLOWSIM_S = 4.0

Row = dict[str, Any]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the hour")
    quick = parser.parse_args().quick
    rows: list[Row] = []

    def add(found: list[Row]) -> None:
        for row in found:
            rows.append(row)
            print(f"{row['what']:66} {row['ours']:10.4g} {row['unit']:5} target {row['target']}"
                  f" {'met' if row['met'] else 'MISSED'}", flush=True)  # fmt: skip

    if TRACE.exists():
        for name in POLICIES:
            add(whole_trace(name))
        for name in POLICIES:
            add(first_100(name))
    else:
        print(f"{TRACE.name} is not there (set ECHELON_DATA): its rows are left out")
    add(decisions())
    for placement in ("packed", "random"):
        add(one_hour(placement, 360.0 if quick else 3600.0))
    add(locality())
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    print(
        f"wrote {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}"
    )


def whole_trace(name: str) -> list[Row]:
    """FB2010: 526 coflows, 706,397 flows, 150 ports."""
    run = measured("trace", name, "526")
    return [
        at_most(f"FB2010 whole trace, {name}", run["cpu_s"], 60.0, "s"),
        at_most(f"FB2010 whole trace, {name}: memory", run["peak_mb"], 1000.0, "MB"),
    ]


def first_100(name: str) -> list[Row]:
    """Ten times faster than CoflowSim."""
    run = measured("trace", name, "100")
    return [at_most(f"FB2010 first 100 coflows, {name}", run["cpu_s"], COFLOWSIM_S / 10, "s")]


def decisions() -> list[Row]:
    """One live decision of `echelon`: 10,000 flows of 1,000 EchelonFlows on fat-tree:10."""
    took = float(np.percentile(decision_ms("echelon", cluster_state(10_000, 1_000), 200), 99))
    return [
        at_most("live decision from scratch, p99", took, SCRATCH_MS, "ms"),
        at_most("live decision after one arrival, p99", took, INCREMENTAL_MS, "ms"),
    ]


def one_hour(placement: str, seconds: float) -> list[Row]:
    """1,024 GPUs, 100 jobs; a part of the hour is held against its part of the target."""
    run = measured("hour", "echelon", placement, "100", str(seconds))
    what = f"1,024 GPUs, 100 jobs, {placement}, {seconds:g} s simulated ({run['flows']:,} flows)"
    return [at_most(what, run["cpu_s"], 120.0 * seconds / 3600.0, "s")]


def locality() -> list[Row]:
    """CPU time a flow with 100 jobs over that with 25: events cost what they touch."""
    few, many = (measured("hour", "echelon", "packed", jobs, "180") for jobs in ("25", "100"))
    ratio = (many["cpu_s"] / many["flows"]) / (few["cpu_s"] / few["flows"])
    return [at_most("CPU time a flow, 100 jobs over 25 jobs", ratio, 1.5, "")]


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

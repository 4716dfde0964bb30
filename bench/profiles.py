"""How fast and in how much memory traces are read: `python -m bench.profiles [--gigabytes 1]`.

Writes results/bench/profiles.json. Times are CPU seconds, memory is the peak of a fresh process. The
1-GB Kineto trace is our shipped recording repeated; the Chakra trace has 100,000 nodes; FB2010 is
measured where ECHELON_DATA (or ../shared/data) has it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results/bench/profiles.json"
RECORDING = ROOT / "traces/resnet18-ddp/rank0.json.gz"
DATA = Path(os.environ.get("ECHELON_DATA", ROOT.parent / "shared/data"))

_IMPORT = """
import json, resource, sys, time
from pathlib import Path
from controller.profiles.recognise import import_files
start = time.process_time()
import_files([Path(sys.argv[1])])
seconds = time.process_time() - start
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3]))
"""
_PEER = """
import json, resource, sys, time
start = time.process_time()
json.load(open(sys.argv[1]))
seconds = time.process_time() - start
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3]))
"""


def measured(program: str, path: Path) -> tuple[float, float]:
    """(CPU seconds, MB at most) of a program on a file, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], cwd=ROOT, check=True, capture_output=True
    )
    seconds, megabytes = json.loads(done.stdout)
    return seconds, megabytes


def kineto(path: Path, size: float) -> None:
    """Write a Chrome trace of at least `size` bytes, laid out as Kineto does."""
    document = json.loads(gzip.decompress(RECORDING.read_bytes()))
    events = document.pop("traceEvents")
    span = max(e["ts"] + e["dur"] for e in events) - min(e["ts"] for e in events)
    head = json.dumps(document, indent=2).rstrip("}\n ")
    with path.open("w") as file:
        file.write(head + ',\n  "traceEvents": [\n')
        written, turn, first = len(head), 0, True
        while written < size:
            for event in events:
                moved = event | {"ts": event["ts"] + turn * span}
                if moved["name"].startswith("ProfilerStep"):
                    moved["name"] += str(turn)
                text = ("" if first else ",\n") + json.dumps(moved, indent=2)
                first = False
                file.write(text)
                written += len(text)
            turn += 1
        file.write("\n  ]\n}\n")


def chakra(path: Path, nodes: int) -> None:
    """Write a Chakra trace of a chain of nodes, each tenth an all-reduce."""

    def varint(value: int) -> bytes:
        found = b""
        while value > 127:
            found += bytes([value & 127 | 128])
            value >>= 7
        return found + bytes([value])

    def field(number: int, value: int | bytes) -> bytes:
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        return varint(number << 3 | 2) + varint(len(value)) + value

    def attribute(name: bytes, number: int, value: int | bytes) -> bytes:
        return field(10, field(1, name) + field(number, value))

    with path.open("wb") as file:
        meta = field(1, b"0.0.4")
        file.write(varint(len(meta)) + meta)
        for i in range(nodes):
            reduces = i % 10 == 9
            record = field(1, i) + field(2, b"node_%d" % i) + field(3, 7 if reduces else 4)
            record += field(5, i - 1) if i else b""
            record += field(7, 10) + attribute(b"is_cpu_op", 27, 0) + attribute(b"rf_id", 9, i)
            record += attribute(b"op_schema", 29, b"aten::op(Tensor a) -> Tensor" * 4)
            if reduces:
                record += attribute(b"comm_type", 9, 0) + attribute(b"comm_size", 9, 1 << 20)
            file.write(varint(len(record)) + record)


def row(
    what: str, ours: float, unit: str, target: str, met: bool, peer: float | None = None
) -> dict[str, Any]:
    """One figure."""
    return {
        "what": what,
        "ours": ours,
        "peer": peer,
        "peer_name": None if peer is None else "json.load",
        "unit": unit,
        "ratio": None if not peer else ours / peer,
        "target": target,
        "met": met,
    }


def rows(gigabytes: float, folder: Path) -> Iterator[dict[str, Any]]:
    """All figures."""
    small, large = folder / "small.json", folder / "large.json"
    kineto(small, 1e8)
    peer_seconds, peer_memory = measured(_PEER, small)
    peer_speed = small.stat().st_size / 1e6 / peer_seconds
    kineto(large, gigabytes * 1e9)
    megabytes = large.stat().st_size / 1e6
    seconds, memory = measured(_IMPORT, large)
    large.unlink()
    speed = megabytes / seconds
    name = f"Kineto trace of {megabytes:.0f} MB"
    yield row(f"{name}: speed", speed, "MB/s", ">= 50", speed >= 50, peer_speed)
    # what json.load needs grows with the file
    scaled = peer_memory * megabytes / (small.stat().st_size / 1e6)
    yield row(f"{name}: memory", memory, "MB", "<= 500", memory <= 500, scaled)
    trace = folder / "chakra.0.et"
    chakra(trace, 100_000)
    seconds, memory = measured(_IMPORT, trace)
    yield row("Chakra trace of 100,000 nodes: time", seconds, "s", "<= 10", seconds <= 10)
    fb2010 = DATA / "coflow-benchmark/FB2010-1Hr-150-0.txt"
    if fb2010.exists():
        seconds, memory = measured(_IMPORT, fb2010)
        yield row("FB2010, 706,397 flows: time", seconds, "s", "<= 10", seconds <= 10)
        yield row("FB2010, 706,397 flows: memory", memory, "MB", "<= 500", memory <= 500)


def main() -> int:
    """Measure, print, write; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for figure in rows(chosen.gigabytes, Path(folder)):
            found.append(figure)
            peer = f" (json.load: {figure['peer']:.4g})" if figure["peer"] else ""
            verdict = "met" if figure["met"] else "MISSED"
            print(
                f"{figure['what']}: {figure['ours']:.4g} {figure['unit']}{peer}, "
                f"target {figure['target']}: {verdict}",
                flush=True,
            )
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(figure["met"] for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Makes a PyTorch profiler recording small: `python traces/prune_kineto.py rank0.json OUT.json.gz`.

Keeps what a job profile needs: iterations, collectives with their shapes, and the outermost operators
of 20 us or more on the training thread. No event is changed, only arguments nobody reads are dropped.
"""

from __future__ import annotations

import gzip
import json
import sys
from typing import Any

_KEPT_ARGUMENTS = ("Input Dims", "Input type", "Collective name", "dtype", "Group size")
_SHORT = 20.0
"Microseconds."


def prune(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the events that matter."""
    events = [e for e in document["traceEvents"] if e.get("ph") == "X"]
    events.sort(key=lambda e: (e["ts"], -e["dur"]))
    training = next(e["tid"] for e in events if e["name"].startswith("ProfilerStep"))
    kept, end = [], 0.0
    for event in events:
        name = event["name"]
        communicates = name.startswith(("c10d::", "gloo:", "nccl", "record_param_comms"))
        outermost = event["tid"] == training and event["cat"] == "cpu_op" and event["ts"] >= end
        if communicates or event["cat"] == "user_annotation":
            kept.append(_slim(event))
        elif outermost and event["dur"] >= _SHORT:
            kept.append(_slim(event))
            end = event["ts"] + event["dur"]
    names = ("schemaVersion", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds")
    return {key: document[key] for key in names if key in document} | {"traceEvents": kept}


def _slim(event: dict[str, Any]) -> dict[str, Any]:
    slim = {key: event[key] for key in ("ph", "cat", "name", "pid", "tid", "ts", "dur")}
    args = {k: v for k, v in event.get("args", {}).items() if k in _KEPT_ARGUMENTS}
    return slim | (
        {"args": args} if args and event["cat"] != "cpu_op" or "c10d" in event["name"] else {}
    )


if __name__ == "__main__":
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        pruned = prune(json.load(file))
    text = json.dumps(pruned, separators=(",", ":")).replace('},{"ph"', '},\n{"ph"')
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as zipped:
        zipped.write(text.encode())

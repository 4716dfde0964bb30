"""BMv2's results for our own program, on file: replayed where BMv2 is not installed."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

from tests.switch.differential.compare import Result
from tests.switch.drive.commands import Frame, Outcome

PATH = Path(__file__).parent / "recorded" / "echelon.json.gz"


def _text(frame: bytes) -> str:
    return base64.b64encode(frame).decode()


def _frames(frames: list[Any]) -> list[Frame]:
    return [(port, base64.b64decode(text)) for port, text in frames]


def write(frames: list[Frame], result: Result) -> Path:
    """Frames in and everything observed."""
    outcome = result.outcome
    content = {
        "in": [(port, _text(frame)) for port, frame in frames],
        "out": [[(port, _text(frame)) for port, frame in each] for each in outcome.frames],
        "packet_ins": [_text(frame) for frame in outcome.packet_ins],
        "digests": sorted(outcome.digests),
        "counters": result.counters,
        "direct": result.direct,
    }
    PATH.parent.mkdir(exist_ok=True)
    # mtime 0: the same results make the same file.
    PATH.write_bytes(gzip.compress(json.dumps(content).encode(), 9, mtime=0))
    return PATH


def read() -> tuple[list[Frame], Result]:
    """(frames in, what BMv2 did with them)."""
    content = json.loads(gzip.decompress(PATH.read_bytes()))
    outcome = Outcome(
        [_frames(each) for each in content["out"]],
        [base64.b64decode(text) for text in content["packet_ins"]],
        {(name, tuple(fields)) for name, fields in content["digests"]},
    )
    return _frames(content["in"]), Result(
        outcome,
        {
            name: {int(i): tuple(c) for i, c in cells.items()}
            for name, cells in content["counters"].items()
        },
        {
            name: {k: tuple(c) for k, c in cells.items()}
            for name, cells in content["direct"].items()
        },
    )

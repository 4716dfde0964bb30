"""Plays the same frames on BMv2 and on the embedded switch and compares everything that comes out.

    python -m tests.switch.differential.run [--tutorials EXERCISES] [--frames N] [--seed N] [--only NAME]
                                            [--record]

EXERCISES is the `exercises` folder of a checkout of p4lang's tutorials. --record renews recorded/.
Needs simple_switch_grpc and p4c-bm2-ss on PATH.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

from tests.switch.differential import recording
from tests.switch.differential.compare import Result, differences, observe
from tests.switch.differential.scenarios import (
    ROOT,
    TUTORIALS,
    Scenario,
    echelon,
    tutorial,
    tutorial_source,
)
from tests.switch.drive.bmv2 import BATCH, Bmv2
from tests.switch.drive.commands import Frame
from tests.switch.drive.embedded import Embedded
from tests.switch.stf.compiler import NotCompiled, compile_p4


def echelon_p4info(directory: Path) -> Path:
    """Our committed p4info in binary."""
    info = p4i.P4Info()
    text_format.Parse((ROOT / "p4/compiled/echelon.p4info.txtpb").read_text(), info)
    path = directory / "echelon.p4info.bin"
    path.write_bytes(info.SerializeToString())
    return path


def on_bmv2(scenario: Scenario, p4info: Path | None, frames: list[Frame]) -> Result:
    batch = 1 if scenario.alone else BATCH
    switch = Bmv2(scenario.json, scenario.p4info or p4info, batch=batch)
    try:
        return observe(switch, scenario, frames)
    finally:
        switch.close()


def on_embedded(scenario: Scenario, frames: list[Frame], sanitize: bool = False) -> Result:
    switch = Embedded(scenario.json, sanitize=sanitize)
    try:
        return observe(switch, scenario, frames)
    finally:
        switch.close()


def scenarios(exercises: Path | None, work: Path) -> Iterator[Scenario]:
    """Ours, and those tutorials that compile."""
    yield echelon()
    for name in TUTORIALS if exercises else ():
        assert exercises is not None
        try:
            compiled = compile_p4(tutorial_source(exercises, name), work)
        except NotCompiled as error:
            print(f"{name}: not compiled: {error}")
            continue
        assert compiled.p4info is not None
        yield tutorial(exercises, name, compiled.json, compiled.p4info)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tutorials", type=Path)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--show", type=int, default=5, help="differences to print of each program")
    asked = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        for scenario in scenarios(asked.tutorials, work):
            if asked.only not in scenario.name:
                continue
            frames = scenario.frames(asked.frames, asked.seed)
            start = time.monotonic()
            theirs = on_bmv2(scenario, echelon_p4info(work), frames)
            middle = time.monotonic()
            ours = on_embedded(scenario, frames)
            wrong = list(differences(ours, theirs, scenario, frames))
            forwarded = sum(map(bool, theirs.outcome.frames))
            print(
                f"{scenario.name}: {len(frames)} frames, {forwarded} forwarded,"
                f" {len(theirs.outcome.packet_ins)} packet-ins, {len(theirs.outcome.digests)} digests:"
                f" {len(wrong)} differences (BMv2 {middle - start:.1f} s,"
                f" embedded {time.monotonic() - middle:.1f} s)"
            )
            for line in wrong[: asked.show]:
                print("  " + line)
            failed += bool(wrong)
            if asked.record and scenario.name == "echelon":
                print("recorded in", recording.write(frames, theirs))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

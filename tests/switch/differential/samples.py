"""Plays random frames on BMv2 and on the embedded switch for each of p4c's v1model samples.

    python -m tests.switch.differential.samples DIRECTORY [--frames N] [--only NAME] [--work DIR]

The entries are those of the sample's .stf file where it has one; frames are its packets damaged, and garbage. Where
the two differ the program may read fields of an invalid header or undefined metadata: P4 leaves that open.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.switch.differential.frames import damaged
from tests.switch.drive.bmv2 import Bmv2
from tests.switch.drive.commands import CannotDo, Frame, Outcome, Refused, Switch
from tests.switch.drive.embedded import Embedded
from tests.switch.stf.compiler import Compiled, NotCompiled, compile_p4
from tests.switch.stf.language import Packet, StfError, read
from tests.switch.stf.play import Script
from tests.switch.stf.run import is_v1model


@dataclass(frozen=True)
class Sample:
    """A program with its own test, if it has one."""

    source: Path
    script: Script | None
    frames: list[Frame]


def frames(packets: list[Packet], count: int) -> list[Frame]:
    random = Random(5)
    result = []
    for _ in range(count):
        port = random.randrange(8)
        if packets and random.random() < 0.8:
            packet = random.choice(packets)
            port = random.choice((port, packet.port))
            frame = packet.data
            if random.random() < 0.7:
                frame = damaged(frame, random)
            if random.random() < 0.2:
                frame = frame[: random.randrange(1, len(frame) + 1)]
        else:
            frame = random.randbytes(random.randrange(1, 120))
        result.append((port, frame))
    return [(port, frame) for port, frame in result if frame]


def sample(source: Path, compiled: Compiled, count: int) -> Sample:
    stf = source.with_suffix(".stf")
    if not stf.exists():
        return Sample(source, None, frames([], count))
    statements = read(stf)
    packets = [s for s in statements if isinstance(s, Packet) and s.data]
    others = [s for s in statements if not isinstance(s, Packet)]
    return Sample(source, Script(others, compiled.json), frames(packets, count))


def outcome(switch: Switch, script: Script | None, frames: list[Frame]) -> Outcome:
    try:
        if script is not None:
            script.play(switch)
        return switch.play(frames)
    finally:
        switch.close()


def compare(source: Path, work: Path, count: int) -> tuple[int, list[str]]:
    """(frames that differ, those of the first three that differ on fresh switches too).

    A fresh BMv2 has no earlier packet's values left in its invalid headers.
    """
    compiled = compile_p4(source, work)
    frames = sample(source, compiled, count).frames
    ours, theirs = both(source, compiled, frames)
    different = [
        frame
        for frame, our, their in zip(frames, ours.frames, theirs.frames, strict=True)
        if our != their
    ]
    lasting = []
    for frame in different[:3]:
        ours, theirs = both(source, compiled, [frame])
        if ours.frames != theirs.frames:
            shown = (
                "; ".join(f"{p}: {f.hex()}" for p, f in side.frames[0]) or "dropped"
                for side in (ours, theirs)
            )
            lasting.append(
                "  port {}, {}:\n    ours   {}\n    theirs {}".format(
                    frame[0], frame[1].hex(), *shown
                )
            )
    return len(different), lasting


def both(source: Path, compiled: Compiled, frames: list[Frame]) -> tuple[Outcome, Outcome]:
    """What the embedded switch and BMv2 do, each set up afresh."""
    one, two = (sample(source, compiled, 0) for _ in range(2))  # a script keeps state
    ours = outcome(Embedded(compiled.json, queues=1), one.script, frames)
    bmv2 = Bmv2(compiled.json, compiled.p4info, queues=1, batch=8)
    return ours, outcome(bmv2, two.script, frames)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--only", default="")
    parser.add_argument("--work", type=Path, default=Path("."))
    parser.add_argument("--show", type=int, default=2)
    asked = parser.parse_args()
    same = stale = 0
    for source in sorted(asked.directory.glob("*.p4")):
        if asked.only not in source.stem or not is_v1model(source):
            continue
        try:
            count, lasting = compare(source, asked.work, asked.frames)
        except NotCompiled:
            continue
        except (Refused, CannotDo, StfError, ValueError) as error:
            print(f"{source.stem}: {type(error).__name__}: {error}"[:300], flush=True)
            continue
        same += count == 0
        stale += count > 0 and not lasting
        if lasting:
            print(f"{source.stem}: {count} of {asked.frames} frames", flush=True)
            for line in lasting[: asked.show]:
                print(line[:1500], flush=True)
    print(f"{same} programs without a difference, {stale} that differ only after other frames")
    return 0


if __name__ == "__main__":
    sys.exit(main())

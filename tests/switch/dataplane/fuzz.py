"""Feeds mutated and random frames to programs under the sanitizers: `python -m tests.switch.dataplane.fuzz FRAMES JSON...`.

Starts itself again with the address sanitizer's runtime preloaded (Python itself is not instrumented). Any report of
the sanitizers ends the run with a non-zero status.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

SEEDS = [
    bytes.fromhex(text)
    for text in (
        "0200000000020200000000010800450000280001000040063ccd0a0000010a00000204d2138900000000000000005002200000000000",
        "02000000000202000000000186dd6000000000141140"
        + "20010db8"
        + "00" * 11
        + "01"
        + "20010db8"
        + "00" * 11
        + "02"
        + "04d213890014000000112233445566778899aabb",
        "020000000002020000000001810060640800450000280001200040113ccd0a0000010a00000204d21389001400000011223344556677",
        "ffffffffffff0200000000010806000108000604000102000000000a0a0000010000000000000a000002",
    )
]


def mutate(source: random.Random, corpus: list[bytes]) -> bytes:
    """A frame near a known one, or noise."""
    if source.random() < 0.2:
        return source.randbytes(
            source.choice((0, 1, 13, 14, source.randrange(200), source.randrange(1600)))
        )
    frame = bytearray(source.choice(corpus))
    for _ in range(source.randrange(6)):
        if frame:
            frame[source.randrange(len(frame))] = source.choice(
                (0, 1, 0x7F, 0x80, 0xFF, source.randrange(256))
            )
    if source.random() < 0.3:
        del frame[source.randrange(len(frame) + 1) :]
    if source.random() < 0.2:
        frame += source.randbytes(source.randrange(1500))
    return bytes(frame)


def fuzz(frames: int, programs: list[Path], seed: int) -> None:
    """So many frames through the programs in turn, with random table entries."""
    from switch.dataplane import Dataplane, DataplaneError, Target, TargetKind

    source = random.Random(seed)
    share = max(frames // len(programs), 1)
    for path in programs:
        with Dataplane(queues=8, cpu_port=255, sanitize=True) as switch:
            switch.load(path.read_bytes())
            assert switch.program is not None
            for session in range(1, 12):
                switch.set_clone_session(
                    session,
                    [(source.randrange(8), 1), (255, 2)],
                    packet_length=source.choice((0, 60)),
                )
                switch.set_multicast(session, [(source.randrange(8), i) for i in range(3)])
            for digest in switch.program.digests:
                switch.enable_digest(digest.id, True)
            started = time.monotonic()
            for index in range(share):
                if index % 997 == 0:
                    for table in switch.program.tables:
                        if not table.key or table.profile is not None or table.const_entries:
                            continue
                        action = switch.program.actions[source.choice(table.actions)]
                        key = b"".join(
                            source.randbytes((f.bits + 7) // 8 * (1 if f.match == "exact" else 2))
                            if f.match != "lpm"
                            else source.randbytes((f.bits + 7) // 8) + b"\0\x08"
                            for f in table.key
                        )
                        params = b"".join(
                            source.randrange(1 << p.bits).to_bytes((p.bits + 7) // 8, "big")
                            for p in action.parameters
                        )
                        try:
                            switch.insert(
                                table.id,
                                key,
                                source.randrange(10),
                                Target(TargetKind.ACTION, action.id, params),
                            )
                        except DataplaneError:
                            pass
                    switch.read_events()
                switch.process(source.randrange(9), mutate(source, SEEDS))
            print(
                f"{path.name}: {share} frames, {share / (time.monotonic() - started):.0f}/s",
                flush=True,
            )


def main(arguments: list[str]) -> int:
    if "SWITCH_FUZZ" in os.environ:
        fuzz(int(arguments[0]), [Path(a) for a in arguments[1:]], int(os.environ["SWITCH_FUZZ"]))
        return 0
    library = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": library,
        "SWITCH_FUZZ": os.environ.get("SEED", "1"),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.switch.dataplane.fuzz", *arguments],
        env=environment,
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

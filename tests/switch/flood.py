"""Feeds millions of damaged frames to programs under the sanitizers, from C, and looks for leaks.

    python -m tests.switch.flood [FRAMES] [SEED] [JSON ...]

Without JSON files the program is echelon.p4, set up as the comparison with BMv2 sets it up; the frames are that
comparison's and their damaged forms. Starts itself again with the address sanitizer's runtime preloaded. A report of
the sanitizers, or memory that grows, ends it with a non-zero status.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from switch.compile import SANITIZE
from switch.dataplane import Dataplane
from tests.switch.differential.frames import ethernet, ipv4, ports
from tests.switch.differential.scenarios import Scenario, echelon
from tests.switch.drive.commands import Refused
from tests.switch.drive.embedded import Embedded
from tests.switch.stress import sanitized

CHUNK = 20_000
"""Frames between two looks at the events, which would fill up otherwise."""
GROWTH = 512 * 1024
"""Bytes by which the second half may add to live memory: ports and digests are made when first met."""


def harness(directory: Path) -> Path:
    """flood.c with the sanitizers; load it after the data plane, which has its sw_process."""
    library = directory / "flood.so"
    source = Path(__file__).parent / "flood.c"
    subprocess.run(
        ["cc", "-O1", "-g", "-fPIC", "-shared", *SANITIZE, "-o", str(library), str(source)],
        check=True,
    )
    return library


def live_bytes() -> int:
    """What is allocated now, as the address sanitizer counts."""
    count = ctypes.CDLL(None).__sanitizer_get_current_allocated_bytes
    count.restype = ctypes.c_size_t
    return int(count())


def bare_scenario(json: Path) -> Scenario:
    """A program with the entries it has itself."""
    frame = ethernet(0x0800, ipv4("10.0.0.1", "10.0.0.2", 6, ports(1, 2)))
    return Scenario(json.stem, json, None, [], [lambda random: frame, lambda r: r.randbytes(90)],
                    tuple(range(8)))  # fmt: skip


def flood(scenario: Scenario, frames: int, seed: int, path: Path) -> None:
    switch = Embedded(scenario.json, sanitize=True)
    plane: Dataplane = switch.dataplane
    for command in scenario.commands:
        switch.tell(command)
    for session in range(1, 12):
        plane.set_clone_session(
            session, [(session % 8, 1), (510, 2)], packet_length=session % 3 * 30
        )
        plane.set_multicast(session, [(port, port) for port in range(3)])
    seeds = [f for _, f in scenario.frames(400, seed) if len(f) <= 1600]
    packed, offsets = b"", []
    for each in seeds:
        offsets.append(len(packed))
        packed += struct.pack("=H", len(each)) + each
    in_ports = list(scenario.ports) + [Random(seed).randrange(512) for _ in range(4)]
    library = ctypes.CDLL(str(path))
    library.flood.restype = ctypes.c_int64
    start, live, done = time.monotonic(), 0, 0
    while done < frames:
        count = min(CHUNK, frames - done)
        out = library.flood(
            ctypes.c_void_p(plane._rt), packed, (ctypes.c_uint32 * len(offsets))(*offsets),
            len(offsets), (ctypes.c_uint16 * len(in_ports))(*in_ports), len(in_ports),
            ctypes.c_uint64(count), ctypes.c_uint64(seed + done),
        )  # fmt: skip
        assert out >= 0, f"{scenario.name}: process() failed with {out}"
        while plane.read_events():
            pass
        for digest in switch.program.digests:
            plane.forget_digests(digest.id)
        done += count
        if live == 0 and done >= frames / 2:
            live = live_bytes()
    grown = live_bytes() - live
    rate = done / (time.monotonic() - start)
    print(f"{scenario.name}: {done} frames, {rate:,.0f}/s, {grown:+d} bytes live", flush=True)
    assert grown < GROWTH, f"{scenario.name}: {grown} bytes more are live than half way"
    switch.close()


def main(arguments: list[str]) -> int:
    frames, seed = (int(a) for a in (arguments + ["100000", "1"][len(arguments) :])[:2])
    if "SANITIZED" not in os.environ:
        done = sanitized("tests.switch.flood", str(frames), str(seed), *arguments[2:])
        print(done.stdout + done.stderr)
        return done.returncode
    scenarios = [bare_scenario(Path(a)) for a in arguments[2:]] or [echelon()]
    with tempfile.TemporaryDirectory() as directory:
        library = harness(Path(directory))
        for scenario in scenarios:
            try:
                flood(scenario, max(1, frames // len(scenarios)), seed, library)
            except Refused as error:
                print(f"{scenario.name}: {error}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Mutated files for every importer: `python -m tests.profiles.fuzz --inputs 1000000 --seed 1`.

An importer may refuse a file with `BadInput`; anything else, more than 5 seconds of computing or
2 GB of memory is a fault, and its input is kept. Prints what became of the inputs, format by format.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from controller.model import Fabric
from controller.model.check import require_valid
from controller.model.errors import BadInput
from controller.profiles import files
from controller.profiles.recognise import import_files
from tests.profiles.samples import SAMPLES

_TOKENS = [
    b"0", b"-1", b"nan", b"inf", b"1e308", b"999999999999", b"18446744073709551615", b"null", b"[]",
    b"{}", b'"', b",", b":", b"\n", b"\t", b" ", b"\x00", b"\xff", b"\x80\x80\x80\x80\x80\x01",
    b"true", b"[" * 50, b"w0", b"2" * 30, "\u00e9\u0660".encode(), b"-", b"1.5",
]  # fmt: skip

OWN = {
    "job.yaml": b"schema: echelon/job/v1\njob: x\nworkers: [a, b]\ntasks:\n  - {id: t, worker: a, "
    b"seconds: 1}\nflows:\n  - {id: f, src: a, dst: b, bytes: 1MB, after: [t]}\n",
    "workload.json": b'{"schema": "echelon/workload/v1", "jobs": [{"profile": {"job": "x", "workers": '
    b'["a"], "tasks": [{"id": "t", "worker": "a", "seconds": 1}]}, "arrival": 0}]}',
}
"Our own formats."


def mutated(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """The data with one to four changes."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        at = rng.randrange(len(found) + 1)
        end = min(len(found), at + rng.choice((1, 1, 2, 4, 8, 32)))
        change = rng.randrange(9)
        if change == 0:
            found[at:end] = b""
        elif change == 1:
            found[at:at] = rng.choice(_TOKENS)
        elif change == 2:
            found[at:end] = rng.choice(_TOKENS)
        elif change == 3 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif change == 4:
            del found[at:]
        elif change == 5:
            found[at:at] = found[at:end] * rng.choice((1, 2, 50))
        elif change == 6:
            other = rng.choice(others)
            cut = rng.randrange(len(other) + 1)
            found[at:end] = other[cut : cut + 40]
        elif change == 7:
            lines = bytes(found).split(b"\n")
            rng.shuffle(lines)
            found = bytearray(b"\n".join(lines))
        else:
            found[at:end] = rng.randbytes(end - at)
    return bytes(found)


def read(path: Path, own: bool) -> None:
    """One input, a file of our own or of a format to import. Raises BadInput."""
    if own:
        files.read(path)
        return
    subject = import_files([path]).subject
    if not isinstance(subject, Fabric):
        require_valid(subject)


def faults(
    inputs: int, seed: int, folder: Path, taken: Counter[str], refused: Counter[str]
) -> Iterator[tuple[str, bytes, BaseException]]:
    """(sample, input, error) of each fault among so many inputs.

    Counts by sample the inputs that were `taken` and those that were `refused` with their reason.
    """
    rng = random.Random(seed)
    samples = {**SAMPLES, **OWN}
    names, others = list(samples), list(samples.values())
    for count in range(inputs):
        name = names[count % len(names)]
        data = mutated(rng, samples[name], others)
        path = folder / name
        path.write_bytes(data)
        started = time.process_time()
        try:
            read(path, own=name in OWN)
            taken[name] += 1
        except BadInput as error:
            refused[name] += 1
            if "\n" in str(error) or str(path) not in str(error):
                yield name, data, error
        except Exception as error:  # noqa: BLE001  (that is what is looked for)
            yield name, data, error
        if time.process_time() - started > 5:
            yield name, data, TimeoutError(f"{time.process_time() - started:.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for inputs that are faults")
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    found = 0
    taken, refused = Counter[str](), Counter[str]()
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        for name, data, error in faults(chosen.inputs, chosen.seed, Path(folder), taken, refused):
            found += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            if chosen.keep:
                chosen.keep.mkdir(parents=True, exist_ok=True)
                (chosen.keep / f"{found}-{name}").write_bytes(data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    for name in sorted(taken | refused):
        print(f"{name}: {taken[name]} taken, {refused[name]} refused")
    print(f"{chosen.inputs} inputs, {found} faults, {peak:.0f} MB at most")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Coverage-guided fuzzing of the importers: `python -m tests.profiles.fuzz_guided -max_total_time=100`.

Needs atheris (`pip install atheris`), which is no dependency of the project. Starts from a small file
of every format; arguments are libFuzzer's. Ends with the input of the first fault, which is what
`tests.profiles.fuzz` calls one, or with the number of inputs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore

with atheris.instrument_imports(include=["controller.profiles"]):
    from tests.profiles.fuzz import OWN, read

from controller.model.errors import BadInput
from tests.profiles.samples import SAMPLES

FIXED = ("-timeout=5", "-rss_limit_mb=2048", "-max_len=8192", "-print_final_stats=1")


def main() -> None:
    """Fuzz until told to stop."""
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for name, data in {**SAMPLES, **OWN}.items():
            if not name.endswith(".gz"):  # its checksum lets no change through
                (corpus / name).write_bytes(data)
        path = Path(folder, "input")
        atheris.Setup(
            [sys.argv[0], str(corpus), *FIXED, *sys.argv[1:]], lambda data: one(path, data)
        )
        atheris.Fuzz()


def one(path: Path, data: bytes) -> None:
    """One input: taken, or refused in one line that names the file."""
    path.write_bytes(data)
    try:
        read(path, own=b"echelon/" in data[:4096])
    except BadInput as error:
        assert "\n" not in str(error), error
        assert str(path) in str(error), error


if __name__ == "__main__":
    main()

"""Plays p4c's STF tests for v1model on the embedded switch and on BMv2, and says how many pass on each.

    python -m tests.switch.stf.run DIRECTORY [--target embedded --target bmv2] [--only NAME] [--json FILE]

DIRECTORY is a checkout's testdata/p4_16_samples (or p4_14_samples); p4c-bm2-ss must be on PATH.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.switch.drive.bmv2 import Bmv2
from tests.switch.drive.commands import CannotDo, Refused, Switch
from tests.switch.stf.compiler import Compiled, NotCompiled, compile_p4
from tests.switch.stf.language import StfError, read
from tests.switch.stf.play import Script


@dataclass(frozen=True)
class Result:
    """One test on one target."""

    test: str
    target: str
    verdict: str
    """pass, differs, refused (the target took neither program nor command), not-compiled, crashed."""
    reason: str = ""


def start(target: str, compiled: Compiled) -> Switch:
    """A switch with the program; raises Refused or CannotDo."""
    if target == "bmv2":
        return Bmv2(compiled.json, compiled.p4info, queues=1)
    from tests.switch.drive.embedded import Embedded

    return Embedded(compiled.json, queues=1)


def run_one(test: Path, target: str, compiled: Compiled) -> Result:
    """Play one .stf file."""
    try:
        script = Script(read(test), compiled.json)
        switch = start(target, compiled)
        try:
            wrong = script.play(switch)
        finally:
            switch.close()
    except (Refused, CannotDo) as error:
        return Result(test.stem, target, "refused", str(error))
    except StfError as error:
        return Result(test.stem, target, "not-compiled", str(error))
    except Exception as error:  # noqa: BLE001 - a sample that breaks a target must not hide the others
        return Result(test.stem, target, "crashed", f"{type(error).__name__}: {error}")
    return Result(test.stem, target, "differs" if wrong else "pass", "; ".join(wrong[:3]))


def is_v1model(source: Path) -> bool:
    return "p4_14" in str(source) or "v1model.p4" in source.read_text(errors="replace")


def samples_in(directory: Path) -> list[Path]:
    """The .stf files whose program is for v1model."""
    return [
        test
        for test in sorted(directory.rglob("*.stf"))
        if (source := test.with_suffix(".p4")).exists() and is_v1model(source)
    ]


def run(directory: Path, targets: list[str], only: str, work: Path) -> Iterator[Result]:
    """Every test on every target."""
    for test in samples_in(directory):
        if only not in test.stem:
            continue
        try:
            compiled = compile_p4(test.with_suffix(".p4"), work)
        except NotCompiled as error:
            yield from (Result(test.stem, t, "not-compiled", str(error)) for t in targets)
            continue
        yield from (run_one(test, target, compiled) for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--target", action="append", choices=["embedded", "bmv2"])
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("--work", type=Path, help="where compiled programs are kept")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    targets = asked.target or ["embedded", "bmv2"]
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        work = asked.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        for result in run(asked.directory, targets, asked.only, work):
            results.append(result)
            if asked.verbose or result.verdict not in ("pass", "not-compiled"):
                print(f"{result.verdict:12} {result.target:8} {result.test}: {result.reason[:300]}")
                sys.stdout.flush()
    if asked.json:
        asked.json.write_text(json.dumps([asdict(r) for r in results], indent=1))
    passed = {
        t: {r.test for r in results if r.target == t and r.verdict == "pass"} for t in targets
    }
    for target in targets:
        verdicts = Counter(r.verdict for r in results if r.target == target)
        print(f"{target}: {verdicts['pass']} of {verdicts.total()} pass, {dict(verdicts)}")
    if {"embedded", "bmv2"} <= passed.keys():
        both = passed["embedded"] & passed["bmv2"]
        share = len(both) / max(1, len(passed["bmv2"]))
        print(f"of {len(passed['bmv2'])} that BMv2 passes the embedded switch passes {share:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

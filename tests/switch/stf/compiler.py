"""p4c, for tests: a P4 file to BMv2 JSON and binary p4info, kept until the source changes."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


class NotCompiled(Exception):
    """p4c's complaint."""


@dataclass(frozen=True)
class Compiled:
    """What p4c made."""

    json: Path
    p4info: Path | None
    """None where p4c cannot describe the program for P4Runtime."""


def available() -> bool:
    return shutil.which("p4c-bm2-ss") is not None


def compile_p4(source: Path, directory: Path) -> Compiled:
    """Compile into `directory`; raises NotCompiled."""
    json, p4info = directory / f"{source.stem}.json", directory / f"{source.stem}.p4info.bin"
    if not (json.exists() and json.stat().st_mtime > source.stat().st_mtime):
        p4info.unlink(missing_ok=True)
        if _run(source, json, "--p4runtime-files", str(p4info)) and (
            complaint := _run(source, json)
        ):
            json.unlink(missing_ok=True)
            raise NotCompiled(complaint)
    return Compiled(json, p4info if p4info.exists() else None)


def _run(source: Path, json: Path, *options: str) -> str:
    """p4c's complaint, empty if it is content."""
    std = "p4-14" if "p4_14" in str(source) else "p4-16"
    command = [
        "p4c-bm2-ss",
        "--std",
        std,
        "--arch",
        "v1model",
        *options,
        "-o",
        str(json),
        str(source),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, cwd=source.parent
        )
    except subprocess.TimeoutExpired:
        return "p4c took longer than two minutes"
    if done.returncode == 0:
        return ""
    lines = [x for x in done.stderr.splitlines() if "error" in x or "Bug" in x or "BUG" in x]
    return str((lines or done.stderr.splitlines() or ["no message"])[0]).strip()

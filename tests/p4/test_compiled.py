"""p4/compiled is what p4c makes of p4/echelon.p4."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import COMPILED, ROOT


def without_source_info(value: Any) -> Any:
    """Line numbers move with every comment; they do not change what the switch does."""
    if isinstance(value, dict):
        return {k: without_source_info(v) for k, v in value.items() if k != "source_info"}
    if isinstance(value, list):
        return [without_source_info(v) for v in value]
    return value


def test_compiled_is_up_to_date(tmp_path: Path) -> None:
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("p4c-bm2-ss is not on PATH")
    # Older p4c knows the format by .txt only.
    info, program = tmp_path / "echelon.p4info.txt", tmp_path / "echelon.json"
    subprocess.run(
        ["p4c-bm2-ss", "--arch", "v1model", "--p4runtime-files", info, "-o", program, "echelon.p4"],
        cwd=ROOT / "p4",
        check=True,
    )
    assert info.read_text() == (COMPILED / "echelon.p4info.txtpb").read_text(), "run `make p4`"
    fresh, committed = (json.loads(p.read_text()) for p in (program, COMPILED / "echelon.json"))
    assert without_source_info(fresh) == without_source_info(committed), "run `make p4`"


def test_compiled_names_no_machine_path() -> None:
    committed = json.loads((COMPILED / "echelon.json").read_text())
    assert committed["program"] == "echelon.p4"
    files: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            files.update(v for k, v in value.items() if k == "filename")
            for v in value.values():
                collect(v)
        elif isinstance(value, list):
            for v in value:
                collect(v)

    collect(committed)
    assert all("/" not in name for name in files), files

"""BMv2 and the embedded switch agree frame by frame, on our program and (where asked) on p4lang's tutorials.

ECHELON_TUTORIALS names the `exercises` folder of a checkout of the tutorials.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.switch.differential.compare import differences
from tests.switch.differential.run import echelon_p4info, on_bmv2, on_embedded
from tests.switch.differential.scenarios import (
    TUTORIALS,
    Scenario,
    echelon,
    tutorial,
    tutorial_source,
)
from tests.switch.stf.compiler import available, compile_p4

pytestmark = [
    pytest.mark.bmv2,
    pytest.mark.skipif(
        shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH"
    ),
]


def agree(scenario: Scenario, p4info: Path | None, count: int) -> None:
    frames = scenario.frames(count, seed=20)
    theirs, ours = on_bmv2(scenario, p4info, frames), on_embedded(scenario, frames)
    assert list(differences(ours, theirs, scenario, frames)) == []


def test_echelon(tmp_path: Path) -> None:
    agree(echelon(), echelon_p4info(tmp_path), 3000)


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial(name: str, tmp_path: Path) -> None:
    exercises = os.environ.get("ECHELON_TUTORIALS")
    if not exercises:
        pytest.skip("ECHELON_TUTORIALS does not name the exercises of p4lang's tutorials")
    if not available():
        pytest.skip("p4c-bm2-ss is not on PATH")
    compiled = compile_p4(tutorial_source(Path(exercises), name), tmp_path)
    agree(tutorial(Path(exercises), name, compiled.json, compiled.p4info or Path()), None, 500)

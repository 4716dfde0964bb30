"""p4c's own STF tests for v1model pass on the embedded switch.

ECHELON_P4C_SAMPLES names p4c's testdata/p4_16_samples; without it, or without p4c, nothing runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.switch.stf.compiler import NotCompiled, available, compile_p4
from tests.switch.stf.run import run_one, samples_in

SAMPLES = os.environ.get("ECHELON_P4C_SAMPLES")
NAMES = [str(t.relative_to(SAMPLES)) for t in samples_in(Path(SAMPLES))] if SAMPLES else [""]

pytestmark = [
    pytest.mark.bmv2,
    pytest.mark.slow,
    pytest.mark.skipif(
        not SAMPLES, reason="ECHELON_P4C_SAMPLES does not name p4c's testdata/p4_16_samples"
    ),
    pytest.mark.skipif(not available(), reason="p4c-bm2-ss is not on PATH"),
]


@pytest.mark.parametrize("name", NAMES)
def test_sample(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    test = Path(SAMPLES or "") / name
    try:
        compiled = compile_p4(test.with_suffix(".p4"), tmp_path_factory.getbasetemp())
    except NotCompiled as error:
        pytest.skip(f"p4c: {error}")
    result = run_one(test, "embedded", compiled)
    assert result.verdict == "pass", result.reason

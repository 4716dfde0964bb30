"""Importers given damaged files refuse them in one line; they never crash, hang or swell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiles.fuzz import faults


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_are_refused_in_one_line_that_names_them(seed: int, tmp_path: Path) -> None:
    found = [(name, repr(error), data) for name, data, error in faults(800, seed, tmp_path)]
    assert not found


@pytest.mark.slow
def test_a_hundred_thousand_damaged_files(tmp_path: Path) -> None:
    assert not list(faults(100_000, 99, tmp_path))

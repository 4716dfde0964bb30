"""Importers given damaged files refuse them in one line; they never crash, hang or swell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.profiles.fuzz import faults


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_are_refused_in_one_line_that_names_them(seed: int, tmp_path: Path) -> None:
    taken, refused = Counter[str](), Counter[str]()
    found = faults(800, seed, tmp_path, taken, refused)
    assert not [(name, repr(error), data) for name, data, error in found]
    assert (taken + refused).total() == 800
    assert len(taken) > 15, "most formats had inputs that were still good"


@pytest.mark.slow
def test_a_hundred_thousand_damaged_files(tmp_path: Path) -> None:
    assert not list(faults(100_000, 99, tmp_path, Counter(), Counter()))

"""Where the real inputs are; tests that need one skip by its name where it is absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DATA = Path(os.environ.get("ECHELON_DATA", REPOSITORY.parent / "shared" / "data"))


def data(name: str) -> Path:
    """A real input. Skips the test where it is absent."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no {name} (set ECHELON_DATA)")
    return path

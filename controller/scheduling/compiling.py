"""Compiles hot loops with numba; what is compiled is kept on disk, by the content of all of them."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import numba
from numba import njit

PACKAGE = Path(__file__).parents[1]
KEPT = "numba-"


def _cache() -> Path:
    """The folder for what the present source compiles to.

    numba looks for changes in a function's own file only, and would go on with old copies of those
    that it calls. So the folder is named after the source of all compiled functions.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for folder in ("scheduling", "simulator"):
        for path in sorted((PACKAGE / folder).glob("*.py")):
            source = path.read_bytes()
            if b"\n@compiled" in source or b"\n@bare" in source:
                digest.update(path.name.encode() + source)
    return PACKAGE / "__pycache__" / f"{KEPT}{digest.hexdigest()[:16]}"


CACHE = _cache()
"Where compiled code is kept, unless NUMBA_CACHE_DIR says otherwise, or it cannot be written."
if "NUMBA_CACHE_DIR" not in os.environ:
    numba.config.CACHE_DIR = str(CACHE)  # type: ignore[attr-defined]


def remove_old() -> None:
    """Remove what earlier versions of the source compiled to."""
    for folder in CACHE.parent.glob(f"{KEPT}*"):
        if folder != CACHE:
            shutil.rmtree(folder, ignore_errors=True)


def compiled(function: Any) -> Any:
    """Compile with numba, cached on disk; the GIL is released so that a live loop stays awake."""
    return njit(cache=True, nogil=True, error_model="numpy")(function)


def bare(function: Any) -> Any:
    """The same for a function that makes no array and returns none, nor do those it calls: numba
    counts no references then, which for arrays in a tuple costs a hundred times what the work does.
    """
    options: Any = {"_nrt": False}  # not in numba's own type hints
    return njit(cache=True, nogil=True, error_model="numpy", **options)(function)

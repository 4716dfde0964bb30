"""Waiting for what another thread does."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], patience_s: float = 10.0) -> bool:
    """Whether a condition comes true before patience ends."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return condition()

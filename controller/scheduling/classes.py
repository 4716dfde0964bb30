"""Cuts an order into the few classes that switches have queues for."""

from __future__ import annotations

import numpy as np

from controller.scheduling.kernels import compiled
from controller.scheduling.policy import Floats, Ints, NetworkState

CLASSES = 8
"Strict-priority queues of a port; class 7 is served first."


def cut(state: NetworkState, rank: Ints, classes: int = CLASSES) -> Ints:
    """(flows,) classes `classes - 1` (served first) .. 0, from ranks (smaller first)."""
    order = np.argsort(rank, kind="stable")
    place = np.cumsum(np.diff(rank[order], prepend=rank[order[:1]]) > 0)
    out = np.empty(len(rank), np.int64)
    out[order] = classes - 1 - np.minimum(place, classes - 1)
    return out

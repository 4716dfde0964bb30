"""Refuses a state that no policy can decide about: numbers that are not, links that are not there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.model.errors import BadInput
from controller.scheduling.policy import Floats, Ints, NetworkState

_FLOWS = ("size", "remaining")
_GROUPS = ("group_weight",)


def check_state(state: NetworkState) -> None:
    """Raises BadInput that names the array, the row and what was expected.

    Sizes, remainders and weights must be numbers > 0, times and capacities numbers, capacities
    >= 0; every flow has an EchelonFlow, every EchelonFlow a job, every path links that exist.
    O(flows + path entries).
    """
    for name in (*_FLOWS, *_GROUPS):
        values = getattr(state, name)
        _require(name, values, np.isfinite(values) & (values > 0), "a number > 0")
    for name in ("release", "ideal_finish", "group_reference"):
        values = getattr(state, name)
        _require(name, values, np.isfinite(values), "a time in seconds")
    capacity = state.capacity
    _require("capacity", capacity, np.isfinite(capacity) & (capacity >= 0), "bit/s >= 0")
    _require_index("group", state.group, state.groups)
    _require_index("group_job", state.group_job, len(state.jobs))
    _require_index("path_links", state.path_links, len(capacity))
    if len(state.path_start) != state.flows + 1 or state.path_start[-1] != len(state.path_links):
        raise BadInput(
            f"path_start: expected {state.flows + 1} entries up to the end of path_links"
        )


def _require_index(name: str, values: Ints, count: int) -> None:
    _require(name, values, (values >= 0) & (values < count), f"a row below {count}")


def _require(name: str, values: Floats | Ints, good: NDArray[np.bool_], expected: str) -> None:
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise BadInput(f"{name}[{row}] is {values[row]}: expected {expected}")

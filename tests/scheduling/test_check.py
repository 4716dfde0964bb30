"""A state with numbers that are none is refused, and the message says which."""

from __future__ import annotations

import numpy as np
import pytest

from controller.model.errors import BadInput
from controller.scheduling.check import check_state
from controller.scheduling.policy import NetworkState
from tests.scheduling.player import Transfer, state_of


def good() -> NetworkState:
    flows = [Transfer(0, 1.0, 0.0), Transfer(1, 2.0, 0.0, path=(0, 1))]
    return state_of(flows, [0, 1], np.array([1.0, 2.0]), 0.0, [1.0, 1.0])


def test_a_good_state_passes() -> None:
    check_state(good())


@pytest.mark.parametrize("bad", [np.nan, 0.0, -1.0, np.inf])
@pytest.mark.parametrize("array", ["size", "remaining", "group_weight"])
def test_sizes_and_weights_are_numbers_above_zero(array: str, bad: float) -> None:
    state = good()
    getattr(state, array)[1] = bad
    with pytest.raises(BadInput, match=rf"{array}\[1\]"):
        check_state(state)


@pytest.mark.parametrize(
    "array, bad", [("release", np.nan), ("capacity", -1.0), ("capacity", np.nan), ("group", 2),
                   ("path_links", 2), ("group_job", -1)]
)  # fmt: skip
def test_times_capacities_and_rows_make_sense(array: str, bad: float) -> None:
    state = good()
    getattr(state, array)[0] = bad
    with pytest.raises(BadInput, match=array):
        check_state(state)


def test_paths_belong_to_flows() -> None:
    state = good()
    state.path_start = state.path_start[:-1]
    with pytest.raises(BadInput, match="path_start"):
        check_state(state)

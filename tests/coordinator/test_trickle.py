"""Flows that are given next to nothing are held."""

from __future__ import annotations

import numpy as np

from controller.coordinator.trickle import TRICKLE, without_trickles
from controller.model import PlacedJob
from controller.scheduling.plan import compile_job
from controller.scheduling.policy import NetworkState
from controller.scheduling.state import StateBuilder
from tests.coordinator.conftest import RATE, pipeline, star


def state_of(flows: int) -> NetworkState:
    """Some flows from h1 to h2, each of an iteration of its own."""
    fabric = star(2).fabric()
    builder = StateBuilder(fabric)
    job = builder.add_job(compile_job(PlacedJob(pipeline(), {"w0": "h1", "w1": "h2"}), fabric))
    for iteration in range(flows):
        builder.start(job, 0, iteration, 0.0)
    return builder.state(0.0)


def test_next_to_nothing_becomes_a_hold_and_the_rest_stays() -> None:
    paces = np.array([RATE - 9.0, 8.0, 1.0])
    assert without_trickles(state_of(3), paces).tolist() == [RATE - 9.0, 0.0, 0.0]
    assert paces[1] == 8.0  # what the policy said is left alone


def test_many_equal_small_shares_are_not_nothing() -> None:
    paces = np.full(200, RATE / 200)
    assert without_trickles(state_of(200), paces).tolist() == paces.tolist()


def test_the_limit_is_a_part_of_an_equal_share() -> None:
    limit = TRICKLE * RATE / 2
    paces = np.array([limit * 1.01, limit * 0.99])
    assert without_trickles(state_of(2), paces).tolist() == [paces[0], 0.0]


def test_on_slow_links_a_frame_now_and_then_is_next_to_nothing_too() -> None:
    state = state_of(2)
    state.capacity[:] = 4e6
    paces = np.array([3.7e6, 0.3e6])
    assert without_trickles(state, paces).tolist() == [3.7e6, 0.0]
    state.capacity[:] = 0.5e6  # an equal share is below that: the better half of it goes
    assert without_trickles(state, np.array([0.3e6, 0.2e6])).tolist() == [0.3e6, 0.0]


def test_unpaced_flows_and_holds_stay_as_they_are() -> None:
    paces = np.array([np.inf, 0.0])
    assert without_trickles(state_of(2), paces).tolist() == paces.tolist()

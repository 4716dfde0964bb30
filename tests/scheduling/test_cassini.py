"""Cassini's circles: phases that can interleave do, and a phase waits for its slot."""

from __future__ import annotations

import numpy as np
import pytest

from controller.scheduling.cassini import Circle, joint_period, overflow, rotate
from controller.scheduling.registry import policy
from tests.scheduling.player import Transfer, state_of


def test_two_jobs_that_send_half_the_time_are_set_half_a_period_apart() -> None:
    half = Circle(2.0, 1.0, {0: 1.0})
    shift = rotate({0: half, 1: half}, np.array([1.0]))
    assert abs(shift[0] - shift[1]) == pytest.approx(1.0)


def test_what_does_not_fit_is_counted_for_every_shift() -> None:
    asked, limit = np.array([[1.0]]), np.array([[1.0]])
    turns = np.array([[1.0, 0.0], [0.0, 1.0]])
    excess = overflow(np.array([[1.0, 0.0]]), asked, limit, turns)
    assert excess.tolist() == [0.5, 0.0]
    assert overflow(np.array([[3.0, 0.5]]), asked, limit, turns).tolist() == [0.5, 0.25]


def test_the_joint_period_is_the_common_multiple() -> None:
    assert joint_period([2.0, 3.0]) == pytest.approx(6.0)
    assert joint_period([1.0, 0.5]) == pytest.approx(1.0)


def test_a_phase_that_is_off_its_slot_is_held_until_the_next() -> None:
    flows = [Transfer(0, 1.0, 4.0), Transfer(1, 1.0, 4.0)]
    state = state_of(flows, [0, 1], np.array([1.0, 1.0]), 4.0, [1.0])
    for job in state.jobs:
        job.alone_s, job.silent_s, job.first_group, job.link_bytes = 2.0, 1.0, 0, {0: 1 / 8}
    decision = policy("cassini").decide(state)
    assert sorted(decision.rate.tolist()) == [0.0, 1.0]
    assert decision.pace[decision.rate == 0] == 0.0
    assert decision.valid_until == pytest.approx(5.0)


def test_jobs_that_contend_with_none_are_never_held() -> None:
    flows = [Transfer(0, 1.0, 4.3)]
    state = state_of(flows, [0], np.array([1.0]), 4.3, [1.0])
    job = state.jobs[0]
    job.alone_s, job.silent_s, job.first_group, job.link_bytes = 2.0, 1.0, 0, {0: 1 / 8}
    assert policy("cassini").decide(state).rate.tolist() == [1.0]


def test_a_slot_that_rounding_puts_just_ahead_has_come() -> None:
    now = 5.0 - 1e-15 * 4  # else the player would be told to ask again at the instant it is in
    flows = [Transfer(0, 1.0, 4.0), Transfer(1, 1.0, 4.0)]
    state = state_of(flows, [0, 1], np.array([1.0, 1.0]), now, [1.0])
    for job in state.jobs:
        job.alone_s, job.silent_s, job.first_group, job.link_bytes = 2.0, 1.0, 0, {0: 1 / 8}
    assert now < 5.0
    assert policy("cassini").decide(state).valid_until == float("inf")

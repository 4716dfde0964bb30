"""Crux' worked example, and its compression to levels."""

from __future__ import annotations

import numpy as np
import pytest

from controller.scheduling.crux import Alternation, compressed, correction, what_if

FIRST, SECOND = Alternation(2.0, 2.0), Alternation(1.0, 1.0)
I_FIRST, I_SECOND = 10 / 2, 5 / 1


def utilisation(link_first: float, link_second: float) -> float:
    return (link_first * I_FIRST + link_second * I_SECOND) / (10 * 12)


def test_the_worked_example_comes_out_exactly() -> None:
    assert utilisation(*what_if(FIRST, SECOND, 12)) == pytest.approx(3 / 8, abs=1e-9)
    second, first = what_if(SECOND, FIRST, 12)
    assert utilisation(first, second) == pytest.approx(5 / 12, abs=1e-9)
    gain = second - what_if(FIRST, SECOND, 12)[1]
    loss = what_if(FIRST, SECOND, 12)[0] - first
    assert gain / loss == pytest.approx(3 / 2, abs=1e-9)


def test_the_correction_of_the_second_job_is_three_halves() -> None:
    assert correction(SECOND, FIRST) == pytest.approx(3 / 2, rel=0.02)
    assert correction(FIRST, FIRST) == pytest.approx(1.0)


def test_few_jobs_keep_a_level_each() -> None:
    order = np.array([2, 0, 1])
    level = compressed(order, np.ones(3), np.ones((3, 3), bool), 8)
    assert level.tolist() == [1, 2, 0]


def test_the_cut_falls_between_jobs_that_contend() -> None:
    # Two pairs that contend within, not across: two levels are enough to part both.
    contention = np.zeros((4, 4), bool)
    for a, b in ((0, 1), (2, 3)):
        contention[a, b] = contention[b, a] = True
    level = compressed(np.arange(4), np.array([4.0, 3, 2, 1]), contention, 2)
    assert level[0] < level[1] and level[2] < level[3]


def test_three_that_contend_on_two_levels_part_the_most_intense() -> None:
    contention = ~np.eye(3, dtype=bool)
    level = compressed(np.arange(3), np.array([9.0, 2, 1]), contention, 2)
    assert level.tolist() == [0, 1, 1]

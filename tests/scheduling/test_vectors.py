"""The exact vectors of the paper and of algorithms.md, section 2."""

from __future__ import annotations

import numpy as np
import pytest

from controller.scheduling.registry import policy
from tests.scheduling.player import Transfer, pipeline, play

EXACT = 1e-9


def consumer_done(transfers: list[Transfer], finish: np.ndarray, compute: float) -> float:
    """When the consumer has computed every micro-batch, in the order of their offsets."""
    done = 0.0
    for i in sorted(range(len(transfers)), key=lambda i: transfers[i].offset):
        done = max(done, finish[i]) + compute
    return done


def tardiness(transfers: list[Transfer], finish: np.ndarray) -> np.ndarray:
    first = min(t.release for t in transfers)
    return finish - np.array([first + t.offset for t in transfers])


FIGURE_2 = {
    "fair": ([4.5, 6.5, 7], [3.5, 4.5, 4], 8.5),
    "varys": ([7, 7, 7], [6, 5, 4], 10),
    "echelon": ([5, 6, 7], [4, 4, 4], 8),
    "echelon-paper": ([5, 6, 7], [4, 4, 4], 8),
    "fifo": ([3, 5, 7], [2, 3, 4], 8),
    "edf": ([3, 5, 7], [2, 3, 4], 8),
    "srpt": ([3, 5, 7], [2, 3, 4], 8),
    "echelon-edf": ([3, 5, 7], [2, 3, 4], 8),
}


@pytest.mark.parametrize("name", FIGURE_2)
def test_figure_2_comes_out_exactly(name: str) -> None:
    finish, late, done = FIGURE_2[name]
    flows = pipeline(3, 2.0, 1.0)
    played = play(policy(name), flows, [1.0])
    assert played.finish == pytest.approx(finish, abs=EXACT)
    assert tardiness(flows, played.finish) == pytest.approx(late, abs=EXACT)
    assert consumer_done(flows, played.finish, 1.0) == pytest.approx(done, abs=EXACT)


RATES = {
    "fair": [(1, 2, [1]), (2, 3, [1 / 2, 1 / 2]), (3, 4.5, [1 / 3] * 3), (4.5, 6.5, [0, 1 / 2, 1 / 2]),
             (6.5, 7, [0, 0, 1])],
    "varys": [(1, 2, [1]), (2, 3, [1 / 3, 2 / 3]), (3, 7, [1 / 6, 1 / 3, 1 / 2])],
    "echelon": [(1, 2, [1]), (2, 3, [1 / 2, 1 / 2]), (3, 5, [1 / 4, 5 / 12, 1 / 3]),
                (5, 6, [0, 2 / 3, 1 / 3]), (6, 7, [0, 0, 1])],
}  # fmt: skip


@pytest.mark.parametrize("name", RATES)
def test_figure_2_has_the_printed_rates_at_every_instant(name: str) -> None:
    history = play(policy(name), pipeline(3, 2.0, 1.0), [1.0]).history
    for start, end, rate in RATES[name]:
        inside = [r for a, b, r in history if a < end - EXACT and b > start + EXACT]
        assert inside
        for r in inside:
            assert r == pytest.approx(np.array([*rate, 0, 0])[:3], abs=EXACT)


@pytest.mark.parametrize(
    "count, size, step", [(2, 3.0, 1.0), (4, 2.0, 1.0), (5, 7.0, 3.0), (8, 1.5, 1.25)]
)
def test_closed_forms_of_one_pipeline(count: int, size: float, step: float) -> None:
    flows = pipeline(count, size, step)
    least = count * size - (count - 1) * step
    for name in ("echelon", "echelon-edf", "fifo", "edf"):
        finish = play(policy(name), flows, [1.0]).finish
        done = consumer_done(flows, finish, step)
        assert done == pytest.approx(step + count * size + step, abs=EXACT)
        assert tardiness(flows, finish).max() == pytest.approx(least, abs=EXACT)
    finish = play(policy("varys"), flows, [1.0]).finish
    assert consumer_done(flows, finish, step) == pytest.approx(
        step + count * size + count * step, abs=EXACT
    )


def test_four_micro_batches() -> None:
    flows = pipeline(4, 2.0, 1.0)
    expected = {"fair": 32 / 3, "varys": 13, "echelon": 10}
    for name, done in expected.items():
        finish = play(policy(name), flows, [1.0]).finish
        assert consumer_done(flows, finish, 1.0) == pytest.approx(done, abs=EXACT)


@pytest.mark.parametrize("size", [0.25, 1.0])
def test_where_nothing_overlaps_all_policies_tie(size: float) -> None:
    flows = pipeline(4, size, 1.0)
    for name in FIGURE_2:
        finish = play(policy(name), flows, [1.0]).finish
        assert finish == pytest.approx([1 + size, 2 + size, 3 + size, 4 + size], abs=EXACT)


TWO_PIPELINES = {
    "fair": (14.5, 14.5),
    "fifo": (12, 14),
    "edf": (12, 14),
    "srpt": (12, 14),
    "varys": (10, 16),
    "echelon": (8, 14),
    "echelon-edf": (8, 14),
}


@pytest.mark.parametrize("name", TWO_PIPELINES)
def test_two_equal_pipelines_on_one_link(name: str) -> None:
    flows = pipeline(3, 2.0, 1.0) + pipeline(3, 2.0, 1.0, group=1)
    tie = [0, 2, 4, 1, 3, 5]  # flows are numbered as they become ready
    finish = play(policy(name), flows, [1.0], tie=tie).finish
    done = consumer_done(flows[:3], finish[:3], 1.0), consumer_done(flows[3:], finish[3:], 1.0)
    assert done == pytest.approx(TWO_PIPELINES[name], abs=EXACT)

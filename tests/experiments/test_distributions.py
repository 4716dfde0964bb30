"""The curves of the report say what was played."""

from __future__ import annotations

import pytest

from controller.experiments import distributions
from controller.model.record import FlowRecord, JobRecord, Played


def played(late: float, iterations: int = 20) -> Played:
    """One job whose iterations take 1 + `late` s, an EchelonFlow each that is `late` s late."""
    ends = tuple((k + 1) * (1 + late) for k in range(iterations))
    flows = tuple(
        FlowRecord("J", k, "f", "h", "a", "b", 1.0, 0.0, 0.0, 5.0 + late, 5.0)
        for k in range(iterations)
    )
    return Played(flows, (), (JobRecord("J", 0.0, ends),))


def test_a_curve_is_the_share_of_values_up_to_each() -> None:
    assert distributions.cumulated([1.0, 2.0, 4.0, 4.0]) == ([1, 2, 4, 4], [0.25, 0.5, 0.75, 1])
    assert distributions.cumulated([]) == ([], [])


def test_long_curves_are_thinned_and_keep_their_end() -> None:
    x, y = distributions.cumulated([float(i) for i in range(12_345)])
    assert len(x) <= distributions.POINTS + 1
    assert (x[-1], y[-1]) == (12_344.0, 1.0)
    assert all(
        share == pytest.approx((value + 1) / 12_345) for value, share in zip(x, y, strict=True)
    )


def test_slowdown_and_tardiness_of_every_iteration() -> None:
    assert distributions.slowdowns(played(0.5), {"J": 1.0}) == pytest.approx([1.5] * 20)
    assert distributions.tardiness(played(0.5)) == pytest.approx([0.5] * 20)


def test_one_curve_a_policy_and_figure_and_none_where_there_is_too_little() -> None:
    figure = distributions.draw({"fair": played(0.5), "echelon": played(0.0)}, {"J": 1.0})
    assert figure is not None
    assert [trace.name for trace in figure.data] == ["fair", "fair", "echelon", "echelon"]
    assert distributions.draw({"fair": played(0.5, iterations=3)}, {"J": 1.0}) is None

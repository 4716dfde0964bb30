"""The compiled play of an order tells what the event loop tells, rule by rule."""

from __future__ import annotations

import numpy as np
import pytest

from controller.experiments.search import routes_of
from controller.experiments.suite import case
from controller.scheduling.echelon_search import RULES, WHOLE, FixedOrder
from controller.simulator.simulate import plans_of, play


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["three-1f1b", "four-hybrid"])
def test_without_records_the_same_iterations_end_at_the_same_times(name: str, rule: str) -> None:
    """With records the event loop asks the policy, cuts classes and fills them."""
    workload, fabric = case(name).workload, case(name).fabric
    plans = plans_of(workload, fabric)
    random = np.random.default_rng(RULES.index(rule))
    level = {
        (plan.job.name, group): int(random.integers(6))
        for plan in plans
        for group in [WHOLE, *range(0, len(plan.group_names), 2)]
    }
    paths = {pin: k for ways in routes_of(plans, fabric).values() for pin, k in ways[-1].items()}
    order = FixedOrder(level, rule, paths)
    looped = play(plans, fabric, order, "enforced", records=True)
    compiled = play(plans, fabric, order, "enforced", records=False)
    for job, seconds in looped.mean_iterations().items():
        assert compiled.mean_iterations()[job] == pytest.approx(seconds, rel=1e-12)
    assert compiled.total_tardiness_s == pytest.approx(looped.total_tardiness_s, rel=1e-9)


def test_a_job_that_the_order_names_may_have_left() -> None:
    workload, fabric = case("two-gpipe").workload, case("two-gpipe").fabric
    plans = plans_of(workload, fabric)
    alone = play(plans[:1], fabric, FixedOrder({("bert1", 0): 3, ("bert0", WHOLE): 1}))
    assert list(alone.mean_iterations()) == ["bert0"]

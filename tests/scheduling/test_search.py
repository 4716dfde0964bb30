"""The search is seeded, within its budget, and never worse than what it starts from."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest

from controller.model.errors import BadInput
from controller.scheduling.climb import Outcome
from controller.scheduling.echelon_search import RULES, WHOLE, Adopted, FixedOrder
from controller.scheduling.order_search import search
from controller.scheduling.policy import Policy
from controller.scheduling.registry import POLICIES, names, policy
from tests.scheduling.player import Transfer, play, state_of

JOBS = {"job0": 1, "job1": 1, "job2": 1}
# On two links the job that uses both should wait for the two that use one: SEBF puts it first.
FLOWS = [
    Transfer(0, 1.9, 0.0, path=(0, 1)),
    Transfer(1, 2.0, 0.0, path=(0,)),
    Transfer(2, 2.0, 0.0, path=(1,)),
]


def player(chosen: Policy) -> Outcome:
    finish = play(chosen, FLOWS, [1.0, 1.0]).finish
    slowdown = {f"job{i}": finish[i] / t.bits for i, t in enumerate(FLOWS)}
    return Outcome(float(np.mean(list(slowdown.values()))), slowdown)


def test_it_beats_every_baseline_where_sebf_is_wrong() -> None:
    found = search(player, [policy("varys"), policy("echelon"), policy("srpt")], JOBS, budget=40)
    assert isinstance(found.policy, FixedOrder)
    assert found.outcome.cost < found.baseline_cost - 0.01
    assert found.outcome.cost == pytest.approx((1 + 1 + 3.9 / 1.9) / 3)
    assert found.outcome.cost == player(found.policy).cost


def test_it_adopts_a_baseline_that_cannot_be_beaten() -> None:
    best = search(player, [policy("sincronia")], JOBS, budget=40)
    assert best.outcome.cost <= best.baseline_cost
    if best.outcome.cost == best.baseline_cost:
        assert isinstance(best.policy, Adopted)


def test_a_seed_decides_everything_and_the_budget_is_kept() -> None:
    first, again = (search(player, [policy("fair")], JOBS, budget=25, seed=3) for _ in range(2))
    assert first.policy.spelled == again.policy.spelled
    assert first.evaluations == again.evaluations <= 26


def test_a_choice_of_paths_is_part_of_what_is_searched() -> None:
    routes = {"job0": [{("h1", "h2", "f"): 0}, {("h1", "h2", "f"): 1}]}

    def routed(chosen: Policy) -> Outcome:
        """Only the second path is any good."""
        routing = getattr(chosen, "routing", None)
        good = routing is not None and routing.paths == routes["job0"][1]
        return Outcome(1.0 if good else 2.0, {name: 1.0 for name in JOBS})

    found = search(routed, [policy("fair")], JOBS, budget=60, routes=routes)
    assert isinstance(found.policy, FixedOrder)
    assert found.outcome.cost == 1.0
    assert found.policy.paths == routes["job0"][1]
    again = policy(found.policy.spelled)
    assert isinstance(again, FixedOrder) and again.paths == found.policy.paths


def test_orders_of_jobs_and_within_jobs_are_tried_before_the_climb() -> None:
    tried = []

    def noted(chosen: Policy) -> Outcome:
        if isinstance(chosen, FixedOrder):
            tried.append(dict(chosen.level))
        return player(chosen)

    items = {"job0": 2, "job1": 1, "job2": 1}
    search(noted, [policy("fair")], items, [["job2", "job1", "job0"]], {("job0", 1): 1}, budget=10)
    assert {("job2", WHOLE): 0, ("job1", WHOLE): 1, ("job0", WHOLE): 2} in tried
    assert any(("job0", 1) in order for order in tried)


def test_what_is_found_is_the_best_of_all_that_was_played() -> None:
    """The climb may walk over worse orders for a while."""
    costs = []

    def rough(chosen: Policy) -> Outcome:
        cost = 1.0 + crc32(repr(sorted(getattr(chosen, "level", {}).items())).encode()) / 2**32
        costs.append(cost)
        return Outcome(cost, dict.fromkeys(JOBS, cost))

    found = search(rough, [policy("fair")], {"job0": 3, "job1": 3, "job2": 3}, budget=80)
    assert found.outcome.cost == min(costs)
    assert rough(found.policy).cost == min(costs)


def test_an_order_read_back_from_its_name_decides_the_same() -> None:
    state = state_of(FLOWS, [0, 1, 2], np.array([t.bits for t in FLOWS]), 0.0, [1.0, 1.0])
    for rule in RULES:
        order = FixedOrder({("job0", -1): 1, ("job1", -1): 0, ("job2", 0): 0}, rule)
        again = policy(order.spelled)
        assert again.decide(state).rate.tolist() == order.decide(state).rate.tolist()
        assert again.name == "echelon-search"
    assert policy(Adopted(policy("varys")).spelled).decide(state).rank.tolist() == [0, 1, 1 + 1]


def test_without_levels_it_is_echelon() -> None:
    state = state_of(FLOWS, [0, 1, 2], np.array([t.bits for t in FLOWS]), 0.0, [1.0, 1.0])
    ours, echelon = FixedOrder().decide(state), policy("echelon").decide(state)
    assert ours.rate.tolist() == echelon.rate.tolist()
    assert ours.rank.tolist() == echelon.rank.tolist()


def test_one_echelonflow_of_a_job_may_stand_elsewhere_than_the_job() -> None:
    state = state_of(FLOWS, [0, 1, 2], np.array([t.bits for t in FLOWS]), 0.0, [1.0, 1.0])
    state = replace(state, group_index=np.array([5, 0, 0]))
    first = FixedOrder({("job0", -1): 9, ("job0", 5): -1}).decide(state)
    assert first.rank.tolist()[0] == 0


@pytest.mark.parametrize(
    "name", ["nonsense", "echelon-search", "echelon-search:{}", "echelon-search:x"]
)
def test_a_name_that_is_no_policy_is_refused_with_the_remedy(name: str) -> None:
    with pytest.raises(BadInput):
        policy(name)


def test_an_unknown_name_is_answered_with_all_names() -> None:
    with pytest.raises(BadInput) as error:
        policy("varsy")
    assert all(name in str(error.value) for name in names())
    assert set(names()) == {*POLICIES, "echelon-search"}

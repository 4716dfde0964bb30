"""Eight classes out of an order: never against it, and at the least cost there is."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.scheduling.classes import cut_classes, shared_bytes
from controller.scheduling.policy import Decision, NetworkState
from tests.scheduling.player import Transfer, state_of


def problem(seed: int, flows: int, links: int, ranks: int) -> tuple[NetworkState, Decision]:
    """Flows over two links each, some held."""
    random = np.random.default_rng(seed)
    transfers = [
        Transfer(i, float(random.integers(1, 80)), 0.0, path=tuple(random.permutation(links)[:2]))
        for i in range(flows)
    ]
    left = np.array([t.bits for t in transfers])
    state = state_of(transfers, list(range(flows)), left, 0.0, [1.0] * links)
    pace = np.where(random.random(flows) < 0.7, np.inf, 0.0)
    return state, Decision(random.integers(0, ranks, flows), np.zeros(flows), pace)


def against_the_order(state: NetworkState, decision: Decision, classes: np.ndarray) -> bool:
    links = [set(p) for p in np.split(state.path_links, state.path_start[1:-1])]
    sends = np.flatnonzero(decision.pace > 0).tolist()
    return any(
        decision.rank[a] < decision.rank[b] and links[a] & links[b] and classes[a] < classes[b]
        for a in sends
        for b in sends
    )


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 12),
    st.integers(2, 8),
    st.integers(1, 6),
    st.integers(1, 4),
)
def test_no_cut_of_the_ranks_into_runs_costs_less(
    seed: int, flows: int, links: int, ranks: int, classes: int
) -> None:
    state, decision = problem(seed, flows, links, ranks)
    found = cut_classes(state, decision, classes)
    assert found.min() >= 0 and found.max() < classes
    assert not against_the_order(state, decision, found)
    present = sorted(set(decision.rank.tolist()))
    least = min(
        shared_bytes(
            state,
            decision,
            np.array([dict(zip(present, cut, strict=True))[r] for r in decision.rank.tolist()]),
        )
        for cut in itertools.product(range(classes), repeat=len(present))
        if all(a >= b for a, b in itertools.pairwise(cut))
    )
    assert shared_bytes(state, decision, found) <= least + 1e-9


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_long_orders_are_cut_in_order_too(seed: int) -> None:
    state, decision = problem(seed, 600, 10, 600)
    decision.pace[:] = np.inf
    found = cut_classes(state, decision)
    assert set(found.tolist()) == set(range(8))
    assert not against_the_order(state, decision, found)


def test_echelonflows_that_share_no_link_share_a_class() -> None:
    transfers = [Transfer(i, 8.0, 0.0, path=(i,)) for i in range(20)]
    state = state_of(transfers, list(range(20)), np.full(20, 8.0), 0.0, [1.0] * 20)
    decision = Decision(np.arange(20), np.ones(20), np.full(20, np.inf))
    assert cut_classes(state, decision).tolist() == [7] * 20


def test_whoever_has_its_links_for_itself_is_in_the_first_class() -> None:
    transfers = [Transfer(0, 8.0, 0.0), Transfer(1, 8.0, 0.0, path=(0, 1))]
    state = state_of(transfers, [0, 1], np.full(2, 8.0), 0.0, [1.0, 1.0])
    held = Decision(np.arange(2), np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    assert cut_classes(state, held)[1] == 7  # the first waits for something else
    shared = Decision(np.arange(2), np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    assert cut_classes(state, shared).tolist() == [7, 6]


def test_no_flow_rises_above_the_class_it_has_while_the_classes_suffice() -> None:
    transfers = [Transfer(i, 1.0, 0.0, path=(0,)) for i in range(3)]
    state = state_of(transfers, [0, 1, 2], np.ones(3), 0.0, [1.0])
    decision = Decision(np.arange(3), np.zeros(3), np.full(3, 0.2))
    assert cut_classes(state, decision, 8).tolist() == [7, 6, 5]
    assert cut_classes(state, decision, 8, np.array([5, 7, 3])).tolist() == [5, 4, 3]
    assert cut_classes(state, decision, 8, np.array([5, 7, 6])).tolist() == [5, 4, 3]
    assert cut_classes(state, decision, 8, np.array([1, 7, 7])).tolist() == [7, 6, 5]  # all anew


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(2, 8), st.integers(1, 6))
def test_keeping_classes_low_is_never_against_the_order(
    seed: int, flows: int, links: int, ranks: int
) -> None:
    state, decision = problem(seed, flows, links, ranks)
    highest = np.random.default_rng(seed).integers(0, 8, flows)
    assert not against_the_order(state, decision, cut_classes(state, decision, 8, highest))


def test_a_paced_flow_is_not_drawn_down_by_its_group_an_unpaced_one_is() -> None:
    transfers = [Transfer(0, 8.0, 0.0), Transfer(1, 8.0, 0.0), Transfer(1, 8.0, 0.0, path=(1,))]
    state = state_of(transfers, [0, 1, 2], np.full(3, 8.0), 0.0, [1.0, 1.0])
    rank, rate = np.array([0, 1, 1]), np.array([0.5, 0.5, 1.0])
    assert cut_classes(state, Decision(rank, rate, rate)).tolist() == [7, 6, 7]
    unpaced = Decision(rank, rate, np.full(3, np.inf))
    assert cut_classes(state, unpaced).tolist() == [7, 6, 6]


def test_one_link_and_no_more_ranks_than_classes_keeps_the_ranks() -> None:
    transfers = [Transfer(i, 8.0, 0.0) for i in range(8)]
    state = state_of(transfers, list(range(8)), np.full(8, 8.0), 0.0, [1.0])
    decision = Decision(np.arange(8)[::-1].copy(), np.ones(8), np.full(8, np.inf))
    assert cut_classes(state, decision).tolist() == list(range(8))

"""What every policy promises, on random instances (some 15,000 of them)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.scheduling import ranks
from controller.scheduling.policy import NetworkState
from controller.scheduling.registry import POLICIES, policy
from controller.simulator.exact import Released, least_tardiness
from tests.scheduling.instances import instances, states
from tests.scheduling.player import Transfer, play

WORK_CONSERVING = [name for name in POLICIES if name != "cassini"]
many = settings(max_examples=800, deadline=None)
some = settings(max_examples=300, deadline=None)
few = settings(max_examples=60, deadline=None)


def load(state: NetworkState, rate: np.ndarray) -> np.ndarray:
    out = np.zeros(len(state.capacity))
    np.add.at(out, state.path_links, np.repeat(rate, np.diff(state.path_start)))
    return out


@pytest.mark.parametrize("name", POLICIES)
@many
@given(state=states())
def test_a_decision_fits_every_link_and_leaves_no_flow_idle_beside_spare_capacity(
    name: str, state: NetworkState
) -> None:
    before = state.remaining.copy()
    decision = policy(name).decide(state)
    assert np.array_equal(before, state.remaining)
    assert np.all(decision.rate >= 0) and np.all(decision.pace >= 0)
    used = load(state, decision.rate)
    assert np.all(used <= state.capacity * (1 + 1e-9))
    held = decision.rate == 0
    assert np.all((decision.pace[held] == 0) | np.isinf(decision.pace[held]))
    assert np.allclose(decision.pace[~held & np.isfinite(decision.pace)],
                       decision.rate[~held & np.isfinite(decision.pace)])  # fmt: skip
    if name in WORK_CONSERVING:
        full = used >= state.capacity * (1 - 1e-9)
        for row in range(state.flows):
            assert full[state.path_links[state.path_start[row] : state.path_start[row + 1]]].any()


@pytest.mark.parametrize("name", POLICIES)
@some
@given(state=states(), seed=st.integers(0, 2**31))
def test_the_order_of_rows_changes_nothing(name: str, state: NetworkState, seed: int) -> None:
    row, group = shuffles(state, seed)
    a, b = policy(name).decide(state), policy(name).decide(permuted(state, row, group))
    assert b.rate == pytest.approx(a.rate[row], rel=1e-9, abs=1e-9)
    assert np.array_equal(np.argsort(np.argsort(a.rank[row], kind="stable"), kind="stable"),
                          np.argsort(np.argsort(b.rank, kind="stable"), kind="stable"))  # fmt: skip


def shuffles(state: NetworkState, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.permutation(state.flows), random.permutation(state.groups)


def permuted(state: NetworkState, row: np.ndarray, group: np.ndarray) -> NetworkState:
    """Row i of the new state is row[i] of the old, group g is group[g]."""
    paths = [state.path_links[state.path_start[i] : state.path_start[i + 1]] for i in row]
    return replace(
        state,
        **{k: getattr(state, k)[row] for k in ("size", "remaining", "release", "ideal_finish", "tie")},
        group=np.argsort(group)[state.group[row]],
        path_start=np.cumsum([0, *map(len, paths)]),
        path_links=np.concatenate(paths),
        **{
            k: getattr(state, k)[group]
            for k in ("group_reference", "group_weight", "group_job", "group_index", "group_sent",
                      "group_tie")
        },
    )  # fmt: skip


@some
@given(state=states(coflow=True, weighted=False))
def test_on_coflows_echelon_decides_as_sebf(state: NetworkState) -> None:
    state.ideal_finish = state.group_reference[state.group]
    state.release = state.ideal_finish.copy()
    ours, varys = policy("echelon").decide(state), policy("varys").decide(state)
    assert np.array_equal(ours.rank, varys.rank)
    assert ours.rate == pytest.approx(varys.rate, rel=1e-9, abs=1e-12)


@many
@given(state=states())
def test_tau_is_never_above_the_least_tardiness(state: NetworkState) -> None:
    tau = ranks.tau(state, ranks.formation(state))
    for group in range(state.groups):
        mine = np.flatnonzero(state.group == group)
        flows = [
            Released(
                float(state.remaining[i]),
                tuple(state.path_links[state.path_start[i] : state.path_start[i + 1]].tolist()),
                float(state.ideal_finish[i]),
            )
            for i in mine
        ]
        assert tau[group] <= least_tardiness(flows, state.capacity, state.time) + 1e-6


@pytest.mark.parametrize("name", POLICIES)
@few
@given(instance=instances())
def test_bytes_are_conserved_and_links_never_overfull_at_any_instant(
    name: str, instance: tuple[list[Transfer], list[float]]
) -> None:
    flows, capacity = instance
    played = play(policy(name), flows, capacity)
    sent = sum((end - start) * rate for start, end, rate in played.history)
    assert sent == pytest.approx([t.bits for t in flows], rel=1e-6)
    for _, _, rate in played.history:
        for link, limit in enumerate(capacity):
            assert sum(r for r, t in zip(rate, flows, strict=True) if link in t.path) <= limit * (
                1 + 1e-9
            )
    assert all(end >= t.release for end, t in zip(played.finish, flows, strict=True))


@pytest.mark.parametrize("name", POLICIES)
@some
@given(
    sizes=st.lists(st.floats(0.1, 10), min_size=1, max_size=6),
    durations=st.lists(st.floats(0.1, 5), min_size=6, max_size=6),
    gaps=st.lists(st.floats(0.1, 5), min_size=6, max_size=6),
)
def test_least_tardiness_is_least_completion_under_the_exact_rule(
    name: str, sizes: list[float], durations: list[float], gaps: list[float]
) -> None:
    release = np.cumsum(gaps)
    before = np.concatenate([[0.0], np.cumsum(durations)])
    flows = [Transfer(0, s, release[k], before[k]) for k, s in enumerate(sizes)]
    finish = play(policy(name), flows, [1.0]).finish
    done = 0.0
    for k in range(len(sizes)):
        done = max(done, finish[k]) + durations[k]
    late = max(finish[k] - (release[0] + before[k]) for k in range(len(sizes)))
    assert done == pytest.approx(late + release[0] + before[len(sizes)], rel=1e-9)

"""Max-min rates: against a naive solver, the definition, and SimGrid."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.scheduling.maxmin import max_min, priority_max_min
from controller.scheduling.policy import NetworkState
from tests.scheduling.player import Transfer, state_of


def random_state(random: np.random.Generator, flows: int, links: int) -> NetworkState:
    """Flows over up to four random links each."""
    transfers = [
        Transfer(
            i, 1.0, 0.0, path=tuple(random.permutation(links)[: random.integers(1, 5)].tolist())
        )
        for i in range(flows)
    ]
    capacity = random.choice([1.0, 2.0, 3.0, 7.5], links).tolist()
    return state_of(transfers, list(range(flows)), np.ones(flows), 0.0, capacity)


def paths_of(state: NetworkState) -> list[list[int]]:
    return [
        state.path_links[a:b].tolist()
        for a, b in zip(state.path_start, state.path_start[1:], strict=False)
    ]


def raised_together(state: NetworkState, pace: np.ndarray) -> np.ndarray:
    """The definition: raise all rates alike; a flow stops at its pace or at a full link."""
    paths, rate = paths_of(state), np.zeros(state.flows)
    moving = set(range(state.flows))
    while moving:
        residual = state.capacity.copy()
        for i, path in enumerate(paths):
            residual[path] -= rate[i]
        users = {link: sum(link in paths[i] for i in moving) for i in moving for link in paths[i]}
        step = min(
            min(max(residual[link], 0.0) / count for link, count in users.items()),
            min(pace[i] - rate[i] for i in moving),
        )
        for i in moving:
            rate[i] += step
        full = {link for link, count in users.items() if residual[link] - step * count < 1e-12}
        moving = {i for i in moving if pace[i] - rate[i] > 1e-12 and full.isdisjoint(paths[i])}
    return rate


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 9))
def test_equals_raising_all_rates_together(seed: int, flows: int, links: int) -> None:
    random = np.random.default_rng(seed)
    state = random_state(random, flows, links)
    pace = np.where(random.random(flows) < 0.3, random.choice([0.0, 0.1, 0.5, 1.0], flows), np.inf)
    np.testing.assert_allclose(max_min(state, pace), raised_together(state, pace), atol=1e-11)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 12))
def test_every_flow_has_a_full_link_where_none_is_faster(seed: int, flows: int, links: int) -> None:
    state = random_state(np.random.default_rng(seed), flows, links)
    rate, paths = max_min(state), paths_of(state)
    load, fastest = np.zeros(links), np.zeros(links)
    for i, path in enumerate(paths):
        load[path] += rate[i]
        fastest[path] = np.maximum(fastest[path], rate[i])
    assert np.all(load <= state.capacity * (1 + 1e-12))
    for i, path in enumerate(paths):
        assert any(
            load[k] >= state.capacity[k] * (1 - 1e-9) and rate[i] >= fastest[k] * (1 - 1e-9)
            for k in path
        )


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 8))
def test_a_class_gets_what_higher_classes_leave(seed: int, flows: int, links: int) -> None:
    random = np.random.default_rng(seed)
    state = random_state(random, flows, links)
    classes = random.integers(0, 4, flows)
    rate, paths = priority_max_min(state, classes), paths_of(state)
    for class_ in range(4):
        residual = state.capacity.copy()
        for i, path in enumerate(paths):
            if classes[i] > class_:
                residual[path] -= rate[i]
        rows = np.flatnonzero(classes == class_)
        alone = state_of(
            [Transfer(i, 1.0, 0.0, path=tuple(paths[row])) for i, row in enumerate(rows)],
            list(range(len(rows))),
            np.ones(len(rows)),
            0.0,
            np.maximum(residual, 0.0).tolist(),
        )
        np.testing.assert_allclose(rate[rows], max_min(alone), atol=1e-9)


def test_a_flow_within_one_host_has_its_pace_and_a_dead_link_gives_nothing() -> None:
    state = state_of(
        [Transfer(0, 1.0, 0.0, path=()), Transfer(1, 1.0, 0.0, path=(0,))],
        [0, 1],
        np.ones(2),
        0.0,
        [0.0],
    )
    assert max_min(state).tolist() == [np.inf, 0.0]
    assert max_min(state, np.array([5.0, 5.0])).tolist() == [5.0, 0.0]


def test_equals_simgrid_on_200_random_fabrics() -> None:
    probe = subprocess.run(
        ["/usr/bin/python3", "-c", "import simgrid"], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip("SimGrid is not installed (Debian: python3-simgrid)")
    random = np.random.default_rng(7)
    states = [random_state(random, int(random.integers(1, 30)), 12) for _ in range(200)]
    cases = [
        {"capacity": (state.capacity * 1e6).tolist(), "paths": paths_of(state)} for state in states
    ]
    answer = subprocess.run(
        ["/usr/bin/python3", str(Path(__file__).with_name("simgrid_rates.py"))],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    for state, theirs in zip(states, json.loads(answer.stdout), strict=True):
        np.testing.assert_allclose(max_min(state) * 1e6, theirs, rtol=1e-6)

"""Coflow traces: the fast path equals the event loop, and others' simulators say the same."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import EchelonFlow, Flow, Job, PlacedJob, Workload
from controller.model.fabric import Fabric
from controller.model.fabrics import big_switch
from controller.scheduling.policy import Decision, NetworkState, Policy
from controller.scheduling.registry import policy
from controller.simulator import coflows
from controller.simulator.result import SimulationResult
from controller.simulator.simulate import simulate

Coflow = tuple[float, list[tuple[int, int, float]]]
"Arrival in seconds, and (sending host, receiving host, bytes) of each flow."

DATA = Path(os.environ.get("ECHELON_DATA", Path(__file__).parents[3] / "shared" / "data"))
TRACE = DATA / "coflow-benchmark" / "FB2010-1Hr-150-0.txt"
PORTS, MB, GBIT = 150, 1e6, 1e9
"CoflowSim's 2^20 bytes at 2^30 bit/s and 1024 ms a second take as long as 1e6 bytes at 1e9: 8 ms."


def workload_of(trace: list[Coflow], weights: list[float] | None = None) -> Workload:
    """Each coflow a job."""
    placed = []
    for k, (arrival, flows) in enumerate(trace):
        hosts = dict.fromkeys(h for src, dst, _ in flows for h in (src, dst))
        workers = {f"w{h}": f"h{h + 1}" for h in hosts}
        listed = tuple(Flow(f"f{i}", f"w{a}", f"w{b}", s) for i, (a, b, s) in enumerate(flows))
        group = EchelonFlow("c", tuple(f.id for f in listed), (0.0,) * len(listed))
        job = Job(f"c{k}", tuple(workers), (), listed, (), (group,))
        placed.append(PlacedJob(job, workers, arrival, weights[k] if weights else 1.0))
    return Workload(tuple(placed))


def by_event_loop(workload: Workload, fabric: Fabric, policy_: Policy) -> SimulationResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coflows, "applies", lambda *_: False)
        return simulate(workload, fabric, policy_)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["fair", "varys", "sincronia", "echelon"]))
def test_the_fast_path_equals_the_event_loop(seed: int, name: str) -> None:
    random = np.random.default_rng(seed)
    hosts = int(random.choice([2, 3, 4, 5, 90]))  # more than 64 ports: sets of several words
    most = 9 if hosts < 90 else 120
    trace: list[Coflow] = []
    for _ in range(int(random.integers(1, 7))):
        ends = [random.choice(hosts, 2, replace=False) for _ in range(random.integers(1, most))]
        flows = [(int(a), int(b), float(random.uniform(1, 9))) for a, b in ends]
        trace.append((float(random.integers(0, 6)), flows))
    weights = random.uniform(0.5, 2.0, len(trace)).tolist()
    workload, fabric = workload_of(trace, weights), big_switch(hosts, 8.0)
    fast, slow = (
        simulate(workload, fabric, policy(name)),
        by_event_loop(workload, fabric, policy(name)),
    )
    for ours, theirs in zip(
        sorted(fast.played.flows, key=lambda f: (f.job, f.flow)),
        sorted(slow.played.flows, key=lambda f: (f.job, f.flow)),
        strict=True,
    ):
        assert (ours.job, ours.flow, ours.ready) == (theirs.job, theirs.flow, theirs.ready)
        assert ours.finish == pytest.approx(theirs.finish, abs=1e-8)
        assert ours.start == pytest.approx(theirs.start, abs=1e-8)
    assert fast.total_tardiness_s == pytest.approx(slow.total_tardiness_s)


class EvenShares:
    """What CoflowSim calls FAIR: each flow the lesser of its two ports' even shares; what a flow
    cannot use at one port goes to nobody."""

    name, local = "even-shares", True

    def decide(self, state: NetworkState) -> Decision:
        users = np.bincount(state.path_links, minlength=len(state.capacity))
        share = state.capacity / np.maximum(users, 1)
        rate = np.minimum.reduceat(share[state.path_links], state.path_start[:-1])
        return Decision(np.zeros(state.flows, np.int64), rate, np.full(state.flows, np.inf))


def first_100(boundary: float | None) -> list[Coflow]:
    """The first 100 coflows of the trace; senders are hosts 0..149, receivers 150..299.

    Arrivals lie on multiples of `boundary` seconds (None: all at 0).
    """
    if not TRACE.exists():
        pytest.skip(f"{TRACE.name} is not there (set ECHELON_DATA)")
    trace: list[Coflow] = []
    for line in TRACE.read_text().splitlines()[1:101]:
        word = line.split()
        mappers = [int(w) for w in word[3 : 3 + int(word[2])]]
        flows = [
            (mapper, PORTS + int(place), float(size) * MB / len(mappers))
            for place, size in (w.split(":") for w in word[4 + len(mappers) :])
            for mapper in mappers
        ]
        arrival = float(word[1]) / 1e3
        trace.append((0.0 if boundary is None else arrival // boundary * boundary, flows))
    return trace


def mean_completion(trace: list[Coflow], policy_: Policy) -> float:
    result = simulate(workload_of(trace), big_switch(2 * PORTS, GBIT), policy_)
    assert result.mean_coflow_completion_s is not None
    return result.mean_coflow_completion_s


def test_fair_over_sebf_as_coflowsim_finds_it() -> None:
    """CoflowSim on the first 100 coflows: FAIR 4305.84 ms, SEBF 2818.80 ms."""
    trace = first_100(10.24)
    even, fair, sebf = (
        mean_completion(trace, p) for p in (EvenShares(), policy("fair"), policy("varys"))
    )
    assert sebf * 1e3 == pytest.approx(2818.80, rel=0.03)
    assert even * 1e3 == pytest.approx(4305.84, rel=0.03)
    assert even / sebf == pytest.approx(4305.84 / 2818.80, rel=0.03)
    assert fair < even  # max-min wastes nothing


def test_bssi_over_sebf_as_sincronias_offline_simulator_finds_it() -> None:
    """The same coflows at time 0, 1 MB a unit: BSSI with greedy rates 448.5, SEBF 453.7."""
    trace = first_100(None)
    bssi = mean_completion(trace, policy("sincronia")) / 8e-3
    sebf = mean_completion(trace, policy("varys")) / 8e-3
    assert bssi == pytest.approx(448.5, rel=0.01)
    assert sebf == pytest.approx(453.7, rel=0.01)

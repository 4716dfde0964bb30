"""Random small instances for property tests: a big switch, a few EchelonFlows."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from controller.scheduling.policy import NetworkState
from tests.scheduling.player import Transfer, state_of


def transfers(seed: int, flows: int, groups: int, ports: int, coflow: bool) -> list[Transfer]:
    """Flows between random ports of a big switch; link p is up, link ports + p is down."""
    random = np.random.default_rng(seed)
    out = []
    for i in range(flows):
        src, dst = random.choice(ports, 2, replace=False) if ports > 1 else (0, 0)
        out.append(
            Transfer(
                group=i if i < groups else int(random.integers(groups)),
                bits=float(random.integers(1, 20))
                if random.random() < 0.5
                else random.uniform(0.1, 20),
                release=float(random.integers(0, 4)),
                offset=0.0 if coflow else float(random.integers(0, 6)) * 0.7,
                path=(int(src), ports + int(dst)),
            )
        )
    return out


@st.composite
def instances(draw: st.DrawFn, coflow: bool = False) -> tuple[list[Transfer], list[float]]:
    """Transfers and the capacity of every link."""
    groups = draw(st.integers(1, 4))
    flows = draw(st.integers(groups, 12))
    ports = draw(st.integers(2, 4))
    seed = draw(st.integers(0, 2**31))
    random = np.random.default_rng(seed)
    capacity = random.choice([0.5, 1.0, 3.0], 2 * ports).tolist()
    return transfers(seed, flows, groups, ports, coflow), capacity


@st.composite
def states(draw: st.DrawFn, coflow: bool = False, weighted: bool = True) -> NetworkState:
    """A state with every flow active, some of it sent, at time 5."""
    flows, capacity = draw(instances(coflow))
    random = np.random.default_rng(len(flows))
    left = np.array([t.bits for t in flows]) * random.uniform(0.05, 1.0, len(flows))
    groups = 1 + max(t.group for t in flows)
    weights = random.uniform(0.5, 2.0, groups).tolist() if weighted else [1.0] * groups
    state = state_of(flows, list(range(len(flows))), left, 5.0, capacity, weights)
    for job in state.jobs:
        job.work, job.compute_s, job.alone_s = random.uniform(1, 9), 1.0, 2.0
        job.link_bytes = {int(e): 1.0 for e in random.integers(len(capacity), size=2)}
    return state

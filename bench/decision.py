"""How long one decision takes: 10,000 flows of 1,000 EchelonFlows on a fat-tree of 250 hosts.

    python -m bench.decision [--flows N] [--groups N] [--policy NAME ...] [--repeats N] [--json FILE]

A decision from scratch reads the whole state; nothing is kept between decisions, so the time after
one arrival is the same. CPU time, so that other work on the machine counts little.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from controller.model.fabrics import fat_tree
from controller.scheduling.policy import JobState, NetworkState
from controller.scheduling.registry import POLICIES, policy

SCRATCH_MS, INCREMENTAL_MS = 20.0, 2.0


def cluster_state(flows: int, groups: int, seed: int = 0) -> NetworkState:
    """Random hosts, sizes 1..100 MB, staggered arrangements, one random shortest path a flow."""
    random = np.random.default_rng(seed)
    fabric = fat_tree(10, 100e9)
    group = np.sort(random.integers(groups, size=flows))
    group[:groups] = np.arange(groups)
    group.sort()
    hosts = random.integers(len(fabric.hosts), size=(groups, 2, 8))
    paths = []
    for g in group:
        src, dst = random.choice(hosts[g, 0]), random.choice(hosts[g, 1])
        dst = dst if dst != src else (src + 1) % len(fabric.hosts)
        choices = fabric.paths(fabric.hosts[src], fabric.hosts[dst])
        paths.append(choices[random.integers(len(choices))])
    size = random.uniform(1e6, 100e6, flows)
    reference = random.uniform(0, 10, groups)
    offset = random.integers(0, 4, flows) * 0.01
    return NetworkState(
        time=10.0,
        capacity=np.array([link.rate for link in fabric.links]),
        size=size,
        remaining=size * random.uniform(0.1, 1.0, flows),
        release=reference[group],
        ideal_finish=reference[group] + offset,
        group=group.astype(np.int64),
        path_start=np.cumsum([0, *map(len, paths)]).astype(np.int64),
        path_links=np.array([e for path in paths for e in path], np.int64),
        tie=random.permutation(flows).astype(np.int64),
        group_reference=reference,
        group_weight=random.uniform(0.5, 2.0, groups),
        group_job=np.arange(groups, dtype=np.int64) // 10,
        group_index=np.arange(groups, dtype=np.int64) % 10,
        group_sent=random.uniform(0, 1e9, groups),
        group_tie=random.permutation(groups).astype(np.int64),
        jobs=[
            JobState(f"job{j}", 1.0, 0.0, 1.0, 0.1, {j: 1e9, j + 1: 1e9}, 0.3)
            for j in range(-(-groups // 10))
        ],
    )


def decision_ms(name: str, state: NetworkState, repeats: int) -> np.ndarray:
    """CPU milliseconds of each of `repeats` decisions, the first (which compiles) left out."""
    chosen = policy(name)
    chosen.decide(state)
    took = []
    for _ in range(repeats):
        start = time.process_time_ns()
        chosen.decide(state)
        took.append((time.process_time_ns() - start) / 1e6)
    return np.array(took)


def main() -> None:
    """Print a table, and a row a target for `make bench` where a file is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--policy", action="append", choices=list(POLICIES))
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--json")
    asked = parser.parse_args()
    state = cluster_state(asked.flows, asked.groups)
    results = []
    print(f"{asked.flows} flows, {asked.groups} EchelonFlows, fat-tree:10; ms of CPU a decision")
    print(f"{'policy':14} {'median':>8} {'p99':>8}")
    for name in asked.policy or POLICIES:
        took = decision_ms(name, state, asked.repeats)
        p99 = float(np.percentile(took, 99))
        print(f"{name:14} {np.median(took):8.2f} {p99:8.2f}")
        if name == "echelon":
            results += [
                _row("live decision from scratch, p99", p99, SCRATCH_MS),
                _row("live decision after one arrival, p99", p99, INCREMENTAL_MS),
            ]
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(results, file, indent=1)


def _row(what: str, ours: float, target: float) -> dict[str, object]:
    return {
        "what": what,
        "ours": ours,
        "peer": None,
        "peer_name": None,
        "unit": "ms",
        "ratio": ours / target,
        "target": target,
        "met": ours <= target,
    }


if __name__ == "__main__":
    main()

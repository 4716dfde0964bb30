"""Which rank is right for `echelon`? Candidates on the suite, and on random released EchelonFlows.

    python -m bench.rank_study [--case NAME ...] [--random N]

First table: mean slowdown in the ideal model on every workload of the suite, each rank under the
smooth rule and in order of ideal finish. Second: total tardiness of random released EchelonFlows
whose slack differs, relative to the best rank of each instance.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from controller.experiments.suite import suite
from controller.scheduling import ranks, rates
from controller.scheduling.policy import Decision, Floats, NetworkState
from controller.simulator.alone import alone_times
from controller.simulator.simulate import plans_of, play

Key = Callable[[NetworkState, ranks.Formation], Floats]


def gamma(state: NetworkState, formed: ranks.Formation) -> Floats:
    """Remaining time of the busiest link (the rank of `echelon`)."""
    return ranks.gamma(state, formed)


def tau(state: NetworkState, formed: ranks.Formation) -> Floats:
    """Least tardiness still reachable (the rank of `echelon-paper`)."""
    return ranks.tau(state, formed)


def tau_without_age(state: NetworkState, formed: ranks.Formation) -> Floats:
    """tau - (t - r): Gamma where all d are r, less where the last flows have slack."""
    return ranks.tau(state, formed) - (state.time - state.group_reference)


def between(state: NetworkState, formed: ranks.Formation) -> Floats:
    """The mean of Gamma and tau without its age."""
    return (ranks.gamma(state, formed) + tau_without_age(state, formed)) / 2


def minus_tau(state: NetworkState, formed: ranks.Formation) -> Floats:
    """-tau: the most tardy first (the paper's other direction)."""
    return -ranks.tau(state, formed)


def reference(state: NetworkState, formed: ranks.Formation) -> Floats:
    """r: the oldest EchelonFlow first."""
    return state.group_reference


def first_finish(state: NetworkState, formed: ranks.Formation) -> Floats:
    """The earliest ideal finish among the flows that remain."""
    out = np.full(state.groups, np.inf)
    np.minimum.at(out, state.group, state.ideal_finish)
    return out


def own_job_in_turn(state: NetworkState, formed: ranks.Formation) -> Floats:
    """Gamma of the job's oldest EchelonFlow, then r: iterations of one job never overtake."""
    key = ranks.gamma(state, formed)
    oldest = np.lexsort((state.group_tie, state.group_reference, state.group_job))
    lead = np.full(len(state.jobs), np.inf)
    seen: set[int] = set()
    for g in oldest:
        if int(state.group_job[g]) not in seen:
            seen.add(int(state.group_job[g]))
            lead[state.group_job[g]] = key[g]
    place = np.empty(state.groups)
    place[np.argsort(state.group_reference, kind="stable")] = np.arange(state.groups)
    return lead[state.group_job] * (1 + 1e-6 * place / state.groups)


KEYS: tuple[Key, ...] = (
    gamma, tau, tau_without_age, between, minus_tau, reference, first_finish, own_job_in_turn,
)  # fmt: skip


@dataclass(frozen=True)
class Ranked:
    """A rank and a rule."""

    key: Key
    smooth: bool
    local: bool = True

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.key.__name__} {'smooth' if self.smooth else 'in order'}"

    def decide(self, state: NetworkState) -> Decision:
        """As `echelon` or `echelon-edf`, with the other key."""
        formed = ranks.formation(state)
        key = self.key(state, formed) / state.group_weight
        order = ranks.ordered(key, state.group_tie)
        if self.smooth:
            return rates.by_group(state, order, rates.smooth(state, formed, order))
        flows = rates.group_by_group(formed, order)
        return rates.by_flow(flows, rates.in_order(state, flows))


def released(seed: int) -> tuple[NetworkState, Floats]:
    """Random EchelonFlows all released, on one link of 1 bit/s: a state, and sizes in bits."""
    random = np.random.default_rng(seed)
    groups = int(random.integers(2, 9))
    counts = random.integers(1, 6, groups)
    group = np.repeat(np.arange(groups), counts)
    steps = random.choice([0.0, 0.5, 2.0, 8.0], groups)
    reference = -random.uniform(0, 10, groups)
    offset = np.concatenate([np.arange(n) * step for n, step in zip(counts, steps, strict=True)])
    bits = random.exponential(2.0, len(group)) + 0.01
    state = NetworkState(
        time=0.0, capacity=np.ones(1), size=bits / 8, remaining=bits / 8,
        release=reference[group], ideal_finish=reference[group] + offset, group=group,
        path_start=np.arange(len(group) + 1), path_links=np.zeros(len(group), np.int64),
        tie=np.arange(len(group)), group_reference=reference, group_weight=np.ones(groups),
        group_job=np.arange(groups), group_index=np.zeros(groups, np.int64),
        group_sent=np.zeros(groups), group_tie=np.arange(groups), jobs=[],
    )  # fmt: skip
    return state, bits


def total_tardiness(state: NetworkState, bits: Floats, key: Key) -> float:
    """Sum of t_H where groups go one after another by the key at time 0, each in order of d."""
    formed = ranks.formation(state)
    groups = ranks.ordered(key(state, formed), state.group_tie)
    order = rates.group_by_group(formed, groups)
    late = np.full(state.groups, -np.inf)
    np.maximum.at(late, state.group[order], np.cumsum(bits[order]) - state.ideal_finish[order])
    return float(np.sum(late))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append")
    parser.add_argument("--random", type=int, default=2000)
    asked = parser.parse_args()

    print(f"Excess tardiness over the best of these ranks, mean of {asked.random} instances\n")
    totals = []
    for seed in range(asked.random):
        state, bits = released(seed)
        shift = float(np.sum(-state.group_reference))  # ages, the same under every order
        totals.append([total_tardiness(state, bits, key) - shift for key in KEYS[:7]])
    excess = np.array(totals) - np.min(totals, axis=1, keepdims=True)
    scale = np.mean(np.min(totals, axis=1))
    for key, value in zip(KEYS[:7], np.mean(excess, axis=0) / scale, strict=True):
        print(f"| {key.__name__} | {100 * value:.2f} % |")

    policies = [Ranked(key, smooth) for key in KEYS for smooth in (True, False)]
    print("\nMean slowdown, ideal model\n")
    print("| workload | " + " | ".join(policy.name for policy in policies) + " |")
    print("|---|" + "---:|" * len(policies))
    rows = []
    for case in suite():
        if asked.case and case.name not in asked.case:
            continue
        alone = alone_times(case.workload, case.fabric)
        plans = plans_of(case.workload, case.fabric)
        rows.append(
            [play(plans, case.fabric, policy, records=False).mean_slowdown(alone)
             for policy in policies]
        )  # fmt: skip
        print(f"| {case.name} | " + " | ".join(f"{x:.3f}" for x in rows[-1]) + " |", flush=True)
    print("| **mean** | " + " | ".join(f"{x:.3f}" for x in np.mean(rows, axis=0)) + " |")


if __name__ == "__main__":
    main()

"""The suite under every policy: mean slowdowns in the enforced model, the search, the bound.

    python -m bench.scheduling_suite [--case NAME ...] [--budget PLAYS] [--seed N] [--rows FILE]
                                     [--json FILE]

One line a workload and policy: the mean slowdown in the ideal model, in the enforced one, and with
8 queues only (no pacing, nobody held); each over the LP bound in the second table. CPU seconds are
of the whole row. Rows are kept in FILE as they come, and those it has are not measured again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from controller.experiments.search import searched
from controller.experiments.suite import Case, suite
from controller.scheduling.policy import Decision, NetworkState, Policy
from controller.scheduling.registry import POLICIES, SEARCH, policy
from controller.simulator.alone import alone_times
from controller.simulator.bounds import Bound, workload_bound
from controller.simulator.player import player
from controller.simulator.simulate import simulate

GROWTHS = (1.005, 1.01, 1.02)
"What intervals of the bound's programme grow by: never more than algorithms.md says."
LARGEST = 70_000
"Columns above which a coarser growth is taken, as long as there is one."
EFFORT = 30_000_000_000
"Steps spent on refuting: more than the command line spends."
BUDGET = 1000
"Plays of the search: more than the command line spends."


@dataclass(frozen=True)
class QueuesOnly:
    """A policy whose hosts neither pace nor hold: what 8 queues alone make of its order."""

    policy: Policy
    name: str = "queues only"
    local: bool = True

    def decide(self, state: NetworkState) -> Decision:
        """The same ranks, no pace."""
        decision = self.policy.decide(state)
        decision.pace = np.full(state.flows, np.inf)
        return decision


@dataclass
class Row:
    """One workload."""

    name: str
    bound: float
    method: str
    ideal: dict[str, float]
    enforced: dict[str, float]
    queues: dict[str, float]
    found: str
    "What the search found: an order, or the baseline it adopted."
    cpu_s: float


def bound_of(case: Case, alone: Mapping[str, float], effort: int = EFFORT) -> Bound:
    """The bound of a workload: a programme that is solved, however large."""
    for growths, largest in ((GROWTHS, LARGEST), (GROWTHS[-1:], sys.maxsize)):
        bound = workload_bound(case.workload, case.fabric, alone, growths, largest, effort)
        if bound.by_programme:
            break
    return bound


def run(case: Case, budget: int, seed: int) -> Row:
    """All policies on one workload."""
    began = time.process_time()
    alone = alone_times(case.workload, case.fabric)
    bound = bound_of(case, alone)
    ideal = player(case.workload, case.fabric, alone, "ideal")
    enforced = player(case.workload, case.fabric, alone, "enforced")
    row = Row(case.name, bound.mean_slowdown, bound.method, {}, {}, {}, "", 0.0)
    for name in POLICIES:
        row.ideal[name] = ideal(policy(name)).cost
        row.enforced[name] = enforced(policy(name)).cost
        row.queues[name] = enforced(QueuesOnly(policy(name))).cost
    found = searched(case.workload, case.fabric, "enforced", budget=budget, seed=seed)
    asked = simulate(case.workload, case.fabric, found.policy, "enforced")  # at every decision
    row.enforced[SEARCH] = asked.mean_slowdown(alone)
    row.ideal[SEARCH] = ideal(found.policy).cost
    row.queues[SEARCH] = enforced(QueuesOnly(found.policy)).cost
    row.found = found.policy.spelled
    row.cpu_s = time.process_time() - began
    return row


def print_tables(rows: list[Row]) -> None:
    """Markdown: enforced slowdowns; over the bound; what queues cost."""
    names = [*POLICIES, SEARCH]
    print("\nMean slowdown, enforced model\n")
    _table(rows, names, lambda row, name: row.enforced[name], "bound", "search / bound")
    print("\nEnforced / bound\n")
    _table(rows, names, lambda row, name: row.enforced[name] / row.bound, "method")
    print("\nEnforced / ideal - 1, per cent (pacing and 8 queues)\n")
    _table(rows, names, lambda row, name: 100 * (row.enforced[name] / row.ideal[name] - 1), "cpu")
    print("\nQueues only / ideal - 1, per cent (8 queues, no pacing, nobody held)\n")
    _table(rows, names, lambda row, name: 100 * (row.queues[name] / row.ideal[name] - 1), "cpu")


def _table(
    rows: list[Row], names: list[str], value: Callable[[Row, str], float], *last: str
) -> None:
    print("| workload | " + " | ".join([*names, *last]) + " |")
    print("|---|" + "---:|" * (len(names) + len(last)))
    for row in rows:
        cells = [f"{value(row, name):.3f}" for name in names]
        print(
            f"| {row.name} | " + " | ".join([*cells, *(_extra(row, what) for what in last)]) + " |"
        )
    means = " | ".join(f"{np.mean([value(row, name) for row in rows]):.3f}" for name in names)
    over = np.mean([row.enforced[SEARCH] / row.bound for row in rows])
    print(
        f"| **mean** | {means} | "
        + " | ".join(f"{over:.3f}" if "/" in x else "" for x in last)
        + " |"
    )


def _extra(row: Row, what: str) -> str:
    return {
        "bound": f"{row.bound:.3f}",
        "search / bound": f"{row.enforced[SEARCH] / row.bound:.3f}",
        "method": row.method,
        "cpu": f"{row.cpu_s:.0f} s",
    }[what]


def targets(rows: list[Row]) -> list[dict[str, object]]:
    """The rows of `make bench`."""
    margin = min(
        min(row.enforced[name] for name in POLICIES) / row.enforced[SEARCH] for row in rows
    )
    solved = [row for row in rows if row.method.startswith("interval")]
    over = [row.enforced[SEARCH] / row.bound for row in solved]
    price = max(row.enforced["echelon"] / row.ideal["echelon"] for row in rows)

    def target(what: str, ours: float, unit: str, goal: float, met: bool) -> dict[str, object]:
        return {
            "what": what, "ours": ours, "peer": None, "peer_name": None, "unit": unit,
            "ratio": ours / goal, "target": goal, "met": met,
        }  # fmt: skip

    return [
        target("best rival / echelon-search, least over the suite", margin, "ratio", 1, margin >= 1),
        target("echelon-search / LP bound, mean", float(np.mean(over)), "ratio", 1.10,
               bool(np.mean(over) <= 1.10)),
        target("echelon, price of pacing and 8 queues, largest", price, "ratio", 1.03, price <= 1.03),
    ]  # fmt: skip


def main() -> None:
    """Run, print, and write the rows of `make bench` where a file is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rows: list[Row] = []
    if asked.rows and asked.rows.exists():
        rows = [Row(**row) for row in json.loads(asked.rows.read_text())]
    measured = {row.name for row in rows}
    for case in suite():
        if case.name in measured or (asked.case and case.name not in asked.case):
            continue
        row = run(case, asked.budget, asked.seed)
        best = min(POLICIES, key=lambda name: row.enforced[name])
        print(
            f"{case.name}: {case.what}; bound {row.bound:.3f} ({row.method}), best rival {best} "
            f"{row.enforced[best]:.3f}, search {row.enforced[SEARCH]:.3f}, {row.cpu_s:.0f} s",
            file=sys.stderr,
            flush=True,
        )
        rows.append(row)
        if asked.rows:
            asked.rows.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print_tables(rows)
    if asked.json:
        asked.json.write_text(json.dumps(targets(rows), indent=1))


if __name__ == "__main__":
    main()

"""A mix that `echelon` serves worse than fair sharing does: python -m bench.fsdp_mix

BERT-large data parallel on two hosts, a 1F1B pipeline of GPT-2 large and GPT-2 medium under FSDP, on the
same four hosts at 50 Gbit/s. One line a policy: the slowdown of every job, enforced model.
"""

from __future__ import annotations

from collections.abc import Mapping

from controller.experiments.search import searched
from controller.experiments.suite import data_parallel, pipelined, sharded
from controller.model import PlacedJob, Workload
from controller.model.fabrics import big_switch
from controller.profiles.placement import place
from controller.scheduling.echelon_search import WHOLE, FixedOrder
from controller.scheduling.registry import POLICIES, SEARCH, policy
from controller.simulator.alone import alone_times
from controller.simulator.player import player

GBIT = 1e9


def workload() -> Workload:
    """The three jobs, four iterations each."""
    jobs = (
        data_parallel("data-parallel", "bertlarge", 4, 2, 4),
        pipelined("pipeline", "gpt2large", 4, 4, "1f1b", 4),
        sharded("fsdp", "gpt2medium", 4, 4, 4),
    )
    return Workload(tuple(PlacedJob(job, {}) for job in jobs), "fsdp-mix")


def print_row(name: str, mean: float, slowdown: Mapping[str, float]) -> None:
    """One line of Markdown."""
    cells = " | ".join(f"{value:.3f}" for value in slowdown.values())
    print(f"| {name} | {mean:.3f} | {cells} |")


def main() -> None:
    """Every policy, the one order of jobs that explains it, and the search."""
    fabric = big_switch(4, 50 * GBIT)
    placed = place(workload(), fabric, "packed")
    alone = alone_times(placed, fabric)
    plays = player(placed, fabric, alone)
    print("| policy | mean | " + " | ".join(alone) + " |\n|---|" + "---:|" * (1 + len(alone)))
    for name in POLICIES:
        outcome = plays(policy(name))
        print_row(f"`{name}`", outcome.cost, outcome.slowdown)
    line = ("pipeline", "data-parallel", "fsdp")
    outcome = plays(FixedOrder({(job, WHOLE): k for k, job in enumerate(line)}))
    print_row("`echelon` within " + ", ".join(line), outcome.cost, outcome.slowdown)
    outcome = searched(placed, fabric, "enforced").outcome
    print_row(f"`{SEARCH}`", outcome.cost, outcome.slowdown)


if __name__ == "__main__":
    main()

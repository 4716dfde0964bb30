"""The bound of every workload of the suite: by linear programme alone, and raised by refuting.

    python -m bench.bounds [NAME ...] [--effort STEPS]

CPU seconds are of each bound.
"""

from __future__ import annotations

import argparse
import time

from bench.scheduling_suite import EFFORT, bound_of
from controller.experiments.suite import Case, suite
from controller.simulator.alone import alone_times


def print_row(case: Case, effort: int) -> None:
    """One line of Markdown."""
    alone = alone_times(case.workload, case.fabric)
    cells = [case.name]
    for steps in (0, effort):
        began = time.process_time()
        bound = bound_of(case, alone, steps).mean_slowdown
        cells += [f"{bound:.3f}", f"{time.process_time() - began:.0f}"]
    print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--effort", type=int, default=EFFORT)
    asked = parser.parse_args()
    print("| workload | programme | CPU s | raised | CPU s |\n|---|---:|---:|---:|---:|")
    for case in suite():
        if not asked.names or case.name in asked.names:
            print_row(case, asked.effort)


if __name__ == "__main__":
    main()

"""The embedded switch beside a bare packet-socket forwarder and BMv2, in one run.

    python -m bench.switch [--part forwarding|shaping|writes ...] [--seconds S] [--repeats N]

Needs root, a C compiler and ethtool. Runs with real-time priority: the machine does little else meanwhile.
BMv2's figures appear where simple_switch_grpc is on PATH.
Prints a table and writes results/bench/switch.json.
"""

from __future__ import annotations

import argparse
import os
import sys

from bench.switch import forwarding, report, shaping, writes
from bench.switch.network import own_namespace

PARTS = ("forwarding", "shaping", "writes")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--frames", type=int, default=1_000_000, help="of the no-loss check")
    asked = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.switch needs root: it makes network interfaces", file=sys.stderr)
        return 2
    own_namespace()
    # Inherited by all that is started: what else this machine does shall not be measured.
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    measures = {
        "forwarding": lambda: forwarding.measure(asked.seconds, asked.repeats, asked.frames),
        "shaping": lambda: shaping.measure(asked.seconds, asked.repeats),
        "writes": lambda: writes.measure(asked.repeats),
    }
    rows = []
    report.heading()
    for part in asked.part or PARTS:
        for row in measures[part]():
            report.show(row)
            rows.append(row)
    print(report.write(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

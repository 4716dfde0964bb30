"""A dry run of one decision, for people and for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from controller.experiments.inputs import Problem
from controller.experiments.offline import make_policy
from controller.model.units import format_rate, format_size
from controller.simulator.moment import Decided, busiest_moment, decided_at


def decisions(
    problem: Problem, policies: Sequence[str], at: float | None, seed: int
) -> list[dict[str, Any]]:
    """What each policy decides `at` seconds (None: when most flows are active). Raises BadInput."""
    found = []
    for name in policies:
        policy = make_policy(name, problem, "ideal", seed)
        moment = busiest_moment(problem.workload, problem.fabric, policy) if at is None else at
        flows = decided_at(problem.workload, problem.fabric, policy, moment)
        found.append(
            {"policy": name, "at_s": moment, "flows": [_flow(one, problem) for one in flows]}
        )
    return found


def print_decisions(found: Sequence[dict[str, Any]], console: Console) -> None:
    """A table a policy."""
    for decision in found:
        table = Table(
            title=f"{decision['policy']} at {decision['at_s']:.4g} s: "
            f"{len(decision['flows'])} active flows",
            title_justify="left",
        )
        table.add_column("job", no_wrap=True, max_width=14)
        table.add_column("flow", no_wrap=True, max_width=18)
        table.add_column("way", no_wrap=True)
        for column in ("left", "rank", "class", "rate", "host"):
            table.add_column(column, justify="right", no_wrap=True)
        for flow in decision["flows"]:
            table.add_row(
                flow["job"],
                f"{flow['flow']} #{flow['iteration']}",
                f"{flow['path'][0]}-{flow['path'][-1]}",
                format_size(flow["remaining_bytes"]),
                str(flow["rank"]),
                str(flow["class"]),
                format_rate(flow["rate_bps"]),
                _host(flow["pace_bps"]),
            )
        console.print(table)


def _flow(one: Decided, problem: Problem) -> dict[str, Any]:
    links = [problem.fabric.links[index] for index in one.path]
    return {
        "job": one.job,
        "iteration": one.iteration,
        "flow": one.flow,
        "echelonflow": one.echelonflow,
        "path": [links[0].src, *(link.dst for link in links)],
        "remaining_bytes": one.remaining,
        "ideal_finish_s": one.ideal_finish,
        "rank": one.rank,
        "class": one.class_,
        "rate_bps": one.rate,
        "pace_bps": one.pace if math.isfinite(one.pace) else None,
    }


def _host(pace: float | None) -> str:
    if pace is None:
        return "unpaced"
    return "holds" if not pace else format_rate(pace)

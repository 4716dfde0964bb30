"""Commands that need no network: schedule, simulate, compare, bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from controller.cli.options import (
    InputFile,
    Json,
    LinkRate,
    Model,
    Out,
    Placement,
    Policies,
    Seed,
    Topology,
    console,
    print_json,
)

if TYPE_CHECKING:
    from controller.experiments.inputs import Problem
    from controller.experiments.summary import Summary
    from controller.model.record import Played

Iterations = Annotated[
    int | None, typer.Option(help="Play every job this often, whatever its profile says.")
]


def mount(app: typer.Typer) -> None:
    """Adds the commands to `echelon`."""
    from controller.cli import profile

    app.add_typer(profile.app, name="profile", help="Import, show and check job profiles.")
    app.command()(schedule)
    app.command()(simulate)
    app.command()(compare)
    app.command()(bound)


def schedule(
    file: InputFile,
    policy: Policies = None,
    topology: Topology = None,
    link_rate: LinkRate = None,
    placement: Placement = "packed",
    at: Annotated[
        str | None,
        typer.Option(help="Moment to look at, as in 120ms; else when most flows are active."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """What a policy would decide at one moment: rank, class, rate and pace of every flow."""
    from controller.experiments.inputs import read_problem
    from controller.experiments.schedule import decisions, print_decisions
    from controller.model.units import parse_time

    problem = read_problem(file, topology, link_rate, placement, seed)
    found = decisions(problem, policy or ["echelon"], None if at is None else parse_time(at), seed)
    if json:
        print_json(found)
    else:
        print_decisions(found, console)


def simulate(
    file: InputFile,
    policy: Policies = None,
    topology: Topology = None,
    link_rate: LinkRate = None,
    placement: Placement = "packed",
    model: Model = "ideal",
    iterations: Iterations = None,
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Plays a workload on the fluid simulator (policy: echelon unless said)."""
    from controller.experiments.inputs import read_problem
    from controller.experiments.offline import play

    problem = read_problem(file, topology, link_rate, placement, seed, iterations)
    summary, played = play(problem, policy or ["echelon"], model, seed)
    _show(problem, summary, played, out, json)


def compare(
    file: InputFile,
    policy: Policies = None,
    topology: Topology = None,
    link_rate: LinkRate = None,
    placement: Placement = "packed",
    model: Model = "ideal",
    iterations: Iterations = None,
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Policies side by side on the simulator, each beside the bound no schedule can pass."""
    from controller.experiments.inputs import read_problem

    problem = read_problem(file, topology, link_rate, placement, seed, iterations)
    compare_on(problem, policy, model, seed, out, json)


def compare_on(
    problem: Problem, policy: list[str] | None, model: str, seed: int, out: Path | None, json: bool
) -> None:
    """What `compare` does with a problem, and `replay --on simulator`."""
    from controller.experiments.offline import DEFAULT_POLICIES, play, set_bounds

    summary, played = play(problem, policy or DEFAULT_POLICIES, model, seed)
    set_bounds(problem, summary)
    _show(problem, summary, played, out, json)


def bound(
    file: InputFile,
    topology: Topology = None,
    link_rate: LinkRate = None,
    placement: Placement = "packed",
    iterations: Iterations = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Lower bounds: each job alone on the idle fabric, and the workload's mean slowdown."""
    from controller.experiments.inputs import read_problem
    from controller.experiments.offline import bound_summary
    from controller.experiments.summary import to_builtins
    from controller.experiments.table import print_bound

    problem = read_problem(file, topology, link_rate, placement, seed, iterations)
    summary = bound_summary(problem)
    if json:
        print_json(to_builtins(summary))
    else:
        print_bound(summary, console)


def _show(
    problem: Problem, summary: Summary, played: dict[str, Played], out: Path | None, json: bool
) -> None:
    from controller.experiments.results import write_results
    from controller.experiments.summary import to_builtins
    from controller.experiments.table import print_summary

    if out is not None:
        name = problem.workload.name
        write_results(out, summary, {}, {(name, policy): one for policy, one in played.items()})
    if json:
        print_json(to_builtins(summary))
        return
    for note in problem.notes:
        console.print(f"[dim]{note}[/dim]")
    print_summary(summary, console)
    if out is not None:
        console.print(f"results: {out}")

"""Commands that play on a live Mininet network: run, replay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from controller.cli.options import (
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
from controller.model.errors import BadInput

if TYPE_CHECKING:
    from controller.experiments.run import Prediction
    from controller.model import Fabric

Target = Annotated[
    str | None,
    typer.Option(help="bmv2 or embedded; unless said, bmv2 where it is installed."),
]
Limit = Annotated[
    int | None, typer.Option(help="Of a coflow trace, the first so many narrow coflows.")
]


def mount(app: typer.Typer) -> None:
    """Adds the commands to `echelon`."""
    app.command()(run)
    app.command()(replay)


def run(
    file: Annotated[
        Path | None, typer.Argument(help="Your own workload, profile or trace instead.")
    ] = None,
    policy: Policies = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(help="figure2, two-pipelines or training; repeat for several."),
    ] = None,
    target: Target = None,
    topology: Topology = None,
    link_rate: LinkRate = None,
    time_unit: Annotated[str, typer.Option(help="Seconds of one unit of the paper.")] = "1.5s",
    iterations: Annotated[int | None, typer.Option(help="Iterations of every job.")] = None,
    placement: Placement = "packed",
    time_scale: Annotated[float, typer.Option(help="Stretch times (and sizes) by this.")] = 1.0,
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """The main job: real TCP through P4 switches under several policies, beside the model."""
    from controller.experiments import catalogue
    from controller.model.units import parse_time

    fabric, chosen = catalogue.live_fabric(topology, link_rate, target)
    if file is not None:
        if scenario:
            raise BadInput("--scenario names built-in workloads: give it or a file, not both")
        how = catalogue.Retelling(placement, seed, iterations, time_scale)
        scenarios = catalogue.of_file(file, fabric, how)
    else:
        unit = parse_time(time_unit)
        scenarios = catalogue.built_in(scenario, fabric, unit, iterations, time_scale)
    _play(catalogue.predictions(scenarios, policy, fabric, seed), fabric, chosen, seed, out, json)


def replay(
    file: Annotated[Path, typer.Argument(help="A trace, workload or profile.")],
    policy: Policies = None,
    on: Annotated[str, typer.Option(help="mininet or simulator.")] = "mininet",
    target: Target = None,
    topology: Topology = None,
    link_rate: LinkRate = None,
    model: Model = "ideal",
    iterations: Annotated[int | None, typer.Option(help="Iterations of every job.")] = None,
    placement: Placement = "packed",
    time_scale: Annotated[float, typer.Option(help="Stretch times (and sizes) by this.")] = 1.0,
    arrival_scale: Annotated[float, typer.Option(help="Multiply times of arrival by this.")] = 1.0,
    coflows: Limit = None,
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Plays a trace live on Mininet or on the simulator, and compares policies."""
    from controller.cli import offline
    from controller.experiments import catalogue

    if on == "simulator":
        offline.compare(
            file, policy, topology, link_rate, placement, model, iterations, seed, out, json
        )
        return
    if on != "mininet":
        raise BadInput(f"--on {on}: expected mininet or simulator")
    fabric, chosen = catalogue.live_fabric(topology, link_rate, target)
    how = catalogue.Retelling(placement, seed, iterations, time_scale, arrival_scale, coflows)
    scenarios = catalogue.of_file(file, fabric, how)
    _play(catalogue.predictions(scenarios, policy, fabric, seed), fabric, chosen, seed, out, json)


def _play(
    predictions: list[Prediction],
    fabric: Fabric,
    target: str,
    seed: int,
    out: Path | None,
    json: bool,
) -> None:
    from rich.console import Console

    from controller.experiments.checks import require_fit
    from controller.experiments.progress import Progress
    from controller.experiments.run import run as play
    from controller.experiments.summary import to_builtins
    from controller.experiments.table import print_summary

    progress = Progress(Console(stderr=True) if json else console, len(predictions))
    admitted = require_fit(predictions, fabric, target)
    progress.say(admitted.sentence())
    summary, folder = play(predictions, fabric, target, admitted, progress, seed, out)
    if json:
        print_json(to_builtins(summary))
    else:
        print_summary(summary, console)
        console.print(f"results: {folder}  (open {folder / 'report.html'} in a browser)")

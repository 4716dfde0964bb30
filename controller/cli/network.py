"""Commands that play on a live Mininet network: run, replay."""

from __future__ import annotations

from dataclasses import dataclass
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
    from controller.experiments.catalogue import Retelling
    from controller.experiments.run import Prediction
    from controller.experiments.scenarios import Scenario
    from controller.model import Fabric

Target = Annotated[
    str | None,
    typer.Option(help="bmv2 or embedded; unless said, bmv2 where it is installed."),
]
Narrow = Annotated[
    int | None, typer.Option(help="Of a coflow trace, the first so many narrow coflows.")
]
ReferenceRate = Annotated[
    str | None,
    typer.Option(help="Link rate a trace was recorded at, as in 100gbit: its sizes scale from it."),
]
TimeScale = Annotated[
    float | None,
    typer.Option(
        help="Stretch times and sizes by this; unless said, a trace's until its flows last long enough."
    ),
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
    reference_rate: ReferenceRate = None,
    time_unit: Annotated[str, typer.Option(help="Seconds of one unit of the paper.")] = "1.5s",
    iterations: Annotated[int | None, typer.Option(help="Iterations of every job.")] = None,
    placement: Placement = "packed",
    time_scale: TimeScale = None,
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """The main job: real TCP through P4 switches under several policies, beside the model."""
    from controller.experiments import catalogue
    from controller.model.units import parse_time
    from controller.profiles.importers.report import Options

    fabric, chosen = catalogue.live_fabric(topology, link_rate, target)
    live = _Live(fabric, chosen, policy, seed, out, json)
    if file is not None:
        if scenario:
            raise BadInput("--scenario names built-in workloads: give it or a file, not both")
        options = Options(reference_rate=_rate(reference_rate))
        how = catalogue.Retelling(placement, seed, iterations, time_scale, options=options)
        live.play_file(file, how)
        return
    unit = parse_time(time_unit)
    live.play(catalogue.built_in(scenario, fabric, unit, iterations, time_scale or 1.0))


def replay(
    file: Annotated[Path, typer.Argument(help="A trace, workload or profile.")],
    policy: Policies = None,
    on: Annotated[str, typer.Option(help="mininet or simulator.")] = "mininet",
    target: Target = None,
    topology: Topology = None,
    link_rate: LinkRate = None,
    reference_rate: ReferenceRate = None,
    model: Model = "ideal",
    iterations: Annotated[int | None, typer.Option(help="Iterations of every job.")] = None,
    placement: Placement = "packed",
    time_scale: TimeScale = None,
    arrival_scale: Annotated[float, typer.Option(help="Multiply times of arrival by this.")] = 1.0,
    coflows: Narrow = None,
    limit: Annotated[int | None, typer.Option(help="Of a trace, the first so many jobs.")] = None,
    algorithm: Annotated[str, typer.Option(help="How a trace's collectives are done.")] = "ring",
    seed: Seed = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Plays a trace live on Mininet or on the simulator, and compares policies."""
    from controller.cli import offline
    from controller.experiments import catalogue
    from controller.experiments.inputs import read_problem, retimed
    from controller.profiles.importers.report import Options

    options = Options(reference_rate=_rate(reference_rate), limit=limit, algorithm=algorithm)
    if on == "simulator":
        problem = read_problem(
            file, topology, link_rate, placement, seed, iterations, options,
            lambda workload: retimed(workload, coflows, time_scale or 1.0, arrival_scale),
        )  # fmt: skip
        offline.compare_on(problem, policy, model, seed, out, json)
        return
    if on != "mininet":
        raise BadInput(f"--on {on}: expected mininet or simulator")
    fabric, chosen = catalogue.live_fabric(topology, link_rate, target)
    how = catalogue.Retelling(
        placement, seed, iterations, time_scale, arrival_scale, coflows, options
    )
    _Live(fabric, chosen, policy, seed, out, json).play_file(file, how)


@dataclass(frozen=True, slots=True)
class _Live:
    """What `run` and `replay` share: where to play, under which policies, and what to do with the results."""

    fabric: Fabric
    target: str
    policies: list[str] | None
    seed: int
    out: Path | None
    json: bool

    def play_file(self, file: Path, how: Retelling) -> None:
        """The user's own file, stretched as it needs."""
        from controller.experiments import catalogue, live_fit

        retold = catalogue.of_file(file, self.fabric, how)
        found = catalogue.predictions([retold.scenario], self.policies, self.fabric, self.seed)
        long = live_fit.require_time(retold.scenario.workload, [one.seconds for one in found])
        self._play(found, (*retold.notes, long))

    def play(self, scenarios: list[Scenario]) -> None:
        """Built-in scenarios."""
        from controller.experiments import catalogue

        self._play(catalogue.predictions(scenarios, self.policies, self.fabric, self.seed))

    def _play(self, predictions: list[Prediction], notes: tuple[str, ...] = ()) -> None:
        from rich.console import Console

        from controller.experiments.checks import require_fit
        from controller.experiments.progress import Progress
        from controller.experiments.run import run as play
        from controller.experiments.summary import to_builtins
        from controller.experiments.table import print_summary

        progress = Progress(Console(stderr=True) if self.json else console, len(predictions))
        for note in notes:
            progress.say(note)
        admitted = require_fit(predictions, self.fabric, self.target)
        progress.say(admitted.sentence())
        summary, folder = play(
            predictions, self.fabric, self.target, admitted, progress, self.seed, self.out, notes
        )
        if self.json:
            print_json(to_builtins(summary))
            return
        print_summary(summary, console)
        console.print(f"results: {folder}  (open {folder / 'report.html'} in a browser)")


def _rate(reference_rate: str | None) -> float | None:
    from controller.model.units import parse_rate

    return None if reference_rate is None else parse_rate(reference_rate)

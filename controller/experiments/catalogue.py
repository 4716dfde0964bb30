"""What can be run live: the built-in scenarios or the user's own file, on the fabric asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from controller.experiments import live_fit
from controller.experiments import scenarios as built
from controller.experiments.inputs import (
    DEFAULT_RATE,
    first_narrow,
    folded,
    recorded_at,
    repeated,
    spaced,
    stretched,
)
from controller.experiments.offline import DEFAULT_POLICIES
from controller.experiments.run import Prediction, predict
from controller.experiments.scenarios import Scenario
from controller.model import Fabric, Workload
from controller.model.errors import BadInput
from controller.model.fabrics import parse_topology
from controller.model.units import parse_rate
from controller.profiles.importers.report import Options
from controller.profiles.load import load, load_fabric
from controller.profiles.placement import place
from controller.profiles.placement_file import read_placement
from topologies.emulation import best_target

TOPOLOGY = "leaf-spine:2x2x4"
"2 leaves, 2 spines, 8 hosts: the core carries half of what the hosts can send."
LINK_RATE = {"embedded": "40mbit", "bmv2": "6mbit"}
"What each target carries on two cores with room to spare."
SCENARIOS = ("figure2", "two-pipelines", "training")


def live_fabric(
    topology: str | None, link_rate: str | None, target: str | None
) -> tuple[Fabric, str]:
    """The fabric to build and the kind of switch to build it from. Raises BadInput."""
    chosen = target or best_target()
    if chosen not in LINK_RATE:
        raise BadInput(f"--target {chosen}: expected {' or '.join(LINK_RATE)}")
    rate = parse_rate(link_rate or LINK_RATE[chosen])
    name = topology or TOPOLOGY
    if ":" in name:
        return parse_topology(name, rate), chosen
    return load_fabric(Path(name), rate), chosen


def built_in(
    names: Sequence[str] | None,
    fabric: Fabric,
    unit_s: float,
    iterations: int | None,
    time_scale: float,
) -> list[Scenario]:
    """The scenarios of `make run`, all or those named. Raises BadInput."""
    chosen = list(dict.fromkeys(names or SCENARIOS))
    for name in chosen:
        if name not in SCENARIOS:
            raise BadInput(f"--scenario {name}: expected {', '.join(SCENARIOS)}")
    rate = fabric.host_rate
    found = []
    for name in chosen:
        if name == "figure2":
            found.append(built.figure2(unit_s, rate))
        elif name == "two-pipelines":
            found.append(built.two_pipelines(unit_s, rate))
        else:
            found.append(built.training())
    return [
        replace(one, workload=place(repeated(_stretched(one, time_scale), iterations), fabric))
        for one in found
    ]


@dataclass(frozen=True, slots=True)
class Retelling:
    """How a file is fitted to the fabric that it is played on."""

    placement: str = "packed"
    "packed, spread or random, for workers without a host; or a file: job -> worker -> host."
    seed: int = 0
    "For random placement."
    iterations: int | None = None
    "Of every job; None: as its profile says."
    time_scale: float | None = None
    "Times and sizes together: the same contention, slower. None: what makes a trace's flows long enough."
    arrival_scale: float = 1.0
    "Times of arrival alone."
    coflows: int | None = None
    "Only the first so many narrow coflows."
    options: Options = field(default_factory=Options)
    "For a trace's importer; without a reference rate: as it says, else what is assumed."


@dataclass(frozen=True, slots=True)
class Retold:
    """A file as it will be played."""

    scenario: Scenario
    "The workload, placed and stretched."
    notes: tuple[str, ...]
    "How it was read and fitted, for people."


def of_file(path: Path, fabric: Fabric, how: Retelling) -> Retold:
    """The user's own workload as a scenario. Raises BadInput, also where it cannot be played live."""
    loaded = load(path, how.options)
    workload, notes = loaded.workload, list(loaded.notes)
    if how.coflows is not None:
        workload = first_narrow(workload, how.coflows)
    if loaded.is_trace:
        workload = folded(workload, fabric, notes)
        workload = recorded_at(
            workload, how.options.reference_rate or loaded.link_rate or _assumed(workload, notes)
        )
    workload = repeated(workload, how.iterations)
    live_fit.require_few_flows(workload)
    time_scale = how.time_scale
    if time_scale is None:
        time_scale = live_fit.fitting_time_scale(workload, fabric) if loaded.is_trace else 1.0
    workload = spaced(stretched(workload, time_scale), how.arrival_scale)
    workload, policy = read_placement(workload, how.placement)
    workload = place(workload, fabric, policy, how.seed)
    notes += live_fit.lines(workload, fabric, time_scale)
    title = f"{path.name}, times and sizes × {time_scale:g}" if time_scale != 1 else path.name
    return Retold(Scenario(workload.name, title, workload), tuple(notes))


def _assumed(workload: Workload, notes: list[str]) -> float:
    """The link rate of a trace that names none, in bit/s; said where it is needed."""
    if any(placed.job.reference_rate is None for placed in workload.jobs):
        notes.append(f"assumed: recorded on links of {DEFAULT_RATE} (--reference-rate)")
    return parse_rate(DEFAULT_RATE)


def predictions(
    scenarios: Sequence[Scenario], policies: Sequence[str] | None, fabric: Fabric, seed: int
) -> list[Prediction]:
    """Everything that will be played, predicted. Raises BadInput for an unknown policy."""
    return predict(scenarios, list(dict.fromkeys(policies or DEFAULT_POLICIES)), fabric, seed)


def _stretched(scenario: Scenario, factor: float) -> Workload:
    """The paper's scenarios have a time unit of their own."""
    return scenario.workload if scenario.time_unit_s else stretched(scenario.workload, factor)

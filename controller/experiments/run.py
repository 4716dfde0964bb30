"""The live experiment: scenarios under policies on one network, measured beside predicted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from controller.experiments.checks import Preflight
from controller.experiments.fidelity import fidelity, pairs
from controller.experiments.inputs import Problem
from controller.experiments.live import LiveNetwork
from controller.experiments.offline import make_policy
from controller.experiments.progress import Progress
from controller.experiments.report import Key
from controller.experiments.results import new_folder, write_results
from controller.experiments.scenarios import Scenario
from controller.experiments.settings import settings_of
from controller.experiments.summarize import counted, measured_summary, predicted_summary
from controller.experiments.summary import ScenarioSummary, Summary
from controller.experiments.verify import verify
from controller.model import Fabric
from controller.model.record import Played
from controller.scheduling.policy import Policy
from controller.simulator.alone import alone_times
from controller.simulator.bounds import workload_bound
from controller.simulator.simulate import scale_of, simulate
from topologies.losses import frame_counts, lost_frames


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the fluid model says of one scenario under one policy, before it is played."""

    scenario: Scenario
    policy: Policy
    played: Played
    summary: ScenarioSummary

    @property
    def key(self) -> Key:
        """Scenario name, policy name."""
        return (self.scenario.name, self.policy.name)

    @property
    def seconds(self) -> float:
        """When the last job ends."""
        return max(job.iteration_ends[-1] for job in self.played.jobs)


def predict(
    scenarios: Sequence[Scenario], policies: Sequence[str], fabric: Fabric, seed: int = 0
) -> list[Prediction]:
    """Plays everything on the simulator, as it will be enforced. Raises BadInput, WorkFailed."""
    found = []
    for scenario in scenarios:
        problem = Problem(scenario.workload, fabric)
        chosen = [make_policy(name, problem, "enforced", seed) for name in policies]
        alone = alone_times(scenario.workload, fabric)
        bound = _bound(scenario, fabric, alone)
        for policy in chosen:
            played = simulate(scenario.workload, fabric, policy, "enforced").played
            summary = predicted_summary(
                scenario.name, policy.name, "enforced", played, alone, counted, bound
            )
            summary.title = scenario.title
            summary.time_unit_s = scenario.time_unit_s
            found.append(Prediction(scenario, policy, played, summary))
    return found


def run(
    predictions: Sequence[Prediction],
    fabric: Fabric,
    target: str,
    admitted: Preflight,
    progress: Progress,
    seed: int = 0,
    out: Path | None = None,
    notes: Sequence[str] = (),
) -> tuple[Summary, Path]:
    """Plays what was predicted on a live network; the summary, and the folder of the results.

    `admitted`: what the check before the run measured; `notes`: how the input was read and fitted. Raises WorkFailed when the network does not
    start or a scenario fails.
    """
    began = time.monotonic()
    measured: dict[Key, Played] = {}
    summary = Summary.new(
        target=target,
        topology=fabric.name,
        link_rate_bps=fabric.host_rate,
        size_scale=_size_scale(predictions, fabric),
    )
    progress.say(
        f"starting {fabric.name}: {len(fabric.switches)} {target} switches, "
        f"{len(fabric.hosts)} hosts, the controller and the agents"
    )
    with LiveNetwork(fabric, target) as network:
        for one in predictions:
            before = frame_counts(network.network)
            with progress.playing(*one.key, one.seconds) as on_event:
                result = network.play(
                    one.scenario.name, one.scenario.workload, _told(one.policy), one.seconds,
                    seed, on_event,
                )  # fmt: skip
            measured[one.key] = result.played
            scenario = measured_summary(one.summary, result.played)
            scenario.fidelity = fidelity(pairs(result.played, one.played))
            lost = lost_frames(before, frame_counts(network.network))
            scenario.checks, scenario.network = verify(result, network.network, lost)
            summary.scenarios.append(scenario)
            summary.settings = settings_of(target, result, admitted)
    summary.wall_s = time.monotonic() - began
    if notes:
        summary.settings["notes"] = list(notes)
    folder = out or new_folder()
    write_results(folder, summary, measured, {one.key: one.played for one in predictions})
    return summary, folder


def _told(policy: Policy) -> str:
    """How the controller is told of a policy: the search by the order that it found."""
    return str(getattr(policy, "spelled", policy.name))


def _bound(scenario: Scenario, fabric: Fabric, alone: dict[str, float]) -> float | None:
    """The bound counts all iterations, so it says nothing of a mean that leaves out the first."""
    if any(placed.job.iterations > 1 for placed in scenario.workload.jobs):
        return None
    return workload_bound(scenario.workload, fabric, alone).mean_slowdown


def _size_scale(predictions: Sequence[Prediction], fabric: Fabric) -> float | None:
    scales = {
        scale_of(placed.job, fabric)
        for one in predictions
        for placed in one.scenario.workload.jobs
        if placed.job.reference_rate is not None
    }
    return min(scales) if scales else None

"""The scenarios of `make run`: the paper's Figure 2, two equal pipelines, a real workload."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from controller.experiments.inputs import stretched
from controller.model import EchelonFlow, Flow, Job, PlacedJob, Task, Workload
from controller.profiles.files import read_job

TRAINING_STRETCH = 3.0
"Emulated seconds (and bytes) per second (and byte) of the training profiles."
TRAINING_LINKS = 125e6
"bit/s of the links on which the recorded job is taken to have run: sets its bytes per second."
TRACES = Path(__file__).resolve().parents[2] / "traces"

MICRO_BATCHES = 3
COMPUTE_UNITS = 1.0
LATER_UNITS = 0.02
TRANSFER_UNITS = 2.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """A workload with what is known of it beforehand."""

    name: str
    "As in `summary.json`."
    title: str
    "One line for people."
    workload: Workload
    "What is played; a job with a reference rate is scaled to the link rate by who plays it."
    time_unit_s: float | None = None
    "Seconds of one unit of the paper, where the scenario has units."
    expected_units: dict[str, float] | None = None
    "Mean completion per policy in units, from the paper's arithmetic."


def pipeline(name: str, unit_s: float, link_rate: float) -> Job:
    """Two workers, three micro-batches: compute 1 unit on both sides, transfers of 2 units.

    Figure 2 of the EchelonFlow paper (HotNets 2022). `unit_s` in seconds, `link_rate` in bit/s.
    """
    size = TRANSFER_UNITS * unit_s * link_rate / 8
    batches = range(MICRO_BATCHES)
    produced = [Task(f"f{k}", "w0", COMPUTE_UNITS * unit_s) for k in batches]
    consumed = [Task(f"g{k}", "w1", COMPUTE_UNITS * unit_s, (f"a{k}",)) for k in batches]
    flows = [Flow(f"a{k}", "w0", "w1", size, (f"f{k}",)) for k in batches]
    formation = EchelonFlow(
        "fwd", tuple(flow.id for flow in flows), tuple(k * COMPUTE_UNITS * unit_s for k in batches)
    )
    return Job(name, ("w0", "w1"), (*produced, *consumed), tuple(flows), (), (formation,))


def figure2(unit_s: float, link_rate: float) -> Scenario:
    """The paper's Figure 2: one pipeline, h1 -> h2 on one leaf."""
    job = PlacedJob(pipeline("A", unit_s, link_rate), {"w0": "h1", "w1": "h2"})
    return Scenario(
        "figure2",
        "Figure 2 of the paper: one two-worker pipeline",
        Workload((job,), "figure2"),
        unit_s,
        {"fair": 8.5, "fifo": 8.0, "varys": 10.0, "echelon": 8.0},
    )


def two_pipelines(unit_s: float, link_rate: float) -> Scenario:
    """Two equal pipelines into one receiver: h1 -> h3 and h2 -> h3, the link to h3 is shared.

    B starts a moment later, so that ties, which are decided by who comes first, fall as in the model.
    """
    jobs = (
        PlacedJob(pipeline("A", unit_s, link_rate), {"w0": "h1", "w1": "h3"}),
        PlacedJob(pipeline("B", unit_s, link_rate), {"w0": "h2", "w1": "h3"}, LATER_UNITS * unit_s),
    )
    return Scenario(
        "two-pipelines",
        "Two equal pipelines share the receiver's link",
        Workload(jobs, "two-pipelines"),
        unit_s,
        {"fair": 14.5, "fifo": 13.0, "varys": 13.0, "echelon": 11.0},
    )


def training() -> Scenario:
    """A recorded data-parallel job and two GPipe pipelines; every host belongs to one job.

    The recording (`traces/README.md`) is of ResNet-18 on four ranks; the pipelines have two stages.
    The jobs meet in the oversubscribed core. Times and sizes are stretched: a flow then takes 0.2 s
    at least, against which a few milliseconds count little. Among placements this is one where small
    delays do not change who goes first, so that what the model predicts can be measured.
    """
    ddp = replace(read_job(TRACES / "resnet18-ddp.yaml"), reference_rate=TRAINING_LINKS)
    gpipe = read_job(TRACES / "pipeline-gpipe.yaml")
    jobs = (
        (ddp, "resnet18-ddp", 2, ("h7", "h4", "h6", "h2"), 0.0),
        (gpipe, "pipeline-1", 7, ("h5", "h1"), 0.4),
        (gpipe, "pipeline-2", 7, ("h3", "h8"), 0.4),
    )
    placed = tuple(
        PlacedJob(
            replace(job, name=name, iterations=iterations),
            dict(zip(job.workers, hosts, strict=True)),
            arrival,
        )
        for job, name, iterations, hosts, arrival in jobs
    )
    return Scenario(
        "training",
        "A recorded data-parallel job beside two pipelines",
        stretched(Workload(placed, "training"), TRAINING_STRETCH),
    )

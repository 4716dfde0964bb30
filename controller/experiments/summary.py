"""What a run says in the end: `echelon/summary/v1`, written as `summary.json`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec


class JobSummary(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One job of one scenario under one policy. Measured keys are absent in simulations."""

    job: str
    "Name of the job."
    iterations: int
    "Iterations played (live: the first is discarded where there are several)."
    counted_iterations: int | None = None
    "Measured: iterations that entered the mean."
    completion_s: float | None = None
    "Measured: end of the last task minus the job's arrival, in seconds."
    mean_iteration_s: float | None = None
    "Measured: mean iteration time, in seconds."
    p95_iteration_s: float | None = None
    "Measured: 95th percentile, where at least 20 iterations count."
    alone_s: float = 0.0
    "Iteration time on the idle fabric, from the model, in seconds."
    slowdown: float | None = None
    "Measured: mean_iteration_s / alone_s."
    predicted_completion_s: float = 0.0
    "The same from the fluid model of what is enforced, in seconds."
    predicted_iteration_s: float = 0.0
    "Mean iteration time from the fluid model, in seconds."
    predicted_slowdown: float = 0.0
    "predicted_iteration_s / alone_s."


class FlowDifference(msgspec.Struct, kw_only=True):
    """One flow's time from ready to arrived, measured and predicted."""

    job: str
    "Name of its job."
    iteration: int
    "0 for the first."
    flow: str
    "Id of the flow in its (expanded) job."
    src: str
    "Sending worker."
    dst: str
    "Receiving worker."
    measured_s: float
    "Live, in seconds."
    predicted_s: float
    "From the fluid model of what is enforced, in seconds."


class Fidelity(msgspec.Struct, kw_only=True):
    """Measured against predicted, flow by flow (all of them: `flows.csv`)."""

    flows: int
    "Flows that were compared: those that cross the network."
    timed_flows: int
    "Those among them that the model gives 10 ms or more; the shares are theirs."
    median_difference: float | None
    "Half of them differ by at most this share of their predicted time."
    p95_difference: float | None
    "95 of 100 of them differ by at most this share."
    worst: FlowDifference
    "The flow that differs most, in seconds."


class ScenarioSummary(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One workload under one policy."""

    name: str
    "figure2, two-pipelines, training, or the name of the replayed workload."
    title: str = ""
    "What it is, in a line for people."
    policy: str
    "Name of the policy."
    model: str | None = None
    "ideal or enforced: which allocation the prediction is of."
    time_unit_s: float | None = None
    "Seconds that stand for one unit of the paper's figure, where the scenario has units."
    jobs: list[JobSummary] = []
    "One entry a job, in the workload's order."
    mean_slowdown: float | None = None
    "Measured: mean of the jobs' slowdowns."
    predicted_mean_slowdown: float = 0.0
    "The same from the model."
    bound_mean_slowdown: float | None = None
    "No schedule can have a smaller mean slowdown."
    total_tardiness_s: float | None = None
    "Sum of w_H t_H over the EchelonFlows (measured live, else the model's), in seconds."
    predicted_total_tardiness_s: float | None = None
    "The same from the model, in seconds."
    mean_coflow_completion_s: float | None = None
    "Mean over the EchelonFlows that are coflows, in seconds."
    predicted_mean_coflow_completion_s: float | None = None
    "The same from the model."
    fidelity: Fidelity | None = None
    "Measured: how far the flows lie from the model; absent where none crosses the network."
    checks: list[str] = []
    "What the check after the run found wrong (empty: everything as claimed)."
    network: dict[str, Any] = {}
    "Counters of the run: retransmissions, drops, bytes by class."


class Summary(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A whole run: every scenario under every policy."""

    schema: str = ""
    "Always `echelon/summary/v1`."
    target: str
    "embedded, bmv2 or simulator."
    topology: str
    "As it was asked for, `leaf-spine:2x2x4`."
    link_rate_bps: float
    "Rate of the host links, in bit/s."
    size_scale: float | None = None
    "Emulated bytes / profile bytes."
    wall_s: float = 0.0
    "How long the command took, in seconds."
    settings: dict[str, Any] = {}
    "What was pinned: congestion control, queue lengths, sysctls, versions."
    scenarios: list[ScenarioSummary] = []
    "In the order they ran."

    @classmethod
    def new(cls, **fields: Any) -> Summary:
        """A summary that carries its schema's name."""
        return cls(schema="echelon/summary/v1", **fields)


_ALWAYS = ("bound_mean_slowdown", "total_tardiness_s", "mean_coflow_completion_s")


def to_builtins(summary: Summary) -> dict[str, Any]:
    """Plain data for `json.dump`: NaN and infinities become null, unknown figures stay as null."""
    data: dict[str, Any] = _finite(msgspec.to_builtins(summary))
    for scenario in data.get("scenarios", ()):
        for key in _ALWAYS:
            scenario.setdefault(key, None)
    return data


def dumps(summary: Summary) -> str:
    """The summary as JSON text."""
    return msgspec.json.format(msgspec.json.encode(to_builtins(summary)), indent=1).decode() + "\n"


def write(summary: Summary, path: Path) -> None:
    """Writes `summary.json`."""
    path.write_text(dumps(summary))


def read(path: Path) -> Summary:
    """Reads what `write` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=Summary)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

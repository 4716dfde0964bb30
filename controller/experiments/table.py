"""The tables a run prints: measured beside predicted, one table a scenario."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from controller.experiments.summary import (
    FlowDifference,
    JobSummary,
    ScenarioSummary,
    Summary,
)
from controller.model.record import FlowRecord

MOST_JOBS = 12
"Jobs of a policy that the terminal shows; of more, those that differ most from the model."


def print_summary(summary: Summary, console: Console) -> None:
    """One table for each scenario name, policies below each other."""
    for name in dict.fromkeys(scenario.name for scenario in summary.scenarios):
        scenarios = [scenario for scenario in summary.scenarios if scenario.name == name]
        measured = any(scenario.mean_slowdown is not None for scenario in scenarios)
        console.print(_measured(name, scenarios) if measured else _predicted(name, scenarios))
        if any(scenario.fidelity for scenario in scenarios):
            console.print(_fidelity(scenarios))
        for scenario in scenarios:
            for check in scenario.checks:
                console.print(f"  {scenario.policy}: {check}", style="yellow", markup=False)


def difference(measured: float | None, predicted: float) -> str:
    """`+1.3 %`: how far the measured figure lies from the predicted one."""
    if measured is None or not predicted:
        return "-"
    return f"{100 * (measured / predicted - 1):+.1f} %"


def figure(scenario: ScenarioSummary, value: float | None) -> str:
    """Seconds, or the paper's units where the scenario has them."""
    if value is None:
        return "-"
    if scenario.time_unit_s:
        return f"{value / scenario.time_unit_s:.2f}"
    return f"{value:.3f}"


def percent(share: float | None) -> str:
    """`1.3 %`."""
    return "-" if share is None else f"{100 * share:.1f} %"


def flow_name(flow: FlowDifference | FlowRecord) -> str:
    """A flow as people are told of it: `gpt a0 #3`, the third repetition of a0 of the job gpt."""
    return f"{flow.job} {flow.flow}" + (f" #{flow.iteration}" if flow.iteration else "")


def _iterations(job: JobSummary) -> str:
    counted = job.counted_iterations or job.iterations
    return f"{counted}" if counted == job.iterations else f"{counted} of {job.iterations}"


def _measured(name: str, scenarios: list[ScenarioSummary]) -> Table:
    """Jobs of a policy below each other, its totals in a row of their own (fits 80 columns)."""
    unit = scenarios[0].time_unit_s
    what = f"times in units of {unit:g} s" if unit else "times in seconds"
    table = Table(title=f"{name} ({what})", title_justify="left")
    table.add_column("policy", no_wrap=True)
    table.add_column("job", no_wrap=True)
    p95 = any(job.p95_iteration_s is not None for one in scenarios for job in one.jobs)
    for column in ("counted", "iteration", "model", "diff", *(["p95"] if p95 else []), "slowdown"):
        table.add_column(column, justify="right", no_wrap=True)
    for scenario in scenarios:
        shown = _shown(scenario.jobs)
        for index, job in enumerate(shown):
            cells = [
                scenario.policy if index == 0 else "",
                job.job,
                _iterations(job),
                figure(scenario, job.mean_iteration_s),
                figure(scenario, job.predicted_iteration_s),
                difference(job.mean_iteration_s, job.predicted_iteration_s),
            ]
            cells += [figure(scenario, job.p95_iteration_s)] if p95 else []
            cells.append("-" if job.slowdown is None else f"{job.slowdown:.3f}")
            table.add_row(*cells)
        if len(shown) < len(scenario.jobs):
            table.add_row("", f"{len(scenario.jobs) - len(shown)} closer ones", style="dim")
        _totals(table, scenario, p95)
    return table


def _shown(jobs: list[JobSummary]) -> list[JobSummary]:
    """All jobs, or of many those that differ most from the model, in their order."""

    def off(job: JobSummary) -> float:
        measured = job.mean_iteration_s or 0.0
        return abs(measured / job.predicted_iteration_s - 1) if job.predicted_iteration_s else 0.0

    kept = sorted(jobs, key=off, reverse=True)[:MOST_JOBS]
    return [job for job in jobs if job in kept]


def _totals(table: Table, scenario: ScenarioSummary, p95: bool) -> None:
    rows = [
        (
            "mean slowdown",
            "-" if scenario.mean_slowdown is None else f"{scenario.mean_slowdown:.3f}",
            f"{scenario.predicted_mean_slowdown:.3f}",
            difference(scenario.mean_slowdown, scenario.predicted_mean_slowdown),
        )
    ]
    for label, measured, predicted in (
        (
            "coflow time",
            scenario.mean_coflow_completion_s,
            scenario.predicted_mean_coflow_completion_s,
        ),
        ("tardiness", scenario.total_tardiness_s, scenario.predicted_total_tardiness_s),
    ):
        if measured is not None:
            figures = (figure(scenario, measured), figure(scenario, predicted))
            rows.append((label, *figures, difference(measured, predicted or 0.0)))
    for label, measured_text, predicted_text, off in rows:
        cells = ["", label, "", measured_text, predicted_text, off, *([""] if p95 else []), ""]
        table.add_row(*cells, style="dim", end_section=label == rows[-1][0])


def _fidelity(scenarios: list[ScenarioSummary]) -> Table:
    """Flow by flow against the model, and the worst of each policy by name (fits 80 columns)."""
    title = "every flow's time against the model: half and 95 % of them lie within, the worst"
    table = Table(title=title, title_justify="left")
    table.add_column("policy", no_wrap=True)
    for column in ("flows", "half", "95 %"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("the worst", overflow="fold")
    for column in ("took", "model"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in scenarios:
        if one.fidelity is not None:
            worst = one.fidelity.worst
            table.add_row(
                one.policy,
                str(one.fidelity.flows),
                percent(one.fidelity.median_difference),
                percent(one.fidelity.p95_difference),
                flow_name(worst),
                figure(one, worst.measured_s),
                figure(one, worst.predicted_s),
            )
    return table


def _predicted(name: str, scenarios: list[ScenarioSummary]) -> Table:
    bound = scenarios[0].bound_mean_slowdown
    title = f"{name}, {scenarios[0].model} model" if scenarios[0].model else name
    if bound is not None:
        title += f" (no schedule is below {bound:.3f} in mean slowdown)"
    table = Table(title=title, title_justify="left")
    table.add_column("policy", no_wrap=True)
    for column in ("mean slowdown", "/ bound", "tardiness (s)", "coflow time (s)"):
        table.add_column(column, justify="right", no_wrap=True)
    for scenario in sorted(scenarios, key=lambda one: one.predicted_mean_slowdown):
        coflow = scenario.mean_coflow_completion_s
        tardiness = scenario.total_tardiness_s
        table.add_row(
            scenario.policy,
            f"{scenario.predicted_mean_slowdown:.4f}",
            f"{scenario.predicted_mean_slowdown / bound:.3f}" if bound else "-",
            "-" if tardiness is None else f"{tardiness:.4g}",
            "-" if coflow is None else f"{coflow:.4g}",
        )
    return table


def print_bound(summary: Summary, console: Console) -> None:
    """What no schedule can pass, job by job."""
    scenario = summary.scenarios[0]
    table = Table(title=f"{scenario.name}: bounds ({scenario.model})", title_justify="left")
    table.add_column("job")
    for column in ("iterations", "alone (s)", "completion (s) >=", "slowdown >="):
        table.add_column(column, justify="right")
    for job in scenario.jobs:
        table.add_row(
            job.job,
            str(job.iterations),
            f"{job.alone_s:.4g}",
            f"{job.predicted_completion_s:.4g}",
            f"{job.predicted_slowdown:.3f}",
        )
    console.print(table)
    console.print(f"mean slowdown >= {scenario.predicted_mean_slowdown:.4f}")

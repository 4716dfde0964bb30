"""The tables a run prints: measured beside predicted, one table a scenario."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from controller.experiments.summary import JobSummary, ScenarioSummary, Summary


def print_summary(summary: Summary, console: Console) -> None:
    """One table for each scenario name, policies below each other."""
    for name in dict.fromkeys(scenario.name for scenario in summary.scenarios):
        scenarios = [scenario for scenario in summary.scenarios if scenario.name == name]
        measured = any(scenario.mean_slowdown is not None for scenario in scenarios)
        console.print(_measured(name, scenarios) if measured else _predicted(name, scenarios))
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
        for index, job in enumerate(scenario.jobs):
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
        _totals(table, scenario, p95)
    return table


def _totals(table: Table, scenario: ScenarioSummary, p95: bool) -> None:
    for label, measured, predicted in (
        ("mean slowdown", scenario.mean_slowdown, scenario.predicted_mean_slowdown),
        (
            "tardiness",
            _in_units(scenario, scenario.total_tardiness_s),
            _in_units(scenario, scenario.predicted_total_tardiness_s) or 0.0,
        ),
    ):
        cells = ["", label, "", "-" if measured is None else f"{measured:.3f}", f"{predicted:.3f}"]
        cells += [difference(measured, predicted), *([""] if p95 else []), ""]
        table.add_row(*cells, style="dim", end_section=label == "tardiness")


def _in_units(scenario: ScenarioSummary, seconds: float | None) -> float | None:
    return None if seconds is None else seconds / (scenario.time_unit_s or 1.0)


def _predicted(name: str, scenarios: list[ScenarioSummary]) -> Table:
    bound = scenarios[0].bound_mean_slowdown
    title = name if bound is None else f"{name} (no schedule is below {bound:.3f} in mean slowdown)"
    table = Table(title=title, title_justify="left")
    table.add_column("policy")
    table.add_column("model")
    for column in ("mean slowdown", "/ bound", "total tardiness (s)", "mean coflow time (s)"):
        table.add_column(column, justify="right")
    for scenario in sorted(scenarios, key=lambda one: one.predicted_mean_slowdown):
        coflow = scenario.mean_coflow_completion_s
        tardiness = scenario.total_tardiness_s
        table.add_row(
            scenario.policy,
            scenario.model or "",
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

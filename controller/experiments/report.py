"""The report of a run: one self-contained HTML page that explains itself."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from controller.experiments import distributions, fidelity_section
from controller.experiments.fidelity import pairs
from controller.experiments.summary import ScenarioSummary, Summary
from controller.experiments.table import difference, figure
from controller.experiments.timeline import LANES, Panel, draw, left_out
from controller.model.record import Played
from controller.model.units import format_rate

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2430; max-width: 1080px;
       margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; margin-bottom: .2em } h2 { margin-top: 2.2em; font-size: 1.25em }
table { border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums }
th, td { padding: .25em .8em; text-align: right; border-bottom: 1px solid #e3e6eb }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left }
th { font-weight: 600; border-bottom: 2px solid #9aa3af } tr.first td { border-top: 1px solid #9aa3af }
h3 { margin-top: 1.8em; font-size: 1.05em } tr.best td { font-weight: 600 }
summary { cursor: pointer; color: #3366cc }
.note { color: #55606e } .bad { color: #b3261e } code { background: #f1f3f5; padding: 0 .3em }
"""

COLUMNS = """
<p class='note'>Slowdown: the time of an iteration over its time on an idle network (1 is perfect).
Tardiness: how far behind its ideal finish time the last flow of an EchelonFlow arrived, summed over
EchelonFlows. Coflow time: from the moment a coflow's first flow was ready until its last had
arrived.{model}</p>
"""
MODEL = """ Model: the fluid simulator's prediction of the same run, made before it. The first
iteration of a job is left out where it has several."""

TIMELINE = """
<p>Each row is a worker that computes (grey) or a transfer between two workers (coloured by job; white
where it was ready but held back). The black tick is the transfer's <b>ideal finish time</b>: when its
EchelonFlow would like it to arrive. How far a bar ends behind its tick is its <b>tardiness</b>; the
largest tardiness of an EchelonFlow is what decides when the job goes on, and the <code>echelon</code>
policy keeps it small. <code>fair</code> is the same network with one class and no pacing;
<code>fifo</code> sends in order of start; <code>varys</code> treats every EchelonFlow as a coflow. Point
at a bar for its figures.</p>
"""

OPEN_JOBS = 16
"Rows of the table of jobs up to which it is shown unfolded."

Key = tuple[str, str]
"Scenario name, policy."


def write(
    summary: Summary,
    measured: Mapping[Key, Played],
    predicted: Mapping[Key, Played],
    path: Path,
) -> None:
    """Writes the page; where nothing was measured the timelines show the prediction."""
    path.write_text(render(summary, measured, predicted))


def render(
    summary: Summary, measured: Mapping[Key, Played], predicted: Mapping[Key, Played]
) -> str:
    """The page as text, plotly's script included once."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Echelon run</title>",
        f"<style>{STYLE}</style></head><body><h1>Echelon: what each policy did</h1>",
        f"<p class='note'>{_setting(summary)}</p>",
    ]
    for name in dict.fromkeys(scenario.name for scenario in summary.scenarios):
        scenarios = [one for one in summary.scenarios if one.name == name]
        first = name == summary.scenarios[0].name
        parts += _scenario(scenarios, measured, predicted, first)
    parts.append(_settings(summary))
    parts.append("</body></html>")
    return "\n".join(parts)


def _scenario(
    scenarios: list[ScenarioSummary],
    measured: Mapping[Key, Played],
    predicted: Mapping[Key, Played],
    first: bool,
) -> Iterator[str]:
    """One workload: the policies, their jobs, each flow against the model, the timelines.

    The first one explains the figures and brings plotly along.
    """
    script = first
    name, title = scenarios[0].name, scenarios[0].title
    live = any(one.mean_slowdown is not None for one in scenarios)
    yield f"<h2>{html.escape(f'{name}: {title}' if title else name)}</h2>"
    yield _policies(scenarios)
    yield COLUMNS.format(model=MODEL if live else "") if first else ""
    yield _checks(scenarios)
    yield _jobs(scenarios)
    found = {
        one.policy: (one, pairs(measured[one.name, one.policy], predicted[one.name, one.policy]))
        for one in scenarios
        if one.fidelity is not None and (one.name, one.policy) in measured
    }
    if found:
        text, chart = fidelity_section.section(found)
        explanation = fidelity_section.EXPLAIN if first else ""
        yield f"<h3>Measured against predicted, flow by flow</h3>{explanation}{text}"
        yield _embed(chart, script)
        yield fidelity_section.all_flows(found)
        script = False
    for played, what in (
        (measured, "measured on the network"),
        (predicted, "from the fluid model"),
    ):
        panels = _panels(scenarios, played)
        if panels:
            window = _window(panels)
            yield f"<h3>Timeline, {what}</h3>{TIMELINE if first else ''}{_extent(panels, window)}"
            yield _embed(draw(panels, scenarios[0].time_unit_s, window), script)
            yield from _distributions(scenarios, played, what, first)
            break


def _distributions(
    scenarios: Sequence[ScenarioSummary], played: Mapping[Key, Played], what: str, first: bool
) -> Iterator[str]:
    """Curves, where there is enough for some; plotly is there already."""
    found = {
        one.policy: played[one.name, one.policy]
        for one in scenarios
        if (one.name, one.policy) in played
    }
    chart = distributions.draw(found, {job.job: job.alone_s for job in scenarios[0].jobs})
    if chart is not None:
        yield f"<h3>Distributions, {what}</h3>{distributions.EXPLAIN if first else ''}"
        yield _embed(chart, script=False)


def _embed(chart: Any, script: bool) -> str:
    page: str = chart.to_html(
        full_html=False, include_plotlyjs=script, config={"displayModeBar": False}
    )
    return page


def _setting(summary: Summary) -> str:
    what = {
        "simulator": "Fluid simulation",
        "embedded": "Scaled emulation: real TCP through embedded P4 switches",
        "bmv2": "Scaled emulation: real TCP through BMv2 switches",
    }[summary.target]
    scale = f", sizes × {summary.size_scale:.3g} of the profile" if summary.size_scale else ""
    return (
        f"{what}; topology {html.escape(summary.topology)}, links of "
        f"{format_rate(summary.link_rate_bps)}{scale}; took {summary.wall_s:.0f} s."
    )


def _panels(scenarios: Sequence[ScenarioSummary], played: Mapping[Key, Played]) -> list[Panel]:
    panels: list[Panel] = []
    for one in scenarios:
        if (one.name, one.policy) in played and all(panel.title != one.policy for panel in panels):
            slowdown = one.mean_slowdown or one.predicted_mean_slowdown
            title = f"<b>{one.policy}</b>  mean slowdown {slowdown:.2f}"
            panels.append(Panel(title, played[(one.name, one.policy)]))
    return panels


def _extent(panels: Sequence[Panel], window: tuple[float, float] | None) -> str:
    """What the timelines leave out."""
    said = []
    if window is not None:
        said.append(
            f"Shown are {window[0]:.3g} to {window[1]:.3g} s: from when the first job had ended its "
            "first iteration until the last one had ended its third."
        )
    missing = left_out(panels[0].played, window)
    if missing:
        said.append(f"Shown are the first {LANES} rows; {missing} more are in flows.csv only.")
    return f"<p class='note'>{' '.join(said)}</p>" if said else ""


def _window(panels: Sequence[Panel]) -> tuple[float, float] | None:
    """Long runs show the second and third iteration of every job."""
    ends = [job.iteration_ends for panel in panels for job in panel.played.jobs]
    if max(map(len, ends)) <= 2:
        return None
    first = min(one[0] for one in ends)
    return (first, max(one[min(2, len(one) - 1)] for one in ends))


def _policies(scenarios: Sequence[ScenarioSummary]) -> str:
    """A row a policy; the smallest mean slowdown in bold."""
    live = any(one.mean_slowdown is not None for one in scenarios)
    coflows = any(one.mean_coflow_completion_s is not None for one in scenarios)
    head = ["policy", *_columns("mean slowdown", live)]
    head += _columns("total tardiness", live)
    head += _columns("mean coflow time", live) if coflows else []
    head += ["no schedule below"] if any(one.bound_mean_slowdown for one in scenarios) else []
    slowdowns = [one.mean_slowdown or one.predicted_mean_slowdown for one in scenarios]
    best = min(slowdowns) * (1.005 if max(slowdowns) > 1.005 * min(slowdowns) else 0.0)
    rows = []
    for one, slowdown in zip(scenarios, slowdowns, strict=True):
        cells = [one.policy]
        cells += _figures(live, one.mean_slowdown, one.predicted_mean_slowdown, "{:.3f}".format)
        cells += _times(live, one, one.total_tardiness_s, one.predicted_total_tardiness_s)
        if coflows:
            mean = one.mean_coflow_completion_s
            cells += _times(live, one, mean, one.predicted_mean_coflow_completion_s)
        if one.bound_mean_slowdown:
            cells.append(f"{one.bound_mean_slowdown:.3f}")
        rows.append(_cells(cells, "best" if slowdown <= best else ""))
    return f"<p class='note'>{_unit(scenarios)}</p>{_rows(head, rows)}"


def _columns(what: str, live: bool) -> list[str]:
    return [what, "model", "difference"] if live else [what]


def _times(live: bool, one: ScenarioSummary, found: float | None, model: float | None) -> list[str]:
    return _figures(
        live, found, found if model is None and not live else model, partial(figure, one)
    )


def _figures(
    live: bool, found: float | None, model: float | None, shown: Callable[[float], str]
) -> list[str]:
    """Measured, model and difference; the model's alone where nothing was measured."""
    said = ["-" if value is None else shown(value) for value in (found, model)]
    return [*said, difference(found, model or 0.0)] if live else [said[1]]


def _unit(scenarios: Sequence[ScenarioSummary]) -> str:
    unit = scenarios[0].time_unit_s
    return f"Times in units of {unit:g} s." if unit else "Times in seconds."


def _jobs(scenarios: Sequence[ScenarioSummary]) -> str:
    """A row a job and policy; folded away where there are many."""
    live = any(one.mean_slowdown is not None for one in scenarios)
    head = ["policy", "job", "iterations", *_columns("mean iteration", live)]
    head += ["slowdown", "model"] if live else ["slowdown"]
    rows = []
    for one in scenarios:
        for index, job in enumerate(one.jobs):
            cells = [one.policy if index == 0 else "", job.job]
            cells.append(str(job.counted_iterations or job.iterations))
            cells += _times(live, one, job.mean_iteration_s, job.predicted_iteration_s)
            model = f"{job.predicted_slowdown:.3f}"
            cells += ["-" if job.slowdown is None else f"{job.slowdown:.3f}"] if live else []
            rows.append(_cells([*cells, model], "first" if index == 0 else ""))
    if len(rows) <= OPEN_JOBS:
        return _rows(head, rows)
    summary = f"<summary>All {len(scenarios[0].jobs)} jobs</summary>"
    return f"<details>{summary}{_rows(head, rows)}</details>"


def _rows(head: Sequence[str], rows: Sequence[str]) -> str:
    header = "".join(f"<th>{cell}</th>" for cell in head)
    return f"<table><tr>{header}</tr>{''.join(rows)}</table>"


def _cells(cells: Sequence[str], kind: str) -> str:
    data = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
    return f"<tr class='{kind}'>{data}</tr>" if kind else f"<tr>{data}</tr>"


def _checks(scenarios: Sequence[ScenarioSummary]) -> str:
    found = [f"{one.policy}: {check}" for one in scenarios for check in one.checks]
    if not found:
        return ""
    items = "".join(f"<li>{html.escape(one)}</li>" for one in found)
    return f"<p class='bad'>Checks after the run found:</p><ul class='bad'>{items}</ul>"


def _settings(summary: Summary) -> str:
    notes = summary.settings.get("notes", ())
    items = "".join(f"<li>{html.escape(str(note))}</li>" for note in notes)
    rows = "".join(
        f"<tr><td>{html.escape(str(key))}</td><td>{html.escape(str(value))}</td></tr>"
        for key, value in summary.settings.items()
        if key != "notes"
    )
    said = f"<h2>How the input was read</h2><ul>{items}</ul>" if items else ""
    return said + (f"<h2>What was pinned</h2><table>{rows}</table>" if rows else "")

"""The report of a run: one self-contained HTML page that explains itself."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from controller.experiments.summary import ScenarioSummary, Summary
from controller.experiments.table import difference, figure
from controller.experiments.timeline import Panel, draw
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
.note { color: #55606e } .bad { color: #b3261e } code { background: #f1f3f5; padding: 0 .3em }
"""

EXPLAIN = """
<p>Each row of a timeline is a worker that computes (grey) or a transfer between two workers
(coloured by job; white where it was ready but held back). The black tick is the transfer's
<b>ideal finish time</b>: when its EchelonFlow would like it to arrive. How far a bar ends behind
its tick is its <b>tardiness</b>; the largest tardiness of an EchelonFlow is what decides when the
job goes on, and the <code>echelon</code> policy keeps it small. <code>fair</code> is the same
network with one class and no pacing; <code>fifo</code> sends in order of start;
<code>varys</code> treats a formation as a coflow. Inside one job on one link the gain is over
fair sharing and coflow scheduling; over in-order sending it comes across jobs.</p>
"""

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
        EXPLAIN,
    ]
    script = True
    for name in dict.fromkeys(scenario.name for scenario in summary.scenarios):
        scenarios = [one for one in summary.scenarios if one.name == name]
        parts.append(f"<h2>{html.escape(name)}</h2>{_table(scenarios)}{_checks(scenarios)}")
        for played, what in ((measured, "measured on the network"), (predicted, "fluid model")):
            panels = _panels(scenarios, played)
            if panels:
                parts.append(f"<p class='note'>Timeline, {what}.</p>")
                chart = draw(panels, scenarios[0].time_unit_s, _window(panels))
                parts.append(_embed(chart, script))
                script = False
                break
    parts.append(_settings(summary))
    parts.append("</body></html>")
    return "\n".join(parts)


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


def _window(panels: Sequence[Panel]) -> tuple[float, float] | None:
    """Long runs show the second and third iteration of the slowest job to reach them."""
    ends = [job.iteration_ends for panel in panels for job in panel.played.jobs]
    if max(map(len, ends)) <= 2:
        return None
    first = min(one[0] for one in ends)
    return (first, max(one[min(2, len(one) - 1)] for one in ends))


def _table(scenarios: Sequence[ScenarioSummary]) -> str:
    measured = any(one.mean_slowdown is not None for one in scenarios)
    unit = scenarios[0].time_unit_s
    what = f"Times in units of {unit:g} s." if unit else "Times in seconds."
    head = ["policy", "job", "iterations counted"]
    head += ["mean iteration", "model", "difference", "slowdown"] if measured else ["model"]
    head += (
        ["mean slowdown", "model", "total tardiness", "model"]
        if measured
        else ["mean slowdown", "total tardiness"]
    )
    rows = []
    for one in scenarios:
        for index, job in enumerate(one.jobs):
            cells = [one.policy if index == 0 else "", job.job]
            cells.append(str(job.counted_iterations or job.iterations))
            if measured:
                cells += [
                    figure(one, job.mean_iteration_s),
                    figure(one, job.predicted_iteration_s),
                    difference(job.mean_iteration_s, job.predicted_iteration_s),
                    "-" if job.slowdown is None else f"{job.slowdown:.3f}",
                ]
                total = [
                    "-" if one.mean_slowdown is None else f"{one.mean_slowdown:.3f}",
                    f"{one.predicted_mean_slowdown:.3f}",
                    figure(one, one.total_tardiness_s),
                    figure(one, one.predicted_total_tardiness_s),
                ]
            else:
                cells.append(figure(one, job.predicted_iteration_s))
                total = [f"{one.predicted_mean_slowdown:.3f}", figure(one, one.total_tardiness_s)]
            cells += total if index == 0 else [""] * len(total)
            first = " class='first'" if index == 0 else ""
            data = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            rows.append(f"<tr{first}>{data}</tr>")
    header = "".join(f"<th>{cell}</th>" for cell in head)
    return f"<p class='note'>{what}</p><table><tr>{header}</tr>{''.join(rows)}</table>"


def _checks(scenarios: Sequence[ScenarioSummary]) -> str:
    found = [f"{one.policy}: {check}" for one in scenarios for check in one.checks]
    if not found:
        return ""
    items = "".join(f"<li>{html.escape(one)}</li>" for one in found)
    return f"<p class='bad'>Checks after the run found:</p><ul class='bad'>{items}</ul>"


def _settings(summary: Summary) -> str:
    if not summary.settings:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(str(key))}</td><td>{html.escape(str(value))}</td></tr>"
        for key, value in summary.settings.items()
    )
    return f"<h2>What was pinned</h2><table>{rows}</table>"

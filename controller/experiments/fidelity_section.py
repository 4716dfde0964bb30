"""The report's section on fidelity: every flow measured against predicted, the worst ones by name."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from controller.experiments.fidelity import LEAST_S, Pair
from controller.experiments.summary import ScenarioSummary
from controller.experiments.table import figure, flow_name, percent
from controller.experiments.timeline import COLOURS

WORST = 5
"Flows named for each policy."
MOST = 1000
"Rows of the table of all flows, worst first; `flows.csv` has the rest."
DRAWN_S = 1e-4
"Shorter times are drawn at this, since the axes are logarithmic."

EXPLAIN = """
<p>A flow's time runs from when it was ready to be sent until its last byte had arrived. The model is
a fluid simulation of the same workload under the same policy, made before the run with nothing fitted
to it: it knows rates, classes and paces, but no packets, no TCP and no decision that takes time.</p>
"""


def section(scenarios: Mapping[str, tuple[ScenarioSummary, list[Pair]]]) -> tuple[str, Any]:
    """The text under each policy's name, and the chart. Pairs come worst first."""
    return _verdicts(scenarios) + _worst(scenarios), _chart(scenarios)


def all_flows(scenarios: Mapping[str, tuple[ScenarioSummary, list[Pair]]]) -> str:
    """Every flow, folded away; at most `MOST` rows."""
    rows = [_row(policy, one, pair) for policy, (one, found) in scenarios.items() for pair in found]
    rest = f" (the first {MOST:,} of {len(rows):,}; all are in flows.csv)"
    return (
        f"<details><summary>All {len(rows):,} flows{rest if len(rows) > MOST else ''}</summary>"
        f"<table>{_HEAD}{''.join(rows[:MOST])}</table></details>"
    )


_HEAD = (
    "<tr><th>policy</th><th>flow</th><th>from, to</th><th>size</th><th>measured</th><th>model</th>"
    "<th>difference</th><th></th><th>sent again</th></tr>"
)


def _verdicts(scenarios: Mapping[str, tuple[ScenarioSummary, list[Pair]]]) -> str:
    items = []
    for policy, (one, _) in scenarios.items():
        if one.fidelity is None:
            continue
        worst = one.fidelity.worst
        items.append(
            f"<li><b>{html.escape(policy)}</b>: of {one.fidelity.timed_flows:,} flows that the model "
            f"gives {1e3 * LEAST_S:g} ms or more, half took within {percent(one.fidelity.median_difference)} of its "
            f"time, 95 of 100 within {percent(one.fidelity.p95_difference)}. The worst of all "
            f"{one.fidelity.flows:,} is <b>{html.escape(flow_name(worst))}</b>: "
            f"{figure(one, worst.measured_s)} instead of {figure(one, worst.predicted_s)}.</li>"
        )
    return f"<ul>{''.join(items)}</ul>"


def _worst(scenarios: Mapping[str, tuple[ScenarioSummary, list[Pair]]]) -> str:
    rows = [
        _row(policy, one, pair)
        for policy, (one, found) in scenarios.items()
        for pair in found[:WORST]
    ]
    return f"<p class='note'>The {WORST} worst of each policy:</p><table>{_HEAD}{''.join(rows)}</table>"


def _row(policy: str, one: ScenarioSummary, pair: Pair) -> str:
    flow = pair.measured
    sign = "+" if pair.difference_s >= 0 else "−"
    cells = (
        policy,
        flow_name(flow),
        f"{flow.src} → {flow.dst}",
        f"{flow.bytes / 1e3:,.0f} kB",
        figure(one, pair.measured_s),
        figure(one, pair.predicted_s),
        sign + figure(one, abs(pair.difference_s)),
        f"{100 * pair.share:+.1f} %" if pair.predicted_s >= LEAST_S else "",
        str(flow.retransmits),
    )
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def _chart(scenarios: Mapping[str, tuple[ScenarioSummary, list[Pair]]]) -> Any:
    """Measured over predicted, a point a flow; on the line the model was right."""
    times = [
        max(seconds, DRAWN_S)
        for _, found in scenarios.values()
        for pair in found
        for seconds in (pair.measured_s, pair.predicted_s)
    ]
    low, high = min(times) / 1.2, max(times) * 1.2
    chart = go.Figure()
    for factor, dash, name in ((1.0, "solid", "as predicted"), (1.1, "dot", "10 % off"), (0.9, "dot", "")):  # fmt: skip
        chart.add_trace(
            go.Scatter(
                x=[low, high], y=[low * factor, high * factor], mode="lines", hoverinfo="skip",
                line={"color": "#8a93a0", "width": 1, "dash": dash}, name=name, showlegend=bool(name),
            )
        )  # fmt: skip
    for index, (policy, (_, found)) in enumerate(scenarios.items()):
        chart.add_trace(
            go.Scatter(
                x=[max(pair.predicted_s, DRAWN_S) for pair in found],
                y=[max(pair.measured_s, DRAWN_S) for pair in found],
                text=[_hover(pair) for pair in found],
                hovertemplate="%{text}<extra></extra>",
                mode="markers",
                marker={"size": 7, "opacity": 0.6, "color": COLOURS[index % len(COLOURS)]},
                name=policy,
            )
        )
    axis = {"type": "log", "gridcolor": "#e6e8ec", "zeroline": False}
    chart.update_xaxes(title_text="predicted, seconds", **axis)
    chart.update_yaxes(title_text="measured, seconds", **axis)
    chart.update_layout(
        height=460,
        plot_bgcolor="white",
        margin={"l": 70, "r": 20, "t": 20, "b": 50},
        font={"family": "system-ui, sans-serif", "size": 12},
    )
    return chart


def _hover(pair: Pair) -> str:
    flow = pair.measured
    return (
        f"{flow.flow} of {flow.job}, iteration {flow.iteration}: {pair.measured_s:.4f} s, "
        f"model {pair.predicted_s:.4f} s ({100 * pair.share:+.1f} %)"
    )

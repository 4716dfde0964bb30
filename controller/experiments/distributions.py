"""How slowdowns and tardiness are distributed under each policy: cumulative curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from controller.experiments.timeline import COLOURS
from controller.model.record import Played

EXPLAIN = """
<p>Each curve tells which share of the iterations, and of the EchelonFlows, of all jobs stayed below
a figure: the further left, the better.</p>
"""
FEWEST = 10
"Iterations or EchelonFlows below which a curve says nothing."
POINTS = 500
"Points of a curve at most."


def draw(played: Mapping[str, Played], alone: Mapping[str, float]) -> Any | None:
    """A plotly figure, a curve a policy: slowdown of iterations, tardiness of EchelonFlows.

    `alone`: job -> seconds of an iteration on the idle fabric. None where there is too little.
    """
    curves = {policy: (slowdowns(one, alone), tardiness(one)) for policy, one in played.items()}
    if not any(len(values) >= FEWEST for both in curves.values() for values in both):
        return None
    figure = make_subplots(cols=2, horizontal_spacing=0.08)
    for i, (policy, both) in enumerate(curves.items()):
        for column, values in enumerate(both, 1):
            x, y = cumulated(values)
            line = go.Scatter(
                x=x, y=y, name=policy, legendgroup=policy, showlegend=column == 1, mode="lines",
                line={"color": COLOURS[i % len(COLOURS)], "shape": "hv"},
            )  # fmt: skip
            figure.add_trace(line, row=1, col=column)
    figure.update_xaxes(title_text="slowdown of an iteration", row=1, col=1)
    figure.update_xaxes(title_text="tardiness of an EchelonFlow, s", row=1, col=2)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    figure.update_layout(height=340, margin={"l": 50, "r": 10, "t": 20, "b": 50})
    return figure


def slowdowns(played: Played, alone: Mapping[str, float]) -> list[float]:
    """Time over time alone of every iteration, ascending; jobs that take no time left out."""
    return sorted(
        seconds / alone[job.job]
        for job in played.jobs
        if alone.get(job.job, 0.0) > 0.0
        for seconds in job.iteration_times()
    )


def tardiness(played: Played) -> list[float]:
    """Tardiness of every EchelonFlow of every iteration, ascending, in seconds."""
    return sorted(played.tardiness().values())


def cumulated(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Points (x, share of the ascending values that are at most x), at most `POINTS` of them."""
    count = len(values)
    step = max(1, -(-count // POINTS))
    places = [*range(step - 1, count - 1, step), *([count - 1] if count else [])]
    return [values[i] for i in places], [(i + 1) / count for i in places]

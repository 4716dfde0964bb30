"""A timeline of what was played: who computed and who sent when, ideal finish times marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from controller.model.record import FlowRecord, Played, TaskRecord

COLOURS = ("#3366cc", "#dc7a1e", "#2a9d5c", "#a3449b", "#c8342f", "#6b7785", "#7a5a3a", "#0f8ea3")
COMPUTE = "#c9ced6"
LANES = 40
"Rows of a panel at most, the first ones in reading order."
LANE, GAP, TOP, BOTTOM = 22, 45, 80, 50
"Pixels of a lane, between two panels, above them (legend and first title) and below."

Lane = Callable[[FlowRecord], str]
"The row that a flow is drawn in."


@dataclass(frozen=True, slots=True)
class Panel:
    """What one policy did."""

    title: str
    "Policy and headline figure."
    played: Played
    "What happened."


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a lane."""

    lane: str
    start: float
    finish: float
    colour: str
    text: str
    opacity: float = 1.0


def draw(panels: Sequence[Panel], unit_s: float | None, window: tuple[float, float] | None) -> Any:
    """A plotly figure: a row a policy, all on one time axis (seconds, or units of `unit_s`).

    `window` cuts long runs to the seconds shown; None shows everything.
    """
    jobs = [job.job for job in panels[0].played.jobs]
    colour = {job: COLOURS[index % len(COLOURS)] for index, job in enumerate(jobs)}
    lane = _lane_of_flows(panels[0].played)
    lanes = [_lanes(panel.played, lane, window) for panel in panels]
    height = [max(len(one), 2) for one in lanes]
    pixels = TOP + BOTTOM + sum(GAP + LANE * one for one in height)
    figure = make_subplots(
        rows=len(panels),
        cols=1,
        shared_xaxes=True,
        subplot_titles=[panel.title for panel in panels],
        row_heights=[one / sum(height) for one in height],
        vertical_spacing=GAP / (pixels - TOP - BOTTOM),
    )
    for row, (panel, names) in enumerate(zip(panels, lanes, strict=True), start=1):
        _draw_panel(figure, row, panel.played, lane, names, colour, unit_s or 1.0, window)
        figure.update_yaxes(range=[len(names) - 0.5, -0.5], row=row)
    figure.update_xaxes(showgrid=True, gridcolor="#e6e8ec", zeroline=False)
    figure.update_xaxes(
        title_text=f"time, units of {unit_s:g} s" if unit_s else "time, seconds", row=len(panels)
    )
    figure.update_layout(
        barmode="overlay",
        bargap=0.25,
        plot_bgcolor="white",
        height=pixels,
        margin={"l": 120, "r": 20, "t": TOP, "b": BOTTOM},
        legend={"orientation": "h", "yref": "container", "y": 1.0, "yanchor": "top", "x": 0.0},
        font={"family": "system-ui, sans-serif", "size": 12},
    )
    figure.update_annotations(xanchor="left", x=0, font={"size": 13})
    return figure


def _draw_panel(
    figure: Any,
    row: int,
    played: Played,
    lane: Lane,
    names: list[str],
    colour: dict[str, str],
    scale: float,
    window: tuple[float, float] | None,
) -> None:
    known = set(names)
    tasks = [task for task in played.tasks if _shown(task, window) and _task_lane(task) in known]
    flows = [flow for flow in played.flows if _shown(flow, window) and lane(flow) in known]
    bars = [
        Bar(_task_lane(task), task.start, task.finish, COMPUTE, f"{task.task} of {task.job}")
        for task in tasks
        if task.finish > task.start
    ]
    bars += [
        Bar(lane(flow), flow.ready, flow.start, "#ffffff", f"{flow.flow} waits")
        for flow in flows
        if flow.start - flow.ready > 1e-3
    ]
    bars += [
        Bar(lane(flow), flow.start, flow.finish, colour[flow.job], _about(flow), 0.75)
        for flow in flows
    ]
    for name, group in _by_colour(bars, colour).items():
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=[bar.lane for bar in group],
                base=[bar.start / scale for bar in group],
                x=[(bar.finish - bar.start) / scale for bar in group],
                text=[bar.text for bar in group],
                textposition="none",
                hovertemplate="%{text}<extra></extra>",
                marker={
                    "color": [bar.colour for bar in group],
                    "opacity": [bar.opacity for bar in group],
                    "line": {"color": "#8a93a0", "width": 0.5},
                },
                name=name,
                legendgroup=name,
                showlegend=row == 1,
            ),
            row=row,
            col=1,
        )
    figure.add_trace(
        go.Scatter(
            mode="markers",
            x=[flow.ideal_finish / scale for flow in flows],
            y=[lane(flow) for flow in flows],
            marker={"symbol": "line-ns", "size": 14, "line": {"color": "#111", "width": 2}},
            text=[f"ideal finish of {flow.flow}" for flow in flows],
            hovertemplate="%{text}<extra></extra>",
            name="ideal finish",
            legendgroup="ideal finish",
            showlegend=row == 1,
        ),
        row=row,
        col=1,
    )
    figure.update_yaxes(categoryorder="array", categoryarray=names, row=row, showgrid=False)


def _by_colour(bars: list[Bar], colour: dict[str, str]) -> dict[str, list[Bar]]:
    """Bars by their name in the legend; with more jobs than colours, none is named there."""
    name = {COMPUTE: "computes", "#ffffff": "waits"} | {
        value: f"{job} sends" for job, value in reversed(colour.items())
    }
    if len(colour) > len(COLOURS):
        name |= dict.fromkeys(COLOURS, "sends")
    groups: dict[str, list[Bar]] = {}
    for bar in bars:
        groups.setdefault(name[bar.colour], []).append(bar)
    return groups


def left_out(played: Played, window: tuple[float, float] | None) -> int:
    """Rows of a panel that are not drawn because there are more than `LANES`."""
    lane = _lane_of_flows(played)
    return max(0, len(_rows(played, lane, window)) - LANES)


def _lanes(played: Played, lane: Lane, window: tuple[float, float] | None) -> list[str]:
    return _rows(played, lane, window)[:LANES]


def _rows(played: Played, lane: Lane, window: tuple[float, float] | None) -> list[str]:
    """Rows in reading order: a job's workers, each followed by what it sends."""
    order = {job.job: index for index, job in enumerate(played.jobs)}
    keys: dict[tuple[int, str, int, str], str] = {}
    for task in played.tasks:
        if task.finish > task.start and _shown(task, window):
            keys[(order[task.job], task.worker, 0, "")] = _task_lane(task)
    for flow in played.flows:
        if flow.finish > flow.ready and _shown(flow, window):
            keys[(order[flow.job], flow.src, 1, lane(flow))] = lane(flow)
    return [keys[key] for key in sorted(keys)]


def _task_lane(task: TaskRecord) -> str:
    return f"{task.job} {task.worker}"


def _lane_of_flows(played: Played) -> Lane:
    """Flows between two workers get a row each, the steps of their collectives share one."""
    between: dict[tuple[str, str, str], set[str]] = {}
    for flow in played.flows:
        kind = "" if "/" in flow.flow else flow.flow
        between.setdefault((flow.job, flow.src, flow.dst), set()).add(kind)

    def lane(flow: FlowRecord) -> str:
        pair = f"{flow.job} {flow.src}→{flow.dst}"
        alone = len(between[flow.job, flow.src, flow.dst]) == 1
        return pair if alone or "/" in flow.flow else f"{pair} {flow.flow}"

    return lane


def _about(flow: FlowRecord) -> str:
    return (
        f"{flow.flow} of {flow.job}, iteration {flow.iteration}: {flow.bytes / 1e3:.0f} kB, "
        f"{flow.start:.3f} to {flow.finish:.3f} s, tardiness {flow.tardiness:+.3f} s"
        + (f", class {'→'.join(map(str, flow.classes))}" if flow.classes else "")
    )


def _shown(one: FlowRecord | TaskRecord, window: tuple[float, float] | None) -> bool:
    return window is None or (one.finish > window[0] and one.start < window[1])

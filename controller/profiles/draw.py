"""A job as a picture: what each worker computes and sends, and when, on an idle network."""

from __future__ import annotations

import html
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from PIL import Image, ImageDraw

from controller.model import Flow, Job, Task, dag
from controller.model.collectives import expand
from controller.model.errors import BadInput
from controller.model.units import format_rate, format_size

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#ff9da6", "#9d755d")
_COMPUTING = "#c8c8c8"
_MOST_BARS = 20_000


@dataclass(frozen=True, slots=True)
class Bar:
    """One task or flow on the timeline."""

    row: str
    "Worker that computes or sends."
    kind: str
    "task or flow."
    label: str
    "Its id, and more."
    start: float
    "Seconds."
    end: float
    "Seconds."
    colour: str
    "Of its EchelonFlow; grey for a task."
    ideal: float | None = None
    "Ideal finish of a flow, seconds, in an EchelonFlow whose flows have different ones."


def timeline(job: Job, rate: float) -> list[Bar]:
    """One iteration with every flow alone on links of `rate` bit/s. O(nodes + dependencies).

    A drawing, not a simulation: flows do not share. Raises `BadInput` where there is too much.
    """
    job = expand(job)
    if len(job.tasks) + len(job.flows) > _MOST_BARS:
        raise BadInput(
            f"job {job.name}: {len(job.tasks) + len(job.flows)} tasks and flows are too many to "
            f"draw: expected at most {_MOST_BARS}"
        )
    colour = {flow: _colour(i) for i, group in enumerate(job.echelonflows) for flow in group.flows}
    nodes, before = dag.nodes(job), dag.predecessors(job)
    end: dict[str, float] = {}
    bars: dict[str, Bar] = {}
    for id_ in dag.order(job):
        node = nodes[id_]
        start = max((end[other] for other in before[id_]), default=0.0)
        if isinstance(node, Task):
            end[id_] = start + node.seconds
            bars[id_] = Bar(node.worker, "task", id_, start, end[id_], _COMPUTING)
        elif isinstance(node, Flow):
            end[id_] = start + node.bytes * 8 / rate
            label = f"{id_} to {node.dst}, {format_size(node.bytes)}"
            bars[id_] = Bar(node.src, "flow", label, start, end[id_], colour[id_])
    for group in job.echelonflows:
        reference = bars[group.flows[0]].start
        for flow, offset in zip(group.flows, group.arrangement, strict=True):
            if not group.is_coflow:
                bars[flow] = replace(bars[flow], ideal=reference + offset)
    return list(bars.values())


def _colour(group: int) -> str:
    return _COLOURS[group % len(_COLOURS)]


def to_text(job: Job, rate: float, width: int = 100) -> str:
    """The timeline for a terminal: `#` computing, a letter an EchelonFlow sent, two lines a worker."""
    bars = timeline(job, rate)
    length = max((bar.end for bar in bars), default=0.0) or 1.0
    names = max(map(len, job.workers))
    lines = [f"{job.name}: one iteration, {length:.4g} s when every flow is alone"]
    letters: dict[str, str] = {}
    for bar in bars:
        if bar.kind == "flow":
            letters.setdefault(bar.colour, "abcdefgh"[len(letters) % 8])
    for worker in job.workers:
        for kind in ("task", "flow"):
            cells = [" "] * width
            for bar in bars:
                if (bar.row, bar.kind) != (worker, kind):
                    continue
                first = int(bar.start / length * width)
                last = max(first + 1, int(bar.end / length * width))
                mark = "#" if kind == "task" else letters[bar.colour]
                for cell in range(first, min(last, width)):
                    cells[cell] = mark
            name = worker if kind == "task" else ""
            lines.append(f"{name:>{names}} |{''.join(cells)}|")
    return "\n".join([*lines, *describe(job)])


def describe(job: Job) -> Iterator[str]:
    """The EchelonFlows and arrangements, a line each, the first 40."""
    groups = expand(job).echelonflows
    for group in groups[:40]:
        offsets = sorted(set(group.arrangement))
        shown = ", ".join(f"{offset:.4g}" for offset in offsets[:8])
        kind = (
            "coflow"
            if group.is_coflow
            else f"offsets {shown}{', ...' if len(offsets) > 8 else ''} s"
        )
        yield f"  {group.id}: {len(group.flows)} flows, {kind}"
    if len(groups) > 40:
        yield f"  and {len(groups) - 40} more"


def to_html(job: Job, rate: float) -> str:
    """A page that stands alone: the timeline as SVG with titles, and the EchelonFlows."""
    bars = timeline(job, rate)
    groups = "".join(
        f"<li><span style='background:{_colour(i)}'></span>{html.escape(line.strip())}</li>"
        for i, line in enumerate(describe(job))
    )
    name = html.escape(job.name)
    ticks = (
        " A black tick is a flow's ideal finish."
        if any(bar.ideal is not None for bar in bars)
        else ""
    )
    return (
        f"<!doctype html><meta charset=utf-8><title>{name}</title><style>"
        "body{font:14px sans-serif;margin:2em}svg text{font:11px sans-serif}ul{padding:0}"
        "li{list-style:none;margin:.2em}span{display:inline-block;width:1em;height:1em;"
        "margin-right:.6em;vertical-align:-.1em;opacity:.8}</style>"
        f"<h1>{name}</h1><p>One iteration, every flow alone on links of {format_rate(rate)}. Grey is "
        f"computing, below it what the worker sends, a colour an EchelonFlow.{ticks} Point at a bar for "
        f"its name.</p>{_svg(job, bars)}<ul>{groups}</ul>\n"
    )


_WIDTH = 1100
_LEFT = 80
_RIGHT = 30
_BAR = 16
_LANE = 18
_GAP = 8
_LANES = 4
"Rows for what one worker sends at the same time; further flows share the last."


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where things stand, in pixels."""

    rows: dict[str, int]
    "Worker -> top of its computing; what it sends is below."
    lanes: dict[int, int]
    "Bar by its place in the list -> row below its worker's first, 0 for computing."
    height: int
    seconds: float

    @classmethod
    def of(cls, job: Job, bars: list[Bar]) -> _Layout:
        free: dict[str, list[float]] = {worker: [] for worker in job.workers}
        lanes = {}
        for i, bar in sorted(enumerate(bars), key=lambda one: one[1].start):
            lanes[i] = 0 if bar.kind == "task" else 1 + _lane(free[bar.row], bar)
        rows, top = {}, 0
        for worker in job.workers:
            rows[worker] = top
            top += _LANE * (1 + max(1, len(free[worker]))) + _GAP
        return cls(rows, lanes, top + 20, max((bar.end for bar in bars), default=0.0) or 1.0)

    def x(self, seconds: float) -> float:
        return _LEFT + seconds * (_WIDTH - _LEFT - _RIGHT) / self.seconds

    def y(self, place: int, bar: Bar) -> int:
        return self.rows[bar.row] + _LANE * self.lanes[place]

    def times(self) -> list[float]:
        """Round moments for the axis, four to eight."""
        step = 10.0 ** math.floor(math.log10(self.seconds))
        step = next(s for s in (step, step / 2, step / 5, step / 10) if self.seconds / s >= 4)
        return [i * step for i in range(int(self.seconds / step * (1 + 1e-9)) + 1)]


def _lane(free: list[float], bar: Bar) -> int:
    """The first row that is free again when a flow starts; `free` has the end of each row."""
    for lane, end in enumerate(free):
        if end <= bar.start * (1 + 1e-12):
            free[lane] = bar.end
            return lane
    if len(free) < _LANES:
        free.append(bar.end)
    else:
        free[-1] = max(free[-1], bar.end)
    return len(free) - 1


def _svg(job: Job, bars: list[Bar]) -> str:
    layout = _Layout.of(job, bars)
    low = layout.height - 20
    parts = [
        f'<text x="0" y="{y + 13}">{html.escape(worker)}</text>'
        for worker, y in layout.rows.items()
    ]
    for moment in layout.times():
        x = layout.x(moment)
        parts.append(f'<path d="M{x:.2f} 0V{low}" stroke="#e6e8ec"/>')
        parts.append(f'<text x="{x:.2f}" y="{low + 14}" text-anchor="middle">{moment:.4g} s</text>')
    for i, bar in enumerate(bars):
        x, y = layout.x(bar.start), layout.y(i, bar)
        width = max(0.5, layout.x(bar.end) - x)
        parts.append(
            f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_BAR}" '
            f'fill="{bar.colour}" fill-opacity="0.8">'
            f"<title>{html.escape(bar.label)}: {bar.start:.6g} to {bar.end:.6g} s</title></rect>"
        )
        if bar.ideal is not None:
            x = layout.x(min(bar.ideal, layout.seconds))
            parts.append(f'<path d="M{x:.2f} {y}v{_BAR}" stroke="#111" stroke-width="2"/>')
    return f'<svg width="{_WIDTH}" height="{layout.height}">{"".join(parts)}</svg>'


def to_png(job: Job, rate: float) -> bytes:
    """The timeline as a PNG."""
    bars = timeline(job, rate)
    layout = _Layout.of(job, bars)
    image = Image.new("RGB", (_WIDTH, layout.height), "white")
    draw = ImageDraw.Draw(image)
    low = layout.height - 20
    for worker, y in layout.rows.items():
        draw.text((4, y + 2), worker[:12].encode("latin-1", "replace").decode("latin-1"), "black")
    for moment in layout.times():
        x = layout.x(moment)
        draw.line((x, 0, x, low), "#e6e8ec")
        draw.text((x, low + 4), f"{moment:.4g} s", "black", anchor="ma")
    for i, bar in enumerate(bars):
        x, y = layout.x(bar.start), layout.y(i, bar)
        draw.rectangle((x, y, max(x, layout.x(bar.end)), y + _BAR), bar.colour)
        if bar.ideal is not None:
            x = layout.x(min(bar.ideal, layout.seconds))
            draw.line((x, y, x, y + _BAR), "#111", 2)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()

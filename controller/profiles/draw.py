"""A job as a picture: what each worker computes and sends, and when, on an idle network."""

from __future__ import annotations

import html
import io
from collections.abc import Iterator
from dataclasses import dataclass

from PIL import Image, ImageDraw

from controller.model import Flow, Job, Task, dag
from controller.model.collectives import expand
from controller.model.errors import BadInput
from controller.model.units import format_size

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
    colour = {
        flow: _COLOURS[i % len(_COLOURS)]
        for i, group in enumerate(job.echelonflows)
        for flow in group.flows
    }
    nodes, before = dag.nodes(job), dag.predecessors(job)
    end: dict[str, float] = {}
    bars = []
    for id_ in dag.order(job):
        node = nodes[id_]
        start = max((end[other] for other in before[id_]), default=0.0)
        if isinstance(node, Task):
            end[id_] = start + node.seconds
            bars.append(Bar(node.worker, "task", id_, start, end[id_], _COMPUTING))
        elif isinstance(node, Flow):
            end[id_] = start + node.bytes * 8 / rate
            label = f"{id_} to {node.dst}, {format_size(node.bytes)}"
            bars.append(Bar(node.src, "flow", label, start, end[id_], colour[id_]))
    return bars


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
    svg = _svg(job, timeline(job, rate))
    groups = "".join(f"<li>{html.escape(line.strip())}</li>" for line in describe(job))
    name = html.escape(job.name)
    return (
        f"<!doctype html><meta charset=utf-8><title>{name}</title>"
        "<style>body{font:14px sans-serif;margin:2em}svg text{font:11px sans-serif}</style>"
        f"<h1>{name}</h1><p>One iteration, every flow alone. Grey computes; colours are "
        f"EchelonFlows.</p>{svg}<ul>{groups}</ul>\n"
    )


_WIDTH = 1100
_LEFT = 80
_ROW = 40


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where things stand, in pixels."""

    rows: dict[str, int]
    seconds: float

    @classmethod
    def of(cls, job: Job, bars: list[Bar]) -> _Layout:
        rows = {worker: _ROW * i for i, worker in enumerate(job.workers)}
        return cls(rows, max((bar.end for bar in bars), default=0.0) or 1.0)

    @property
    def height(self) -> int:
        return _ROW * len(self.rows) + 20

    def box(self, bar: Bar) -> tuple[float, int, float, int]:
        """(x, y, width, height)."""
        scale = (_WIDTH - _LEFT - 10) / self.seconds
        y = self.rows[bar.row] + (0 if bar.kind == "task" else 18)
        return _LEFT + bar.start * scale, y, max(0.5, (bar.end - bar.start) * scale), 16


def _svg(job: Job, bars: list[Bar]) -> str:
    layout = _Layout.of(job, bars)
    parts = [
        f'<text x="0" y="{y + 14}">{html.escape(worker)}</text>'
        for worker, y in layout.rows.items()
    ]
    for bar in bars:
        x, y, width, height = layout.box(bar)
        parts.append(
            f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{height}" '
            f'fill="{bar.colour}" fill-opacity="0.8">'
            f"<title>{html.escape(bar.label)}: {bar.start:.6g} to {bar.end:.6g} s</title></rect>"
        )
    low = layout.height - 4
    parts.append(f'<text x="{_LEFT}" y="{low}">0</text>')
    parts.append(f'<text x="{_WIDTH - 60}" y="{low}">{layout.seconds:.4g} s</text>')
    return f'<svg width="{_WIDTH}" height="{layout.height}">{"".join(parts)}</svg>'


def to_png(job: Job, rate: float) -> bytes:
    """The timeline as a PNG."""
    bars = timeline(job, rate)
    layout = _Layout.of(job, bars)
    image = Image.new("RGB", (_WIDTH, layout.height), "white")
    draw = ImageDraw.Draw(image)
    for worker, y in layout.rows.items():
        draw.text((4, y + 2), worker[:12].encode("latin-1", "replace").decode("latin-1"), "black")
    for bar in bars:
        x, y, width, height = layout.box(bar)
        draw.rectangle((x, y, x + width, y + height), bar.colour)
    draw.text((_LEFT, layout.height - 14), "0", "black")
    draw.text((_WIDTH - 60, layout.height - 14), f"{layout.seconds:.4g} s", "black")
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()

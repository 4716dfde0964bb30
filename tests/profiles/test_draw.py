"""Timelines: what is drawn is what the job does when every flow is alone."""

from __future__ import annotations

import re

import pytest

from controller.model import Flow, Job, Task
from controller.model.errors import BadInput
from controller.profiles import draw
from controller.profiles.builders import Layer, Spec, build

FIGURE2 = Job(
    "figure2 <b>",
    ("w0", "w1"),
    (
        *(Task(f"p{k}", "w0", 1.0) for k in range(3)),
        *(Task(f"c{k}", "w1", 1.0, (f"f{k}",)) for k in range(3)),
    ),
    tuple(Flow(f"f{k}", "w0", "w1", 125e6, (f"p{k}",)) for k in range(3)),
)


def test_bars_start_when_their_causes_have_ended() -> None:
    bars = {bar.label.split()[0]: bar for bar in draw.timeline(FIGURE2, 1e9)}
    assert (bars["p1"].start, bars["p1"].end) == (1.0, 2.0)
    assert (bars["f1"].row, bars["f1"].start, bars["f1"].end) == ("w0", 2.0, 3.0)
    assert (bars["c2"].row, bars["c2"].start, bars["c2"].end) == ("w1", 4.0, 5.0)
    assert len({bars[f"f{k}"].colour for k in range(3)}) == 1


def test_flows_have_their_ideal_finishes_where_these_differ() -> None:
    bars = [bar for bar in draw.timeline(FIGURE2, 1e9) if bar.kind == "flow"]
    assert [bar.ideal for bar in bars] == [1.0, 2.0, 3.0]  # f0 is ready at 1, then one a second
    assert draw.to_html(FIGURE2, 1e9).count('stroke="#111"') == 3


def test_flows_that_are_sent_at_once_are_drawn_below_each_other() -> None:
    flows = tuple(Flow(f"f{k}", "a", "b", 125e6 * (k + 1)) for k in range(2))
    page = draw.to_html(Job("x", ("a", "b"), (), flows), 1e9)
    rows = re.findall(r'<rect x="[0-9.]+" y="(\d+)"', page)
    assert len(set(rows)) == 2


def test_the_terminal_shows_workers_and_arrangements() -> None:
    text = draw.to_text(FIGURE2, 1e9, 50).splitlines()
    assert text[1].startswith("w0 |##############################  ")
    assert text[2].strip("| ").startswith("aaa")
    assert text[-1].strip() == "f0..f2: 3 flows, offsets 0, 1, 2 s"


def test_the_page_stands_alone_and_escapes_names() -> None:
    page = draw.to_html(FIGURE2, 1e9)
    assert page.count("<rect") == 9
    assert "figure2 &lt;b&gt;" in page
    assert "<b>" not in page
    assert "http" not in page


def test_the_png_is_one() -> None:
    data = draw.to_png(FIGURE2, 1e9)
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == 1100


def test_too_much_to_draw_is_refused() -> None:
    job = build(Spec("big", (Layer(1.0, 1.0, 1e9),) * 4, data=64, bucket_bytes=1e9))
    with pytest.raises(BadInput, match="too many to draw"):
        draw.timeline(job, 1e9)

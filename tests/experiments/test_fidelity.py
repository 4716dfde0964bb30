"""Measured against predicted, flow by flow: the worst is named."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from controller.experiments import results, table
from controller.experiments.fidelity import fidelity, pairs
from controller.experiments.summarize import counted, measured_summary, predicted_summary
from controller.experiments.summary import Summary
from controller.model.record import Played
from tests.experiments.played import figure2


def live(predicted: Played, **late: float) -> Played:
    """What was predicted, with some flows later by so many seconds; everything 10 s later."""
    flows = tuple(
        replace(flow, ready=flow.ready + 10, finish=flow.finish + 10 + late.get(flow.flow, 0.0))
        for flow in predicted.flows
    )
    return Played(flows, predicted.tasks, predicted.jobs)


def test_a_flow_counts_from_when_it_was_ready_so_earlier_delays_are_not_its_own() -> None:
    predicted = figure2("fair")
    assert all(pair.difference_s == pytest.approx(0) for pair in pairs(live(predicted), predicted))


def test_the_worst_comes_first_late_or_early() -> None:
    predicted = figure2("fair")
    found = pairs(live(predicted, a0=0.2, a1=-0.3), predicted)
    assert [pair.measured.flow for pair in found] == ["a1", "a0", "a2"]
    figures = fidelity(found)
    assert figures is not None
    assert (figures.flows, figures.worst.flow) == (3, "a1")
    assert figures.worst.measured_s - figures.worst.predicted_s == pytest.approx(-0.3)
    shares = sorted(abs(pair.share) for pair in found)
    assert (figures.median_difference, figures.p95_difference) == (shares[1], shares[2])


def test_flows_inside_a_host_and_flows_that_only_one_side_has_are_left_out() -> None:
    predicted = figure2("fair")
    a0, a1, _ = predicted.flows
    inside = replace(a0, finish=a0.ready)
    model = Played((inside, a1), predicted.tasks, predicted.jobs)
    assert [pair.measured.flow for pair in pairs(live(predicted), model)] == [a1.flow]
    assert fidelity(pairs(predicted, Played((inside,), (), ()))) is None


def test_shares_of_a_few_packets_are_not_counted() -> None:
    predicted = figure2("fair")
    a0, a1, _ = predicted.flows
    short = replace(a0, finish=a0.ready + 0.001)
    model = Played((short, a1), predicted.tasks, predicted.jobs)
    figures = fidelity(pairs(live(predicted, a1=0.1), model))
    assert figures is not None
    assert (figures.flows, figures.timed_flows) == (2, 1)
    assert figures.p95_difference == pytest.approx(0.1 / (a1.finish - a1.ready))
    only = fidelity(pairs(live(predicted), Played((short,), (), ())))
    assert only is not None
    assert only.median_difference is None


def test_summary_terminal_and_report_name_the_worst_flow(tmp_path: Path) -> None:
    predicted = figure2("fair")
    measured = live(predicted, a1=0.75)
    one = predicted_summary("figure2", "fair", "enforced", predicted, {"A": 12.0}, counted)
    one = measured_summary(one, measured)
    one.fidelity = fidelity(pairs(measured, predicted))
    summary = Summary.new(target="embedded", topology="leaf-spine:2x2x4", link_rate_bps=4e7)
    summary.scenarios.append(one)
    key = ("figure2", "fair")
    results.write_results(tmp_path, summary, {key: measured}, {key: predicted})

    figures = json.loads((tmp_path / "summary.json").read_text())["scenarios"][0]["fidelity"]
    assert figures["flows"] == 3
    assert (figures["worst"]["job"], figures["worst"]["flow"]) == ("A", "a1")

    page = (tmp_path / "report.html").read_text()
    assert "The worst of all 3 is <b>A a1</b>" in page
    assert "+0.750" in page
    assert page.count("<tr><td>fair</td><td>A a") == 2 * 3  # the worst, and all

    console = Console(width=80, record=True, file=io.StringIO())
    table.print_summary(summary, console)
    text = console.export_text()
    (row,) = (line for line in text.splitlines() if "A a1" in line)
    assert f"{figures['worst']['measured_s']:.3f}" in row
    assert max(map(len, text.splitlines())) <= 80

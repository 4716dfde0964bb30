"""What a run leaves behind can be read by programs and by people."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

from pyarrow import parquet
from rich.console import Console

from controller.experiments import results, summary, table
from controller.experiments.summarize import counted, measured_summary, predicted_summary
from controller.experiments.summary import Summary
from controller.model.record import Played
from tests.experiments.played import UNIT_S, figure2

POLICIES = ("fair", "fifo", "varys", "echelon")


def a_run() -> tuple[Summary, dict[tuple[str, str], Played]]:
    found = Summary.new(target="embedded", topology="leaf-spine:2x2x4", link_rate_bps=4e7)
    played = {("figure2", name): figure2(name) for name in POLICIES}
    for name in POLICIES:
        one = predicted_summary(
            "figure2", name, "enforced", played["figure2", name], {"A": 12.0}, counted
        )
        one.time_unit_s = UNIT_S
        found.scenarios.append(measured_summary(one, played["figure2", name]))
    found.scenarios[0].checks = ["class 3 carried <nothing>"]
    return found, played


def test_summary_survives_the_round_trip_and_has_the_promised_keys(tmp_path: Path) -> None:
    found, played = a_run()
    results.write_results(tmp_path, found, played, played)
    data = json.loads((tmp_path / "summary.json").read_text())
    assert data["schema"] == "echelon/summary/v1"
    scenario = data["scenarios"][3]
    assert {
        "name",
        "policy",
        "time_unit_s",
        "jobs",
        "mean_slowdown",
        "predicted_mean_slowdown",
        "bound_mean_slowdown",
        "total_tardiness_s",
        "mean_coflow_completion_s",
    } <= set(scenario)
    assert {
        "job",
        "iterations",
        "completion_s",
        "mean_iteration_s",
        "alone_s",
        "slowdown",
        "predicted_completion_s",
        "predicted_iteration_s",
    } <= set(scenario["jobs"][0])
    assert scenario["mean_coflow_completion_s"] is None
    assert summary.read(tmp_path / "summary.json").scenarios[3].policy == "echelon"


def test_figures_that_are_not_finite_become_null() -> None:
    found, _ = a_run()
    found.scenarios[0].mean_slowdown = math.nan
    assert summary.to_builtins(found)["scenarios"][0]["mean_slowdown"] is None


def test_flows_csv_has_every_flow_measured_and_predicted(tmp_path: Path) -> None:
    found, played = a_run()
    results.write_results(tmp_path, found, played, played)
    with (tmp_path / "flows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(POLICIES) * 3
    last = next(r for r in rows if r["policy"] == "echelon" and r["flow"] == "a2")
    assert float(last["finish_s"]) == 7 * UNIT_S
    assert float(last["tardiness_s"]) == 4 * UNIT_S


def test_flows_parquet_has_the_same_flows_as_numbers(tmp_path: Path) -> None:
    found, played = a_run()
    results.write_results(tmp_path, found, played, played)
    rows = parquet.read_table(tmp_path / "flows.parquet").to_pylist()
    with (tmp_path / "flows.csv").open() as file:
        as_text = list(csv.DictReader(file))
    assert [row["flow"] for row in rows] == [row["flow"] for row in as_text]
    assert list(rows[0]) == list(as_text[0])
    last = next(r for r in rows if r["policy"] == "echelon" and r["flow"] == "a2")
    flow = next(f for f in played["figure2", "echelon"].flows if f.flow == "a2")
    assert last["finish_s"] == flow.finish and last["classes"] == list(flow.classes)


def test_a_run_without_flows_has_empty_files(tmp_path: Path) -> None:
    results.write_results(tmp_path, a_run()[0], {}, {})
    assert parquet.read_table(tmp_path / "flows.parquet").num_rows == 0
    assert len((tmp_path / "flows.csv").read_text().splitlines()) == 1


def test_report_is_one_file_that_loads_nothing_and_escapes_what_it_quotes(tmp_path: Path) -> None:
    found, played = a_run()
    results.write_results(tmp_path, found, played, played)
    page = (tmp_path / "report.html").read_text()
    assert "<script src" not in page and "<link" not in page
    assert page.count("Plotly.newPlot(") >= 1
    assert "class 3 carried &lt;nothing&gt;" in page
    for name in POLICIES:
        assert f"<b>{name}</b>" in page or f"\\u003cb\\u003e{name}" in page


def test_table_shows_measured_predicted_and_their_difference() -> None:
    found, _ = a_run()
    console = Console(width=80, record=True, file=io.StringIO())
    table.print_summary(found, console)
    text = console.export_text()
    assert "8.50" in text and "10.00" in text and "+0.0 %" in text
    assert "class 3 carried" in text
    assert max(map(len, text.splitlines())) <= 80


def test_two_runs_in_one_second_get_different_folders(tmp_path: Path) -> None:
    assert len({results.new_folder(tmp_path) for _ in range(3)}) == 3

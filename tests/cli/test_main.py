"""The `echelon` command: exit codes, one-line errors, JSON that keeps its schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.cli.main import run

WORKLOAD = """\
schema: echelon/job/v1
job: pipe
iterations: 2
workers: [w0, w1]
tasks:
  - {id: f0, worker: w0, seconds: 1}
  - {id: f1, worker: w0, seconds: 1}
  - {id: g0, worker: w1, seconds: 1, after: [a0]}
  - {id: g1, worker: w1, seconds: 1, after: [a1]}
flows:
  - {id: a0, src: w0, dst: w1, bytes: 2e6, after: [f0]}
  - {id: a1, src: w0, dst: w1, bytes: 2e6, after: [f1]}
"""


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(WORKLOAD)
    return str(path)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err.strip()


def test_compare_prints_the_summary_schema_without_measured_keys(
    job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", job, "--link-rate", "8mbit", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "echelon/summary/v1" and data["target"] == "simulator"
    assert [one["policy"] for one in data["scenarios"]] == ["fair", "fifo", "varys", "echelon"]
    for scenario in data["scenarios"]:
        assert scenario["predicted_mean_slowdown"] >= scenario["bound_mean_slowdown"] - 1e-9
        assert "mean_slowdown" not in scenario and "slowdown" not in scenario["jobs"][0]


def test_bound_and_schedule_speak_json(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bound", job, "--link-rate", "8mbit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenarios"][0]["policy"] == "bound"
    assert run(["schedule", job, "--link-rate", "8mbit", "--at", "1.5s", "--json"]) == 0
    (decision,) = json.loads(capsys.readouterr().out)
    assert [(one["flow"], one["rate_bps"]) for one in decision["flows"]] == [("a0", 8e6)]


def test_out_writes_what_a_person_and_a_program_read(job: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(["simulate", job, "--link-rate", "8mbit", "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {
        "summary.json",
        "flows.csv",
        "flows.parquet",
        "report.html",
    }


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["compare", "{job}", "--policy", "nonsense"], "nonsense"),
        (["compare", "{job}", "--topology", "ring:4"], "ring:4"),
        (["compare", "{job}", "--link-rate", "fast"], "fast"),
        (["compare", "{job}", "--model", "magic"], "magic"),
        (["compare", "missing.yaml"], "missing.yaml"),
        (["compare", "{job}", "--topology", "big-switch:2", "--placement", "odd"], "odd"),
        (["simulate", "{job}", "--iterations", "0"], "--iterations 0"),
        (["run", "--target", "hardware"], "hardware"),
        (["run", "--scenario", "figure9"], "figure9"),
        (["replay", "{job}", "--on", "paper"], "paper"),
        (["frobnicate"], "frobnicate"),
        (["compare", "{job}", "--no-such-option"], "--no-such-option"),
    ],
)
def test_bad_input_is_one_line_that_names_it_and_exit_code_2(
    arguments: list[str], names: str, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([argument.format(job=job) for argument in arguments]) == 2
    line = said(capsys)
    assert names in line and "\n" not in line


def test_nobody_to_ask_is_a_failure_not_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "--address", "127.0.0.1:1"]) == 1
    assert "127.0.0.1:1" in said(capsys)

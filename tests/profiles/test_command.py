"""`echelon profile`: import, show, check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.cli.main import run
from controller.profiles import files
from tests.profiles import samples
from tests.profiles.inputs import REPOSITORY

TRACES = REPOSITORY / "traces"


@pytest.fixture(autouse=True)
def mounted() -> None:
    """The sub-command belongs to the main command."""
    if run(["profile", "--help"]) != 0:
        pytest.skip("profile is not mounted")


def test_import_writes_a_profile_and_says_how(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "ddp.yaml"
    status = run(
        ["profile", "import", str(TRACES / "resnet18-ddp"), "--reference-rate", "1gbit",
         "--name", "ddp", "--iterations", "3", "-o", str(out)]
    )  # fmt: skip
    assert status == 0
    said = capsys.readouterr().out
    assert "understood: 3 all_reduce of 46758048 bytes in all an iteration" in said
    job = files.read_job(out)
    assert (job.name, job.iterations, job.reference_rate) == ("ddp", 3, 1e9)


def test_import_reports_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x"
    path.write_bytes(samples.COFLOWS)
    capsys.readouterr()
    assert run(["profile", "import", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["format"] == "coflow benchmark"
    assert report["assumed"]


def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("schema: echelon/job/v1\njob: x\nworkers: [a]\nsize: 3\n")
    for command in ("check", "show"):
        capsys.readouterr()
        assert run(["profile", command, str(path)]) == 2
        assert capsys.readouterr().err == (
            f"echelon: {path}:4: size: unknown key: expected one of job, workers, schema, "
            "iterations, reference_rate, tasks, flows, collectives, echelonflows\n"
        )


def test_check_counts_what_a_file_holds(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["profile", "check", str(TRACES / "mixed.yaml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["jobs"], found["workers"], found["valid"]) == (4, 14, True)


@pytest.mark.parametrize("name", ["t.html", "t.png"])
def test_show_writes_pictures(name: str, tmp_path: Path) -> None:
    out = tmp_path / name
    assert (
        run(["profile", "show", str(TRACES / "mixed.yaml"), "--job", "fsdp", "-o", str(out)]) == 0
    )
    assert out.stat().st_size > 1000


def test_show_draws_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["profile", "show", str(TRACES / "pipeline-1f1b.yaml")]) == 0
    said = capsys.readouterr().out
    assert "w3 |" in said
    assert "6 flows, offsets 0, 0.05, 0.1, 0.25, 0.4, 0.55 s" in said

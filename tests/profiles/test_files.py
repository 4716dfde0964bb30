"""Profiles and workloads on disk: exact round trips, and errors that say where."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from controller.model import Collective, EchelonFlow, Flow, Job, Task, Workload
from controller.profiles import files
from controller.profiles.files import ProfileError
from tests.profiles.strategies import jobs, workloads

GPT = """\
schema: echelon/job/v1
job: gpt-pp2
iterations: 20
reference_rate: 100gbit        # the rate at which it was recorded
workers: [w0, w1]
tasks:
  - {id: f0, worker: w0, seconds: 0.120}
  - {id: g0, worker: w1, seconds: 120ms, after: [a0]}
flows:
  - {id: a0, src: w0, dst: w1, bytes: 16777216, after: [f0]}
collectives:
  - {id: r0, kind: all_reduce, algorithm: ring, workers: [w0, w1], bytes: 10MiB, after: [g0]}
echelonflows:
  - {id: fwd, flows: [a0], arrangement: {kind: staggered, step: 0.120}}
"""


def test_the_profile_of_the_design_reads_as_written() -> None:
    job = files.parse(GPT, "gpt.yaml")
    assert job == Job(
        "gpt-pp2",
        ("w0", "w1"),
        (Task("f0", "w0", 0.12), Task("g0", "w1", 0.12, ("a0",))),
        (Flow("a0", "w0", "w1", 16777216.0, ("f0",)),),
        (Collective("r0", "all_reduce", "ring", ("w0", "w1"), 10485760.0, ("g0",)),),
        (EchelonFlow("fwd", ("a0",), (0.0,)),),
        20,
        1e11,
    )


@pytest.mark.parametrize("form", ["yaml", "json"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(job=jobs())
def test_a_job_survives_the_round_trip_exactly(form: str, job: Job) -> None:
    assert files.parse(files.format_profile(job, form), f"x.{form}") == job


@pytest.mark.parametrize("form", ["yaml", "json"])
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(workload=workloads())
def test_a_workload_survives_the_round_trip_exactly(form: str, workload: Workload) -> None:
    assert files.parse(files.format_profile(workload, form), f"x.{form}") == workload


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(job=jobs())
def test_other_yaml_readers_see_the_same_names_and_numbers(job: Job) -> None:
    value = yaml.safe_load(files.format_profile(job, "yaml"))
    assert value["job"] == job.name
    assert tuple(value["workers"]) == job.workers
    assert [float(f["bytes"]) for f in value.get("flows", [])] == [f.bytes for f in job.flows]
    assert all(not isinstance(t["seconds"], str) for t in value.get("tasks", []))


def changed(old: str, new: str) -> str:
    assert GPT.count(old) == 1, old
    return GPT.replace(old, new)


@pytest.mark.parametrize(
    ("text", "line", "key", "message"),
    [
        (changed("bytes: 16777216", "bytes: -1"), 10, "flows[0].bytes", "expected bytes > 0"),
        (changed("bytes: 16777216", "bytes: 0"), 10, "flows[0].bytes", "expected bytes > 0"),
        (changed("bytes: 16777216", "bytes: .nan"), 10, "flows[0].bytes", "expected bytes"),
        (changed("bytes: 16777216", "bytes: .inf"), 10, "flows[0].bytes", "expected bytes"),
        (changed("bytes: 16777216", "bytes: true"), 10, "flows[0].bytes", "expected bytes"),
        (changed("bytes: 16777216", "bytes: 3 apples"), 10, "flows[0].bytes", "16MiB"),
        (changed("bytes: 16777216", "size: 3"), 10, "flows[0].size", "unknown key: expected one of id"),
        (changed(", bytes: 16777216", ""), 10, "flows[0]", "bytes is missing"),
        (changed("seconds: 0.120}", "seconds: -0.1}"), 7, "tasks[0].seconds", "expected seconds >= 0"),
        (changed("after: [f0]", "after: [f9]"), 10, "flows[0].after[0]", "'f9': expected the id"),
        (changed("after: [f0]", "after: [g0]"), 8, "tasks[1].after", "can never finish"),
        (changed("after: [f0]", "after: f0"), 10, "flows[0].after", "expected a list"),
        (changed("dst: w1", "dst: w9"), 10, "flows[0].dst", "one of the job's workers"),
        (changed("dst: w1", "dst: w0"), 10, "flows[0].dst", "is the sender too"),
        (changed("{id: g0", "{id: f0"), 8, "tasks[1].id", "already the id of tasks[0]"),
        (changed("all_reduce", "all_scatter"), 12, "collectives[0].kind", "expected one of all_reduce"),
        (changed("algorithm: ring", "algorithm: bus"), 12, "collectives[0].algorithm", "ring, halving"),
        (changed("iterations: 20", "iterations: 0"), 3, "iterations", "whole number >= 1"),
        (changed("iterations: 20", "iterations: 2.5"), 3, "iterations", "a whole number"),
        (changed("iterations: 20", "iterations: 20\niterations: 21"), 4, "iterations", "given twice"),
        (changed("100gbit", "100gigs"), 4, "reference_rate", "as in 100gbit"),
        (changed("100gbit", "0"), 4, "reference_rate", "expected a rate > 0"),
        (changed("[w0, w1]\ntasks", "[0, 1]\ntasks"), 5, "workers[0]", "put a number in quotes"),
        (changed("flows: [a0]", "flows: [a1]"), 14, "echelonflows[0].flows[0]", "id of a flow or coll"),
        (changed("kind: staggered", "kind: wavy"), 14, "echelonflows[0].arrangement.kind", "coflow"),
        (changed("{kind: staggered, step: 0.120}", "[0, 1]"), 14, "echelonflows[0].arrangement",
         "2 offsets for 1 flows"),
        (changed("job/v1", "job/v2"), 1, "schema", "expected echelon/job/v1 or echelon/workload/v1"),
        (changed("schema: echelon/job/v1\n", ""), 1, "", "schema is missing"),
        (changed("tasks:\n", "tasks: &t\n") + "x: *t\n", 15, "x", "unknown key"),
        (GPT + "  - {", 16, "", "not valid YAML"),
        (GPT + "---\nschema: x\n", 15, "", "a second document"),
        ("[1, 2]", 1, "", "expected a job profile or a workload"),
        ("", 1, "", "empty"),
        ('{"schema": "echelon/job/v1",\n "job": "x" "y"}', 2, "", "not valid JSON"),
        ('{"schema": "echelon/job/v1",\n "job": "x",\n "job": "y"}', 3, "job", "given twice"),
        (('{"schema": "echelon/job/v1", "job": "x",\n "workers": ["a"],\n "tasks": '
         '[{"id": "t", "worker": "a", "seconds": NaN}]}'), 3, "tasks[0].seconds", "expected seconds"),
        ("a: " + "[" * 500 + "]" * 500, 1, None, "nested deeper"),
        ("- " * 50000, 1, None, "nested deeper"),
        ('{"schema": ' + "[" * 100000, 1, None, ""),
        ("a: &a [*a]", 1, None, "unknown alias"),
        ('schema: echelon/job/v1\n"two\\nlines": 1', 2, None, "unknown key"),
        ("? [x]\n: y", 1, "", "expected a word as key"),
    ],
)  # fmt: skip
def test_errors_name_file_line_key_and_what_was_expected(
    text: str, line: int, key: str | None, message: str
) -> None:
    with pytest.raises(ProfileError) as caught:
        files.parse(text, "gpt.yaml")
    error = caught.value
    assert (error.file, error.line) == ("gpt.yaml", line), error
    assert key is None or error.key == key, error
    assert message in error.reason
    assert "\n" not in str(error)
    assert str(error).startswith(f"gpt.yaml:{line}: ")


WORKLOAD = """\
schema: echelon/workload/v1
jobs:
  - {profile: gpt.yaml, arrival: 0, placement: {w0: h1, w1: h2}, weight: 1}
  - {profile: gpt.yaml, job: second, arrival: 1.5}
"""


def test_a_workload_finds_its_profiles_beside_it(tmp_path: Path) -> None:
    (tmp_path / "gpt.yaml").write_text(GPT)
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    workload = files.read_workload(tmp_path / "w.yaml")
    assert [p.job.name for p in workload.jobs] == ["gpt-pp2", "second"]
    assert workload.jobs[0].placement == {"w0": "h1", "w1": "h2"}
    assert workload.jobs[1].arrival == 1.5
    files.write(workload, tmp_path / "copy.yaml")
    assert files.read(tmp_path / "copy.yaml") == workload


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message"),
    [
        (", job: second", "", 4, "jobs[1].job", "listed twice"),
        ("w1: h2", "w2: h2", 3, "jobs[0].placement.w2", "has no worker 'w2'"),
        (", w1: h2", "", 3, "jobs[0].placement", "'w1' has no host"),
        ("weight: 1", "weight: 0", 3, "jobs[0].weight", "expected a number > 0"),
        ("weight: 1", "weight: big", 3, "jobs[0].weight", "expected a number"),
        ("arrival: 1.5", "arrival: -1", 4, "jobs[1].arrival", "expected seconds >= 0"),
    ],
)
def test_errors_of_a_workload_say_where(
    tmp_path: Path, old: str, new: str, line: int, key: str, message: str
) -> None:
    (tmp_path / "gpt.yaml").write_text(GPT)
    path = tmp_path / "w.yaml"
    path.write_text(WORKLOAD.replace(old, new))
    with pytest.raises(ProfileError, match=message) as caught:
        files.read(path)
    assert (caught.value.file, caught.value.line, caught.value.key) == (str(path), line, key)


def test_an_error_in_a_profile_names_the_profile_not_the_workload(tmp_path: Path) -> None:
    (tmp_path / "gpt.yaml").write_text(changed("dst: w1", "dst: w9"))
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    with pytest.raises(ProfileError, match=r"gpt\.yaml:10: flows\[0\]\.dst"):
        files.read(tmp_path / "w.yaml")


def test_a_missing_and_a_binary_file_say_so(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cannot be read: No such file"):
        files.read(tmp_path / "none.yaml")
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProfileError, match="byte 0 is not UTF-8"):
        files.read(tmp_path / "x.yaml")

"""Workers to hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.cli.main import run
from controller.model import Fabric, Job, Link, PlacedJob, Workload
from controller.model.errors import BadInput
from controller.profiles.placement import place
from controller.profiles.placement_file import read_placement
from tests.profiles.inputs import REPOSITORY


def fabric() -> Fabric:
    hosts = tuple(f"h{i}" for i in range(1, 9))
    links = [Link(h, f"s{i // 4 + 1}", 1e9) for i, h in enumerate(hosts)]
    links += [Link(link.dst, link.src, link.rate) for link in links]
    return Fabric("two-leaves", hosts, ("s1", "s2"), tuple(links))


def workload(*sizes: int) -> Workload:
    return Workload(
        tuple(
            PlacedJob(Job(f"j{k}", tuple(f"w{i}" for i in range(n)))) for k, n in enumerate(sizes)
        )
    )


def hosts(placed: Workload) -> list[list[str]]:
    return [list(p.placement.values()) for p in placed.jobs]


def test_packed_fills_one_switch_before_the_next() -> None:
    assert hosts(place(workload(4, 2), fabric())) == [["h1", "h2", "h3", "h4"], ["h5", "h6"]]


def test_spread_alternates_between_switches() -> None:
    assert hosts(place(workload(4), fabric(), "spread")) == [["h1", "h5", "h2", "h6"]]


def test_random_is_a_function_of_the_seed_and_never_doubles_up_early() -> None:
    one = hosts(place(workload(5, 3), fabric(), "random", 7))
    assert one == hosts(place(workload(5, 3), fabric(), "random", 7))
    assert one != hosts(place(workload(5, 3), fabric(), "random", 8))
    assert len({h for job in one for h in job}) == 8


@pytest.mark.parametrize("policy", ["packed", "spread", "random"])
def test_more_workers_than_hosts_share_them_evenly(policy: str) -> None:
    (chosen,) = hosts(place(workload(20), fabric(), policy))
    assert sorted(chosen.count(h) for h in set(chosen)) == [2, 2, 2, 2, 3, 3, 3, 3]


def test_named_hosts_are_kept_and_avoided_by_the_others() -> None:
    first = PlacedJob(Job("a", ("w0",)), {"w0": "h1"})
    placed = place(Workload((first, *workload(2).jobs)), fabric())
    assert hosts(placed) == [["h1"], ["h2", "h3"]]


def test_unknown_policies_and_hosts_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match="packed, spread, random"):
        place(workload(1), fabric(), "tight")
    with pytest.raises(BadInput, match="worker w0 is placed on 'h99'"):
        place(Workload((PlacedJob(Job("a", ("w0",)), {"w0": "h99"}),)), fabric())


def test_a_file_goes_before_the_workloads_own_hosts_and_the_rest_is_packed(tmp_path: Path) -> None:
    path = tmp_path / "where.yaml"
    path.write_text("j0: {w1: h8, w0: h1}\n")
    jobs = (PlacedJob(Job("j0", ("w0", "w1")), {"w0": "h2", "w1": "h3"}), *workload(9, 3).jobs[1:])
    found, policy = read_placement(Workload(jobs), str(path))
    assert hosts(place(found, fabric(), policy)) == [["h1", "h8"], ["h2", "h3", "h4"]]
    assert read_placement(found, "spread") == (found, "spread")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "j1: {w0: h1, w1: h2}",
            "where.yaml:1: j1: the workload has no job 'j1': expected one of j0",
        ),
        ("j0: {w0: h1, w7: h2}", "where.yaml:1: j0.w7: no worker of j0: expected one of w0, w1"),
        ("j0:\n  w0: h1\n", r"where.yaml:\d: j0: worker 'w1' has no host"),
        ("j0:\n  w0: h1\n  w1: 2\n", "where.yaml:3: j0.w1: 2: expected a word"),
        ("j0: [h1, h2]", "where.yaml:1: j0: a list of 2: expected worker: host"),
        ("- h1", "where.yaml:1: a list of 1: expected job: {worker: host}"),
        ("j0: {w0: h1", "where.yaml:.* not valid YAML"),
        ("j0: {w0: h1, w0: h2}", "where.yaml:1: j0.w0: is given twice"),
    ],
)
def test_errors_in_a_placement_file_are_placed(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "where.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        read_placement(workload(2), str(path))


def test_what_is_neither_a_policy_nor_a_file_is_refused_with_what_is_known() -> None:
    with pytest.raises(
        BadInput, match="--placement tight: expected packed, spread, random, or a file"
    ):
        read_placement(workload(2), "tight")


@pytest.mark.parametrize("command", ["simulate", "compare", "bound", "schedule"])
def test_every_command_takes_every_placement(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "where.yaml"
    path.write_text("pipeline-1f1b: {w0: h5, w1: h1, w2: h6, w3: h2}\n")
    shared = [command, str(REPOSITORY / "traces/pipeline-1f1b.yaml"), "--json"]
    shared += ["--topology", "leaf-spine:2x1x4", "--link-rate", "40mbit"]
    said = {}
    for placement in ("packed", "spread", "random", str(path)):
        capsys.readouterr()
        assert run([*shared, "--placement", placement, "--seed", "3"]) == 0
        said[placement] = capsys.readouterr().out
    assert said["packed"] != said[str(path)]  # neighbours behind different switches share the core
    path.write_text("pipeline-1f1b: {w0: h5, w1: h99, w2: h6, w3: h2}\n")
    assert run([*shared, "--placement", str(path)]) == 2
    assert "worker w1 is placed on 'h99'" in capsys.readouterr().err

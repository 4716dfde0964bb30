"""The user's own file on a live network: stretched until it is true, refused where it cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from controller.cli.main import run
from controller.experiments import catalogue, live_fit
from controller.experiments.catalogue import Retelling, of_file
from controller.experiments.inputs import read_problem
from controller.model import Collective, Fabric, Flow, Job, PlacedJob, Task, Workload
from controller.model.errors import BadInput
from controller.model.fabrics import parse_topology
from controller.model.units import parse_rate
from controller.profiles.importers.report import Options
from tests.profiles import samples

FABRIC = parse_topology("leaf-spine:2x2x4", 4e7)


def one(job: Job, arrival: float = 0.0) -> Workload:
    return Workload((PlacedJob(job, {}, arrival),))


def sends(*sizes: float, reference_rate: float | None = None) -> Job:
    flows = tuple(Flow(f"f{i}", "a", "b", size) for i, size in enumerate(sizes))
    return Job("x", ("a", "b"), (), flows, reference_rate=reference_rate)


def test_a_time_scale_makes_half_of_the_flows_last_long_enough() -> None:
    workload = one(sends(50_000, 100_000, 10_000_000))  # the middle one takes 20 ms at 40 Mbit/s
    assert live_fit.fitting_time_scale(workload, FABRIC) == 5.0
    assert live_fit.fitting_time_scale(one(sends(500_000)), FABRIC) == 1.0
    recorded = one(sends(100_000, reference_rate=8e7))  # half of the bytes at half of the rate
    assert live_fit.fitting_time_scale(recorded, FABRIC) == 10.0


def test_flows_of_collectives_count() -> None:
    reduce = Collective("r", "all_reduce", "ring", ("a", "b"), 200_000)  # 4 flows of half of it
    workload = one(Job("x", ("a", "b"), (), (), (reduce,)))
    assert live_fit.fitting_time_scale(workload, FABRIC) == 5.0


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (
            Workload(
                tuple(PlacedJob(replace(sends(*[1.0] * 300), name=f"c{i}")) for i in range(100))
            ),
            r"30,000 flows: .* at most 20,000: .*--coflows 20",
        ),
        (one(sends(*[1.0] * 30_000)), r"its 2 workers send 30,000 an iteration; or play it on"),
        (
            one(Job("x", ("a", "b"), (Task("t", "a", 1),), sends(1, 1).flows, iterations=15_000)),
            "30,000 flows: .* play fewer --iterations; or play it on the simulator",
        ),
        (
            one(
                Job(
                    "x",
                    tuple(map(str, range(300))),
                    (Task("t", "0", 1),),
                    (),
                    (Collective("r", "all_reduce", "ring", tuple(map(str, range(300))), 1e9),),
                )
            ),
            "179,400 flows: .* its 300 workers send 179,400 .*--algorithm halving_doubling` sends",
        ),
    ],
)
def test_too_many_flows_are_refused_with_the_way_out(workload: Workload, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        live_fit.require_few_flows(workload)


def test_a_collective_of_thousands_is_counted_without_listing_it() -> None:
    workers = tuple(map(str, range(4096)))
    reduce = Collective("r", "all_reduce", "ring", workers, 1e9)
    with pytest.raises(BadInput, match="16,773,120 flows"):
        live_fit.require_few_flows(one(Job("x", workers, (Task("t", "0", 1),), (), (reduce,))))


def test_plays_that_nobody_waits_for_are_refused() -> None:
    assert live_fit.require_time(one(sends(1)), [60.0, 61.0]) == "2 plays, about 2 minutes"
    with pytest.raises(BadInput, match=r"2 plays would take 2 hours, .* fewer --iterations"):
        live_fit.require_time(one(sends(1)), [3600.0, 3600.0])
    with pytest.raises(
        BadInput, match=r"jobs arrive during 3 hours: .*--arrival-scale .* 0.04 times"
    ):
        live_fit.require_time(one(sends(1), 10_000.0), [10_001.0, 10_001.0])


def test_a_trace_is_stretched_unless_the_user_says_how_much(tmp_path: Path) -> None:
    path = tmp_path / "coflows"
    path.write_bytes(samples.COFLOWS)  # flows of 5, 5 and 3.5 MB recorded at 1 Gbit/s
    found = of_file(path, FABRIC, Retelling())
    assert "times and sizes x 2.5 (--time-scale)" in found.notes
    assert [f.bytes for f in found.scenario.workload.jobs[0].job.flows] == [12.5e6, 12.5e6]
    assert found.scenario.workload.jobs[1].arrival == 0.5 * 2.5
    assert {p.job.reference_rate for p in found.scenario.workload.jobs} == {1e9}
    plain = of_file(path, FABRIC, Retelling(time_scale=1.0))
    assert any("too short to be true: --time-scale 2.5" in note for note in plain.notes)


def test_the_rate_of_a_recording_is_the_users_or_its_own_or_said_to_be_assumed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.0.et"
    path.write_bytes(samples.CHAKRA)
    found = of_file(path, FABRIC, Retelling())
    assert "assumed: recorded on links of 100gbit (--reference-rate)" in found.notes
    assert found.scenario.workload.jobs[0].job.reference_rate == 1e11
    said = of_file(path, FABRIC, Retelling(options=Options(reference_rate=parse_rate("1gbit"))))
    assert said.scenario.workload.jobs[0].job.reference_rate == 1e9
    assert not any("assumed: recorded" in note for note in said.notes)


def test_our_own_profiles_are_played_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "schema: echelon/job/v1\njob: x\nworkers: [a, b]\nflows:\n"
        "  - {id: f, src: a, dst: b, bytes: 1kB}\n"
    )
    found = of_file(path, FABRIC, Retelling())
    assert [f.bytes for f in found.scenario.workload.jobs[0].job.flows] == [1000.0]
    assert any("--time-scale 500 stretches them" in note for note in found.notes)
    path.write_text(path.read_text().replace("1kB", "1MB"))
    assert not any("--time-scale" in note for note in of_file(path, FABRIC, Retelling()).notes)


def test_workers_that_share_a_host_are_said(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    workers = ", ".join(f"w{i}" for i in range(16))
    path.write_text(f"schema: echelon/job/v1\njob: x\nworkers: [{workers}]\n")
    notes = of_file(path, FABRIC, Retelling()).notes
    assert any(note.startswith("x: 2 workers on each host") for note in notes)


def test_a_trace_of_a_larger_fabric_is_folded_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "coflows"
    path.write_bytes(b"20 1\n1 0 1 0 1 9:10.0\n")  # rack 0 to rack 9: h1 to h10
    live = of_file(path, FABRIC, Retelling())
    offline = read_problem(path, "leaf-spine:2x2x4")
    for workload, notes in (
        (live.scenario.workload, live.notes),
        (offline.workload, offline.notes),
    ):
        assert set(workload.jobs[0].placement.values()) == {"h1", "h2"}
        assert any("folded onto the 8 of leaf-spine:2x2x4" in note for note in notes)
    assert read_problem(path).workload.jobs[0].placement["r9"] == "h10"


def test_replay_on_the_simulator_takes_the_same_choice_of_coflows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "coflows"
    path.write_bytes(samples.COFLOWS)
    shared = ["replay", str(path), "--on", "simulator", "--policy", "fair", "--json"]
    assert run([*shared, "--coflows", "1", "--time-scale", "3"]) == 0
    (scenario,) = json.loads(capsys.readouterr().out)["scenarios"]
    assert [job["job"] for job in scenario["jobs"]] == ["coflow1"]
    assert scenario["jobs"][0]["predicted_completion_s"] == pytest.approx(3 * 10e6 * 8 / 1e9)


def test_replay_tells_a_live_plays_importer_all_that_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Retelling] = []

    def of_file(path: Path, fabric: Fabric, how: Retelling) -> None:
        asked.append(how)
        raise BadInput("enough")

    monkeypatch.setattr(catalogue, "of_file", of_file)
    said = ["--limit", "3", "--algorithm", "tree", "--reference-rate", "1gbit"]
    assert run(["replay", str(tmp_path), "--target", "embedded", *said]) == 2
    assert asked[0].options == Options(reference_rate=1e9, limit=3, algorithm="tree")


def test_live_plays_take_every_placement(tmp_path: Path) -> None:
    path, where = tmp_path / "x.0.et", tmp_path / "where.yaml"
    path.write_bytes(samples.CHAKRA)
    where.write_text("x: {w0: h8, w1: h3}\n")

    def hosts(placement: str, seed: int = 0) -> list[str]:
        retold = of_file(path, FABRIC, Retelling(placement=placement, seed=seed))
        return list(retold.scenario.workload.jobs[0].placement.values())

    assert hosts("packed") == ["h1", "h2"]
    assert hosts("spread") == ["h1", "h5"]
    assert hosts(str(where)) == ["h8", "h3"]
    assert hosts("random", 3) == hosts("random", 3)
    assert len({tuple(hosts("random", seed)) for seed in range(8)}) > 1

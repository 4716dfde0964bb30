"""Every real input imports, or is refused with the one true reason."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from controller.model import Fabric, Job, Workload
from controller.model.arrangement import derive
from controller.model.check import require_valid
from controller.model.collectives import expand
from controller.profiles import files
from controller.profiles.errors import ProfileError
from controller.profiles.importers.report import Imported, Options
from controller.profiles.load import load, load_fabric
from controller.profiles.recognise import import_files
from tests.profiles.inputs import DATA, REPOSITORY, data

REFUSED = {
    "hta/benchmark_simple_add_et.json.gz": "execution trace of one process",
    "chakra/small_chakra.0.json": "has no comm_size: give the bytes",
    "aicb/Workload_spec_v1.1.csv": "table of model configurations",
    "zhejiang/llama2-7b-32gpu-rings.txt": "rings of 32 ranks but no collective with its size",
}
"Inputs that are no job, workload or fabric by themselves, and why."

MOST_PARTS = 30_000
"Larger ones would take seconds to write and read again."


def one(name: str, **options: object) -> Imported:
    return import_files([data(name)], Options(**options))  # type: ignore[arg-type]


def job(imported: Imported) -> Job:
    assert isinstance(imported.subject, Job)
    return imported.subject


def inputs() -> list[str]:
    if not DATA.is_dir():
        return []
    found = [p.relative_to(DATA).as_posix() for p in DATA.rglob("*") if p.is_file()]
    return sorted(n for n in found if not re.search(r"(?i)licen[sc]e|readme", n))


@pytest.mark.parametrize("name", inputs())
def test_every_input_imports_or_says_why_not(name: str) -> None:
    path = DATA / name
    reason = REFUSED.get(name) or ("whose file is missing" if "custom_ring" in name else None)
    if reason:
        with pytest.raises(ProfileError, match=reason) as caught:
            import_files([path])
        assert str(path) in str(caught.value)
        return
    imported = import_files([path])
    assert imported.report.understood
    if isinstance(imported.subject, Fabric):
        return
    require_valid(imported.subject)
    jobs = [placed.job for placed in files.as_workload(imported.subject).jobs]
    if sum(len(job.tasks) + len(job.flows) + len(job.collectives) for job in jobs) < MOST_PARTS:
        text = files.format_profile(imported.subject, "json")
        assert files.parse(text, "x.json") == imported.subject


def test_resnet50_on_two_ranks_has_five_buckets_of_its_parameters() -> None:
    for name in ("hta/nccl_data.json.gz", "hta/resnet50_ddp_2ranks_comm_only.json"):
        found = job(one(name))
        buckets = [c for c in found.collectives if c.kind == "all_reduce"]
        assert [c.bytes / 4 for c in buckets] == [2049000, 7875584, 6563840, 6637568, 2431040]
        assert sum(c.bytes for c in buckets) / 4 == 25_557_032
        assert found.workers == ("w0", "w1")
        groups = {g.flows[0]: g for g in derive(found)}
        assert all(groups[c.id].is_coflow for c in buckets)
        last = [t for t in found.tasks_of("w0")][-1]
        assert {c.id for c in buckets} <= set(last.after)


def test_a_pruned_recording_has_the_times_of_the_whole_one() -> None:
    whole = job(one("hta/nccl_data.json.gz"))
    pruned = job(one("hta/resnet50_ddp_2ranks_comm_only.json"))
    seconds = [sum(t.seconds for t in j.tasks_of("w0")) for j in (whole, pruned)]
    assert seconds[0] == pytest.approx(seconds[1], rel=0.01)
    assert 0.2 < seconds[0] < 0.23  # an iteration of 222 ms, 12 ms of them reduce alone


def test_gloo_on_300_ranks_from_one_recording() -> None:
    imported = one("hta/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz")
    found = job(imported)
    assert len(found.workers) == 300
    assert [c.bytes for c in found.collectives] == [321271 * 4, 2082411 * 4]
    assert any("299 of 300 ranks have no recording" in note for note in imported.report.assumed)


def test_our_own_recording_has_four_ranks_and_all_gradients() -> None:
    imported = import_files([REPOSITORY / "traces" / "resnet18-ddp"])
    found = job(imported)
    assert len(found.workers) == 4
    assert sum(c.bytes for c in found.collectives) / 4 == 11_689_512
    assert all(len(c.workers) == 4 and len(c.after) == 4 for c in found.collectives)
    shipped = files.read_job(REPOSITORY / "traces" / "resnet18-ddp.yaml")
    assert shipped.collectives == found.collectives
    assert shipped.tasks == found.tasks


@pytest.mark.parametrize(
    "path", sorted((REPOSITORY / "traces").glob("*.yaml")), ids=lambda p: p.name
)
def test_profiles_that_ship_are_valid_and_large_enough_to_emulate(path: Path) -> None:
    for placed in files.read_workload(path).jobs:
        scale = 40e6 / (placed.job.reference_rate or 40e6)
        for flow in expand(placed.job).flows:
            assert flow.bytes * scale >= 100_000


def test_a_chakra_ring_is_matched_across_ranks() -> None:
    found = job(one("astra-sim-et/custom_ring_allreduce_8npus_1MB"))
    assert len(found.workers) == 8
    assert len(found.flows) == 8 * 14
    assert all(flow.bytes == 131072 for flow in found.flows)
    sent = {(f.src, f.dst) for f in found.flows}
    assert sent == {(f"w{i}", f"w{(i + 1) % 8}") for i in range(8)}


def test_a_chakra_all_reduce_is_one_collective_of_all_ranks() -> None:
    found = job(one("astra-sim-et/all_reduce_8npus_1MB"))
    (collective,) = found.collectives
    assert (collective.kind, collective.bytes, len(collective.workers)) == ("all_reduce", 2**20, 8)


def test_a_real_chakra_trace_has_resnet50s_gradients() -> None:
    found = job(one("chakra/chakra.0.et"))
    buckets = [c for c in found.collectives if c.kind == "all_reduce"]
    assert sum(c.bytes for c in buckets) / 4 == 25_557_032
    assert len(found.collectives) == 7


def test_chakra_json_imports_with_sizes() -> None:
    found = job(one("chakra/small_chakra.0.json", sizes=(1e6,) * 20))
    assert found.collectives
    assert all(c.bytes == 1e6 for c in found.collectives)


def test_astra_sims_resnet50_reduces_all_its_layers() -> None:
    found = job(one("astra-sim-text/Resnet50_DataParallel.txt"))
    assert len(found.collectives) == 54
    lines = data("astra-sim-text/Resnet50_DataParallel.txt").read_text().splitlines()[2:]
    assert sum(c.bytes for c in found.collectives) == sum(float(x.split()[10]) for x in lines)
    computed = sum(float(x.split()[k]) for x in lines for k in (2, 5, 8, 11)) * 1e-9
    assert sum(t.seconds for t in found.tasks_of("w3")) == pytest.approx(computed)


def test_simai_keeps_tensor_expert_and_data_groups_apart() -> None:
    imported = one("simai/workload_analytical.txt")
    kinds = {(c.id.split(".")[1][0], c.kind, len(c.workers)) for c in job(imported).collectives}
    assert ("t", "all_gather", 2) in kinds
    assert ("e", "all_to_all", 16) in kinds
    assert any("pp: 12" in note for note in imported.report.unknown)


def test_the_unit_of_time_and_the_gather_convention_can_be_set() -> None:
    name = "aicb/L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1_A100.txt"
    plain, other = job(one(name)), job(one(name, time_unit=1e-6, gather_size="rank"))
    assert sum(t.seconds for t in other.tasks) == pytest.approx(
        1e3 * sum(t.seconds for t in plain.tasks)
    )
    sizes = {c.id: c.bytes for c in plain.collectives if c.kind == "all_gather"}
    assert sizes
    for c in other.collectives:
        if c.kind == "all_gather":
            assert c.bytes == len(c.workers) * sizes[c.id]


def test_aicb_csv_has_tensor_and_data_groups() -> None:
    found = job(one("aicb/L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1.csv"))
    assert len(found.workers) == 128
    assert {len(c.workers) for c in found.collectives} == {2, 64}


def test_fb2010_is_whole_and_quick_to_load() -> None:
    started = time.process_time()
    imported = one("coflow-benchmark/FB2010-1Hr-150-0.txt")
    taken = time.process_time() - started
    assert isinstance(imported.subject, Workload)
    assert taken < 10
    report = " ".join(imported.report.understood)
    assert "526 coflows, 706397 flows" in report
    assert (imported.fabric, imported.link_rate) == ("big-switch:150", 1e9)
    jobs = imported.subject.jobs
    assert all(len(p.job.echelonflows) == 1 and p.job.echelonflows[0].is_coflow for p in jobs)
    lines = data("coflow-benchmark/FB2010-1Hr-150-0.txt").read_text().split("\n")[1:]
    total = sum(float(w.split(":")[1]) for line in lines for w in line.split() if ":" in w)
    local = 0.0
    for words in (line.split() for line in lines if line):
        mappers = words[3 : 3 + int(words[2])]
        for rack, size in (w.split(":") for w in words if ":" in w):
            local += float(size) * mappers.count(rack) / len(mappers)
    sent = sum(flow.bytes for placed in jobs for flow in placed.job.flows)
    assert sent == pytest.approx((total - local) * 1e6)


def test_rings_of_a_real_llama_job_carry_its_sizes() -> None:
    found = job(one("zhejiang/llama2-7b-32gpu-rings.txt", sizes=(4e9,)))
    assert len(found.workers) == 32
    assert sum(c.bytes for c in found.collectives) == pytest.approx(4e9)
    assert found.collectives[0].workers[:4] == ("w0", "w7", "w6", "w5")


@pytest.mark.parametrize(
    ("name", "jobs", "workers"),
    [("muri/cluster_trace.csv", 364, 32), ("tiresias/60_job.csv", 30, 8), ("gavel/artifact_evaluation.trace", 3, 2)],
)  # fmt: skip
def test_cluster_traces_give_a_profile_a_job(name: str, jobs: int, workers: int) -> None:
    imported = one(name)
    assert isinstance(imported.subject, Workload)
    assert len(imported.subject.jobs) == jobs
    assert max(len(p.job.workers) for p in imported.subject.jobs) == workers
    assert min(p.arrival for p in imported.subject.jobs) == 0


def test_a_muri_job_computes_as_long_as_the_trace_says_and_reduces_its_model() -> None:
    imported = one("muri/cluster_trace.csv", limit=2)
    assert isinstance(imported.subject, Workload)
    gpt2 = imported.subject.jobs[0].job
    assert sum(t.seconds for t in gpt2.tasks_of("w0")) == pytest.approx(0.437)
    assert sum(c.bytes for c in gpt2.collectives) == pytest.approx(124_439_808 * 4)


@pytest.mark.parametrize(
    ("name", "hosts"), [("muri/n8g8.csv", 8), ("tiresias/n32g4.csv", 32), ("lingjun/topo.csv", 847)]
)
def test_cluster_specifications_are_fabrics_that_hang_together(name: str, hosts: int) -> None:
    fabric = load_fabric(data(name), 25e9)
    assert len(fabric.hosts) == hosts
    assert fabric.paths("h1", f"h{hosts}")
    assert {link.rate for link in fabric.links} == {25e9}


def test_load_takes_our_own_files_traces_and_folders() -> None:
    assert load(REPOSITORY / "traces" / "mixed.yaml").notes == ()
    loaded = load(REPOSITORY / "traces" / "resnet18-ddp")
    assert len(loaded.workload.jobs) == 1
    assert loaded.notes[0] == "format: PyTorch profiler (Kineto)"
    with pytest.raises(ProfileError, match="is a fabric: expected a job"):
        load(data("muri/n8g8.csv"))

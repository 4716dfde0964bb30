"""Formats by our own small files: recognised by content, read right, malformed ones placed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from controller.model import Fabric, Job, Workload
from controller.model.check import require_valid
from controller.profiles.errors import ProfileError
from controller.profiles.importers.report import Imported, Options
from controller.profiles.recognise import IMPORTERS, import_files, recognise
from tests.profiles import samples
from tests.profiles.samples import SAMPLES, chakra, kineto


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes bytes under a name; gives the path."""

    def write(data: bytes, name: str = "input") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def job(imported: Imported) -> Job:
    assert isinstance(imported.subject, Job)
    require_valid(imported.subject)
    return imported.subject


@pytest.mark.parametrize("name", SAMPLES)
def test_content_decides_not_the_name(name: str, write: Any) -> None:
    importer = recognise(write(SAMPLES[name], "anything.xyz"))
    claims = [i for i in IMPORTERS if i is importer]
    assert len(claims) == 1
    imported = import_files([write(SAMPLES[name], name)])
    assert imported.report.format == importer.NAME
    if not isinstance(imported.subject, Fabric):
        require_valid(imported.subject)


def test_kineto_iterations_become_tasks_between_collectives(write: Any) -> None:
    found = job(import_files([write(kineto(rank), f"r{rank}.json") for rank in range(2)]))
    assert [t.seconds for t in found.tasks_of("w1")] == pytest.approx([300e-6, 100e-6, 539e-6])
    assert [c.bytes for c in found.collectives] == [400.0, 200.0]
    assert found.collectives[0].after == ("0/w0", "0/w1")
    assert next(t for t in found.tasks if t.id == "2/w0").after == ("all_reduce0", "all_reduce1")


def test_kineto_links_are_as_fast_as_the_fastest_collective_unless_said(write: Any) -> None:
    path = write(kineto())
    imported = import_files([path])
    assert job(imported).reference_rate == pytest.approx(400 * 8 / 150e-6)  # 2 ranks send 1 x size
    assert any("21.33mbit, as fast as" in note for note in imported.report.assumed)
    assert job(import_files([path], Options(reference_rate=1e9))).reference_rate == 1e9


def test_kineto_leaves_out_iterations_that_differ(write: Any) -> None:
    document = json.loads(kineto(steps=4))
    document["traceEvents"] = [
        e for e in document["traceEvents"] if e["args"].get("External id") not in (1, 2)
    ]
    imported = import_files([write(json.dumps(document).encode())])
    assert any("1 of 4 iterations differ" in note for note in imported.report.understood)


def test_kineto_without_sizes_takes_them_from_the_options(write: Any) -> None:
    document = json.loads(kineto())
    for event in document["traceEvents"]:
        event["args"].pop("In msg nelems", None)
    path = write(json.dumps(document).encode())
    with pytest.raises(ProfileError, match="no sizes for 2 collectives .* with --sizes"):
        import_files([path])
    found = job(import_files([path], Options(sizes=(1e6, 2e6))))
    assert [c.bytes for c in found.collectives] == [1e6, 2e6]


def test_kineto_ids_that_are_no_ids_are_none(write: Any) -> None:
    document = json.loads(kineto())
    for event in document["traceEvents"]:
        event["args"]["External id"] = [1]
    assert len(job(import_files([write(json.dumps(document).encode())])).collectives) == 2


def test_kineto_as_a_bare_list_of_events(write: Any) -> None:
    events = json.loads(kineto())["traceEvents"]
    path = write(json.dumps(events).encode())
    assert len(job(import_files([path])).workers) == 2


def p2p(rank: int, operations: list[tuple[str, int]]) -> bytes:
    events: list[dict[str, Any]] = [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 1000, "tid": 1, "args": {}}
    ]  # fmt: skip
    for i, (kind, peer) in enumerate(operations):
        key = "Dst Rank" if kind == "send" else "Src Rank"
        events.append(
            {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 100 + 200 * i, "dur": 50, "tid": 1,
             "args": {"Collective name": kind, "In msg nelems": 250, "Out msg nelems": 250, "dtype": "Float",
                      "Group size": 2, "Process Group Ranks": "[0, 1]", key: peer}}
        )  # fmt: skip
    info = {"rank": rank, "world_size": 2, "backend": "nccl"}
    return json.dumps({"distributedInfo": info, "traceEvents": events}).encode()


def test_kineto_sends_are_matched_with_receives(write: Any) -> None:
    paths = [
        write(p2p(0, [("send", 1), ("send", 1), ("recv", 1)]), "a"),
        write(p2p(1, [("recv", 0), ("recv", 0), ("send", 0)]), "b"),
    ]
    found = job(import_files(paths))
    assert [(f.id, f.bytes) for f in found.flows] == [
        ("send0/w0-w1", 1000.0),
        ("send1/w0-w1", 1000.0),
        ("send0/w1-w0", 1000.0),
    ]
    assert next(t for t in found.tasks if t.id == "1/w1").after == ("send0/w0-w1",)


def test_kineto_refuses_a_send_nobody_receives(write: Any) -> None:
    paths = [write(p2p(0, [("send", 1)]), "a"), write(p2p(1, [("send", 0)]), "b")]
    with pytest.raises(ProfileError, match="dangling: .* is never received"):
        import_files(paths)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([kineto()[:4000]], "ends in the middle of its events: is it truncated|not valid JSON"),
        ([gzip.compress(kineto(), mtime=0)[:-200]], "not valid gzip"),
        ([b'{"traceEvents": {"a": 1}}'], "traceEvents"),
        ([b'{"traceEvents": [1, 2]}'], "behind event 0: Expected `object`"),
        ([b'{"traceEvents": [{"ph": "X", "ts": "soon"}]}'], r"Expected `float`, got `str`"),
        ([b'{"traceEvents": []}'], "no events that lasted"),
        ([b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1}]}'], "holds no collectives"),
        ([kineto(0).replace(b"[0, 1]", b"[1, 1]")], r"a rank is twice in the group \[1, 1\]"),
        ([kineto(0), kineto(0)], "mixed ranks: rank 0 is already in"),
        ([kineto(0), kineto(1, world=4)], "mixed ranks: is of a job of 4 ranks"),
        ([kineto(0), kineto(1, sizes=(100, 51))], "mixed ranks: operation 1 of rank 1"),
        ([kineto(0), SAMPLES["coflows.txt"]], "is coflow benchmark, but"),
    ],
)  # fmt: skip
def test_malformed_kineto_is_placed(files: list[bytes], message: str, write: Any) -> None:
    paths = [write(data, f"{i}.bin") for i, data in enumerate(files)]
    with pytest.raises(ProfileError, match=message) as caught:
        import_files(paths)
    assert caught.value.file in map(str, paths)


def test_chakra_transfers_are_matched_by_tag_in_order(write: Any) -> None:
    def send(id_: int, **attributes: int) -> dict[str, Any]:
        return {"id": id_, "type": 5, "attributes": {"comm_size": 1000 * id_, **attributes}}

    def recv(id_: int, **attributes: int) -> dict[str, Any]:
        return {"id": id_, "type": 6, "attributes": {"comm_size": 0, **attributes}}

    a = [
        send(1, comm_dst=1, comm_tag=7),
        send(2, comm_dst=1, comm_tag=8),
        send(3, comm_dst=1, comm_tag=7),
    ]
    b = [
        recv(1, comm_src=0, comm_tag=8),
        recv(2, comm_src=0, comm_tag=7),
        {"id": 3, "type": 4, "data": [1], "duration": 5},
        {"id": 4, "type": 4, "data": [2, 3], "duration": 5},
        recv(5, comm_src=0, comm_tag=7),
    ]  # fmt: skip
    found = job(import_files([write(chakra(a), "x.0.et"), write(chakra(b), "x.1.et")]))
    assert {f.id: f.bytes for f in found.flows} == {
        "send7.0/w0-w1": 1000.0,
        "send8.0/w0-w1": 2000.0,
        "send7.1/w0-w1": 3000.0,
    }
    tasks = {t.id: t.after for t in found.tasks}
    assert tasks == {"3/w1": ("send8.0/w0-w1",), "4/w1": ("3/w1", "send7.0/w0-w1")}


def node(**values: Any) -> dict[str, Any]:
    return {"id": 1, "type": 4, "duration": 1} | values


COLLECTIVE = {"id": 2, "type": 7, "attributes": {"comm_type": 0, "comm_size": 8}}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([samples.CHAKRA[:-10]], "behind record 2: ends 10 bytes early: is it truncated"),
        ([chakra([node(data=[9])])], "dangling: node 1 needs node 9"),
        ([chakra([node(), node()])], "node 1 is there twice"),
        ([chakra([node(data=[2]), node(id=2, data=[1])])], "a circle of dependencies at node 1"),
        ([chakra([node()])], "no rank communicates"),
        ([chakra([])], "holds no nodes"),
        ([chakra([COLLECTIVE | {"attributes": {"comm_type": 77, "comm_size": 8}}])],
         "node 2: unknown collective 77"),
        ([chakra([COLLECTIVE | {"attributes": {"comm_type": 0}}])], "node 2 .* has no comm_size"),
        ([chakra([COLLECTIVE]), chakra([COLLECTIVE | {"attributes": {"comm_type": 6, "comm_size": 8}}])],
         "mixed ranks: node 2 is all_to_all"),
        ([chakra([COLLECTIVE]), chakra([COLLECTIVE], "1.0.1")], "mixed ranks: schema versions"),
        ([chakra([{"id": 1, "type": 5, "attributes": {"comm_dst": 1, "comm_size": 9}}]), chakra([node()])],
         "dangling: transfer 0 .* is never received"),
        ([b'{"workload_graph": 5}'], "workload_graph: expected a list of nodes"),
        ([b'{"workload_graph": [5]}'], r"workload_graph\[0\]: expected a node"),
        ([b'{"workload_graph": [{"Id": 1, "NodeType": 4, "ctrlDeps": [1], '], "not valid JSON"),
    ],
)  # fmt: skip
def test_malformed_chakra_is_placed(files: list[bytes], message: str, write: Any) -> None:
    paths = [write(data, f"t.{i}.et") for i, data in enumerate(files)]
    with pytest.raises(ProfileError, match=message):
        import_files(paths)


def test_coflows_split_a_reducer_over_its_mappers(write: Any) -> None:
    imported = import_files([write(samples.COFLOWS)])
    assert isinstance(imported.subject, Workload)
    first, second = imported.subject.jobs
    assert [(f.src, f.dst, f.bytes) for f in first.job.flows] == [
        ("r0", "r2", 5e6),
        ("r1", "r2", 5e6),
    ]
    assert [(f.src, f.dst, f.bytes) for f in second.job.flows] == [("r3", "r0", 3.5e6)]
    assert second.arrival == 0.5
    assert second.placement == {"r0": "h1", "r3": "h4"}


def test_layers_play_forward_then_backward_with_groups_by_suffix(write: Any) -> None:
    found = job(import_files([write(samples.LAYERS)]))
    groups = {c.id: c.workers for c in found.collectives}
    assert groups["F0.t0"] == ("w0", "w1")  # tensor
    assert groups["F1.e0.0"] == ("w0", "w2")  # experts: two replicas
    assert groups["W2.x0.0"] == ("w0", "w4")  # replicas with the same experts
    assert [t.id for t in found.tasks_of("w0")] == ["F0/w0", "F1/w0", "W2/w0", "I1/w0", "step/w0"]


def test_nccl_calls_follow_the_rings(write: Any) -> None:
    found = job(import_files([write(samples.NCCL)]))
    assert [(c.workers, c.bytes) for c in found.collectives] == [
        (("w0", "w1", "w2", "w3"), 2048.0),
        (("w0", "w3", "w2", "w1"), 2048.0),
    ]


def test_p4lang_links_keep_their_rates(write: Any) -> None:
    fabric = import_files([write(samples.P4LANG)], Options(reference_rate=1e9)).subject
    assert isinstance(fabric, Fabric)
    rates = {(link.src, link.dst): link.rate for link in fabric.links}
    assert rates["h2", "s1"] == 10e6
    assert rates["s1", "s2"] == 1e9
    assert len(fabric.paths("h1", "h3")[0]) == 3


def test_a_p4lang_port_takes_one_cable(write: Any) -> None:
    twice = {
        "hosts": {"h1": {}, "h2": {}},
        "switches": {"s1": {}},
        "links": [["h1", "s1-p1"], ["h2", "s1-p1"]],
    }
    with pytest.raises(ProfileError, match="s1-p1.*without a cable"):
        import_files([write(json.dumps(twice).encode())])


def test_astra_sims_dimensions_become_tiers(write: Any) -> None:
    fabric = import_files([write(samples.ASTRA_NETWORK)]).subject
    assert isinstance(fabric, Fabric)
    assert len(fabric.hosts) == 8
    assert len(fabric.paths("h1", "h4")[0]) == 2
    assert len(fabric.paths("h1", "h5")[0]) == 4
    assert {link.rate for link in fabric.links} == {400e9, 4 * 100e9}


def test_htsims_fat_tree_has_all_its_paths(write: Any) -> None:
    fabric = import_files([write(samples.HTSIM)]).subject
    assert isinstance(fabric, Fabric)
    assert (len(fabric.hosts), len(fabric.switches)) == (16, 20)
    assert len(fabric.paths("h1", "h16")) == 4
    assert len(fabric.paths("h1", "h3")) == 2


def test_a_capture_gives_its_period_flows_and_gaps(write: Any) -> None:
    for data in (
        samples.pcap(samples.capture_frames()),
        samples.pcap(samples.capture_frames(), ">"),
        samples.pcapng(samples.capture_frames()),
    ):
        imported = import_files([write(data)])
        found = job(imported)
        assert "iterations of 0.5 s, confidence 1.00" in imported.report.understood[0]
        assert [(f.src, f.dst, f.bytes) for f in found.flows] == [
            ("w0", "w1", 20 * 1454.0),
            ("w1", "w2", 20 * 1454.0),
            ("w2", "w0", 20 * 1454.0),
        ]


def test_a_captures_links_are_as_fast_as_its_fastest_transfer_unless_said(write: Any) -> None:
    path = write(samples.pcap(samples.capture_frames()))
    assert job(import_files([path])).reference_rate == pytest.approx(20 * 1454 * 8 / 0.019)
    assert job(import_files([path], Options(reference_rate=1e9))).reference_rate == 1e9


def test_a_capture_without_a_period_is_one_iteration(write: Any) -> None:
    imported = import_files([write(samples.pcap(samples.capture_frames(iterations=1)))])
    assert "no period" in imported.report.understood[0]
    assert len(job(imported).flows) == 3


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("coflows.txt", b"4 2", b"4 3", r":3: 2 coflows: expected 3; is it truncated"),
        ("coflows.txt", b"2:10.0", b"9:10.0", r":2: reducer: rack 9: expected 0..3"),
        ("coflows.txt", b"2:10.0", b"2:ten", r":2: reducer's MB: 'ten': expected a number"),
        ("coflows.txt", b"2:10.0", b"2:-1", r":2: reducer's MB: '-1'"),
        ("coflows.txt", b"\n2 500", b"\n1 500", r":3: id: coflow 1 is listed twice"),
        ("coflows.txt", b" 2 0:3.5 3:2.0", b" 3 0:3.5 3:2.0", ":3: reducers: 2 reducers: expected 3"),
        ("layers.txt", b"ALLTOALL_EP 8192 2000", b"ALLTOSOME 8192 2000",
         r":4: forward collective: unknown collective 'ALLTOSOME'"),
        ("layers.txt", b"\n3\n", b"\n4\n", r":5: 3 rows: line 2 announces 4; is it truncated"),
        ("layers.txt", b"2000 ALLTOALL_EP 8192 2000", b"-5 ALLTOALL_EP 8192 2000",
         r":4: forward time: '-5': expected a number >= 0"),
        ("layers.txt", b"65536 100", b"65536", r":5: grad_gather: 11 fields: expected 12"),
        ("layers.txt", b"all_gpus: 8", b"all_gpus: 6", r"6 ranks: expected a multiple of 4"),
        ("aicb.csv", b"CommType.reduce_scatter", b"CommType.reduce_all", r":6: comm_type: unknown coll"),
        ("aicb.csv", b"tp_group,2,1024", b"tp_group,2,x", r":5: msg_size: 'x': expected a number"),
        ("aicb.csv", b"tp_group,2,1024", b"tp_group,3,1024", r":5: comm_group_size: groups of 3 do not"),
        ("aicb.csv", b"[rank0 ~ rank7]", b"[rank0 ~ rank0]", r"1 ranks: expected 2 to"),
        ("aicb.csv", b"comm_type,comm_group,", b"kind,group,", "of no known format"),
        ("nccl.log", b"0   3   2   1", b"0   3   3   1", r":2: a rank is twice in the ring"),
        ("nccl.log", b"AllReduce: op", b"AllJoin: op", r":4: unknown collective 'AllJoin'"),
        ("nccl.log", b"count 1024", b"c 1024", "give the bytes of each all-reduce"),
        ("nccl.log", b"nranks 4 ", b"nranks 99999 ", "99999 ranks: expected 2 to 4096"),
        ("nccl.log", b"datatype 7", b"datatype 99", r":4: unknown collective .* or type 99"),
        ("inspector.jsonl", b'"coll_sn": 2', b'"coll_sn": 1', r":2: coll_sn: collective 1 .* twice"),
        ("inspector.jsonl", b'"coll_sn": 2', b'"coll_sn": 4', r":2: coll_sn: a gap: collective 4 follows 1"),
        ("inspector.jsonl", b'"n_ranks": 4}, "coll_perf": {"coll": "AllG',
         b'"n_ranks": 8}, "coll_perf": {"coll": "AllG', r":2: n_ranks: mixed ranks: 8, but 4"),
        ("inspector.jsonl", b"8192}}\n", b"81", r":2: not valid JSON; is it truncated"),
        ("inspector.jsonl", b"AllGather", b"AllJoin", r":2: coll: unknown collective 'AllJoin'"),
        ("inspector.jsonl", b'bytes": 8192', b'bytes": -1', r":2: coll_msg_size_bytes: -1: expected"),
        ("inspector.jsonl", b'"n_ranks": 4', b'"n_ranks": 1', r"1 ranks: expected 2 to"),
        ("muri.csv", b"0,4,0,", b"0,four,0,", r":2: num_gpu: 'four': expected a number"),
        ("muri.csv", b"\n2,2,", b"\n0,2,", r":4: job '0' is listed twice"),
        ("muri.csv", b",437,0.6,419,49,0\n", b",437\n", r":2: more or fewer fields"),
        ("muri.csv", b"0,4,0,", b"0,4,nan,", r":2: submit_time: 'nan'"),
        ("muri.csv", b"0,4,0,", b"0,9999,0,", r":2: 9999 GPUs: expected at most"),
        ("tiresias.csv", b"1,8,30,", b"1,eight,30,", r":3: num_gpu: 'eight': expected a number"),
        ("tiresias.csv", b",147,23\n", b",147", r":3: more or fewer fields"),
        ("tiresias.csv", b"\n1,8,", b"\n0,8,", r":3: job '0' is listed twice"),
        ("tiresias.csv", b",133,vgg11", b",0,vgg11", r":3: iterations: '0': expected a number >= 1"),
        ("tiresias.csv", b"1,8,30,", b"1,8,-30,", r":3: submit_time: '-30'"),
        ("gavel.trace", b"2931\t4", b"2931\tfour", r":1: scale_factor: 'four': expected a number"),
        ("gavel.trace", b"\t12.5", b"\tsoon", r":2: arrival: 'soon': expected a number"),
        ("gavel.trace", b"8857", b"inf", r":2: steps: 'inf': expected a number"),
        ("gavel.trace", b"2931\t4", b"2931\t4000", r":1: 4000 GPUs: expected at most 512"),
        ("gavel.trace", b"\t-1.000000\t12.5\n", b"", r":2: 8 fields: expected 10"),
        ("gavel.trace", b"\t4\t1\t-1.0", b"\t4\t-1.0", r":1: 9 fields|no known format"),
        ("helios.csv", b"2020-04-01 00:05:00", b"yesterday", r":2: submit_time: 'yesterday'"),
        ("helios.csv", b"\n8,u2", b"\n7,u2", r":3: job '7' is listed twice"),
        ("helios.csv", b"vc1,2,16", b"vc1,two,16", r":3: gpu_num: 'two': expected a number"),
        ("helios.csv", b",60,60\n", b",60", r":3: more or fewer fields"),
        ("helios.csv", b",3600,60", b",nan,60", r":2: duration: 'nan': expected a number"),
        ("alibaba.csv", b"worker,4,", b"worker,four,", r":2: inst_num: 'four': expected a number"),
        ("alibaba.csv", b",1000.0,", b",noon,", r":2: start_time: 'noon': expected a number"),
        ("alibaba.csv", b",29.3,50,T4\n", b",29.3", r":3: more or fewer fields"),
        ("alibaba.csv", b",100,V100", b",lots,V100", r":2: plan_gpu: 'lots': expected a number"),
        ("alibaba.csv", b"\nb2,", b"\na1,", r":3: job 'a1' is listed twice"),
        ("philly.json", b'"attempts": [', b'"attempts": 5, "x": [', r"\[0\].attempts: expected a list"),
        ("philly.json", b'[{"status"', b'[5, {"status"', r"\[0\]: expected a job"),
        ("philly.json", b'"gpu1"]', b'"gpu1"', "not valid JSON"),
        ("philly.json", b'"2017-10-03 09:17:15"', b"null", r"submitted_time: '': expected a time"),
        ("philly.json", b"}]}]}]", b"}]}]}", "not valid JSON"),
        ("p4lang.json", b'"s1-p3", "s2-p2"', b'"s1-p3", "s9-p2"', r"links\[3\]\[1\]: 's9'"),
        ("p4lang.json", b', ["s1-p3", "s2-p2"]', b"", "disconnected: no way from h1 to h3"),
        ("p4lang.json", b'"0", 10', b'"0", -10', r"links\[1\]\[3\]: -10: expected Mbit/s > 0"),
        ("p4lang.json", b'["h1", "s1-p1"]', b'"h1"', r"links\[0\]: 'h1': expected \[end, end\]"),
        ("p4lang.json", b'"s1-p3", "s2-p2"]]}', b'"s1-p3"', "not valid JSON"),
        ("astra_network.yml", b"Ring", b"Spiral", r":1: topology\[1\]: 'Spiral': expected Ring"),
        ("astra_network.yml", b"[ 4, 2 ]", b"[ 4 ]", r"2 shapes, 1 counts, 2 rates"),
        ("astra_network.yml", b"50.0,", b"-50.0,", r":3: bandwidth\[0\]: -50.0: expected GB/s > 0"),
        ("astra_network.yml", b"[ 4, 2 ]", b"[ 4, 999999 ]", r":2: npus_count\[1\]: 999999"),
        ("astra_network.yml", b"latency: [ 500.0", b"latency: [ [ 500.0", "not valid YAML"),
        ("htsim.topo", b"Podsize 4", b"Podsize 5", "16 nodes do not fill pods of 5"),
        ("htsim.topo", b"Radix_Up 2\nRadix_Down 2\nTier 1", b"Tier 1", "tier 0 has no radix_down"),
        ("htsim.topo", b"Tiers 3", b"Tiers 9", "9 tiers, 16 nodes: expected 2 or 3"),
        ("htsim.topo", b"Podsize 4", b"Podsize", r":4: podsize: expected a key and a number|Podsize"),
        ("htsim.topo", b"Nodes 16", b"Nodes .6", "3 tiers, 0.6 nodes: expected 2 or 3"),
        ("htsim.topo", b"Radix_Down 2\nTier 1", b"Radix_Down .2\nTier 1", "tier 0 has no radix_down"),
        ("htsim.topo", b"Nodes 16", b"Nodes -16", r":2: Nodes: -16: expected a number >= 0"),
        ("switches.csv", b"\n2,4,", b"\n0,4,", r":2: num_switch: '0': expected a whole number"),
        ("switches.csv", b"2,4,8,92,350\n", b"", "no rows below its columns"),
        ("switches.csv", b"\n2,4,", b"\n2,x,", r":2: num_node_p_switch: 'x': expected a whole number"),
        ("switches.csv", b"\n2,4,", b"\n60000,4000,", r":2: 240000000 nodes: expected at most"),
        ("switches.csv", b"num_node_p_switch", b"nodes", "of no known format"),
        ("lingjun.csv", b"c3,G6,P10", b"c3,G6,", r":4: psw: is empty: expected a switch"),
        ("lingjun.csv", b"\nc3,", b"\n,", r":4: ip: '': expected a new host"),
        ("lingjun.csv", b"d4,G7,P11,S3\n", b"d4,G7", r":5: asw: is empty: expected a switch"),
        ("lingjun.csv", b"b2,G6,P12,S2", b"b2,G6,P12,", r":3: asw: is empty"),
        ("lingjun.csv", b"b2,", b"a1,", r":3: ip: 'a1': expected a new host"),
    ],
)  # fmt: skip
def test_malformed_files_are_placed(
    name: str, old: bytes, new: bytes, message: str, write: Any
) -> None:
    assert old in SAMPLES[name]
    path = write(SAMPLES[name].replace(old, new), name)
    with pytest.raises(ProfileError, match=message) as caught:
        import_files([path])
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-7], "behind packet .*: ends 7 bytes early: is it truncated"),
        (lambda data: data[:20] + b"\x63" + data[21:], "link type 99: expected Ethernet"),
        (
            lambda data: data[:32] + b"\xff\xff\xff\x7f" + data[36:],
            "a block of .* bytes: expected at",
        ),
        (lambda data: data[:24], "holds no TCP or UDP packet"),
        (lambda data: data[:10], "ends .* early"),
    ],
)
def test_malformed_captures_are_placed(change: Any, message: str, write: Any) -> None:
    path = write(change(samples.pcap(samples.capture_frames(2))))
    with pytest.raises(ProfileError, match=message):
        import_files([path])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-7], "behind packet .*: ends 7 bytes early: is it truncated"),
        (lambda data: data[:8] + b"\0\0\0\0" + data[12:], "a section without its byte-order mark"),
        (lambda data: data[:36] + b"\x63" + data[37:], "link type 99: expected Ethernet"),
        (
            lambda data: data[:32] + b"\xff\xff\xff\x7f" + data[36:],
            "a block of .* bytes: expected at",
        ),
        (
            lambda data: data[:28] + b"\x09" + data[29:],
            "behind packet 0|interface 0 was not described",
        ),
    ],
)
def test_malformed_pcapngs_are_placed(change: Any, message: str, write: Any) -> None:
    path = write(change(samples.pcapng(samples.capture_frames(2))))
    with pytest.raises(ProfileError, match=message):
        import_files([path])


def test_a_philly_job_that_is_listed_twice_is_refused(write: Any) -> None:
    (entry,) = json.loads(samples.PHILLY)
    with pytest.raises(ProfileError, match="job 'application_1' is listed twice"):
        import_files([write(json.dumps([entry, entry]).encode())])


def test_captures_without_large_transfers_are_refused(write: Any) -> None:
    path = write(samples.pcap(samples.capture_frames(packets=2)))
    with pytest.raises(ProfileError, match="no transfer of 10000 bytes or more"):
        import_files([path])


def test_unknown_files_are_refused_with_what_is_known(write: Any, tmp_path: Path) -> None:
    with pytest.raises(
        ProfileError, match="of no known format: expected an echelon profile or one"
    ):
        import_files([write(b"To be or not to be\n")])
    with pytest.raises(ProfileError, match="is empty"):
        import_files([write(b"")])
    with pytest.raises(ProfileError, match="JSON of no known kind"):
        import_files([write(b'{"a": 1}')])
    with pytest.raises(ProfileError, match="cannot be read: No such file"):
        import_files([tmp_path / "nothing"])
    (tmp_path / "folder").mkdir()
    with pytest.raises(ProfileError, match="is an empty folder"):
        import_files([tmp_path / "folder"])

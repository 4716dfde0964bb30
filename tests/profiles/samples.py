"""A small valid file of every format, written by us from the formats' descriptions."""

from __future__ import annotations

import gzip
import json
import struct
from typing import Any


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def tag(number: int, value: int | str | bytes) -> bytes:
    """One field of a protocol buffer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def chakra(nodes: list[dict[str, Any]], version: str = "0.0.4") -> bytes:
    """A Chakra trace: id, type, name, control, data, duration, and the rest as int64 attributes."""
    records = [tag(1, version)]
    for node in nodes:
        record = tag(1, node["id"]) + tag(2, node.get("name", "n")) + tag(3, node["type"])
        for other in node.get("control", ()):
            record += tag(4, other)
        for other in node.get("data", ()):
            record += tag(5, other)
        record += tag(7, node.get("duration", 0))
        for name, value in node.get("attributes", {}).items():
            field = 27 if name == "is_cpu_op" else 9
            record += tag(10, tag(1, name) + tag(field, value))
        records.append(record)
    return b"".join(varint(len(record)) + record for record in records)


CHAKRA = chakra(
    [
        {"id": 1, "type": 4, "duration": 1000},
        {"id": 2, "type": 7, "data": [1], "attributes": {"comm_type": 0, "comm_size": 4096}},
        {"id": 3, "type": 4, "data": [2], "duration": 500, "attributes": {"is_cpu_op": 0}},
    ]
)


def kineto(
    rank: int = 0, world: int = 2, steps: int = 3, sizes: tuple[int, ...] = (100, 50)
) -> bytes:
    """A recording of `steps` iterations of 1000 us: an all-reduce of each size, then the optimiser."""
    events: list[dict[str, Any]] = []
    ids = 0

    def event(name: str, cat: str, ts: float, dur: float, tid: int = 1, **args: Any) -> None:
        events.append(
            {
                "ph": "X",
                "cat": cat,
                "name": name,
                "pid": 1,
                "tid": tid,
                "ts": ts,
                "dur": dur,
                "args": args,
            }
        )

    for step in range(steps):
        start = 1e6 + 1000 * step
        event(f"ProfilerStep#{step}", "user_annotation", start, 1000)
        event("aten::conv2d", "cpu_op", start, 290)
        for i, size in enumerate(sizes):
            ids += 1
            at = start + 300 + 100 * i
            event(
                "record_param_comms", "cpu_op", at, 5, 2, **{
                    "External id": ids, "Collective name": "allreduce", "In msg nelems": size,
                    "Out msg nelems": size, "dtype": "Float", "Group size": world,
                    "Process Group Ranks": str(list(range(world))),
                },
            )  # fmt: skip
            event("nccl:all_reduce", "user_annotation", at + 1, 150, 3, **{"External id": ids})
            event("aten::conv_backward", "cpu_op", at + 6, 90)
        event("aten::add_", "cpu_op", start + 900, 100)
    document = {
        "schemaVersion": 1,
        "distributedInfo": {
            "backend": "gloo", "rank": rank, "world_size": world,
            "pg_config": [{"pg_name": "0", "ranks": list(range(world))}],
        },
        "traceEvents": events,
        "traceName": "x.json",
    }  # fmt: skip
    return json.dumps(document, indent=1).encode()


COFLOWS = b"4 2\n1 0 2 0 1 1 2:10.0\n2 500 1 3 2 0:3.5 3:2.0\n"

LAYERS = b"""HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 all_gpus: 8
3
embedding_layer -1 1000 ALLREDUCE 4096 1 NONE 0 1 NONE 0 100
mlp_moelayer -1 2000 ALLTOALL_EP 8192 2000 ALLTOALL_EP 8192 1 NONE 0 100
grad_gather -1 1 NONE 0 1 NONE 0 1 ALLGATHER_DP_EP 65536 100
"""

AICB = b"""[rank0 ~ rank7]
comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
CommType.all_reduce,CommGroup.dp_group,4,8,init.model_setup,None,None,,None,None,None,1
CommType.epoch_end,None,None,0,,None,None,,None,None,None,1
CommType.all_reduce,CommGroup.tp_group,2,1024,forward.x,None,None,,None,None,None,1
CommType.reduce_scatter,CommGroup.dp_group,4,4096,step,None,None,,None,None,None,1
CommType.epoch_end,None,None,0,,None,None,,None,None,None,1
"""

NCCL = b"""host:1:2 [0] NCCL INFO Channel 00/02 :    0   1   2   3
host:1:2 [0] NCCL INFO Channel 01/02 :    0   3   2   1
host:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 4 cudaDev 0 busId 10000 - Init COMPLETE
host:1:2 [0] NCCL INFO AllReduce: opCount 1 sendbuff 0x1 recvbuff 0x2 count 1024 datatype 7 op 0 root 0 comm 0x1 [nranks=4] stream 0x3
"""

INSPECTOR = b"""{"header": {"id": "0x1", "rank": 0, "n_ranks": 4}, "coll_perf": {"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 4096}}
{"header": {"id": "0x1", "rank": 0, "n_ranks": 4}, "coll_perf": {"coll": "AllGather", "coll_sn": 2, "coll_msg_size_bytes": 8192}}
"""

MURI = b"""job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,resource_time_1,resource_time_2,priority
0,4,0,10956,gpt2,4,5095000,91000,437,0.6,419,49,0
1,1,100,14,vgg16,16,281000,28000,214,82,75,66,1
2,2,5000,14,vgg16,16,281000,28000,214,82,75,66,1
"""

TIRESIAS = b"""job_id,num_gpu,submit_time,iterations,model_name,duration,interval
0,2,0,606,vgg19,164,30
1,8,30,133,vgg11,147,23
"""

GAVEL = (
    b"ResNet-50 (batch size 64)\tpython3 main.py\timage\t--n\t1\t2931\t4\t1\t-1.000000\t0\n"
    b"A3C\tpython3 a3c.py\trl\t--n\t0\t8857\t2\t1\t-1.000000\t12.5\n"
)

HELIOS = b"""job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,u1,vc1,8,64,1,COMPLETED,2020-04-01 00:05:00,2020-04-01 00:06:00,2020-04-01 01:06:00,3600,60
8,u2,vc1,2,16,1,FAILED,2020-04-01 00:10:00,2020-04-01 00:11:00,2020-04-01 00:12:00,60,60
"""

ALIBABA = b"""job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type
a1,worker,4,Terminated,1000.0,2000.0,600,29.3,100,V100
b2,worker,2,Terminated,1500.0,1600.0,600,29.3,50,T4
"""

PHILLY = json.dumps(
    [
        {
            "status": "Pass", "vc": "6", "jobid": "application_1", "user": "u",
            "submitted_time": "2017-10-03 09:17:15",
            "attempts": [
                {"start_time": "2017-10-03 09:18:00", "end_time": "2017-10-03 10:00:00",
                 "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]}
            ],
        }
    ]
).encode()  # fmt: skip

P4LANG = json.dumps(
    {
        "hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {}, "h3": {}},
        "switches": {"s1": {"runtime_json": "x"}, "s2": {}},
        "links": [["h1", "s1-p1"], ["h2", "s1-p2", "0", 10], ["h3", "s2-p1"], ["s1-p3", "s2-p2"]],
    }
).encode()

ASTRA_NETWORK = b"""topology: [ Switch, Ring ]
npus_count: [ 4, 2 ]
bandwidth: [ 50.0, 12.5 ]
latency: [ 500.0, 700.0 ]
"""

HTSIM = b"""# three tiers
Nodes 16
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Radix_Up 2
Radix_Down 2
Tier 1
Downlink_speed_Gbps 100
Radix_Up 2
Radix_Down 2
Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
"""

SWITCHES = b"num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,4,8,92,350\n"

LINGJUN = b"ip,DSW,PSW,ASW\na1,G6,P10,S14\nb2,G6,P12,S2\nc3,G6,P10,S34\nd4,G7,P11,S3\n"


def frame(src: int, dst: int, sport: int, dport: int, payload: int) -> bytes:
    """An Ethernet frame of a TCP segment between 10.0.0.<src> and 10.0.0.<dst>, zeros inside."""
    total = 40 + payload
    header = struct.pack(
        ">BBHHHBBHBBBBBBBB", 0x45, 0, total, 0, 0, 64, 6, 0, 10, 0, 0, src, 10, 0, 0, dst
    )
    tcp = struct.pack(">HHIIBBHHH", sport, dport, 0, 0, 0x50, 0x10, 100, 0, 0)
    return b"\0" * 12 + b"\x08\x00" + header + tcp + b"\0" * min(payload, 8)


def capture_frames(
    iterations: int = 8, period: float = 0.5, packets: int = 20
) -> list[tuple[float, int, bytes]]:
    """(time, length on the wire, frame) of a ring of three hosts that sends in bursts."""
    found = []
    for i in range(iterations):
        for host in range(3):
            for k in range(packets):
                time = 100 + i * period + 0.2 + 0.001 * k + 0.0002 * host
                data = frame(host + 1, (host + 1) % 3 + 1, 5000 + host, 80, 1400)
                found.append((time, 1454, data))
                found.append(
                    (time + 1e-4, 54, frame((host + 1) % 3 + 1, host + 1, 80, 5000 + host, 0))
                )
    return sorted(found)


def pcap(frames: list[tuple[float, int, bytes]], order: str = "<") -> bytes:
    out = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for time, length, data in frames:
        seconds = int(time)
        fraction = round((time - seconds) * 1e6)
        out += struct.pack(order + "IIII", seconds, fraction, len(data), length) + data
    return out


def pcapng(frames: list[tuple[float, int, bytes]]) -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        size = len(body) + 12
        return struct.pack("<II", kind, size) + body + struct.pack("<I", size)

    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack("<HHI", 1, 0, 65535) + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0))
    for time, length, data in frames:
        stamp = round(time * 1e9)
        head = struct.pack("<IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(data), length)
        out += block(6, head + data)
    return out


SAMPLES: dict[str, bytes] = {
    "kineto.json": kineto(),
    "kineto.json.gz": gzip.compress(kineto(), mtime=0),
    "chakra.0.et": CHAKRA,
    "chakra.json": json.dumps(
        {
            "workload_graph": [
                {"Id": 1, "Name": "conv", "NodeType": 4, "ctrlDeps": [], "data_deps": [], "runtime": 9},
                {"Id": 2, "Name": "ncclKernel_AllReduce", "NodeType": 7, "ctrlDeps": [1],
                 "data_deps": [1], "attr": [{"name": "comm_size", "int64Val": "4096"}]},
            ]
        }
    ).encode(),
    "coflows.txt": COFLOWS,
    "layers.txt": LAYERS,
    "aicb.csv": AICB,
    "nccl.log": NCCL,
    "inspector.jsonl": INSPECTOR,
    "muri.csv": MURI,
    "tiresias.csv": TIRESIAS,
    "gavel.trace": GAVEL,
    "helios.csv": HELIOS,
    "alibaba.csv": ALIBABA,
    "philly.json": PHILLY,
    "p4lang.json": P4LANG,
    "astra_network.yml": ASTRA_NETWORK,
    "htsim.topo": HTSIM,
    "switches.csv": SWITCHES,
    "lingjun.csv": LINGJUN,
    "ring.pcap": pcap(capture_frames()),
    "ring.pcapng": pcapng(capture_frames()),
}  # fmt: skip
"File name -> content."

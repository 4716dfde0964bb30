"""Table writes a second against an empty gRPC handler, the time to start, and the memory."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import grpc
from finsy.proto import p4r_grpc

from bench.switch.controller import Controller, flow, ready
from bench.switch.network import add_veth, delete_veth
from bench.switch.report import Row, at_least, ceiling, floor
from bench.switch.targets import Bmv2, Embedded, P4Switch, free_port, memory_mb, on_first_core

REPEATS = 3
"""Times the repeats asked for: these measurements are short, and two of them are compared to a fifth."""

EMPTY = """
import sys, grpc
from concurrent.futures import ThreadPoolExecutor
from finsy.proto import p4r, p4r_grpc

class Nothing(p4r_grpc.P4RuntimeServicer):
    def Write(self, request, context):
        return p4r.WriteResponse()
    def Capabilities(self, request, context):
        return p4r.CapabilitiesResponse()
    def StreamChannel(self, requests, context):
        for request in requests:
            yield p4r.StreamMessageResponse(arbitration=request.arbitration)
    def SetForwardingPipelineConfig(self, request, context):
        return p4r.SetForwardingPipelineConfigResponse()

server = grpc.server(ThreadPoolExecutor(8))
p4r_grpc.add_P4RuntimeServicer_to_server(Nothing(), server)
server.add_insecure_port(sys.argv[1])
server.start()
server.wait_for_termination()
"""


class EmptyHandler(P4Switch):
    """A gRPC server whose Write does nothing."""

    name = "empty gRPC handler"

    def __init__(self) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(on_first_core([sys.executable, "-c", EMPTY, self.address]))
        ready(self.address, self.process)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def one_by_one(controller: Controller, requests: list[Any]) -> float:
    """Writes a second, each answered before the next."""
    start = time.monotonic()
    for request in requests:
        controller.stub.Write(request, timeout=30)
    return len(requests) / (time.monotonic() - start)


def outstanding(address: str, requests: list[Any], window: int = 32) -> float:
    """Writes a second with `window` of them unanswered (asyncio: the cheapest client there is)."""

    async def worker(stub: Any, todo: Iterator[Any]) -> None:
        for request in todo:
            await stub.Write(request, timeout=30)

    async def play() -> float:
        async with grpc.aio.insecure_channel(address) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            todo = iter(requests)
            start = time.monotonic()
            await asyncio.gather(*(worker(stub, todo) for _ in range(window)))
            return len(requests) / (time.monotonic() - start)

    return asyncio.run(play())


def speeds(switch: P4Switch) -> dict[str, float]:
    """Writes a second of the three kinds; the table is emptied in between."""
    controller = switch.controller()
    singles = [flow(i, i % 8) for i in range(1000)]
    many = [flow(i, i % 8) for i in range(3000)]
    all_ = [flow(i, i % 8) for i in range(8000)]
    batches = [all_[i : i + 1000] for i in range(0, len(all_), 1000)]

    def requests(groups: list[list[Any]], kind: str) -> list[Any]:
        return [controller.request(group, kind) for group in groups]

    result = {"single": one_by_one(controller, requests([[e] for e in singles], "INSERT"))}
    one_by_one(controller, requests([singles], "DELETE"))
    result["window"] = outstanding(switch.address, requests([[e] for e in many], "INSERT"))
    one_by_one(controller, requests([many], "DELETE"))
    result["batch"] = 1000 * one_by_one(controller, requests(batches, "INSERT"))
    controller.close()
    return result


def median_speeds(kinds: list[type[P4Switch]], repeats: int) -> dict[str, dict[str, float]]:
    """The medians of each kind, measured in turn: what disturbs one disturbs all."""
    runs: dict[str, list[dict[str, float]]] = {kind.name: [] for kind in kinds}
    for _ in range(repeats):
        for kind in kinds:
            switch = kind()
            try:
                runs[kind.name].append(speeds(switch))
            finally:
                switch.close()
    return {
        kind: {name: statistics.median(run[name] for run in of_kind) for name in of_kind[0]}
        for kind, of_kind in runs.items()
    }


def starts(kind: type[P4Switch], repeats: int) -> tuple[float, float]:
    """Median seconds from process start to an answer with echelon.p4 loaded; MB once it serves."""
    seconds, memory = [], []
    for _ in range(repeats):
        switch = kind()
        seconds.append(switch.start_s)
        memory.append(memory_mb(switch.process))
        switch.close()
    return statistics.median(seconds), max(memory)


def measure(repeats: int) -> Iterator[Row]:
    """All rows of this part."""
    add_veth("gen0", "sw1")
    add_veth("out0", "sw2")
    try:
        medians = median_speeds([Embedded, EmptyHandler], REPEATS * repeats)
        ours, empty = medians[Embedded.name], medians[EmptyHandler.name]
        theirs = median_speeds([Bmv2], 1)[Bmv2.name] if Bmv2.installed() else {}
        peer = Bmv2.name if theirs else None
        yield at_least(
            "table writes, one by one", ours["single"], empty["single"],
            EmptyHandler.name, "1/s", 0.8,
        )  # fmt: skip
        yield floor(
            "table writes, 32 outstanding", ours["window"], "1/s", 5000,
            empty["window"], EmptyHandler.name,
        )  # fmt: skip
        yield floor(
            "table writes, batches of 1,000", ours["batch"], "1/s", 50000, theirs.get("batch"), peer
        )
        start_s, memory = starts(Embedded, 5)
        other = starts(Bmv2, 2) if Bmv2.installed() else (None, None)
        yield ceiling("start to P4Runtime ready", start_s, "s", 1.0, other[0], peer)
        yield ceiling("memory with echelon.p4", memory, "MB", 80, other[1], peer)
    finally:
        for name in ("gen0", "out0"):
            delete_veth(name)

"""Asks SimGrid for max-min rates; run by the system's Python, which has Debian's python3-simgrid.

Reads [{"capacity": [..], "paths": [[link, ..], ..]}, ..] from standard input, one process a case
(SimGrid plays one platform a process), and prints the rates. Every flow has a private wide link of
one second's latency: SimGrid weighs flows by latency, so theirs must be equal and not zero.
"""

from __future__ import annotations

import json
import multiprocessing
import sys

from simgrid import Actor, Comm, Engine, LinkInRoute, NetZone, this_actor

BYTES = 10**15
SETTINGS = {
    "network/model": "CM02",
    "network/TCP-gamma": "0",
    "network/crosstraffic": "0",
    "network/bandwidth-factor": "1",
    "network/latency-factor": "1",
    "network/weight-S": "0",
    "maxmin/precision": "1e-9",
}


def rates(case: dict) -> list[float]:
    """Bytes per second of each flow."""
    engine = Engine(
        ["rates", "--log=root.thres:error", *(f"--cfg={k}:{v}" for k, v in SETTINGS.items())]
    )
    zone = NetZone.create_full_zone("zone")
    links = [zone.create_link(f"l{i}", c).seal() for i, c in enumerate(case["capacity"])]
    ends = []
    for i, path in enumerate(case["paths"]):
        own = zone.create_link(f"own{i}", 1e15).set_latency(1.0).seal()
        src, dst = zone.create_host(f"a{i}", 1.0), zone.create_host(f"b{i}", 1.0)
        route = [LinkInRoute(link) for link in [own, *(links[k] for k in path)]]
        zone.add_route(src.netpoint, dst.netpoint, None, None, route, False)
        ends.append((src, dst))
    zone.seal()
    found: list[float] = []

    def measure() -> None:
        comms = [Comm.sendto_async(src, dst, BYTES) for src, dst in ends]
        this_actor.sleep_for(101.0)
        found.extend((BYTES - comm.remaining) / 100.0 for comm in comms)
        for comm in comms:
            comm.cancel()

    Actor.create("measure", ends[0][0], measure)
    engine.run()
    return found


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        json.dump(pool.map(rates, json.load(sys.stdin), chunksize=1), sys.stdout)

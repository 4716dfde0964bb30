"""Frames a second, CPU a frame, the highest rate without loss, and the delay of a lone frame."""

from __future__ import annotations

import ipaddress
import os
import statistics
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.switch.controller import DPORT, DST, SRC, UDP, flow, route
from bench.switch.network import add_veth, compiled, delete_veth, generate, received
from bench.switch.report import Row, at_least, at_most
from bench.switch.targets import Bare, Bmv2, Embedded, Forwarder, P4Switch, cpu_seconds

FLOWS = 1000
ALLOWED_LOSS = 10 / 1e6


def prepared(switch: P4Switch) -> P4Switch:
    """With the routes and 1,000 flow_policy entries."""
    controller = switch.controller()
    controller.write([route(DST, 2), route(SRC, 1)])
    controller.write([flow(i, i % 8) for i in range(FLOWS)])
    controller.close()
    return switch


TARGETS: dict[str, Callable[[], Forwarder]] = {
    "ours": lambda: prepared(Embedded()),
    "bare": Bare,
    "bmv2": lambda: prepared(Bmv2()),
}


@dataclass(frozen=True)
class Throughput:
    """One measurement flat out."""

    frames_per_s: float
    cpu_ns: float
    """CPU time of the forwarder for each frame that left it."""
    offered_per_s: float


def settled(interface: str) -> int:
    """Its received frames once they no longer grow."""
    count = received(interface)
    while True:
        time.sleep(0.05)
        if (now := received(interface)) == count:
            return count
        count = now


def flat_out(forwarder: Forwarder, octets: int, seconds: float) -> Throughput:
    """What arrives while the generator sends as fast as it can."""
    before, cpu = received("out0"), cpu_seconds(forwarder.process)
    sent, took = generate("gen0", octets, FLOWS, seconds)
    after = received("out0")
    used = cpu_seconds(forwarder.process) - cpu
    frames = max(1, after - before)
    return Throughput(frames / took, used / frames * 1e9, sent / took)


def side_by_side(
    kinds: list[str], octets: int, repeats: int, seconds: float
) -> dict[str, Throughput]:
    """The best frame rate and the median CPU time of each kind, in turn: what disturbs one disturbs all."""
    runs: dict[str, list[Throughput]] = {kind: [] for kind in kinds}
    for _ in range(repeats):
        for kind in kinds:
            forwarder = TARGETS[kind]()
            try:
                flat_out(forwarder, octets, 0.3)
                runs[kind].append(flat_out(forwarder, octets, seconds))
            finally:
                forwarder.close()
    return {
        kind: Throughput(
            max(t.frames_per_s for t in measured),
            statistics.median(t.cpu_ns for t in measured),
            max(t.offered_per_s for t in measured),
        )
        for kind, measured in runs.items()
    }


def loses(octets: int, rate: float, frames: int) -> float:
    """The share lost of a paced stream."""
    before = settled("out0")
    sent, took = generate("gen0", octets, FLOWS, frames / rate, rate)
    if sent < 0.98 * rate * took:
        return 1.0  # the generator itself cannot
    return max(0, sent - (settled("out0") - before)) / sent


def no_loss_rate(kind: str, octets: int, start: float, frames: int) -> float:
    """The highest rate that loses at most 10 of 10^6 in one of three attempts.

    The search, to 3 %, plays a second at each rate; what it finds must then hold for `frames` frames or 5 s, or be
    lowered by a tenth: small steps of a slow target would take many minutes.
    """
    forwarder = TARGETS[kind]()

    def holds(rate: float, count: float) -> bool:
        return any(loses(octets, rate, int(count)) <= ALLOWED_LOSS for _ in range(3))

    try:
        low = start
        while holds(low, low):
            low *= 2
        while not holds(low, low):
            low /= 2
        high = low * 2
        while high / low > 1.03:
            middle = (low * high) ** 0.5
            low, high = (middle, high) if holds(middle, middle) else (low, middle)
        while not holds(low, min(frames, 5 * low)):
            low /= 1.1
        return low
    finally:
        forwarder.close()


def first_frame(octets: int) -> bytes:
    """A frame of flow 0, as generate.c makes it."""
    head = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, octets - 14, 0, 0x4000, 64, UDP, 0,
        ipaddress.IPv4Address(SRC).packed, ipaddress.IPv4Address(DST).packed,
    )  # fmt: skip
    total: int = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + (~total & 0xFFFF).to_bytes(2, "big") + head[12:]
    udp = struct.pack("!HHHH", 1, DPORT, octets - 34, 0)
    ethernet = bytes.fromhex("0200000000020200000000010800")
    return (ethernet + head + udp).ljust(octets, b"\0")


def delays_us(kind: str, count: int) -> list[float]:
    """Microseconds from sending a lone frame to receiving it, sorted."""
    frame = first_frame(64).hex()
    forwarder = TARGETS[kind]()
    try:
        core = "1" if (os.cpu_count() or 1) > 1 else "0"
        command = ["taskset", "-c", core, compiled("latency"), "gen0", "out0", frame, str(count)]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        came = sorted(int(line) / 1000 for line in lines if int(line) >= 0)
        if len(came) < 0.9 * count:
            raise RuntimeError(
                f"{forwarder.name}: {count - len(came)} of {count} frames did not come back"
            )
        return came
    finally:
        forwarder.close()


def percentile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]


def delay_rows(kinds: list[str], repeats: int) -> Iterator[Row]:
    """Medians over the repeats, the kinds in turn."""
    runs = [{kind: delays_us(kind, 2000) for kind in kinds} for _ in range(repeats)]

    def delay(kind: str, share: float) -> float:
        return statistics.median(percentile(run[kind], share) for run in runs)

    theirs = delay("bmv2", 0.5) if "bmv2" in kinds else None
    yield at_most("delay, p99 against p50", delay("ours", 0.99), theirs, Bmv2.name, "us", 1)
    ours, bare = delay("ours", 0.5), delay("bare", 0.5)
    yield Row("delay, p50", ours, bare, Bare.name, "us", ours / bare, "-", None)


def measure(seconds: float, repeats: int, frames: int) -> Iterator[Row]:
    """All rows of this part."""
    add_veth("gen0", "sw1")
    add_veth("out0", "sw2")
    kinds = ["ours", "bare"] + (["bmv2"] if Bmv2.installed() else [])
    try:
        flat = {octets: side_by_side(kinds, octets, repeats, seconds) for octets in (64, 1400)}
        rates = {
            k: no_loss_rate(k, 64, flat[64][k].frames_per_s, frames) for k in kinds if k != "bare"
        }
        for octets, best in flat.items():
            ours, bare = best["ours"], best["bare"]
            what = f"forwarding, {octets} B"
            yield at_least(what, ours.frames_per_s, bare.frames_per_s, Bare.name, "frames/s", 0.9)
            # Overloaded BMv2 spends itself on frames that it then drops.
            theirs = max(best["bmv2"].frames_per_s, rates["bmv2"]) if "bmv2" in best else None
            yield at_least(what, ours.frames_per_s, theirs, Bmv2.name, "frames/s", 6)
            yield at_most(f"CPU a frame, {octets} B", ours.cpu_ns, bare.cpu_ns, Bare.name, "ns", 2)
        yield at_least(
            "no-loss rate, 64 B", rates["ours"], rates.get("bmv2"), Bmv2.name, "frames/s", 5
        )
        yield from delay_rows(kinds, repeats)
    finally:
        for name in ("gen0", "out0"):
            delete_veth(name)

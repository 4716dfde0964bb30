"""A few seconds of real traffic before a run: how much this machine forwards, and whether priorities act.

Run in a process of its own (`measure`), because it drives switches over gRPC and starts others later.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

from controller.model import Fabric, Link
from controller.model.errors import EchelonError, WorkFailed
from controller.model.rule import FlowKey, FlowRule
from controller.switches import Count, FabricDriver
from topologies.emulation import EmulatedNetwork
from topologies.layout import network_of
from topologies.runfile import instance

SECONDS = 1.5
"How long each of the two measurements sends."

UNLIMITED_BPS = 10e9
"A link that does not limit: the machine does."

PORT = 5001

TIMEOUT_S = 90.0

_SINK = f"""
import socket, threading
def drain(connection):
    while connection.recv(1 << 16):
        pass
listener = socket.create_server(("", {PORT}))
while True:
    threading.Thread(target=drain, args=(listener.accept()[0],), daemon=True).start()
"""

_SOURCE = """
import socket, sys, time
local, port, remote, sink, seconds, late = sys.argv[1:]
end = time.monotonic() + float(late) + float(seconds)
connection = socket.create_connection((remote, int(sink)), 10, (local, int(port)))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
connection.settimeout(0.5)
time.sleep(float(late))
while time.monotonic() < end:
    try:
        connection.send(bytes(1 << 16))
    except TimeoutError:
        pass
"""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured."""

    target: str
    "embedded or bmv2."
    link_rate_bps: float
    "Rate of the port on which priorities were tried."
    forwardings_per_s: float
    "Frames one switch forwarded in a second at most, TCP at both ends included."
    top_class_share: float
    "Part of a full port's bytes that class 7 got while class 0 wanted all of it too."
    port_use: float
    "Part of the port's rate that was used meanwhile."


def measure(target: str, link_rate_bps: float) -> Calibration:
    """Measure in a process of its own. Raises WorkFailed with its reason."""
    command = [
        sys.executable,
        "-m",
        "controller.experiments.calibration",
        target,
        str(link_rate_bps),
    ]
    environment = {**os.environ, "ECHELON_INSTANCE": f"{instance()}c"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise WorkFailed(
            f"calibration took longer than {TIMEOUT_S:g} s: the machine is too busy"
        ) from None
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or ["it said nothing"]
        raise WorkFailed(f"calibration failed: {words[-1]}")
    return Calibration(**json.loads(done.stdout.splitlines()[-1]))


def _fabric(link_rate_bps: float) -> Fabric:
    """h1 and h2 send to h3 at the link rate; h4 to h5 as fast as the machine can."""
    rates = [link_rate_bps] * 3 + [UNLIMITED_BPS] * 2
    hosts = tuple(f"h{number}" for number in range(1, 6))
    links = []
    for host, rate in zip(hosts, rates, strict=True):
        links += [Link(host, "s1", rate), Link("s1", host, rate)]
    return Fabric("calibration", hosts, ("s1",), tuple(links))


async def _measure(network: EmulatedNetwork, link_rate_bps: float) -> Calibration:
    driver = FabricDriver(network.network)
    await driver.start()
    try:
        for host in ("h3", "h5"):
            network.spawn(host, [sys.executable, "-c", _SINK], f"sink-{host}")
        await asyncio.sleep(0.3)
        rules = [
            _rule(network, "h1", "h3", 0),
            _rule(network, "h2", "h3", 7),
            _rule(network, "h4", "h5", 7),
        ]
        for error in await driver.set_flows(rules):
            raise WorkFailed(f"switch {error.switch}: {error.reason}")
        low, high, fast = rules
        sending = asyncio.gather(
            _send(network, low, 1.0 + SECONDS, 0.0), _send(network, high, SECONDS, 1.0)
        )
        await asyncio.sleep(1.5)  # the low flow has filled the queue, the high one has begun
        share, use = await _watch_port(driver, 3, link_rate_bps, SECONDS - 0.7)
        await sending
        forwardings = await _fastest(network, driver, fast)
    finally:
        await driver.stop()
    return Calibration(network.network.target, link_rate_bps, forwardings, share, use)


async def _watch_port(
    driver: FabricDriver, port: int, rate_bps: float, seconds: float
) -> tuple[float, float]:
    """Class 7's share of what leaves a port, and the use of its rate."""
    before = (await driver.counters()).switches["s1"].classes[port]
    began = time.monotonic()
    await asyncio.sleep(seconds)
    elapsed = time.monotonic() - began
    after = (await driver.counters()).switches["s1"].classes[port]
    sent = [new.bytes - old.bytes for old, new in zip(before, after, strict=True)]
    total = sum(sent)
    return (sent[7] / total if total else 0.0), total * 8 / elapsed / rate_bps


async def _fastest(network: EmulatedNetwork, driver: FabricDriver, rule: FlowRule) -> float:
    """Frames a second, both ways, that leave the switch while one connection sends all it can."""
    before = _frames((await driver.counters()).switches["s1"].classes)
    await _send(network, rule, SECONDS, 0.0)
    after = _frames((await driver.counters()).switches["s1"].classes)
    return (after - before) / SECONDS


def _frames(classes: dict[int, list[Count]]) -> int:
    return sum(packets for counts in classes.values() for packets, _ in counts)


async def _send(network: EmulatedNetwork, rule: FlowRule, seconds: float, late: float) -> None:
    key = rule.key
    words = (key.src_ip, key.src_port, key.dst_ip, key.dst_port, seconds, late)
    command = [sys.executable, "-c", _SOURCE, *map(str, words)]
    done = await asyncio.to_thread(network.run, rule.src_host, command)
    if done.returncode != 0:
        raise WorkFailed(
            f"TCP from {rule.src_host} to {rule.dst_host}: {done.stderr.strip().splitlines()[-1]}"
        )


def _rule(network: EmulatedNetwork, src: str, dst: str, class_: int) -> FlowRule:
    plan = network.network
    key = FlowKey(plan.host(src).ipv4, plan.host(dst).ipv4, 6, 4000 + class_, PORT)
    return FlowRule(key, src, dst, class_, plan.fabric().paths(src, dst)[0], None)


def main(target: str, link_rate_bps: float) -> int:
    """Print the measurement as one line of JSON."""
    try:
        plan = network_of(_fabric(link_rate_bps), link_rate_bps, target)
        with EmulatedNetwork(plan) as network:
            print(json.dumps(asdict(asyncio.run(_measure(network, link_rate_bps)))))
    except EchelonError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))

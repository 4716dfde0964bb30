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
from itertools import pairwise

from controller.model import Fabric, Link
from controller.model.errors import EchelonError, WorkFailed
from controller.model.rule import FlowKey, FlowRule
from controller.switches import FabricCounters, FabricDriver
from topologies.emulation import EmulatedNetwork
from topologies.layout import network_of
from topologies.runfile import instance

SECONDS = 1.5
"How long each of the two measurements sends."

UNLIMITED_BPS = 10e9
"A link that does not limit: the machine does."

PORT = 5001

TIMEOUT_S = 90.0

_FIRST = ("nice", "-n", "-10")
"Like a run's agents and switches."

_SINK = f"""
import socket, threading
def drain(connection):
    while connection.recv(1 << 16):
        pass
listener = socket.create_server(("", {PORT}))
print("listening", flush=True)
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


_SLEEPER = """
import time
late = []
end = time.monotonic() + 1.0
while (before := time.monotonic()) < end:
    time.sleep(0.001)
    late.append(time.monotonic() - before - 0.001)
print(sorted(late)[int(0.95 * len(late))])
"""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured."""

    target: str
    "embedded or bmv2."
    link_rate_bps: float
    "Rate of the port on which priorities were tried."
    hops: int
    "Switches in a row between sender and receiver."
    forwardings_per_s: float
    "Frames all of these switches together forwarded in a second, TCP at both ends included."
    top_class_share: float
    "Part of a full port's bytes that class 7 got while class 0 wanted all of it too."
    port_use: float
    "Part of the port's rate that was used meanwhile."
    wake_up_s: float
    "How late a process woke up meanwhile, at the 95th percentile, in seconds."


def measure(target: str, link_rate_bps: float, hops: int) -> Calibration:
    """Measure, with `hops` switches in a row, in a process of its own. Raises WorkFailed with its reason."""
    words = (target, link_rate_bps, hops)
    command = [sys.executable, "-m", "controller.experiments.calibration", *map(str, words)]
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
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise WorkFailed(f"calibration failed: {said[-1]}")
    return Calibration(**json.loads(done.stdout.splitlines()[-1]))


def _fabric(link_rate_bps: float, hops: int) -> Fabric:
    """h1 and h2 send to h3 at the link rate, on one switch; h4 to h5 along a row of switches without limit."""
    switches = tuple(f"s{number}" for number in range(1, hops + 1))
    cables = [(host, "s1", link_rate_bps) for host in ("h1", "h2", "h3")]
    cables += [("h4", "s1", UNLIMITED_BPS), ("h5", switches[-1], UNLIMITED_BPS)]
    cables += [(a, b, UNLIMITED_BPS) for a, b in pairwise(switches)]
    links = [link for a, b, rate in cables for link in (Link(a, b, rate), Link(b, a, rate))]
    return Fabric("calibration", ("h1", "h2", "h3", "h4", "h5"), switches, tuple(links))


async def _measure(network: EmulatedNetwork, link_rate_bps: float) -> Calibration:
    driver = FabricDriver(network.network)
    await driver.start()
    try:
        for host in ("h3", "h5"):
            network.spawn(host, [*_FIRST, sys.executable, "-c", _SINK], f"sink-{host}")
        logs = [network.directory / f"sink-{host}.log" for host in ("h3", "h5")]
        while not all(log.read_text() for log in logs):
            await asyncio.sleep(0.05)
        low, high = _rule(network, "h1", "h3", 0, 4000), _rule(network, "h2", "h3", 7, 4000)
        fast = [_rule(network, "h4", "h5", 7, port) for port in (4001, 4002)]
        for error in await driver.set_flows([low, high, *fast]):
            raise WorkFailed(f"switch {error.switch}: {error.reason}")
        sending = asyncio.gather(
            _send(network, low, 1.0 + SECONDS, 0.0), _send(network, high, SECONDS, 1.0)
        )
        await asyncio.sleep(1.5)  # the low flow has filled the queue, the high one has begun
        sleeper = asyncio.to_thread(network.run, "h1", [*_FIRST, sys.executable, "-c", _SLEEPER])
        (share, use), slept = await asyncio.gather(
            _watch_port(driver, 3, link_rate_bps, SECONDS - 0.7), sleeper
        )
        await sending
        forwardings = await _fastest(network, driver, fast)
    finally:
        await driver.stop()
    plan = network.network
    late = float(slept.stdout)
    return Calibration(
        plan.target, link_rate_bps, len(plan.switches), forwardings, share, use, late
    )


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


async def _fastest(network: EmulatedNetwork, driver: FabricDriver, rules: list[FlowRule]) -> float:
    """Frames a second, both ways, that leave the switches while connections send all they can."""
    before = _frames(await driver.counters())
    await asyncio.gather(*(_send(network, rule, SECONDS, 0.0) for rule in rules))
    return (_frames(await driver.counters()) - before) / SECONDS


def _frames(counters: FabricCounters) -> int:
    ports = [port for switch in counters.switches.values() for port in switch.classes.values()]
    return sum(count.packets for port in ports for count in port)


async def _send(network: EmulatedNetwork, rule: FlowRule, seconds: float, late: float) -> None:
    key = rule.key
    words = (key.src_ip, key.src_port, key.dst_ip, key.dst_port, seconds, late)
    command = [*_FIRST, sys.executable, "-c", _SOURCE, *map(str, words)]
    done = await asyncio.to_thread(network.run, rule.src_host, command)
    if done.returncode != 0:
        raise WorkFailed(
            f"TCP from {rule.src_host} to {rule.dst_host}: {done.stderr.strip().splitlines()[-1]}"
        )


def _rule(network: EmulatedNetwork, src: str, dst: str, class_: int, port: int) -> FlowRule:
    plan = network.network
    key = FlowKey(plan.host(src).ipv4, plan.host(dst).ipv4, 6, port, PORT)
    return FlowRule(key, src, dst, class_, plan.fabric().paths(src, dst)[0], None)


def main(target: str, link_rate_bps: float, hops: int) -> int:
    """Print the measurement as one line of JSON."""
    try:
        plan = network_of(_fabric(link_rate_bps, hops), link_rate_bps, target)
        with EmulatedNetwork(plan) as network:
            print(json.dumps(asdict(asyncio.run(_measure(network, link_rate_bps)))))
    except EchelonError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))

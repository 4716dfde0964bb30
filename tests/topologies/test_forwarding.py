"""Real packets through real switches: everybody reaches everybody, priorities act, dead cables are avoided."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controller.model.rule import FlowKey, FlowRule
from controller.profiles.network_file import load_network
from controller.switches import FabricDriver
from tests.topologies.conftest import MakeNetwork
from tests.topologies.traffic import PORT, SEND_BYTES, SEND_SECONDS, in_host, start_sinks
from topologies.emulation import EmulatedNetwork
from topologies.losses import frame_counts, lost_frames

pytestmark = pytest.mark.mininet

TARGETS = ["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)]

COMPETE_SECONDS = 5.0


@asynccontextmanager
async def driving(network: EmulatedNetwork) -> AsyncIterator[FabricDriver]:
    driver = FabricDriver(load_network(network.network_file))
    await driver.start()
    try:
        yield driver
    finally:
        await driver.stop()


@pytest.mark.parametrize("target", TARGETS)
async def test_every_host_reaches_every_other_by_ping_and_tcp_over_ipv4_and_ipv6(
    emulate: MakeNetwork, target: str
) -> None:
    with emulate("leaf-spine:2x2x2", target) as network:
        async with driving(network) as driver:
            await start_sinks(network)
            hosts = network.network.hosts

            async def reach_all(name: str) -> None:
                others = [host for host in hosts if host.name != name]
                for host in others:
                    for address in (host.ipv4, host.ipv6):
                        await in_host(network, name, "ping", "-c1", "-W5", address)
                addresses = [a for host in others for a in (host.ipv4, host.ipv6)]
                await in_host(network, name, sys.executable, "-c", SEND_BYTES, "20000", *addresses)

            await asyncio.gather(*(reach_all(host.name) for host in hosts))
            counters = await driver.counters()
    for name in ("bad_packets", "no_routes", "punts_limited"):
        assert counters.total(name) == 0, name


@pytest.mark.parametrize("target", TARGETS)
async def test_class_7_gets_the_port_and_class_0_stays_alive(
    emulate: MakeNetwork, target: str
) -> None:
    with emulate("big-switch:3", target) as network:
        async with driving(network) as driver:
            await start_sinks(network)
            shares = []
            for attempt in range(5):  # a sender that waits for a core leaves its queue empty
                shares.append(await _share_of_class_7(network, driver, 4000 + attempt))
                if shares[-1] >= 0.95:
                    break
    assert max(shares) >= 0.95, shares


@pytest.mark.parametrize("target", TARGETS)
async def test_frames_lost_in_a_switch_are_counted(emulate: MakeNetwork, target: str) -> None:
    with emulate("big-switch:3", target) as network:
        async with driving(network):
            await in_host(network, "h1", "ping", "-c1", "-W5", "10.0.0.3")
            start = frame_counts(network.network)
            await in_host(network, "h1", "ping", "-c20", "-i0.01", "-W5", "10.0.0.3")
            calm = frame_counts(network.network)
            # 3,000 frames from each of two hosts into one port whose queue holds a hundred at most: even
            # one after the other, their uplinks are 7 % faster than the port
            blast = f"""
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(3000):
    sender.sendto(bytes(1400), ("10.0.0.3", {PORT}))
"""
            both = (in_host(network, host, sys.executable, "-c", blast) for host in ("h1", "h2"))
            await asyncio.gather(*both)
            await asyncio.sleep(2.0)
            flooded = frame_counts(network.network)
    assert (
        lost_frames(start, calm)["s1"] < 10
    )  # hosts announce their multicast groups, nobody listens
    assert lost_frames(calm, flooded)["s1"] > 50


@pytest.mark.parametrize("target", TARGETS)
async def test_a_pulled_cable_is_routed_around(emulate: MakeNetwork, target: str) -> None:
    with emulate("leaf-spine:2x2x1", target) as network:
        async with driving(network):
            other = network.network.hosts[1]
            await in_host(network, "h1", "ping", "-c1", "-W5", other.ipv4)
            await asyncio.to_thread(network.set_link, "s1", "s3", False)
            await asyncio.sleep(0.5)
            for size in range(
                10, 18
            ):  # ports and sizes differ, so ECMP would have used both uplinks
                await in_host(network, "h1", "ping", "-c1", "-W5", "-s", str(size), other.ipv6)
            await start_sinks(network)
            addresses = [other.ipv4, other.ipv6] * 4
            await in_host(network, "h1", sys.executable, "-c", SEND_BYTES, "5000", *addresses)


async def _share_of_class_7(network: EmulatedNetwork, driver: FabricDriver, port: int) -> float:
    """Of what left the port to h3 while h1 in class 0 and h2 in class 7 both wanted all of it."""
    low = _rule(network, "h1", "h3", class_=0, port=port)
    high = _rule(network, "h2", "h3", class_=7, port=port)
    assert await driver.set_flows([low, high]) == []
    earlier = await _to_receiver(driver)
    competing = asyncio.create_task(_compete(network, low, high))
    while (await _to_receiver(driver))[7] < earlier[7] + 100_000:
        await asyncio.sleep(0.05)
    before = await _to_receiver(driver)
    await asyncio.sleep(COMPETE_SECONDS - 2.0)
    after = await _to_receiver(driver)
    low_payload, high_payload = await competing
    assert 0 < low_payload < high_payload
    sent = [late - early for early, late in zip(before, after, strict=True)]
    return sent[7] / sum(sent)


async def _to_receiver(driver: FabricDriver) -> list[int]:
    """Bytes of each class that have left for h3."""
    counters = await driver.counters()
    return [count.bytes for count in counters.switches["s1"].classes[3]]


async def _compete(network: EmulatedNetwork, low: FlowRule, high: FlowRule) -> tuple[int, int]:
    """Payload that arrived of both, the low flow having filled the queue before the high one begins."""
    sends = [(low, COMPETE_SECONDS + 1.0, 0.0), (high, COMPETE_SECONDS, 0.5)]
    commands = (
        in_host(
            network,
            rule.src_host,
            *(sys.executable, "-c", SEND_SECONDS, str(rule.key.src_port)),
            *(rule.key.dst_ip, str(seconds), str(late)),
        )
        for rule, seconds, late in sends
    )
    low_bytes, high_bytes = map(int, await asyncio.gather(*commands))
    return low_bytes, high_bytes


def _rule(network: EmulatedNetwork, src: str, dst: str, class_: int, port: int) -> FlowRule:
    hosts = network.network
    key = FlowKey(hosts.host(src).ipv4, hosts.host(dst).ipv4, 6, port, PORT)
    return FlowRule(key, src, dst, class_, hosts.fabric().paths(src, dst)[0], None)

"""A flow from sender to receiver over a real connection."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from host_agent.connection import Connection
from host_agent.pacing import SocketPacer
from host_agent.receiver import Receiver
from host_agent.sender import OutgoingFlow, Sent

MBIT = 1e6
SIZE = 500_000


@dataclass
class Ends:
    """A receiver, what it saw, and a connection to it."""

    receiver: Receiver
    connection: Connection
    arrived: list[tuple[int, int, int]] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)

    def flow(self, number: int = 1, size: int = SIZE) -> OutgoingFlow:
        self.connection.flows += 1
        return OutgoingFlow(self.connection, number, 0, size, time.monotonic)

    async def until_arrived(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.arrived) < count:
                await asyncio.sleep(0.005)


@asynccontextmanager
async def ends() -> AsyncIterator[Ends]:
    arrived: list[tuple[int, int, int]] = []
    strays: list[str] = []
    receiver = Receiver(
        lambda number, iteration, size, at: arrived.append((number, iteration, size)),
        strays.append,
        time.monotonic,
    )
    receiver.start()
    pacer = SocketPacer(1514 / 1448)
    connection = Connection("127.0.0.1", ("127.0.0.1", receiver.port), "cubic", pacer)
    try:
        yield Ends(receiver, connection, arrived, strays)
    finally:
        connection.close()
        receiver.close()


def start(flow: OutgoingFlow) -> asyncio.Task[Sent]:
    return asyncio.ensure_future(flow.run(grant_timeout=5.0))


async def test_flows_follow_each_other_on_one_connection_and_are_told_apart() -> None:
    async with ends() as both:
        for number in (3, 4):
            flow = both.flow(number)
            flow.set(7, math.inf)
            sent = await start(flow)
            assert sent.allowed_bits == 0.0 and not sent.grant_timed_out
        await both.until_arrived(2)
        assert both.arrived == [(3, 0, SIZE), (4, 0, SIZE)]


async def test_nothing_is_sent_before_the_grant() -> None:
    async with ends() as both:
        flow = both.flow()
        running = start(flow)
        flow.set(5, 0.0)
        await asyncio.sleep(0.2)
        assert flow.acked == 0 and not both.arrived
        granted = time.monotonic()
        flow.set(7, math.inf)
        sent = await running
        assert sent.granted >= granted


async def test_a_hold_stops_a_flow_and_a_grant_lets_it_go_on() -> None:
    async with ends() as both:
        flow = both.flow(size=2_000_000)
        running = start(flow)
        flow.set(7, 20 * MBIT)
        await asyncio.sleep(0.2)
        flow.set(7, 0.0)
        await asyncio.sleep(0.1)  # what the kernel had drains
        stopped = flow.acked
        assert 0 < stopped < 2_000_000
        await asyncio.sleep(0.2)
        assert flow.acked == stopped
        flow.set(7, math.inf)
        await running
        await both.until_arrived(1)


async def test_a_pace_is_kept_and_a_slower_one_takes_longer() -> None:
    took = []
    for rate in (80 * MBIT, 20 * MBIT):
        async with ends() as both:
            flow = both.flow(size=1_000_000)
            flow.set(7, rate)
            begun = time.monotonic()
            await start(flow)
            took.append(time.monotonic() - begun)
    assert 2.5 < took[1] / took[0] < 6


async def test_a_missing_grant_times_out_into_class_0() -> None:
    async with ends() as both:
        sent = await both.flow().run(grant_timeout=0.05)
        assert sent.grant_timed_out
        await both.until_arrived(1)


async def test_a_connection_that_breaks_in_the_middle_of_a_flow_is_told() -> None:
    async with ends() as both:
        flow = both.flow(size=10_000_000)
        flow.set(7, 20 * MBIT)
        running = start(flow)
        await asyncio.sleep(0.1)
        running.cancel()
        both.connection.close()
        async with asyncio.timeout(5):
            while not both.strays:
                await asyncio.sleep(0.01)
        assert not both.arrived


async def test_a_setting_can_begin_to_hold_later_and_a_newer_one_takes_its_place() -> None:
    async with ends() as both:
        flow = both.flow()
        running = start(flow)
        at = time.monotonic() + 0.3
        flow.set(7, math.inf, at)
        await asyncio.sleep(0.1)
        assert flow.acked == 0
        flow.set(7, 0.0)  # held after all
        await asyncio.sleep(0.4)
        assert flow.acked == 0
        flow.set(7, math.inf)
        assert (await running).granted > at


async def test_the_end_of_a_paced_flow_is_told_shortly_before_its_last_byte_leaves() -> None:
    async with ends() as both:
        flow = both.flow(size=1_000_000)
        flow.set(7, 40 * MBIT)
        told: list[tuple[float, float]] = []
        sent = await flow.run(5.0, lambda at: told.append((time.monotonic(), at)))
        ((when, at),) = told
        assert when - 0.01 <= at <= sent.finished + 0.01
        assert sent.finished - when < 0.5


async def test_a_flow_whose_end_is_told_is_not_held_any_more() -> None:
    async with ends() as both:
        flow = both.flow(size=1_000_000)
        flow.set(7, 40 * MBIT)

        def ending(at: float) -> None:
            flow.set(7, 0.0)

        await asyncio.wait_for(flow.run(5.0, ending), 5.0)
        await both.until_arrived(1)


async def test_an_earlier_setting_stands_until_a_later_moment_comes() -> None:
    async with ends() as both:
        flow = both.flow(size=4_000_000)
        running = start(flow)
        now = time.monotonic()
        flow.set(7, 40 * MBIT, now + 0.1)
        flow.set(7, 0.0, now + 0.4)
        await asyncio.sleep(0.3)
        assert flow.acked > 0
        await asyncio.sleep(0.3)
        stopped = flow.acked
        assert stopped < 4_000_000
        await asyncio.sleep(0.1)
        assert flow.acked == stopped
        flow.set(7, math.inf)
        await running


async def test_after_a_raise_something_small_goes_first_and_is_acknowledged() -> None:
    async with ends() as both:
        slow = both.flow(number=1, size=20_000)
        slow.set(7, 10 * MBIT)
        await start(slow)
        probe = memoryview(bytes(64))
        assert await both.connection.renew_rate(probe) == 0
        both.connection.set(7, 5 * MBIT)
        assert await both.connection.renew_rate(probe) == 0
        both.connection.set(7, 80 * MBIT)
        assert await both.connection.renew_rate(probe) == 64
        assert both.connection.info().unacked == 0
        assert await both.connection.renew_rate(probe) == 0

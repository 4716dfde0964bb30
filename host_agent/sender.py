"""One flow on its way out: held until it is granted, sent at its rate, watched until it is acked."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass

from host_agent import framing, kernel
from host_agent.connection import Connection

_CHUNK = memoryview(bytes(262_144))
_DRAIN_POLL = (0.002, 0.02)  # seconds between looks at the last bytes: first, and at most

ENDING_LEAD = 0.004
"""Seconds before a paced flow's end at which it is told: what a decision takes to arrive (measured:
3 to 6 ms). Told too early, a successor's first frames wait in the port's queue; told too late, the
link is idle."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What the sender knows of a finished flow."""

    granted: float
    "When it was first allowed to send, in seconds."
    finished: float
    "When its last byte was acknowledged, in seconds."
    retransmits: int
    "Segments sent again."
    segments: int
    "Segments sent."
    smoothed_rtt: float
    "Seconds, as the kernel last had it."
    allowed_bits: float
    "Wire bits its paces allowed from the grant to the end; 0 when it was ever unpaced."
    grant_timed_out: bool
    "Whether it went in class 0 because nobody answered."


class OutgoingFlow:
    """A flow of `size` payload bytes on `connection`, whose settings the coordinator changes."""

    def __init__(
        self,
        connection: Connection,
        number: int,
        iteration: int,
        size: int,
        now: Callable[[], float],
    ) -> None:
        self.connection = connection
        self._header = framing.pack(number, iteration, size)
        self._size = size
        self._now = now
        self._heard = asyncio.Event()
        self._open = asyncio.Event()
        self._granted = math.nan
        self._pace = 0.0
        self._pace_since = 0.0
        self._allowed_bits = 0.0
        self._timed_out = False
        self._before = connection.info()

    def set(self, class_: int, pace: float) -> None:
        """Class and pace (bit/s on the wire; 0 holds, inf is unpaced) from now on."""
        now = self._now()
        self._heard.set()
        self._account(now)
        self._pace, self._pace_since = pace, now
        if pace <= 0:
            self._open.clear()
            return
        self.connection.set(class_, pace)
        if math.isnan(self._granted):
            self._granted = now
        self._open.set()

    @property
    def acked(self) -> int:
        """Payload bytes of this flow that the receiver's kernel has."""
        return max(0, min(self._size, self.connection.info().acked - self._before.acked))

    async def run(self, grant_timeout: float, ending: Callable[[], None] = lambda: None) -> Sent:
        """Sends it all. Without any answer within `grant_timeout` seconds it goes in class 0.

        `ending` is called once, `ENDING_LEAD` before the end of a paced flow. Raises OSError.
        """
        await self._wait_for_grant(grant_timeout)
        await self.connection.connect()
        # An untouched connection's counters start here: some kernels count the SYN.
        if self.connection.flows == 1:
            self._before = self.connection.info()
        await self._send(memoryview(self._header))
        left = self._size - len(self._header)
        while left > 0:
            left -= await self._send(_CHUNK[: min(left, len(_CHUNK))])
        await self._nearly_drained()
        ending()
        after = await self._drained()
        finished = self._now()
        self._account(finished)
        return Sent(
            granted=self._granted,
            finished=finished,
            retransmits=after.retransmits - self._before.retransmits,
            segments=after.segments - self._before.segments,
            smoothed_rtt=after.smoothed_rtt,
            allowed_bits=0.0 if math.isinf(self._allowed_bits) else self._allowed_bits,
            grant_timed_out=self._timed_out,
        )

    async def _wait_for_grant(self, timeout: float) -> None:
        try:
            await asyncio.wait_for(self._heard.wait(), timeout)
        except asyncio.TimeoutError:
            self._timed_out = True
            self.set(0, math.inf)
        await self._open.wait()

    async def _send(self, data: memoryview) -> int:
        """Hands over all of `data`, while the flow is not held."""
        done = 0
        while done < len(data):
            await self._open.wait()
            taken = self.connection.try_send(data[done:])
            done += taken
            if not taken:
                await self.connection.writable()
        return done

    async def _nearly_drained(self) -> None:
        while (left := self.connection.seconds_for(self._size - self.acked)) > ENDING_LEAD:
            await asyncio.sleep(min(left - ENDING_LEAD, _DRAIN_POLL[1]))

    async def _drained(self) -> kernel.TcpInfo:
        pause, most = _DRAIN_POLL
        while (info := self.connection.info()).acked - self._before.acked < self._size:
            await asyncio.sleep(pause)
            pause = min(most, pause * 1.5)
        return info

    def _account(self, now: float) -> None:
        if self._pace > 0:
            self._allowed_bits += self._pace * (now - self._pace_since)
            self._pace_since = now

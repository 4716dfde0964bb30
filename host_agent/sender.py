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

ENDING_LEAD = 0.01
"""Seconds before a paced flow's last byte leaves at which that is told: longer than a decision takes
to arrive (measured: 3 to 9 ms), so that its successor can begin at that very moment."""


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
        self._later: asyncio.TimerHandle | None = None
        self._before = connection.info()

    def set(self, class_: int, pace: float, not_before: float = 0.0) -> None:
        """Class and pace (bit/s on the wire; 0 holds, inf is unpaced), from a moment on or at once.

        A later call takes the place of one that waits for its moment.
        """
        now = self._now()
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if not_before > now:
            loop = asyncio.get_running_loop()
            self._later = loop.call_later(not_before - now, self.set, class_, pace)
            self._heard.set()
            return
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

    async def run(
        self, grant_timeout: float, ending: Callable[[float], None] = lambda at: None
    ) -> Sent:
        """Sends it all. Without any answer within `grant_timeout` seconds it goes in class 0.

        `ending` is called `ENDING_LEAD` before a paced flow's last byte leaves, with the moment it
        will. Raises OSError.
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
        ending(await self._nearly_sent())
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

    async def _nearly_sent(self) -> float:
        """Waits until `ENDING_LEAD` before the last byte leaves: returns when it will."""
        while (left := self.connection.seconds_to_send()) > ENDING_LEAD:
            await asyncio.sleep(min(left - ENDING_LEAD, _DRAIN_POLL[1]))
        return self._now() + left

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

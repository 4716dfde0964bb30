"""One flow on its way out: held until it is granted, sent at its rate, watched until it is acked."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass

from host_agent import framing, kernel
from host_agent.connection import SEGMENT, Connection

_CHUNK = memoryview(bytes(262_144))
_PROBE = 2 * SEGMENT  # acknowledged at once in the middle of a flow, where one segment may not be
_DRAIN_POLL = (0.002, 0.02)  # seconds between looks at the last bytes: first, and at most

UNSENT_LEAVES = 0.006
"""Seconds, at least, in which what stands unsent in the kernel leaves the host. A flow that is to be
held from a moment on hands over nothing in the last of them before it."""

LEAD = 0.015
"""Seconds ahead of which it is told that a flow will be ready, or a paced one at its end: longer than
it takes to tell who waits for that, and for a decision to arrive (measured: 3 to 12 ms in all), so
that what follows can begin at that very moment."""


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
        self._later: list[asyncio.TimerHandle] = []
        self._ending = False
        self._before = connection.info()

    def set(self, class_: int, pace: float, not_before: float = 0.0) -> None:
        """Class and pace (bit/s on the wire; 0 holds, inf is unpaced), from a moment on or at once.

        A later call takes the place of those that wait for the same moment or a later one. Once its
        end is told, a flow keeps what it has: nobody reckons with it any more.
        """
        if self._ending:
            return
        if pace <= 0:
            not_before -= max(UNSENT_LEAVES, self.connection.seconds_to_send(0))
        now, loop = self._now(), asyncio.get_running_loop()
        moment = loop.time() + max(0.0, not_before - now)
        self._drop_later(moment)
        self._heard.set()
        if not_before > now:
            self._later.append(loop.call_at(moment, self._apply, class_, pace))
        else:
            self._apply(class_, pace)

    def _drop_later(self, moment: float) -> None:
        while self._later and self._later[-1].when() >= moment:
            self._later.pop().cancel()

    def _apply(self, class_: int, pace: float) -> None:
        now = self._now()
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

        `ending` is called `LEAD` before a paced flow's last byte leaves, with the moment it will.
        Raises OSError.
        """
        begun = self._now()
        self._pace_since, self._allowed_bits = begun, 0.0
        await self._wait_for_grant(grant_timeout)
        await self.connection.connect()
        # An untouched connection's counters start here: some kernels count the SYN.
        if self.connection.flows == 1:
            self._before = self.connection.info()
        await self._send(ending)
        after = await self._drained()
        finished = self._now()
        self._account(finished)
        return Sent(
            granted=max(begun, self._granted),
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

    async def _send(self, ending: Callable[[float], None]) -> None:
        """Hands all of it to the kernel while the flow is not held."""
        data, left = memoryview(self._header), self._size
        while left > 0:
            await self._open.wait()
            taken = await self.connection.renew_rate(data[:_PROBE])
            taken = taken or self.connection.try_send(data)
            if not taken:
                await self.connection.writable()
                continue
            left -= taken
            data = data[taken:] or _CHUNK[: min(left, len(_CHUNK))]
            if self._ending or not self._open.is_set():
                continue
            if (soon := self.connection.seconds_to_send(left)) <= LEAD:
                self._ending = True
                self._drop_later(0.0)
                ending(self._now() + soon)

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

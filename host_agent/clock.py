"""The coordinator's clock as one host sees it."""

from __future__ import annotations

import time


class Clock:
    """Seconds on the coordinator's CLOCK_MONOTONIC.

    One machine has one such clock, whatever the network namespace. Across machines the offset is
    that of the exchange with the shortest round trip (as in NTP): its error is at most half of it.
    """

    def __init__(self) -> None:
        self._offset = 0.0
        self._round_trip = float("inf")

    def now(self) -> float:
        """The coordinator's time, in seconds."""
        return time.monotonic() + self._offset

    def local(self, at: float) -> float:
        """The coordinator's time `at` on this host's own clock (an event loop's)."""
        return at - self._offset

    def learn(self, sent: float, theirs: float, received: float) -> None:
        """Takes in one exchange: sent and received on our clock, `theirs` in between, in seconds."""
        round_trip = received - sent
        if round_trip < self._round_trip:
            self._round_trip = round_trip
            self._offset = theirs - (sent + received) / 2

"""One clock for a run, on one machine or several."""

from __future__ import annotations

import pytest

from host_agent.clock import Clock


def test_the_offset_is_that_of_the_quickest_exchange() -> None:
    clock = Clock()
    base = clock.now()
    clock.learn(sent=10.0, theirs=1000.5, received=11.0)  # offset 990 if symmetric
    clock.learn(sent=20.0, theirs=1020.05, received=20.1)  # offset 1000, ten times as quick
    clock.learn(sent=30.0, theirs=1500.0, received=33.0)
    assert clock.now() - base == pytest.approx(1000.0, abs=0.5)
    assert clock.local(1000.0) == pytest.approx(0.0, abs=1e-9)

"""Idle time-outs without waiting: what a heap of deadlines must hold to."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from switch.server.idle import IdleTimeouts

SECOND = 10**9


@dataclass
class Entry:
    handle: int
    idle_timeout_ns: int


class Clock:
    """time.monotonic() and the hits of entries, both by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.hits: dict[int, float] = {}
        self.asked = 0
        monkeypatch.setattr("switch.server.idle.time.monotonic", lambda: self.now)

    def last_hit(self, handle: int) -> float:
        self.asked += 1
        return self.now - self.hits.get(handle, 1000.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_an_entry_expires_after_its_time_to_live_and_again(clock: Clock) -> None:
    idle: IdleTimeouts[Entry] = IdleTimeouts(clock.last_hit)
    entry = Entry(1, 2 * SECOND)
    idle.watch(entry)
    clock.now += 1.9
    assert idle.expired() == []
    clock.now += 0.2
    assert idle.expired() == [entry]
    assert idle.expired() == []
    clock.now += 2.1
    assert idle.expired() == [entry]


def test_a_hit_puts_it_off(clock: Clock) -> None:
    idle: IdleTimeouts[Entry] = IdleTimeouts(clock.last_hit)
    entry = Entry(1, 2 * SECOND)
    idle.watch(entry)
    clock.hits[1] = clock.now + 1.5
    clock.now += 2.1
    assert idle.expired() == []
    assert idle.next_due() == pytest.approx(1003.5)
    clock.now += 1.5
    assert idle.expired() == [entry]


def test_entries_are_asked_only_when_they_could_have_expired(clock: Clock) -> None:
    idle: IdleTimeouts[Entry] = IdleTimeouts(clock.last_hit)
    for handle in range(1000):
        idle.watch(Entry(handle, (10 + handle) * SECOND))
    for _ in range(100):
        clock.now += 0.1
        idle.expired()
    assert clock.asked <= 1


def test_endless_modifications_do_not_pile_up(clock: Clock) -> None:
    idle: IdleTimeouts[Entry] = IdleTimeouts(clock.last_hit)
    entry = Entry(1, 10**6 * SECOND)
    for _ in range(10_000):
        idle.forget(entry)
        idle.watch(entry)
    assert len(idle._heap) < 2000

"""Plays one scenario on a switch, and says how two switches' results differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.switch.differential.frames import digest_bucket
from tests.switch.differential.scenarios import Scenario
from tests.switch.drive.commands import Frame, Outcome, Switch


@dataclass
class Result:
    """Everything observed of one switch."""

    outcome: Outcome
    counters: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """Counter -> index -> (packets, bytes); cells at zero are left out."""
    direct: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    """Table -> key -> (packets, bytes)."""


def observe(switch: Switch, scenario: Scenario, frames: list[Frame]) -> Result:
    """Set the switch up, feed it, read its counters."""
    for command in scenario.commands:
        switch.tell(command)
    result = Result(switch.play(frames))
    for name in scenario.counters:
        cells = enumerate(switch.counter(name))
        result.counters[name] = {i: cell for i, cell in cells if cell != (0, 0)}
    for table in scenario.direct:
        counts = switch.direct_counters(table)
        result.direct[table] = {" ".join(f"{n:x}" for n in key): v for key, v in counts.items()}
    return result


def differences(
    ours: Result, theirs: Result, scenario: Scenario, frames: list[Frame]
) -> Iterator[str]:
    """Every frame, packet-in, digest and counter in which two results differ."""
    for (port, frame), our, their in zip(
        frames, ours.outcome.frames, theirs.outcome.frames, strict=True
    ):
        if scenario.undefined(frame):
            continue
        if _comparable(our, scenario) != _comparable(their, scenario):
            yield f"port {port}, {frame.hex()}:\n  ours   {_show(our)}\n  theirs {_show(their)}"
    if ours.outcome.packet_ins != theirs.outcome.packet_ins:
        mine, other = ours.outcome.packet_ins, theirs.outcome.packet_ins
        first = next((i for i, (a, b) in enumerate(zip(mine, other)) if a != b), None)
        where = "" if first is None else f"; {first}: {mine[first].hex()} / {other[first].hex()}"
        yield f"packet-ins: ours {len(mine)}, theirs {len(other)}{where}"
    # Two flows that share a register cell silence each other for a second: time decides.
    for name, fields in _steady(ours.outcome.digests ^ theirs.outcome.digests, ours, theirs):
        who = "ours" if (name, fields) in ours.outcome.digests else "theirs"
        yield f"digest only in {who}: {name} {fields}"
    for name, cells in ours.counters.items():
        if cells != theirs.counters[name]:
            yield f"counter {name}: ours {cells}, theirs {theirs.counters[name]}"
    for table, counts in ours.direct.items():
        if counts != theirs.direct[table]:
            keys = [
                k
                for k in counts | theirs.direct[table]
                if counts.get(k) != theirs.direct[table].get(k)
            ]
            shown = [(k, counts.get(k), theirs.direct[table].get(k)) for k in keys[:3]]
            yield f"direct counters of {table}: (key, ours, theirs) {shown}"


def _comparable(frames: list[Frame], scenario: Scenario) -> list[Frame]:
    return [(port, scenario.comparable(frame)) for port, frame in frames]


def _show(frames: list[Frame]) -> str:
    return "; ".join(f"{port}: {frame.hex()}" for port, frame in frames) or "dropped"


def _steady(
    digests: set[tuple[str, tuple[int, ...]]], ours: Result, theirs: Result
) -> Iterator[tuple[str, tuple[int, ...]]]:
    everything = ours.outcome.digests | theirs.outcome.digests
    buckets = [digest_bucket(fields) for _, fields in everything]
    yield from (d for d in sorted(digests) if buckets.count(digest_bucket(d[1])) == 1)

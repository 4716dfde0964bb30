"""Every table kind finds the entry BMv2 would, at any size, while entries come and go."""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from switch.dataplane import (
    MAX_PRIORITY,
    Dataplane,
    DuplicateEntry,
    InvalidArgument,
    NotFound,
    TableFull,
    Target,
    TargetKind,
)
from tests.switch.dataplane.programs import Source, ref, to_port

RUNTIME = {"type": "runtime_data", "value": 0}
SEND = {
    "name": "send",
    "runtime_data": [{"name": "port", "bitwidth": 9}],
    "primitives": [to_port(RUNTIME)],
}
NOTHING = {"name": "nothing", "primitives": []}


def send(port: int) -> Target:
    return Target(TargetKind.ACTION, 2, struct.pack("!H", port))


def program(*key: tuple[str, str], size: int = 200_000, **more: object) -> bytes:
    source = Source([("a", 32), ("b", 16), ("c", 16)], body=[to_port(511)], actions=[SEND, NOTHING])
    source.table(
        "t",
        [(ref("h", name), kind) for name, kind in key],
        [2, 3],
        max_size=size,
        default_entry={
            "action_id": 3,
            "action_const": False,
            "action_data": [],
            "action_entry_const": False,
        },
        **more,
    )
    return source.json()


@pytest.fixture
def switch() -> Iterator[Dataplane]:
    with Dataplane() as dataplane:
        yield dataplane


def out(switch: Dataplane, a: int = 0, b: int = 0, c: int = 0) -> int | None:
    """The port a packet with these fields leaves by."""
    frames = switch.process(0, struct.pack("!IHH", a, b, c))
    return frames[0][0] if frames else None


def test_exact_matches_survive_inserts_and_deletes(switch: Dataplane) -> None:
    switch.load(program(("a", "exact"), ("b", "exact")))
    source = random.Random(1)
    live: dict[tuple[int, int], tuple[int, int]] = {}
    for step in range(4000):
        key = (source.randrange(300), source.randrange(4))
        if key in live:
            handle, port = live.pop(key)
            assert out(switch, *key) == port
            switch.delete(handle)
            assert out(switch, *key) is None
        else:
            port = source.randrange(1, 500)
            live[key] = switch.insert(0 + 1, struct.pack("!IH", *key), 0, send(port)), port
    for key, (handle, port) in live.items():
        assert out(switch, *key) == port
        assert switch.find(1, struct.pack("!IH", *key), 0) == handle
    assert len(switch.entries(1)) == len(live)


def test_lpm_takes_the_longest_prefix(switch: Dataplane) -> None:
    switch.load(program(("a", "lpm")))
    source = random.Random(2)
    rules: dict[tuple[int, int], int] = {}
    for port in range(1, 300):
        length = source.choice([0, 1, 7, 8, 9, 16, 24, 31, 32])
        value = source.getrandbits(32) & (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF
        if (value, length) not in rules:
            rules[value, length] = port
            switch.insert(1, struct.pack("!IH", value, length), 0, send(port))
    for _ in range(500):
        address = source.choice(
            [source.getrandbits(32), source.choice(list(rules))[0] ^ source.getrandbits(2)]
        )
        best = max(
            (rule for rule in rules if (address ^ rule[0]) >> (32 - rule[1]) == 0),
            key=lambda r: r[1],
        )
        assert out(switch, address) == rules[best]


@pytest.mark.parametrize(
    "kinds", [("ternary", "ternary"), ("range", "exact"), ("range", "ternary"), ("lpm", "ternary")]
)
def test_the_highest_priority_wins(switch: Dataplane, kinds: tuple[str, str]) -> None:
    switch.load(program(("a", kinds[0]), ("b", kinds[1])))
    source = random.Random(3)
    rules: list[tuple[int, int, bytes, int]] = []  # priority, -order, key, handle
    for order in range(400):
        key = b"".join(
            _random_field(source, kind, bits) for kind, bits in zip(kinds, (32, 16), strict=True)
        )
        priority = source.randrange(1, 40)
        try:
            handle = switch.insert(1, key, priority, send(order + 1))
        except DuplicateEntry:
            continue
        rules.append((priority, -order, key, handle))
        if source.random() < 0.2:
            switch.delete(rules.pop(source.randrange(len(rules)))[3])
    hits = 0
    for _ in range(1500):
        a, b = (
            source.choice([0, 5, 255, source.getrandbits(32)]),
            source.choice([1, 2, 3, source.getrandbits(16)]),
        )
        matching = [rule for rule in rules if _matches(rule[2], kinds, (a, b))]
        expected = -max(matching)[1] + 1 if matching else None
        hits += expected is not None
        assert out(switch, a, b) == expected
    assert hits > 100


def _random_field(source: random.Random, kind: str, bits: int) -> bytes:
    size, full = bits // 8, (1 << bits) - 1
    value = source.choice([0, 1, 2, 3, 5, source.getrandbits(bits)])
    if kind == "exact":
        return value.to_bytes(size, "big")
    if kind == "range":
        low, high = sorted((value, source.choice([4, 300, full])))
        return low.to_bytes(size, "big") + high.to_bytes(size, "big")
    if kind == "lpm":
        length = source.choice([0, 8, bits])
        mask = full ^ (full >> length)
        return (value & mask).to_bytes(size, "big") + length.to_bytes(2, "big")
    mask = source.choice([0, full, 0xFF, full ^ 0xFF, 7])
    return (value & mask).to_bytes(size, "big") + mask.to_bytes(size, "big")


def _matches(key: bytes, kinds: tuple[str, str], values: tuple[int, int]) -> bool:
    for kind, size, value in zip(kinds, (4, 2), values, strict=True):
        first = int.from_bytes(key[:size], "big")
        rest = 0 if kind == "exact" else 2 if kind == "lpm" else size
        second = int.from_bytes(key[size : size + rest], "big")
        key = key[size + rest :]
        bits = size * 8
        good = {
            "exact": value == first,
            "range": first <= value <= second,
            "ternary": value & second == first,
            "lpm": (value ^ first) >> (bits - second) == 0 if kind == "lpm" else False,
        }[kind]
        if not good:
            return False
    return True


def test_a_hundred_thousand_entries_do_not_slow_a_lookup(switch: Dataplane) -> None:
    switch.load(program(("a", "exact")))
    entries = [
        (struct.pack("!I", i * 2654435761 & 0xFFFFFFFF), 0, send(1 + i % 500))
        for i in range(100_000)
    ]
    small = _seconds_per_lookup(switch, entries[:100])
    assert all(isinstance(result, int) for result in switch.insert_many(1, entries[:50_000]))
    assert all(isinstance(result, int) for result in switch.insert_many(1, entries[50_000:]))
    assert all(
        out(switch, int.from_bytes(key, "big")) == int.from_bytes(target.params, "big")
        for key, _, target in entries[::1000]
    )
    assert _seconds_per_lookup(switch, entries[::1000]) < 5 * small + 1e-5


def _seconds_per_lookup(switch: Dataplane, entries: list[tuple[bytes, int, Target]]) -> float:
    frames = [key + bytes(4) for key, _, _ in entries]
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for frame in frames:
            switch.process(0, frame)
        best = min(best, (time.perf_counter() - start) / len(frames))
    return best


def test_errors_say_what_is_wrong(switch: Dataplane) -> None:
    switch.load(program(("a", "exact"), size=2))
    handle = switch.insert(1, bytes(4), 0, send(1))
    with pytest.raises(DuplicateEntry):
        switch.insert(1, bytes(4), 0, send(2))
    for key, target in (
        (bytes(3), send(1)),
        (bytes(3) + b"\5", Target(TargetKind.ACTION, 2, b"")),
        (bytes(3) + b"\5", Target(TargetKind.ACTION, 77, b"")),
        (bytes(3) + b"\5", Target(TargetKind.MEMBER, 1)),
    ):
        with pytest.raises(InvalidArgument):
            switch.insert(1, key, 0, target)
    switch.insert(1, bytes(3) + b"\1", 0, send(1))
    with pytest.raises(TableFull):
        switch.insert(1, bytes(3) + b"\2", 0, send(1))
    switch.delete(handle)
    with pytest.raises(NotFound):
        switch.delete(handle)
    with pytest.raises(KeyError, match="no table x"):
        switch.table("x")


def test_modify_keeps_the_counter(switch: Dataplane) -> None:
    switch.load(program(("a", "exact"), with_counters=True))
    handle = switch.insert(1, bytes(4), 0, send(1))
    assert out(switch) == 1
    switch.modify(handle, send(2))
    assert out(switch) == 2
    assert switch.direct_counter(handle) == (2, 16)
    assert 0 <= switch.last_hit(handle) < 5


def test_const_entries_and_defaults_come_from_the_program(switch: Dataplane) -> None:
    def entry(value: int, mask: int, port: int, priority: int) -> dict[str, object]:
        return {
            "match_key": [
                {"match_type": "ternary", "key": f"{value:#010x}", "mask": f"{mask:#010x}"}
            ],
            "action_entry": {"action_id": 2, "action_data": [hex(port)]},
            "priority": priority,
        }

    switch.load(program(("a", "ternary"), entries=[entry(1, 1, 5, 1), entry(0, 0, 6, 2)]))
    assert (out(switch, 1), out(switch, 2)) == (5, 6)
    assert switch.program is not None and switch.program.tables[1].const_entries
    assert [e[2] for e in switch.entries(1)] == [MAX_PRIORITY - 1, MAX_PRIORITY - 2]


def test_the_default_action_can_be_set_and_restored(switch: Dataplane) -> None:
    switch.load(program(("a", "exact")))
    assert out(switch) is None
    switch.set_default(1, send(9))
    assert out(switch) == 9
    assert switch.default(1) == send(9)
    switch.set_default(1, None)
    assert out(switch) is None


def selector_program() -> bytes:
    source = Source(
        [("a", 32), ("b", 16), ("c", 16)],
        body=[to_port(511)],
        actions=[SEND, NOTHING],
        profiles=[
            {
                "name": "ap",
                "id": 0,
                "max_size": 16,
                "selector": {"algo": "identity", "input": [{"type": "field", "value": ["h", "c"]}]},
            }
        ],
    )
    source.table("t", [(ref("h", "a"), "exact")], [2, 3], type="indirect_ws", action_profile="ap")
    return source.json()


def test_groups_pick_members_by_the_hash(switch: Dataplane) -> None:
    switch.load(selector_program())
    for member, port in ((1, 11), (2, 12), (3, 13)):
        switch.add_member(0, member, 2, struct.pack("!H", port))
    switch.set_group(0, 7, [(1, 1), (2, 2), (3, 1)])
    group = switch.insert(1, struct.pack("!I", 1), 0, Target(TargetKind.GROUP, 7))
    switch.insert(1, struct.pack("!I", 2), 0, Target(TargetKind.MEMBER, 3))
    assert [out(switch, 1, 0, c) for c in range(8)] == [11, 12, 12, 13, 11, 12, 12, 13]
    assert out(switch, 2) == 13
    switch.modify_member(0, 3, 2, struct.pack("!H", 33))
    assert (out(switch, 2), out(switch, 1, 0, 3)) == (33, 33)
    switch.set_group(0, 7, [(2, 1)])
    assert {out(switch, 1, 0, c) for c in range(8)} == {12}
    with pytest.raises(InvalidArgument, match="in use"):
        switch.delete_group(0, 7)
    with pytest.raises(InvalidArgument, match="in use"):
        switch.delete_member(0, 2)
    switch.delete(group)
    switch.delete_group(0, 7)
    switch.delete_member(0, 2)
    with pytest.raises(NotFound):
        switch.insert(1, struct.pack("!I", 3), 0, Target(TargetKind.MEMBER, 2))


def test_writes_from_another_thread_never_disturb_lookups(switch: Dataplane) -> None:
    """The entry of every packet is always there while others come and go and the table grows and moves."""
    switch.load(program(("a", "ternary")))
    key = struct.pack("!II", 7, 0xFFFFFFFF)
    switch.insert(1, key, 5, send(3))
    stop = threading.Event()

    def churn() -> None:
        source = random.Random(4)
        while not stop.is_set():
            handles = [
                switch.insert(
                    1,
                    struct.pack("!II", 1 << 20 | i << 8, 0xFFFFFFFF ^ (i % 30)),
                    source.randrange(20),
                    send(9),
                )
                for i in range(200)
            ]
            for handle in handles:
                switch.delete(handle)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        assert {out(switch, 7) for _ in range(3000)} == {3}
    finally:
        stop.set()
        thread.join()


def test_wrong_entries_in_a_program_leave_the_old_one_running(switch: Dataplane) -> None:
    entry = {
        "match_key": [{"match_type": "exact", "key": "0x00000001"}],
        "action_entry": {"action_id": 2, "action_data": ["0x5"]},
        "priority": 1,
    }
    switch.load(program(("a", "exact"), entries=[entry]))
    with pytest.raises(ValueError, match="exists already"):
        switch.load(program(("a", "exact"), entries=[entry, entry]))
    assert out(switch, 1) == 5

"""Table entries over P4Runtime: what can be written comes back the same, and what is wrong is refused by name."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest
from finsy.proto import p4r

from switch.server.errors import Code
from tests.switch.server.controller import (
    BatchError,
    Controller,
    action,
    entry,
    exact,
    exact_entry,
    insert,
    number,
)
from tests.switch.server.fake_dataplane import FakeDataplane
from tests.switch.server.program import ACTION_ID, DROP, NOP, TABLE_ID


def ternary(field_id: int, value: int, mask: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(
        field_id=field_id, ternary=p4r.FieldMatch.Ternary(value=number(value), mask=number(mask))
    )


def lpm(value: int, prefix: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(
        field_id=1, lpm=p4r.FieldMatch.LPM(value=number(value), prefix_len=prefix)
    )


def ranged(field_id: int, low: int, high: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(
        field_id=field_id, range=p4r.FieldMatch.Range(low=number(low), high=number(high))
    )


def optional(field_id: int, value: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field_id, optional=p4r.FieldMatch.Optional(value=number(value)))


ENTRIES = [
    exact_entry(0),
    exact_entry(0xFFFFFFFF, 511, metadata=b"cookie", controller_metadata=9),
    entry("exact", exact(1, 5), exact(2, 5), act=action(DROP)),
    entry("lpm", lpm(0x0A000000, 8)),
    entry("lpm", lpm(0xC0A80101, 32)),
    entry("lpm"),
    entry("ternary", exact(4, 7), priority=1),
    entry(
        "ternary",
        ternary(1, 0x1200, 0xFF00),
        ranged(2, 10, 20),
        optional(3, 0xABC),
        exact(4, 7),
        priority=10,
    ),
    entry("idle", exact(1, 3), idle_timeout_ns=10**12),
]


@pytest.mark.parametrize("written", ENTRIES, ids=range(len(ENTRIES)))
def test_an_entry_is_read_back_as_it_was_written(
    primary: Controller, written: p4r.TableEntry
) -> None:
    primary.insert(table_entry=written)
    assert primary.read_tables(table_id=written.table_id) == [written]


def test_a_key_reaches_the_data_plane_in_its_encoding(
    primary: Controller, dataplane: FakeDataplane
) -> None:
    written = entry(
        "ternary", exact(4, 7), ternary(1, 0x1200, 0xFF00), optional(3, 0xABC), priority=10
    )
    primary.insert(table_entry=written)
    [(_, key, priority, target)] = dataplane.entries(2)
    assert key == bytes.fromhex("1200ff00 0000ffff 0abc0fff 07")
    assert priority == 10
    assert target.params == bytes.fromhex("0001 000000000002")


def test_long_binary_strings_are_accepted_and_come_back_short(primary: Controller) -> None:
    long = p4r.FieldMatch(field_id=1, exact=p4r.FieldMatch.Exact(value=bytes(10) + b"\x05"))
    primary.insert(table_entry=entry("exact", long, exact(2, 1)))
    assert primary.read_tables(table_id=TABLE_ID["exact"]) == [exact_entry(5)]


def _without_action(message: p4r.TableEntry) -> p4r.TableEntry:
    message.ClearField("action")
    return message


BAD = [
    ("unknown table", p4r.TableEntry(table_id=0x02FFFFFF), Code.INVALID_ARGUMENT),
    ("no table", p4r.TableEntry(), Code.INVALID_ARGUMENT),
    ("missing field", entry("exact", exact(1, 1)), Code.INVALID_ARGUMENT),
    ("field twice", entry("exact", exact(1, 1), exact(1, 2)), Code.INVALID_ARGUMENT),
    ("unknown field", entry("exact", exact(1, 1), exact(9, 2)), Code.INVALID_ARGUMENT),
    ("too wide", exact_entry(1, 512), Code.INVALID_ARGUMENT),
    ("wrong kind of match", entry("lpm", exact(1, 1)), Code.INVALID_ARGUMENT),
    ("no kind of match", entry("lpm", p4r.FieldMatch(field_id=1)), Code.INVALID_ARGUMENT),
    ("prefix too long", entry("lpm", lpm(1, 33)), Code.INVALID_ARGUMENT),
    ("prefix negative", entry("lpm", lpm(1, -1)), Code.INVALID_ARGUMENT),
    ("prefix 0 spelled out", entry("lpm", lpm(0, 0)), Code.INVALID_ARGUMENT),
    ("bits beyond the prefix", entry("lpm", lpm(0x0A000001, 8)), Code.INVALID_ARGUMENT),
    (
        "mask 0 spelled out",
        entry("ternary", ternary(1, 0, 0), exact(4, 1), priority=1),
        Code.INVALID_ARGUMENT,
    ),
    (
        "bits outside the mask",
        entry("ternary", ternary(1, 3, 1), exact(4, 1), priority=1),
        Code.INVALID_ARGUMENT,
    ),
    (
        "empty range",
        entry("ternary", ranged(2, 5, 4), exact(4, 1), priority=1),
        Code.INVALID_ARGUMENT,
    ),
    (
        "full range",
        entry("ternary", ranged(2, 0, 65535), exact(4, 1), priority=1),
        Code.INVALID_ARGUMENT,
    ),
    ("no priority", entry("ternary", exact(4, 1)), Code.INVALID_ARGUMENT),
    ("negative priority", entry("ternary", exact(4, 1), priority=-1), Code.INVALID_ARGUMENT),
    ("needless priority", exact_entry(1, priority=1), Code.INVALID_ARGUMENT),
    ("no action", _without_action(exact_entry(1)), Code.INVALID_ARGUMENT),
    ("unknown action", exact_entry(1, act=p4r.Action(action_id=5)), Code.INVALID_ARGUMENT),
    ("default-only action", exact_entry(1, act=action(NOP)), Code.PERMISSION_DENIED),
    (
        "missing parameter",
        exact_entry(1, act=p4r.Action(action_id=ACTION_ID[0])),
        Code.INVALID_ARGUMENT,
    ),
    ("parameter too wide", exact_entry(1, act=action(port=512)), Code.INVALID_ARGUMENT),
    ("direct action in an indirect table", entry("selected", exact(1, 1)), Code.INVALID_ARGUMENT),
    (
        "insert of a default entry",
        p4r.TableEntry(table_id=TABLE_ID["lpm"], is_default_action=True),
        3,
    ),
    ("constant table", entry("constant", exact(1, 1)), Code.PERMISSION_DENIED),
    (
        "meter where there is none",
        entry("lpm", meter_config=p4r.MeterConfig()),
        Code.INVALID_ARGUMENT,
    ),
    (
        "counter where there is none",
        entry("lpm", counter_data=p4r.CounterData()),
        Code.INVALID_ARGUMENT,
    ),
    ("idle time-out where there is none", entry("lpm", idle_timeout_ns=1), Code.INVALID_ARGUMENT),
    (
        "negative idle time-out",
        entry("idle", exact(1, 1), idle_timeout_ns=-1),
        Code.INVALID_ARGUMENT,
    ),
    (
        "time since last hit",
        exact_entry(1, time_since_last_hit=p4r.TableEntry.IdleTimeout()),
        Code.INVALID_ARGUMENT,
    ),
    ("negative meter", exact_entry(1, meter_config=p4r.MeterConfig(cir=-2)), Code.INVALID_ARGUMENT),
    (
        "colour counters",
        exact_entry(1, meter_counter_data=p4r.MeterCounterData()),
        Code.UNIMPLEMENTED,
    ),
]


@pytest.mark.parametrize(("bad", "code"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_entry_is_refused(
    primary: Controller, dataplane: FakeDataplane, bad: p4r.TableEntry, code: int
) -> None:
    entries_before = dict(dataplane.entries_by_handle)
    with pytest.raises(BatchError) as caught:
        primary.insert(table_entry=bad)
    assert caught.value.codes == [code]
    assert caught.value.errors[0].message
    assert dataplane.entries_by_handle == entries_before


def test_an_empty_binary_string_is_refused(primary: Controller) -> None:
    empty = p4r.FieldMatch(field_id=1, exact=p4r.FieldMatch.Exact(value=b""))
    with pytest.raises(BatchError) as caught:
        primary.insert(table_entry=entry("exact", empty, exact(2, 1)))
    assert caught.value.codes == [Code.INVALID_ARGUMENT]


def test_each_update_of_a_batch_has_its_own_status(primary: Controller) -> None:
    updates = [
        insert(exact_entry(1)),
        insert(exact_entry(1)),
        insert(exact_entry(2, 600)),
        insert(exact_entry(3)),
    ]
    with pytest.raises(BatchError) as caught:
        primary.write(*updates)
    assert caught.value.codes == [Code.OK, Code.ALREADY_EXISTS, Code.INVALID_ARGUMENT, Code.OK]
    assert primary.read_tables(table_id=TABLE_ID["exact"]) == [exact_entry(1), exact_entry(3)]


def test_a_batch_over_several_tables_keeps_its_order_of_statuses(primary: Controller) -> None:
    remove = p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(table_entry=exact_entry(1)))
    with pytest.raises(BatchError) as caught:
        primary.write(
            remove,
            insert(exact_entry(1)),
            insert(entry("lpm")),
            insert(entry("lpm")),
            remove,
            p4r.Update(type=1),
        )
    assert caught.value.codes == [
        Code.NOT_FOUND,
        Code.OK,
        Code.OK,
        Code.ALREADY_EXISTS,
        Code.OK,
        Code.INVALID_ARGUMENT,
    ]


def test_a_full_table_says_so(primary: Controller) -> None:
    with pytest.raises(BatchError) as caught:
        primary.write(*(insert(entry("small", exact(1, n))) for n in range(4)))
    assert caught.value.codes == [
        Code.OK,
        Code.OK,
        Code.RESOURCE_EXHAUSTED,
        Code.RESOURCE_EXHAUSTED,
    ]


def test_modify_changes_the_action_and_keeps_the_counter(
    primary: Controller, dataplane: FakeDataplane
) -> None:
    primary.insert(
        table_entry=exact_entry(1, meter_config=p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4))
    )
    [(handle, *_)] = dataplane.entries(0)
    dataplane.direct_counters[handle] = (5, 500)
    primary.modify(table_entry=exact_entry(1, act=action(DROP), metadata=b"new"))
    [got] = primary.read_tables(
        table_id=TABLE_ID["exact"], counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig()
    )
    assert got == exact_entry(
        1,
        act=action(DROP),
        metadata=b"new",
        counter_data=p4r.CounterData(packet_count=5, byte_count=500),
    )


def test_modify_and_delete_need_the_entry(primary: Controller) -> None:
    for change in (primary.modify, primary.delete):
        with pytest.raises(BatchError) as caught:
            change(table_entry=exact_entry(1))
        assert caught.value.codes == [Code.NOT_FOUND]


def test_delete_needs_only_the_key(primary: Controller, dataplane: FakeDataplane) -> None:
    primary.insert(table_entry=exact_entry(1))
    primary.delete(
        table_entry=p4r.TableEntry(table_id=TABLE_ID["exact"], match=[exact(1, 1), exact(2, 1)])
    )
    assert primary.read_tables(table_id=TABLE_ID["exact"]) == []
    assert dataplane.entries(0) == []


def test_constant_entries_can_be_read_but_not_changed(primary: Controller) -> None:
    [got] = primary.read_tables(table_id=TABLE_ID["constant"])
    assert got.is_const
    for change in (primary.modify, primary.delete):
        with pytest.raises(BatchError) as caught:
            change(table_entry=got)
        assert caught.value.codes == [Code.PERMISSION_DENIED]


class TestDefaultEntry:
    def read(self, primary: Controller, table: str) -> p4r.TableEntry:
        [got] = primary.read_tables(table_id=TABLE_ID[table], is_default_action=True)
        return got

    def default(self, table: str, act: p4r.Action | None) -> p4r.TableEntry:
        message = p4r.TableEntry(table_id=TABLE_ID[table], is_default_action=True)
        if act is not None:
            message.action.action.CopyFrom(act)
        return message

    def test_starts_as_the_program_says(self, primary: Controller) -> None:
        assert self.read(primary, "lpm") == self.default("lpm", action(NOP))

    def test_can_be_set_and_reset(self, primary: Controller) -> None:
        changed = self.default("lpm", action(port=3))
        changed.metadata = b"mine"
        primary.modify(table_entry=changed)
        assert self.read(primary, "lpm") == changed
        primary.modify(table_entry=self.default("lpm", None))
        assert self.read(primary, "lpm") == self.default("lpm", action(NOP))

    def test_constant_one_cannot_be_changed(self, primary: Controller) -> None:
        with pytest.raises(BatchError) as caught:
            primary.modify(table_entry=self.default("small", action(DROP)))
        assert caught.value.codes == [Code.PERMISSION_DENIED]
        assert self.read(primary, "small").is_const

    def test_cannot_be_deleted(self, primary: Controller) -> None:
        with pytest.raises(BatchError) as caught:
            primary.delete(table_entry=self.default("lpm", None))
        assert caught.value.codes == [Code.INVALID_ARGUMENT]

    def test_has_no_match(self, primary: Controller) -> None:
        wrong = self.default("exact", action(DROP))
        wrong.match.append(exact(1, 1))
        with pytest.raises(BatchError) as caught:
            primary.modify(table_entry=wrong)
        assert caught.value.codes == [Code.INVALID_ARGUMENT]


class TestWildcardReads:
    @pytest.fixture(autouse=True)
    def entries(self, primary: Controller) -> None:
        primary.write(
            insert(exact_entry(1, metadata=b"a")),
            insert(exact_entry(2, act=action(DROP), controller_metadata=5)),
            insert(entry("ternary", exact(4, 1), priority=3)),
            insert(entry("ternary", exact(4, 1), priority=4)),
            insert(entry("ternary", exact(4, 2), priority=3)),
        )

    def test_table_0_is_all_tables(self, primary: Controller) -> None:
        tables = [e.table_id for e in primary.read_tables()]
        assert tables == [
            TABLE_ID[t] for t in ("exact", "exact", "ternary", "ternary", "ternary", "constant")
        ]

    @pytest.mark.parametrize(
        ("fields", "count"),
        [
            ({"match": [exact(1, 2), exact(2, 1)]}, 1),
            ({"match": [exact(1, 9), exact(2, 1)]}, 0),
            ({"metadata": b"a"}, 1),
            ({"controller_metadata": 5}, 1),
            ({"action": p4r.TableAction(action=p4r.Action(action_id=ACTION_ID[DROP]))}, 1),
            ({"action": p4r.TableAction(action=p4r.Action(action_id=ACTION_ID[NOP]))}, 0),
            ({}, 2),
        ],
    )
    def test_fields_filter(
        self, primary: Controller, fields: dict[str, object], count: int
    ) -> None:
        assert len(primary.read_tables(table_id=TABLE_ID["exact"], **fields)) == count

    @pytest.mark.parametrize(
        ("fields", "count"),
        [
            ({"priority": 3}, 2),
            ({"match": [exact(4, 1)]}, 2),
            ({"match": [exact(4, 1)], "priority": 4}, 1),
        ],
    )
    def test_priority_and_match_filter(
        self, primary: Controller, fields: dict[str, object], count: int
    ) -> None:
        assert len(primary.read_tables(table_id=TABLE_ID["ternary"], **fields)) == count

    def test_a_bad_filter_is_an_error_of_its_request_only(self, primary: Controller) -> None:
        good = p4r.Entity(table_entry=p4r.TableEntry(table_id=TABLE_ID["exact"]))
        bad = p4r.Entity(table_entry=p4r.TableEntry(table_id=1))
        with pytest.raises(BatchError) as caught:
            primary.read_all(good, bad)
        assert caught.value.codes == [Code.OK, Code.INVALID_ARGUMENT]


def test_many_entries_come_in_several_messages(
    primary: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("switch.server.device.MAX_RESPONSE_BYTES", 5000)
    primary.write(*(insert(exact_entry(n)) for n in range(500)))
    request = p4r.ReadRequest(device_id=primary.device_id)
    request.entities.add().table_entry.table_id = TABLE_ID["exact"]
    responses = list(primary.stub.Read(request))
    assert sum(len(response.entities) for response in responses) == 500
    assert max(response.ByteSize() for response in responses) < 6000


class TestAtomicity:
    rollback = p4r.WriteRequest.ROLLBACK_ON_ERROR

    def test_rollback_takes_everything_back(self, primary: Controller) -> None:
        primary.insert(
            table_entry=exact_entry(
                1, metadata=b"old", counter_data=p4r.CounterData(packet_count=3)
            )
        )
        primary.insert(table_entry=exact_entry(2))
        wanted = p4r.TableEntry(counter_data=p4r.CounterData(), table_id=TABLE_ID["exact"])
        before = primary.read(table_entry=wanted)
        updates = [
            p4r.Update(
                type=p4r.Update.MODIFY,
                entity=p4r.Entity(table_entry=exact_entry(1, act=action(DROP))),
            ),
            p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(table_entry=exact_entry(1))),
            insert(exact_entry(1)),
            insert(exact_entry(5)),
            insert(exact_entry(2)),
        ]
        with pytest.raises(BatchError) as caught:
            primary.write(*updates, atomicity=self.rollback)
        assert caught.value.codes == [Code.ABORTED] * 4 + [Code.ALREADY_EXISTS]
        after = primary.read(table_entry=wanted)
        assert sorted(after, key=str) == sorted(before, key=str)

    def test_rollback_restores_a_default_entry(self, primary: Controller) -> None:
        default = p4r.TableEntry(table_id=TABLE_ID["lpm"], is_default_action=True)
        before = primary.read(table_entry=default)
        changed = p4r.TableEntry(table_id=TABLE_ID["lpm"], is_default_action=True)
        changed.action.action.CopyFrom(action(DROP))
        with pytest.raises(BatchError):
            primary.write(
                p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(table_entry=changed)),
                p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(table_entry=exact_entry(9))),
                atomicity=self.rollback,
            )
        assert primary.read(table_entry=default) == before

    def test_without_error_all_is_done(self, primary: Controller) -> None:
        primary.write(insert(exact_entry(1)), insert(exact_entry(2)), atomicity=self.rollback)
        assert len(primary.read_tables(table_id=TABLE_ID["exact"])) == 2

    def test_atomic_for_packets_is_not_offered(self, primary: Controller) -> None:
        with pytest.raises(grpc.RpcError) as caught:
            primary.write(insert(exact_entry(1)), atomicity=p4r.WriteRequest.DATAPLANE_ATOMIC)
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
        assert primary.read_tables(table_id=TABLE_ID["exact"]) == []


def test_idle_entries_are_reported_again_and_again(
    primary: Controller, dataplane: FakeDataplane
) -> None:
    primary.insert(
        table_entry=entry("idle", exact(1, 1), idle_timeout_ns=50_000_000, metadata=b"m")
    )
    primary.insert(table_entry=entry("idle", exact(1, 2), idle_timeout_ns=10**12))
    for _ in range(2):
        note = primary.receive().idle_timeout_notification
        assert [(e.match[0], e.metadata, e.idle_timeout_ns) for e in note.table_entry] == [
            (exact(1, 1), b"m", 50_000_000)
        ]
    [got] = primary.read_tables(
        table_id=TABLE_ID["idle"],
        match=[exact(1, 1)],
        time_since_last_hit=p4r.TableEntry.IdleTimeout(),
    )
    assert got.time_since_last_hit.elapsed_ns > 50_000_000
    primary.delete(table_entry=entry("idle", exact(1, 1)))


def test_a_deleted_entry_is_not_reported_idle(primary: Controller) -> None:
    primary.insert(table_entry=entry("idle", exact(1, 1), idle_timeout_ns=50_000_000))
    primary.delete(table_entry=entry("idle", exact(1, 1)))
    assert primary.nothing_for(0.3)


def test_a_backup_cannot_write(primary: Controller, connect: Callable[..., Controller]) -> None:
    backup = connect(0)
    with pytest.raises(grpc.RpcError) as caught:
        backup.insert(table_entry=exact_entry(1))
    assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED

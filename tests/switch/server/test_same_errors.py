"""Wrong requests get the same codes as from BMv2: each case runs on both."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from finsy.proto import p4r

from switch.server.errors import Code
from tests.switch.server.controller import BatchError, number
from tests.switch.server.test_end_to_end import (
    COUNTER,
    DIGEST,
    HOST,
    METER,
    PROFILES,
    Rig,
    act,
    exact,
    module_rig,
    rig,
    switching,
    table_entry,
    tags,
)

pytestmark = pytest.mark.mininet

__all__ = ["module_rig", "rig"]

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


def lpm(value: int, prefix: int) -> p4r.TableEntry:
    match = p4r.FieldMatch.LPM(value=number(value), prefix_len=prefix)
    return table_entry("routes", act("to", 1), p4r.FieldMatch(field_id=1, lpm=match))


def member(number_: int, action: p4r.Action) -> p4r.ActionProfileMember:
    return p4r.ActionProfileMember(
        action_profile_id=PROFILES["choices"], member_id=number_, action=action
    )


def group(number_: int, **fields: Any) -> p4r.ActionProfileGroup:
    return p4r.ActionProfileGroup(action_profile_id=PROFILES["choices"], group_id=number_, **fields)


def multicast(number_: int, *ports: int) -> p4r.PacketReplicationEngineEntry:
    replicas = [p4r.Replica(egress_port=port) for port in ports]
    entry = p4r.MulticastGroupEntry(multicast_group_id=number_, replicas=replicas)
    return p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)


def default(table: str, action: p4r.Action | None = None) -> p4r.TableEntry:
    return table_entry(table, action, is_default_action=True)


CASES: list[tuple[str, int, dict[str, Any], Code]] = [
    ("unknown table", INSERT, {"table_entry": p4r.TableEntry(table_id=0x02FFFFFF)}, Code.INVALID_ARGUMENT),
    ("no action", INSERT, {"table_entry": table_entry("switching", None, exact(1, 1))}, Code.INVALID_ARGUMENT),
    ("missing field", INSERT, {"table_entry": table_entry("switching", act("drop"))}, Code.INVALID_ARGUMENT),
    ("unknown field", INSERT, {"table_entry": table_entry("switching", act("drop"), exact(7, 1))}, Code.INVALID_ARGUMENT),
    ("value too wide", INSERT, {"table_entry": switching(2, dst=1 << 48)}, Code.INVALID_ARGUMENT),
    ("parameter too wide", INSERT, {"table_entry": switching(512)}, Code.INVALID_ARGUMENT),
    ("action of another table", INSERT, {"table_entry": table_entry("switching", act("to", 1), exact(1, 1))}, Code.INVALID_ARGUMENT),
    ("prefix too long", INSERT, {"table_entry": lpm(1, 17)}, Code.INVALID_ARGUMENT),
    ("bits beyond the prefix", INSERT, {"table_entry": lpm(0x1234, 8)}, Code.INVALID_ARGUMENT),
    ("no priority", INSERT, {"table_entry": tags(act("drop"), 1, priority=0)}, Code.INVALID_ARGUMENT),
    ("needless priority", INSERT, {"table_entry": switching(1, dst=9, priority=3)}, Code.INVALID_ARGUMENT),
    ("entry exists", INSERT, {"table_entry": switching(1)}, Code.ALREADY_EXISTS),
    ("no such entry to modify", MODIFY, {"table_entry": switching(1, dst=5)}, Code.NOT_FOUND),
    ("no such entry to delete", DELETE, {"table_entry": switching(1, dst=5)}, Code.NOT_FOUND),
    ("no update type", 0, {"table_entry": switching(1, dst=5)}, Code.INVALID_ARGUMENT),
    ("default inserted", INSERT, {"table_entry": default("routes", act("drop"))}, Code.INVALID_ARGUMENT),
    ("default deleted", DELETE, {"table_entry": default("routes")}, Code.INVALID_ARGUMENT),
    ("constant default", MODIFY, {"table_entry": default("fixed", act("drop"))}, Code.PERMISSION_DENIED),
    ("default of an indirect table", MODIFY, {"table_entry": default("balanced", act("to", 1))}, Code.INVALID_ARGUMENT),
    ("direct action in an indirect table", INSERT, {"table_entry": table_entry("balanced", act("to", 1), exact(1, 1))}, Code.INVALID_ARGUMENT),
    ("prefix 0 spelled out", INSERT, {"table_entry": lpm(0, 0)}, Code.INVALID_ARGUMENT),
    ("idle time-out where there is none", INSERT, {"table_entry": table_entry("routes", act("drop"), idle_timeout_ns=5)}, Code.INVALID_ARGUMENT),
    ("no kind of match", INSERT, {"table_entry": tags(act("drop"), 0x10, p4r.FieldMatch(field_id=2))}, Code.INVALID_ARGUMENT),
    ("negative meter", INSERT, {"table_entry": switching(1, dst=9, meter_config=p4r.MeterConfig(cir=-5))}, Code.INVALID_ARGUMENT),
    ("meter where there is none", INSERT, {"table_entry": table_entry("routes", act("drop"), meter_config=p4r.MeterConfig())}, Code.INVALID_ARGUMENT),
    ("member exists", INSERT, {"action_profile_member": member(1, act("to", 2))}, Code.ALREADY_EXISTS),
    ("no such member", MODIFY, {"action_profile_member": member(9, act("to", 2))}, Code.NOT_FOUND),
    ("action not of the profile", INSERT, {"action_profile_member": member(2, act("punt", 1))}, Code.INVALID_ARGUMENT),
    ("no such group", DELETE, {"action_profile_group": group(9)}, Code.NOT_FOUND),
    ("group of an unknown member", INSERT, {"action_profile_group": group(3, members=[p4r.ActionProfileGroup.Member(member_id=9, weight=1)])}, Code.NOT_FOUND),
    ("weight 0", INSERT, {"action_profile_group": group(4, members=[p4r.ActionProfileGroup.Member(member_id=1)])}, Code.INVALID_ARGUMENT),
    ("counter inserted", INSERT, {"counter_entry": p4r.CounterEntry(counter_id=COUNTER.preamble.id, index=p4r.Index())}, Code.INVALID_ARGUMENT),
    ("negative index", MODIFY, {"counter_entry": p4r.CounterEntry(counter_id=COUNTER.preamble.id, index=p4r.Index(index=-1))}, Code.INVALID_ARGUMENT),
    ("meter deleted", DELETE, {"meter_entry": p4r.MeterEntry(meter_id=METER.preamble.id, index=p4r.Index())}, Code.INVALID_ARGUMENT),
    ("direct counter inserted", INSERT, {"direct_counter_entry": p4r.DirectCounterEntry(table_entry=switching(1))}, Code.INVALID_ARGUMENT),
    ("multicast group 0", INSERT, {"packet_replication_engine_entry": multicast(0, 1)}, Code.INVALID_ARGUMENT),
    ("multicast group exists", INSERT, {"packet_replication_engine_entry": multicast(5, 1)}, Code.ALREADY_EXISTS),
    ("no such multicast group", MODIFY, {"packet_replication_engine_entry": multicast(6, 1)}, Code.NOT_FOUND),
    ("replica twice", INSERT, {"packet_replication_engine_entry": multicast(7, 1, 1)}, Code.INVALID_ARGUMENT),
    ("unknown digest", INSERT, {"digest_entry": p4r.DigestEntry(digest_id=DIGEST.preamble.id + 1)}, Code.NOT_FOUND),
    ("no such digest configuration", MODIFY, {"digest_entry": p4r.DigestEntry(digest_id=DIGEST.preamble.id)}, Code.NOT_FOUND),
]  # fmt: skip


def test_codes(rig: Rig) -> None:
    rig.control.insert(table_entry=switching(1, dst=HOST))
    rig.control.insert(action_profile_member=member(1, act("to", 1)))
    rig.control.insert(packet_replication_engine_entry=multicast(5, 1))
    got = {}
    for name, kind, entity, _ in CASES:
        update = p4r.Update(entity=p4r.Entity(**entity))
        update.type = kind  # type: ignore[assignment]
        try:
            rig.control.write(update)
            got[name] = Code.OK
        except BatchError as error:
            got[name] = Code(error.codes[0])
    assert got == {name: code for name, _, _, code in CASES}


def test_only_the_primary_writes(rig: Rig) -> None:
    rig.control.election_id = 99
    try:
        with pytest.raises(grpc.RpcError) as caught:
            rig.control.insert(table_entry=switching(1))
    finally:
        rig.control.election_id = 1
    assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED

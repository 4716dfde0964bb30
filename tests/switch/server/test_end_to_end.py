"""The real switch under P4Runtime: what is written acts on frames, and what frames do is reported.

The same tests run on BMv2 where it is installed: what passes on one passes on the other, except where BMv2 says
UNIMPLEMENTED.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from finsy.proto import p4d, p4r

from switch.server.errors import Code
from tests.switch.server.controller import BatchError, Controller, number
from tests.switch.server.eventually import eventually
from tests.switch.server.running import CPU_PORT, Switch, Wire, pipeline, running

pytestmark = pytest.mark.mininet

PORTS = 4
CONFIG = pipeline("features")
TABLES = {t.preamble.alias: t for t in CONFIG.p4info.tables}
ACTIONS = {a.preamble.alias: a for a in CONFIG.p4info.actions}
PROFILES = {p.preamble.alias: p.preamble.id for p in CONFIG.p4info.action_profiles}
[COUNTER], [METER], [REGISTER] = (
    CONFIG.p4info.counters,
    CONFIG.p4info.meters,
    CONFIG.p4info.registers,
)
[DIGEST], [VALUE_SET] = CONFIG.p4info.digests, CONFIG.p4info.value_sets

HOST, OTHER = 0x0A0000000001, 0x0A0000000002
TAGGED = 0x9000


@dataclass
class Rig:
    """A switch, its wires and its controller."""

    target: str
    switch: Switch
    wires: dict[int, Wire]
    control: Controller


@pytest.fixture(scope="module", params=["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def module_rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with running(request.param, PORTS) as (switch, wires):
        control = switch.controller()
        control.arbitrate(1)
        assert control.arbitration().status.code == Code.OK
        yield Rig(request.param, switch, wires, control)
        control.close()


@pytest.fixture
def rig(module_rig: Rig) -> Rig:
    """The switch with a fresh pipeline and quiet wires."""
    module_rig.control.set_pipeline(CONFIG)
    for group in module_rig.control.read(
        packet_replication_engine_entry=_pre(multicast_group_entry=p4r.MulticastGroupEntry())
    ):
        module_rig.control.delete(
            packet_replication_engine_entry=group.packet_replication_engine_entry
        )
    for wire in module_rig.wires.values():
        while wire.receive(0.01) is not None:
            pass
    return module_rig


@pytest.fixture
def embedded(rig: Rig) -> Rig:
    if rig.target != "embedded":
        pytest.skip("BMv2's server does not implement it")
    return rig


def frame(
    dst: int = HOST,
    src: int = OTHER,
    kind: int = 0,
    key: int = 0,
    value: int = 0,
    ether: int = TAGGED,
) -> bytes:
    header = dst.to_bytes(6, "big") + src.to_bytes(6, "big") + ether.to_bytes(2, "big")
    return (header + bytes([kind, key]) + value.to_bytes(2, "big")).ljust(60, b"\xa5")


def act(name: str, *values: int) -> p4r.Action:
    params = [p4r.Action.Param(param_id=i + 1, value=number(v)) for i, v in enumerate(values)]
    return p4r.Action(action_id=ACTIONS[name].preamble.id, params=params)


def table_entry(
    table: str, action: p4r.Action | None, *match: p4r.FieldMatch, **fields: Any
) -> p4r.TableEntry:
    message = p4r.TableEntry(table_id=TABLES[table].preamble.id, match=match, **fields)
    if action is not None:
        message.action.action.CopyFrom(action)
    return message


def exact(field: int, value: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, exact=p4r.FieldMatch.Exact(value=number(value)))


def switching(port: int, dst: int = HOST, **fields: Any) -> p4r.TableEntry:
    return table_entry("switching", act("forward", port), exact(1, dst), **fields)


def tags(action: p4r.Action, kind: int, *more: p4r.FieldMatch, priority: int = 1) -> p4r.TableEntry:
    ternary = p4r.FieldMatch.Ternary(value=number(kind), mask=b"\xff")
    fields = [p4r.FieldMatch(field_id=1, ternary=ternary), exact(4, OTHER), *more]
    return table_entry("tags", action, *fields, priority=priority)


def _pre(**entry: Any) -> p4r.PacketReplicationEngineEntry:
    return p4r.PacketReplicationEngineEntry(**entry)


def replica(port: int, instance: int = 0) -> p4r.Replica:
    return p4r.Replica(egress_port=port, instance=instance)


def arrives(rig: Rig, sent: bytes, into: int = 1) -> tuple[int, bytes] | None:
    """Where a frame comes out, and what it then is."""
    rig.wires[into].send(sent)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for port, wire in rig.wires.items():
            got = wire.receive(0.01)
            if got is not None:
                return port, got
    return None


def lost(rig: Rig, sent: bytes) -> bool:
    """Whether a frame comes out nowhere: one that follows it does."""
    rig.wires[1].send(sent)
    marker = frame(dst=0x0EEE00000000)
    rig.control.insert(table_entry=switching(2, dst=0x0EEE00000000))
    try:
        return arrives(rig, marker) == (2, marker)
    finally:
        rig.control.delete(table_entry=switching(2, dst=0x0EEE00000000))


def test_entries_act_change_and_go(rig: Rig) -> None:
    assert lost(rig, frame())
    rig.control.insert(table_entry=switching(2))
    assert arrives(rig, frame()) == (2, frame())
    rig.control.modify(table_entry=switching(3))
    assert arrives(rig, frame()) == (3, frame())
    rig.control.delete(table_entry=switching(3))
    assert lost(rig, frame())


def test_ternary_range_optional_and_priority(rig: Rig) -> None:
    in_range = p4r.FieldMatch(
        field_id=2, range=p4r.FieldMatch.Range(low=number(10), high=number(20))
    )
    with_key = p4r.FieldMatch(field_id=3, optional=p4r.FieldMatch.Optional(value=b"\x07"))
    rig.control.insert(table_entry=tags(act("to", 2), 5, priority=1))
    rig.control.insert(table_entry=tags(act("to", 3), 5, in_range, priority=20))
    rig.control.insert(table_entry=tags(act("to", 4), 5, with_key, priority=10))
    for key, value, port in ((0, 9, 2), (0, 10, 3), (0, 20, 3), (0, 21, 2), (7, 9, 4), (7, 15, 3)):
        sent = frame(kind=5, key=key, value=value)
        assert arrives(rig, sent) == (port, sent), (key, value)
    got = rig.control.read_tables(table_id=TABLES["tags"].preamble.id)
    assert sorted(e.priority for e in got) == [1, 10, 20]


def test_longest_prefix_wins(rig: Rig) -> None:
    def route(value: int, length: int, port: int) -> p4r.TableEntry:
        lpm = p4r.FieldMatch.LPM(value=number(value), prefix_len=length)
        return table_entry("routes", act("to", port), p4r.FieldMatch(field_id=1, lpm=lpm))

    rig.control.insert(table_entry=route(0x1200, 8, 2))
    rig.control.insert(table_entry=route(0x1230, 12, 3))
    rig.control.insert(table_entry=table_entry("routes", act("to", 4)))
    for value, port in ((0x1234, 3), (0x1244, 2), (0x2244, 4)):
        assert arrives(rig, frame(value=value)) == (port, frame(value=value))


def test_default_entries_act(rig: Rig) -> None:
    default = table_entry("routes", act("to", 3), is_default_action=True)
    rig.control.modify(table_entry=default)
    assert arrives(rig, frame()) == (3, frame())
    rig.control.modify(table_entry=table_entry("routes", None, is_default_action=True))
    assert lost(rig, frame())


def test_constant_entries_act(rig: Rig) -> None:
    rig.control.insert(table_entry=switching(2))
    assert lost(rig, frame(ether=0x88CC))
    assert arrives(rig, frame(ether=0x1234)) == (2, frame(ether=0x1234))
    got = rig.control.read_tables(table_id=TABLES["fixed"].preamble.id)
    assert [e.match[0].exact.value for e in got] == [b"\x88\xcc", b"\x88\x09"]


def test_counters_of_entries_count_whole_frames(rig: Rig) -> None:
    rig.control.insert(table_entry=switching(2))
    for _ in range(3):
        arrives(rig, frame())

    def counted() -> p4r.CounterData:
        wanted = table_entry("switching", None, exact(1, HOST), counter_data=p4r.CounterData())
        return rig.control.read(table_entry=wanted)[0].table_entry.counter_data

    assert eventually(lambda: counted() == p4r.CounterData(packet_count=3, byte_count=180))
    cleared = p4r.DirectCounterEntry(table_entry=switching(2), data=p4r.CounterData(packet_count=7))
    rig.control.modify(direct_counter_entry=cleared)
    assert counted() == p4r.CounterData(packet_count=7)


def test_indirect_counters_count(rig: Rig) -> None:
    rig.control.insert(table_entry=switching(2))
    arrives(rig, frame(kind=3))
    cell = p4r.CounterEntry(counter_id=COUNTER.preamble.id, index=p4r.Index(index=3))
    assert rig.control.read(counter_entry=cell)[0].counter_entry.data.packet_count == 1
    everything = rig.control.read(counter_entry=p4r.CounterEntry(counter_id=COUNTER.preamble.id))
    assert [e.counter_entry.data.packet_count for e in everything] == [0, 0, 0, 1] + [0] * 12


def test_meters_police(rig: Rig) -> None:
    tight = p4r.MeterConfig(cir=1, cburst=100, pir=1, pburst=100)
    rig.control.insert(table_entry=switching(2, meter_config=tight))
    assert arrives(rig, frame()) == (2, frame())
    assert lost(rig, frame())
    rig.control.modify(direct_meter_entry=p4r.DirectMeterEntry(table_entry=switching(2)))
    assert arrives(rig, frame()) == (2, frame())
    one = p4r.MeterConfig(cir=0, cburst=1, pir=0, pburst=1)
    cell = p4r.MeterEntry(meter_id=METER.preamble.id, index=p4r.Index(index=2), config=one)
    if rig.target == "embedded":  # BMv2 divides by a rate of 0
        rig.control.modify(meter_entry=cell)
        assert rig.control.read(meter_entry=cell)[0].meter_entry == cell
        assert arrives(rig, frame(kind=0xEE, key=2)) == (2, frame(kind=0xEE, key=2))
        assert lost(rig, frame(kind=0xEE, key=2))


def test_registers_are_written_by_both_sides(embedded: Rig) -> None:
    def cell(index: int, value: int | None = None) -> p4r.RegisterEntry:
        data = None if value is None else p4d.P4Data(bitstring=number(value))
        return p4r.RegisterEntry(
            register_id=REGISTER.preamble.id, index=p4r.Index(index=index), data=data
        )

    embedded.control.insert(table_entry=switching(2))
    embedded.control.modify(register_entry=cell(4, 0x1111))
    arrives(embedded, frame(kind=5, value=0xBEEF))
    assert embedded.control.read(register_entry=cell(5))[0].register_entry == cell(5, 0xBEEF)
    assert embedded.control.read(register_entry=cell(4))[0].register_entry == cell(4, 0x1111)


def test_value_sets_steer_the_parser(embedded: Rig) -> None:
    def members(*values: int) -> p4r.ValueSetEntry:
        listed = [p4r.ValueSetMember(match=[exact(1, value)]) for value in values]
        return p4r.ValueSetEntry(value_set_id=VALUE_SET.preamble.id, members=listed)

    sent = frame(kind=5, ether=0x1234)
    embedded.control.insert(table_entry=tags(act("to", 3), 5))
    assert lost(embedded, sent)
    embedded.control.modify(value_set_entry=members(0x4321, 0x1234))
    assert arrives(embedded, sent) == (3, sent)
    embedded.control.modify(value_set_entry=members())
    assert lost(embedded, sent)


class TestProfiles:
    def member(self, number_: int, port: int, profile: str = "choices") -> p4r.ActionProfileMember:
        return p4r.ActionProfileMember(
            action_profile_id=PROFILES[profile], member_id=number_, action=act("to", port)
        )

    def group(self, *members: tuple[int, int]) -> p4r.ActionProfileGroup:
        listed = [p4r.ActionProfileGroup.Member(member_id=m, weight=w) for m, w in members]
        return p4r.ActionProfileGroup(
            action_profile_id=PROFILES["choices"], group_id=1, members=listed, max_size=16
        )

    def ports(self, rig: Rig) -> dict[int, int]:
        """How many of 40 values of the hashed field go to each port (crc16 of small numbers hardly differs)."""
        counts: dict[int, int] = {}
        for step in range(40):
            got = arrives(rig, frame(kind=1, value=step * 40503 & 0xFFFF))
            assert got is not None
            counts[got[0]] = counts.get(got[0], 0) + 1
        return counts

    def test_members_and_groups_spread(self, rig: Rig) -> None:
        for port in (2, 3):
            rig.control.insert(action_profile_member=self.member(port, port))
        rig.control.insert(action_profile_group=self.group((2, 1), (3, 7)))
        entry = table_entry("balanced", None, exact(1, 1))
        entry.action.action_profile_group_id = 1
        rig.control.insert(table_entry=entry)
        counts = self.ports(rig)
        assert set(counts) == {2, 3}
        assert counts[2] < counts[3]
        rig.control.modify(action_profile_group=self.group((2, 1)))
        assert set(self.ports(rig)) == {2}
        rig.control.modify(action_profile_member=self.member(2, 4))
        assert set(self.ports(rig)) == {4}

    def test_one_shots_spread(self, rig: Rig) -> None:
        entry = table_entry("balanced", None, exact(1, 1))
        for port in (2, 3):
            entry.action.action_profile_action_set.action_profile_actions.add(
                action=act("to", port), weight=1
            )
        rig.control.insert(table_entry=entry)
        assert set(self.ports(rig)) == {2, 3}
        assert rig.control.read_tables(table_id=TABLES["balanced"].preamble.id) == [entry]
        rig.control.delete(table_entry=entry)
        assert lost(rig, frame(kind=1))

    def test_a_table_without_selector_points_to_members(self, rig: Rig) -> None:
        rig.control.insert(action_profile_member=self.member(1, 3, "shared"))
        entry = table_entry("indirect", None, exact(1, 1))
        entry.action.action_profile_member_id = 1
        rig.control.insert(table_entry=entry)
        assert arrives(rig, frame(kind=1)) == (3, frame(kind=1))


class TestReplication:
    def test_multicast_reaches_every_replica(self, rig: Rig) -> None:
        group = p4r.MulticastGroupEntry(
            multicast_group_id=9, replicas=[replica(2, 1), replica(3, 2)]
        )
        rig.control.insert(packet_replication_engine_entry=_pre(multicast_group_entry=group))
        rig.control.insert(table_entry=tags(act("flood", 9), 5))
        rig.wires[1].send(frame(kind=5))
        assert rig.wires[2].receive() == frame(kind=5, value=1)
        assert rig.wires[3].receive() == frame(kind=5, value=2)
        group.replicas.pop()
        rig.control.modify(packet_replication_engine_entry=_pre(multicast_group_entry=group))
        rig.wires[1].send(frame(kind=5))
        assert rig.wires[2].receive() == frame(kind=5, value=1)
        assert rig.wires[3].receive(0.2) is None

    def test_clones_are_made_and_cut(self, rig: Rig) -> None:
        length = 20 if rig.target == "embedded" else 0  # BMv2's server refuses to cut
        session = p4r.CloneSessionEntry(
            session_id=5, replicas=[replica(3, 8)], packet_length_bytes=length
        )
        rig.control.insert(packet_replication_engine_entry=_pre(clone_session_entry=session))
        rig.control.insert(table_entry=tags(act("mirror", 5, 2), 5))
        rig.wires[1].send(frame(kind=5))
        assert rig.wires[2].receive() == frame(kind=5)
        assert rig.wires[3].receive() == frame(kind=5, value=8)[: length or None]
        rig.control.delete(packet_replication_engine_entry=_pre(clone_session_entry=session))


class TestController:
    def test_packet_in(self, rig: Rig) -> None:
        rig.control.insert(table_entry=tags(act("punt", 33), 5))
        rig.wires[4].send(frame(kind=5))
        packet = rig.control.receive().packet
        assert packet.payload == frame(kind=5)
        assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"\x04"), (2, b"\x21")]

    def test_packet_out(self, rig: Rig) -> None:
        packet = p4r.PacketOut(payload=frame())
        packet.metadata.add(metadata_id=1, value=b"\x03")
        packet.metadata.add(metadata_id=2, value=b"\x00")
        rig.control.send(p4r.StreamMessageRequest(packet=packet))
        assert rig.wires[3].receive() == frame()

    def test_digests_come_once_until_acknowledged(self, rig: Rig) -> None:
        config = p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=10**12)
        rig.control.insert(
            digest_entry=p4r.DigestEntry(digest_id=DIGEST.preamble.id, config=config)
        )
        rig.control.insert(table_entry=switching(2))
        for _ in range(3):
            arrives(rig, frame(kind=0xD1))
        digest = rig.control.receive().digest
        assert digest.digest_id == DIGEST.preamble.id
        [data] = digest.data
        assert [m.bitstring for m in data.struct.members] == [b"\x01", number(OTHER)]
        assert rig.control.nothing_for(0.3)
        ack = p4r.DigestListAck(digest_id=digest.digest_id, list_id=digest.list_id)
        rig.control.send(p4r.StreamMessageRequest(digest_ack=ack))
        time.sleep(0.3)
        arrives(rig, frame(kind=0xD1))
        assert rig.control.receive().HasField("digest")

    def test_idle_entries_are_reported(self, rig: Rig) -> None:
        rig.control.insert(table_entry=switching(2, idle_timeout_ns=600_000_000, metadata=b"m"))
        start = time.monotonic()
        while time.monotonic() < start + 1.2:
            arrives(rig, frame())
        kept_alive = time.monotonic()
        note = rig.control.receive().idle_timeout_notification
        assert time.monotonic() - kept_alive > 0.3
        [idle] = note.table_entry
        assert idle.match[0] == exact(1, HOST)
        assert idle.metadata == (b"m" if rig.target == "embedded" else b"")
        rig.control.delete(table_entry=switching(2))


def test_a_full_table_says_so(rig: Rig) -> None:
    entries = [
        p4r.Update(
            type=p4r.Update.INSERT,
            entity=p4r.Entity(table_entry=tags(act("drop"), 1, priority=n + 1)),
        )
        for n in range(65)
    ]
    with pytest.raises(BatchError) as caught:
        rig.control.write(*entries)
    assert caught.value.codes[:64] == [Code.OK] * 64
    assert caught.value.codes[64] == (
        Code.RESOURCE_EXHAUSTED if rig.target == "embedded" else Code.UNKNOWN
    )


def test_reconciling_the_same_program_does_not_interrupt(embedded: Rig) -> None:
    embedded.control.insert(table_entry=switching(2))
    embedded.control.set_pipeline(
        CONFIG, p4r.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT
    )
    assert arrives(embedded, frame()) == (2, frame())


def test_reconciling_another_program_keeps_the_entries(embedded: Rig) -> None:
    embedded.control.insert(table_entry=switching(2))
    changed = p4r.ForwardingPipelineConfig()
    changed.CopyFrom(CONFIG)
    changed.p4_device_config += b"\n"
    embedded.control.set_pipeline(
        changed, p4r.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT
    )
    assert arrives(embedded, frame()) == (2, frame())
    assert embedded.control.get_pipeline().p4_device_config == changed.p4_device_config


def test_a_saved_program_acts_after_its_commit(embedded: Rig) -> None:
    embedded.control.insert(table_entry=switching(2))
    embedded.control.set_pipeline(CONFIG, p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_SAVE)
    embedded.control.insert(table_entry=switching(3))
    assert arrives(embedded, frame()) == (2, frame())
    embedded.control.set_pipeline(None, p4r.SetForwardingPipelineConfigRequest.COMMIT)
    assert arrives(embedded, frame()) == (3, frame())


def test_the_cpu_port_is_a_port_of_replicas(rig: Rig) -> None:
    session = p4r.CloneSessionEntry(session_id=6, replicas=[replica(CPU_PORT, 1)])
    rig.control.insert(packet_replication_engine_entry=_pre(clone_session_entry=session))
    rig.control.insert(table_entry=tags(act("mirror", 6, 2), 5))
    rig.wires[1].send(frame(kind=5))
    assert rig.wires[2].receive() == frame(kind=5)
    packet = rig.control.receive().packet
    assert packet.payload == frame(kind=5, value=1)
    assert packet.metadata[1].value == number(99)
    rig.control.delete(packet_replication_engine_entry=_pre(clone_session_entry=session))

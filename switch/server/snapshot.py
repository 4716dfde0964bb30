"""The forwarding state as updates that recreate it, and their replay (RECONCILE_AND_COMMIT)."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4d, p4r

from switch.server.errors import Code, RequestError
from switch.server.state import INSERT, MODIFY, ForwardingState
from switch.server.tables import Table


def snapshot(state: ForwardingState) -> list[p4r.Update]:
    """Everything clients have written, and the counts and registers that packets have, in an order that can be
    replayed: what is referred to comes before what refers to it."""
    return list(_updates(state))


def replay(state: ForwardingState, updates: list[p4r.Update]) -> list[RequestError]:
    """Write a snapshot; the errors of what does not fit."""
    lost = []
    for update, error in zip(updates, state.write(updates), strict=True):
        if error is not None and error.code == Code.ALREADY_EXISTS:
            # an entry that the program itself brings (`entries` in the source)
            error = state.write_one(p4r.Update(type=MODIFY, entity=update.entity))
        if error is not None:
            lost.append(error)
    return lost


def _updates(state: ForwardingState) -> Iterator[p4r.Update]:
    for member in _read(state, action_profile_member=p4r.ActionProfileMember()):
        yield _update(INSERT, member)
    for group in _read(state, action_profile_group=p4r.ActionProfileGroup()):
        yield _update(INSERT, group)
    for table in state.tables.values():
        yield from _table_updates(table)
    for counter in _read(state, counter_entry=p4r.CounterEntry()):
        if counter.counter_entry.data != p4r.CounterData():
            yield _update(MODIFY, counter)
    for meter in _read(state, meter_entry=p4r.MeterEntry()):
        if meter.meter_entry.HasField("config"):
            yield _update(MODIFY, meter)
    for register in _read(state, register_entry=p4r.RegisterEntry()):
        if register.register_entry.data != p4d.P4Data(bitstring=b"\0"):
            yield _update(MODIFY, register)
    for value_set in _read(state, value_set_entry=p4r.ValueSetEntry()):
        if value_set.value_set_entry.members:
            yield _update(MODIFY, value_set)
    for multicast in state.replication.read_groups(p4r.MulticastGroupEntry()):
        yield _update(
            INSERT, _replication(p4r.PacketReplicationEngineEntry(multicast_group_entry=multicast))
        )
    for session in state.replication.read_sessions(p4r.CloneSessionEntry()):
        yield _update(
            INSERT, _replication(p4r.PacketReplicationEngineEntry(clone_session_entry=session))
        )
    for digest in _read(state, digest_entry=p4r.DigestEntry()):
        yield _update(INSERT, digest)


def _table_updates(table: Table) -> Iterator[p4r.Update]:
    if table.default.changed:
        yield _update(MODIFY, p4r.Entity(table_entry=table.default.read()))
    if table.info.is_const:
        return
    wanted = p4r.TableEntry(counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())
    for entry in table.entries():
        yield _update(INSERT, p4r.Entity(table_entry=table.message(entry, wanted)))


def _read(state: ForwardingState, **request: object) -> Iterator[p4r.Entity]:
    return state.read(p4r.Entity(**request))  # type: ignore[arg-type]


def _replication(entry: p4r.PacketReplicationEngineEntry) -> p4r.Entity:
    return p4r.Entity(packet_replication_engine_entry=entry)


def _update(kind: p4r.Update.Type.ValueType, entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=kind, entity=entity)

"""The forwarding state of one loaded pipeline: every P4 entity, written and read as P4Runtime does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from finsy.proto import p4r

from switch.dataplane import Dataplane, DataplaneError
from switch.server.arrays import Counters, Meters, Registers
from switch.server.digests import Digests
from switch.server.direct_entries import DirectEntries
from switch.server.errors import Code, Outcome, RequestError, from_dataplane, invalid
from switch.server.p4data import DataCodec
from switch.server.packet_headers import PacketHeader
from switch.server.pipeline import Pipeline
from switch.server.ports import Ports
from switch.server.profiles import Profile, read_profiles
from switch.server.replication import Replication
from switch.server.tables import Table
from switch.server.value_sets import ValueSets

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE

_Write = Callable[[Any], None]


class ForwardingState:
    """Tables, profiles, externs and replication of a pipeline that the data plane has loaded. Callers serialize."""

    def __init__(
        self,
        pipeline: Pipeline,
        dataplane: Dataplane,
        ports: Ports,
        send_digest: Callable[[p4r.DigestList], bool],
    ) -> None:
        types = DataCodec(pipeline.config.p4info.type_info)
        self.pipeline = pipeline
        self.profiles = {
            key: Profile(info, dataplane, ports) for key, info in pipeline.profiles.items()
        }
        self.tables = {
            key: Table(info, dataplane, self.profiles[info.profile] if info.profile else None)
            for key, info in pipeline.tables.items()
        }
        self.counters = Counters(pipeline.counters, dataplane)
        self.meters = Meters(pipeline.meters, dataplane)
        self.registers = Registers(pipeline.registers, dataplane, types)
        self.value_sets = ValueSets(pipeline.value_sets, dataplane)
        self.replication = Replication(dataplane, ports)
        self.digests = Digests(pipeline.digests, dataplane, types, send_digest)
        self.direct = DirectEntries(self.tables, dataplane)
        self.packet_in = PacketHeader(pipeline.packet_in)
        self.packet_out = PacketHeader(pipeline.packet_out)
        self._writers = self._all_writers()
        self._readers = self._all_readers()

    # -- writes -----------------------------------------------------------------------------------------------

    def write(self, updates: Sequence[p4r.Update]) -> list[Outcome]:
        """Do each update; for each None, or why it failed. Runs of inserts into one table go to the data plane
        together."""
        outcomes: list[Outcome] = [None] * len(updates)
        run: list[p4r.TableEntry] = []
        run_table = run_start = 0
        for position, update in enumerate(updates):
            entity = update.entity
            is_insert = update.type == INSERT and entity.HasField("table_entry")
            if run and not (is_insert and entity.table_entry.table_id == run_table):
                outcomes[run_start:position] = self._insert(run_table, run)
                run = []
            if not is_insert:
                outcomes[position] = self.write_one(update)
            elif run:
                run.append(entity.table_entry)
            else:
                run, run_table, run_start = (
                    [entity.table_entry],
                    entity.table_entry.table_id,
                    position,
                )
        if run:
            outcomes[run_start:] = self._insert(run_table, run)
        return outcomes

    def write_one(self, update: p4r.Update) -> Outcome:
        """Do one update."""
        entity = update.entity
        kind = entity.WhichOneof("entity")
        if kind == "table_entry" and update.type == INSERT:
            return self._insert(entity.table_entry.table_id, [entity.table_entry])[0]
        try:
            self._writer(kind, update.type)(getattr(entity, kind or ""))
        except RequestError as error:
            return error
        except DataplaneError as error:
            return from_dataplane(error)
        return None

    def _insert(self, table_id: int, entries: Sequence[p4r.TableEntry]) -> list[Outcome]:
        table = self.tables.get(table_id)
        if table is None:
            return [_no_table(table_id)] * len(entries)
        try:
            return table.insert(entries)
        except DataplaneError as error:  # of the call as a whole
            return [from_dataplane(error)] * len(entries)

    def _writer(self, kind: str | None, update_type: p4r.Update.Type.ValueType) -> _Write:
        if kind is None:
            raise invalid("the update has no entity")
        if kind not in self._writers:
            raise RequestError(
                Code.UNIMPLEMENTED, f"{kind} is not supported: v1model has no such externs"
            )
        if update_type not in (INSERT, MODIFY, DELETE):
            raise invalid("Update type is not set")
        writer = self._writers[kind].get(update_type)
        if writer is None:
            raise invalid(f"{p4r.Update.Type.Name(update_type)} is not allowed for {kind}")
        return writer

    def _all_writers(self) -> dict[str, dict[int, _Write]]:
        return {
            "table_entry": {
                MODIFY: lambda m: self.table(m.table_id).modify(m),
                DELETE: lambda m: self.table(m.table_id).delete(m),
            },
            "action_profile_member": {
                INSERT: lambda m: self.profile(m.action_profile_id).insert_member(m),
                MODIFY: lambda m: self.profile(m.action_profile_id).modify_member(m),
                DELETE: lambda m: self.profile(m.action_profile_id).delete_member(m),
            },
            "action_profile_group": {
                INSERT: lambda m: self.profile(m.action_profile_id).insert_group(m),
                MODIFY: lambda m: self.profile(m.action_profile_id).modify_group(m),
                DELETE: lambda m: self.profile(m.action_profile_id).delete_group(m),
            },
            "meter_entry": {MODIFY: self.meters.modify},
            "direct_meter_entry": {MODIFY: self.direct.modify_meter},
            "counter_entry": {MODIFY: self.counters.modify},
            "direct_counter_entry": {MODIFY: self.direct.modify_counter},
            "packet_replication_engine_entry": {
                INSERT: lambda m: self._replicate(
                    m, self.replication.insert_group, self.replication.insert_session
                ),
                MODIFY: lambda m: self._replicate(
                    m, self.replication.modify_group, self.replication.modify_session
                ),
                DELETE: lambda m: self._replicate(
                    m, self.replication.delete_group, self.replication.delete_session
                ),
            },
            "value_set_entry": {MODIFY: self.value_sets.modify},
            "register_entry": {MODIFY: self.registers.modify},
            "digest_entry": {
                INSERT: self.digests.insert,
                MODIFY: self.digests.modify,
                DELETE: self.digests.delete,
            },
        }

    # -- reads ------------------------------------------------------------------------------------------------

    def read(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        """The entities that one request selects. Raises RequestError."""
        kind = entity.WhichOneof("entity")
        if kind is None:
            raise invalid("the request has no entity")
        if kind == "extern_entry":
            raise RequestError(
                Code.UNIMPLEMENTED, "extern_entry is not supported: v1model has no such externs"
            )
        try:
            yield from self._readers[kind](getattr(entity, kind))
        except DataplaneError as error:
            raise from_dataplane(error) from error

    def _all_readers(self) -> dict[str, Callable[[Any], Iterator[p4r.Entity]]]:
        return {
            "table_entry": self._read_tables,
            "action_profile_member": lambda m: (
                p4r.Entity(action_profile_member=member)
                for profile in read_profiles(self.profiles, m.action_profile_id)
                for member in profile.read_members(m.member_id)
            ),
            "action_profile_group": lambda m: (
                p4r.Entity(action_profile_group=group)
                for profile in read_profiles(self.profiles, m.action_profile_id)
                for group in profile.read_groups(m.group_id)
            ),
            "meter_entry": lambda m: (p4r.Entity(meter_entry=e) for e in self.meters.read(m)),
            "direct_meter_entry": lambda m: (
                p4r.Entity(direct_meter_entry=e) for e in self.direct.read_meters(m)
            ),
            "counter_entry": lambda m: (p4r.Entity(counter_entry=e) for e in self.counters.read(m)),
            "direct_counter_entry": lambda m: (
                p4r.Entity(direct_counter_entry=e) for e in self.direct.read_counters(m)
            ),
            "packet_replication_engine_entry": self._read_replication,
            "value_set_entry": lambda m: (
                p4r.Entity(value_set_entry=e) for e in self.value_sets.read(m)
            ),
            "register_entry": lambda m: (
                p4r.Entity(register_entry=e) for e in self.registers.read(m)
            ),
            "digest_entry": lambda m: (p4r.Entity(digest_entry=e) for e in self.digests.read(m)),
        }

    def _read_tables(self, request: p4r.TableEntry) -> Iterator[p4r.Entity]:
        tables: Iterable[Table] = (
            [self.table(request.table_id)] if request.table_id else self.tables.values()
        )
        if not request.table_id:
            tables = [
                t
                for t in tables
                if t.info.idle_timeout or not request.HasField("time_since_last_hit")
            ]
        for table in tables:
            for entry in table.read(request):
                yield p4r.Entity(table_entry=entry)

    def _read_replication(self, request: p4r.PacketReplicationEngineEntry) -> Iterator[p4r.Entity]:
        kind = request.WhichOneof("type")
        if kind == "multicast_group_entry":
            for group in self.replication.read_groups(request.multicast_group_entry):
                yield _replication_entity(multicast_group_entry=group)
        elif kind == "clone_session_entry":
            for session in self.replication.read_sessions(request.clone_session_entry):
                yield _replication_entity(clone_session_entry=session)
        else:
            raise invalid(
                "a packet replication engine entry is a multicast group or a clone session"
            )

    # -- look-ups ---------------------------------------------------------------------------------------------

    def table(self, table_id: int) -> Table:
        """A table by its P4Info id. Raises INVALID_ARGUMENT."""
        if table_id not in self.tables:
            raise _no_table(table_id)
        return self.tables[table_id]

    def profile(self, profile_id: int) -> Profile:
        """An action profile by its P4Info id. Raises INVALID_ARGUMENT."""
        if profile_id not in self.profiles:
            raise invalid(f"no action profile has id {profile_id:#010x}")
        return self.profiles[profile_id]

    def port_changed(self, port: int) -> None:
        """A port went up or down: whatever watches it is applied anew."""
        for profile in self.profiles.values():
            profile.port_changed(port)
        self.replication.port_changed(port)

    @staticmethod
    def _replicate(
        message: p4r.PacketReplicationEngineEntry, group: _Write, session: _Write
    ) -> None:
        kind = message.WhichOneof("type")
        if kind == "multicast_group_entry":
            group(message.multicast_group_entry)
        elif kind == "clone_session_entry":
            session(message.clone_session_entry)
        else:
            raise invalid(
                "a packet replication engine entry is a multicast group or a clone session"
            )


def _replication_entity(**kind: Any) -> p4r.Entity:
    return p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(**kind))


def _no_table(table_id: int) -> RequestError:
    return invalid(f"no table has id {table_id:#010x}" if table_id else "the table id is not set")

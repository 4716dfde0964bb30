"""A P4Runtime session that carries out a test's commands on any target."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc

from tests.switch.drive.commands import (
    Call,
    CannotDo,
    CloneSession,
    Command,
    Default,
    Entry,
    Group,
    Match,
    MeterRates,
    Multicast,
    Refused,
    RegisterWrite,
)

DEVICE = 1


def octets(value: int) -> bytes:
    """P4Runtime's canonical form of an unsigned number."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def named(objects: Iterable[Any], name: str) -> Any:
    """The p4info object of this name; Refused where there is none."""
    for each in objects:
        if each.preamble.name == name:
            return each
    raise Refused(f"p4info has no {name}")


class Session:
    """The primary controller of a switch that runs the program of a JSON and a binary p4info file."""

    def __init__(self, address: str, json: Path, p4info: Path, wait: float = 20) -> None:
        self.info = p4i.P4Info.FromString(p4info.read_bytes())
        self.packet_ins: queue.Queue[bytes] = queue.Queue()
        self.digests: queue.Queue[tuple[str, tuple[int, ...]]] = queue.Queue()
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._primary = threading.Event()
        self._multicast: set[int] = set()
        self._channel = grpc.insecure_channel(
            address, options=[("grpc.max_receive_message_length", -1)]
        )
        grpc.channel_ready_future(self._channel).result(timeout=wait)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        hello = p4r.StreamMessageRequest()
        hello.arbitration.device_id = DEVICE
        hello.arbitration.election_id.low = 1
        self._requests.put(hello)
        threading.Thread(target=self._read_stream, daemon=True).start()
        if not self._primary.wait(10):
            raise Refused("no answer to the arbitration")
        self._configure(json)

    def _configure(self, json: Path) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=DEVICE,
            election_id=U128.encode(1),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        )
        request.config.p4info.CopyFrom(self.info)
        request.config.p4_device_config = json.read_bytes()
        try:
            self._stub.SetForwardingPipelineConfig(request, timeout=60)
        except grpc.RpcError as error:
            raise Refused(f"the program: {error.details()}") from error
        for digest in self.info.digests:
            entity = p4r.Entity()
            entity.digest_entry.digest_id = digest.preamble.id
            entity.digest_entry.config.max_list_size = 1
            entity.digest_entry.config.ack_timeout_ns = 10**9
            self._write(p4r.Update.INSERT, entity)

    def close(self) -> None:
        self._requests.put(None)
        self._channel.close()

    # -- the stream

    def _read_stream(self) -> None:
        digests = {d.preamble.id: d.preamble.name for d in self.info.digests}
        try:
            for message in self._stub.StreamChannel(iter(self._requests.get, None)):
                kind = message.WhichOneof("update")
                if kind == "arbitration":
                    self._primary.set()
                elif kind == "packet":
                    self.packet_ins.put(self._with_header(message.packet))
                elif kind == "digest":
                    for data in message.digest.data:
                        values = tuple(int.from_bytes(v, "big") for v in _leaves(data))
                        self.digests.put((digests[message.digest.digest_id], values))
                    ack = p4r.StreamMessageRequest()
                    ack.digest_ack.digest_id = message.digest.digest_id
                    ack.digest_ack.list_id = message.digest.list_id
                    self._requests.put(ack)
        except grpc.RpcError:
            pass  # the switch was stopped

    def _with_header(self, packet: Any) -> bytes:
        """The packet-in as the pipeline made it."""
        for header in self.info.controller_packet_metadata:
            if header.preamble.name == "packet_in":
                values = {m.metadata_id: int.from_bytes(m.value, "big") for m in packet.metadata}
                number = bits = 0
                for each in header.metadata:
                    number = number << each.bitwidth | values[each.id]
                    bits += each.bitwidth
                return number.to_bytes(bits // 8, "big") + bytes(packet.payload)
        return bytes(packet.payload)

    # -- commands

    def tell(self, command: Command) -> None:
        for kind, entity in self._entities(command):
            self._write(kind, entity)

    def _write(self, kind: Any, entity: p4r.Entity) -> None:
        update = p4r.Update(type=kind, entity=entity)
        request = p4r.WriteRequest(device_id=DEVICE, election_id=U128.encode(1), updates=[update])
        try:
            self._stub.Write(request, timeout=10)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNIMPLEMENTED:
                raise CannotDo(str(error.details())) from error
            details = error.trailing_metadata()
            raise Refused(f"{error.details()} {details} for {entity}") from error

    def _entities(self, command: Command) -> Iterator[tuple[Any, p4r.Entity]]:
        entity = p4r.Entity()
        insert, modify = p4r.Update.INSERT, p4r.Update.MODIFY
        match command:
            case Entry():
                self._entry(command, entity.table_entry)
                yield insert, entity
            case Default():
                table = named(self.info.tables, command.table)
                entity.table_entry.table_id = table.preamble.id
                entity.table_entry.is_default_action = True
                self._call(command.does, entity.table_entry.action.action)
                yield modify, entity
            case Group():
                yield from self._group(command)
            case Multicast():
                group = entity.packet_replication_engine_entry.multicast_group_entry
                group.multicast_group_id = command.id
                for port, instance in command.replicas:
                    group.replicas.add(egress_port=port, instance=instance)
                yield modify if command.id in self._multicast else insert, entity
                self._multicast.add(command.id)
            case CloneSession():
                session = entity.packet_replication_engine_entry.clone_session_entry
                session.session_id = command.id
                session.packet_length_bytes = command.length
                for port, instance in command.replicas:
                    session.replicas.add(egress_port=port, instance=instance)
                yield insert, entity
            case MeterRates():
                meter = entity.meter_entry
                meter.meter_id = named(self.info.meters, command.meter).preamble.id
                meter.index.index = command.index
                meter.config.cir, meter.config.cburst = command.cir, command.cburst
                meter.config.pir, meter.config.pburst = command.pir, command.pburst
                yield modify, entity
            case RegisterWrite():
                register = entity.register_entry
                register.register_id = named(self.info.registers, command.register).preamble.id
                register.index.index = command.index
                register.data.bitstring = octets(command.value)
                yield modify, entity

    def _group(self, command: Group) -> Iterator[tuple[Any, p4r.Entity]]:
        profile = named(self.info.action_profiles, command.profile).preamble.id
        for id, call in command.members:
            entity = p4r.Entity()
            member = entity.action_profile_member
            member.action_profile_id, member.member_id = profile, id
            self._call(call, member.action)
            yield p4r.Update.INSERT, entity
        entity = p4r.Entity()
        group = entity.action_profile_group
        group.action_profile_id, group.group_id = profile, command.id
        group.max_size = len(command.members)
        for id, _ in command.members:
            group.members.add(member_id=id, weight=1)
        yield p4r.Update.INSERT, entity

    def _call(self, call: Call, action: Any) -> None:
        info = named(self.info.actions, call.action)
        action.action_id = info.preamble.id
        for parameter in info.params:
            action.params.add(param_id=parameter.id, value=octets(call.params[parameter.name]))

    def _entry(self, command: Entry, entry: Any) -> None:
        table = named(self.info.tables, command.table)
        entry.table_id = table.preamble.id
        for field in table.match_fields:
            if field.name in command.match:
                _add_match(entry, field, command.match[field.name])
        kinds = {p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL}
        if any(field.match_type in kinds for field in table.match_fields):
            entry.priority = command.priority
        if isinstance(command.does, Call):
            self._call(command.does, entry.action.action)
        else:
            entry.action.action_profile_group_id = command.does

    # -- counters

    def counter(self, name: str) -> list[tuple[int, int]]:
        entity = p4r.Entity()
        entity.counter_entry.counter_id = named(self.info.counters, name).preamble.id
        cells = [each.counter_entry for each in self._read(entity)]
        cells.sort(key=lambda cell: cell.index.index)
        return [(cell.data.packet_count, cell.data.byte_count) for cell in cells]

    def direct_counters(self, table: str) -> dict[tuple[int, ...], tuple[int, int]]:
        entity = p4r.Entity()
        info = named(self.info.tables, table)
        entity.direct_counter_entry.table_entry.table_id = info.preamble.id
        counts = {}
        for each in self._read(entity):
            cell = each.direct_counter_entry
            if not cell.table_entry.is_default_action:
                key = tuple(itertools.chain(*map(_match_numbers, cell.table_entry.match)))
                counts[key] = (cell.data.packet_count, cell.data.byte_count)
        return counts

    def _read(self, entity: p4r.Entity) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=DEVICE, entities=[entity])
        return [e for r in self._stub.Read(request, timeout=10) for e in r.entities]


def _leaves(data: Any) -> Iterator[bytes]:
    kind = data.WhichOneof("data")
    if kind == "struct":
        for member in data.struct.members:
            yield from _leaves(member)
    elif kind == "bitstring":
        yield data.bitstring
    elif kind == "bool":
        yield bytes([data.bool])
    else:
        raise NotImplementedError(f"a digest with {kind}")


def _match_numbers(field: Any) -> Iterator[int]:
    if field.WhichOneof("field_match_type") == "exact":
        yield int.from_bytes(field.exact.value, "big")
    elif field.WhichOneof("field_match_type") == "lpm":
        yield int.from_bytes(field.lpm.value, "big")
        yield field.lpm.prefix_len
    elif field.WhichOneof("field_match_type") == "ternary":
        yield int.from_bytes(field.ternary.value, "big")
        yield int.from_bytes(field.ternary.mask, "big")
    elif field.WhichOneof("field_match_type") == "range":
        yield int.from_bytes(field.range.low, "big")
        yield int.from_bytes(field.range.high, "big")


def _add_match(entry: Any, field: Any, match: Match) -> None:
    """Omit what does not care, as P4Runtime asks."""
    whole = (1 << field.bitwidth) - 1
    kind = field.match_type
    if kind == p4i.MatchField.EXACT:
        entry.match.add(field_id=field.id).exact.value = octets(match.value)
    elif kind == p4i.MatchField.LPM:
        prefix = field.bitwidth if match.prefix is None else match.prefix
        if prefix:
            lpm = entry.match.add(field_id=field.id).lpm
            lpm.prefix_len = prefix
            mask = whole >> (field.bitwidth - prefix) << (field.bitwidth - prefix)
            lpm.value = octets(match.value & mask)
    elif kind == p4i.MatchField.TERNARY:
        mask = whole if match.mask is None else match.mask
        if mask:
            ternary = entry.match.add(field_id=field.id).ternary
            ternary.value, ternary.mask = octets(match.value & mask), octets(mask)
    elif kind == p4i.MatchField.OPTIONAL:
        if match.mask != 0:
            entry.match.add(field_id=field.id).optional.value = octets(match.value)
    elif kind == p4i.MatchField.RANGE:
        high = match.value if match.high is None else match.high
        if (match.value, high) != (0, whole):
            range_ = entry.match.add(field_id=field.id).range
            range_.low, range_.high = octets(match.value), octets(high)

"""The program that the server's tests run: one table of each kind, one extern of each kind, and its P4Info."""

from __future__ import annotations

from typing import get_args

from finsy.proto import p4i, p4r

from switch.program import (
    Action,
    ActionProfile,
    CounterArray,
    DigestList,
    KeyField,
    MatchKind,
    MeterArray,
    Parameter,
    Program,
    RegisterArray,
    Table,
    ValueSet,
)

FORWARD, DROP, NOP = 0, 1, 2

ACTIONS = {
    FORWARD: Action(FORWARD, "forward", (Parameter("port", 9), Parameter("mac", 48))),
    DROP: Action(DROP, "drop", ()),
    NOP: Action(NOP, "NoAction", ()),
}


def _table(
    number: int, name: str, key: list[tuple[str, MatchKind, int]], **options: object
) -> Table:
    fields: dict[str, object] = {
        "size": 1024,
        "actions": (FORWARD, DROP, NOP),
        "profile": None,
        "const_entries": False,
        "const_default": False,
        "counter": None,
        "meter": None,
        "idle_timeout": False,
    }
    fields.update(options)
    keys = tuple(KeyField(*field) for field in key)
    return Table(id=number, name=name, key=keys, source=f"program.p4:{number}", **fields)  # type: ignore[arg-type]


TABLES = (
    _table(
        0,
        "exact",
        [("a", "exact", 32), ("b", "exact", 9)],
        counter="exact_counter",
        meter="exact_meter",
    ),
    _table(1, "lpm", [("dst", "lpm", 32)]),
    _table(
        2,
        "ternary",
        [("a", "ternary", 16), ("b", "range", 16), ("c", "optional", 12), ("d", "exact", 8)],
    ),
    _table(3, "selected", [("a", "exact", 8)], profile=0),
    _table(4, "indirect", [("a", "exact", 8)], profile=1),
    _table(5, "constant", [("a", "exact", 8)], const_entries=True),
    _table(6, "idle", [("a", "exact", 8)], idle_timeout=True),
    _table(7, "small", [("a", "exact", 8)], size=2, const_default=True),
)

PROGRAM = Program(
    name="test",
    actions=ACTIONS,
    tables=TABLES,
    profiles=(ActionProfile(0, "selector", 16, True), ActionProfile(1, "profile", 4, False)),
    counters=(CounterArray(0, "counter", 8),),
    meters=(MeterArray(0, "meter", 4, "bytes", None),),
    registers=(RegisterArray(0, "register", 6, 20),),
    digests=(DigestList(0, "digest", (9, 48)),),
    value_sets=(ValueSet(0, "value_set", 2, (16,)),),
)

JSON = b"{test}"

TABLE_ID = {table.name: 0x02000001 + table.id for table in TABLES}
ACTION_ID = {FORWARD: 0x01000001, DROP: 0x01000002, NOP: 0x01000003}
SELECTOR_ID, PROFILE_ID = 0x11000001, 0x11000002
COUNTER_ID, METER_ID, REGISTER_ID, DIGEST_ID, VALUE_SET_ID = (
    0x12000001,
    0x14000001,
    0x16000001,
    0x17000001,
    0x03000001,
)
DIRECT_COUNTER_ID, DIRECT_METER_ID = 0x13000001, 0x15000001

_MATCH_TYPE = {
    "exact": p4i.MatchField.EXACT,
    "lpm": p4i.MatchField.LPM,
    "ternary": p4i.MatchField.TERNARY,
    "range": p4i.MatchField.RANGE,
    "optional": p4i.MatchField.OPTIONAL,
    "valid": p4i.MatchField.EXACT,
}
assert set(_MATCH_TYPE) == set(get_args(MatchKind))


def p4info(program: Program = PROGRAM) -> p4i.P4Info:
    """The P4Info of a program like PROGRAM."""
    info = p4i.P4Info()
    for action in program.actions.values():
        message = info.actions.add()
        _preamble(message, ACTION_ID[action.id], action.name)
        for position, param in enumerate(action.parameters):
            message.params.add(id=position + 1, name=param.name, bitwidth=param.bits)
    for table in program.tables:
        _add_table(info, table)
    for number, profile in enumerate(program.profiles):
        message = info.action_profiles.add(with_selector=profile.selector, size=profile.size)
        _preamble(message, SELECTOR_ID + number, profile.name)
        message.max_group_size = 8 if profile.selector else 0
        message.table_ids.extend(
            TABLE_ID[t.name] for t in program.tables if t.profile == profile.id
        )
    for array in program.counters:
        message = info.counters.add(size=array.size)
        message.spec.unit = p4i.CounterSpec.BOTH
        _preamble(message, COUNTER_ID, array.name)
    for array in program.meters:
        message = info.meters.add(size=array.size)
        message.spec.unit = p4i.MeterSpec.BYTES
        _preamble(message, METER_ID, array.name)
    for array in program.registers:
        message = info.registers.add(size=array.size)
        _preamble(message, REGISTER_ID, array.name)
        message.type_spec.bitstring.bit.bitwidth = array.bits
    for digest in program.digests:
        message = info.digests.add()
        _preamble(message, DIGEST_ID, digest.name)
        message.type_spec.struct.name = "learn_t"
        members = info.type_info.structs["learn_t"].members
        for position, bits in enumerate(digest.bits):
            members.add(name=f"f{position}").type_spec.bitstring.bit.bitwidth = bits
    for value_set in program.value_sets:
        message = info.value_sets.add(size=value_set.size)
        _preamble(message, VALUE_SET_ID, value_set.name)
        for position, bits in enumerate(value_set.bits):
            message.match.add(
                id=position + 1, name=f"f{position}", bitwidth=bits, match_type=p4i.MatchField.EXACT
            )
    for name in ("packet_in", "packet_out"):
        message = info.controller_packet_metadata.add()
        _preamble(message, 0x04000001 if name == "packet_in" else 0x04000002, name)
        message.metadata.add(id=1, name="port", bitwidth=9)
        message.metadata.add(id=2, name="pad", bitwidth=7)
    return info


def config(
    cookie: int | None = None, json: bytes = JSON, program: Program = PROGRAM
) -> p4r.ForwardingPipelineConfig:
    """A forwarding-pipeline config."""
    message = p4r.ForwardingPipelineConfig(p4info=p4info(program), p4_device_config=json)
    if cookie is not None:
        message.cookie.cookie = cookie
    return message


def _add_table(info: p4i.P4Info, table: Table) -> None:
    message = info.tables.add(size=table.size, is_const_table=table.const_entries)
    _preamble(message, TABLE_ID[table.name], table.name)
    for position, field in enumerate(table.key):
        match_type = _MATCH_TYPE[field.match]
        message.match_fields.add(
            id=position + 1, name=field.name, bitwidth=field.bits, match_type=match_type
        )
    for action in table.actions:
        scope = p4i.ActionRef.DEFAULT_ONLY if action == NOP else p4i.ActionRef.TABLE_AND_DEFAULT
        message.action_refs.add(id=ACTION_ID[action], scope=scope)
    if table.profile is not None:
        message.implementation_id = SELECTOR_ID + table.profile
    if table.const_default:
        message.const_default_action_id = ACTION_ID[NOP]
    if table.idle_timeout:
        message.idle_timeout_behavior = p4i.Table.NOTIFY_CONTROL
    if table.counter:
        message.direct_resource_ids.append(DIRECT_COUNTER_ID)
        counter = info.direct_counters.add(direct_table_id=message.preamble.id)
        counter.spec.unit = p4i.CounterSpec.BOTH
        _preamble(counter, DIRECT_COUNTER_ID, table.counter)
    if table.meter:
        message.direct_resource_ids.append(DIRECT_METER_ID)
        meter = info.direct_meters.add(direct_table_id=message.preamble.id)
        meter.spec.unit = p4i.MeterSpec.BYTES
        _preamble(meter, DIRECT_METER_ID, table.meter)


def _preamble(message: object, number: int, name: str) -> None:
    message.preamble.id = number  # type: ignore[attr-defined]
    message.preamble.name = message.preamble.alias = name  # type: ignore[attr-defined]

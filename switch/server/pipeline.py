"""The pipeline index: what a P4Info names, checked against the program that the JSON describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from finsy.proto import p4i, p4r, p4t

from switch.program import Action, MatchKind, Program, Table
from switch.server.device_config import device_json
from switch.server.errors import invalid
from switch.server.p4data import DataCodec

_MATCH_KINDS: dict[int, tuple[MatchKind, ...]] = {
    p4i.MatchField.EXACT: ("exact", "valid"),
    p4i.MatchField.LPM: ("lpm",),
    p4i.MatchField.TERNARY: ("ternary",),
    p4i.MatchField.RANGE: ("range",),
    p4i.MatchField.OPTIONAL: (
        "optional",
        "ternary",
    ),  # p4c writes optional as ternary into the JSON
}
"""P4Info's match types -> how clients write them, then other names that the JSON may use for the same bytes."""


@dataclass(frozen=True, slots=True)
class Field:
    """A match field, an action parameter or a packet metadata field."""

    id: int
    name: str
    bits: int
    """Width in the data plane (a translated type may be wider in P4Info)."""


@dataclass(frozen=True, slots=True)
class MatchField(Field):
    """A field of a table's key."""

    kind: MatchKind


@dataclass(frozen=True, slots=True)
class ActionInfo:
    """An action as one table (or profile) may use it."""

    id: int
    name: str
    params: tuple[Field, ...]
    scope: int
    """p4i.ActionRef.Scope: in entries, as the default, or both."""


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table."""

    id: int
    name: str
    fields: tuple[MatchField, ...]
    """In the order of the data plane's key."""
    actions: dict[int, ActionInfo]
    const_default: bool
    is_const: bool
    profile: int
    """P4Info id of the action profile, 0 for a direct table."""
    counter: int
    """P4Info id of the direct counter, 0 if there is none."""
    meter: int
    """P4Info id of the direct meter, 0 if there is none."""
    idle_timeout: bool

    @property
    def needs_priority(self) -> bool:
        """Whether entries are told apart by priority."""
        return any(field.kind in ("ternary", "optional", "range") for field in self.fields)


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """An action profile or selector."""

    id: int
    name: str
    selector: bool
    size: int
    max_group_size: int
    """0 if the program sets no limit."""
    counts_members: bool
    """Whether sizes count members rather than the sum of their weights."""
    max_member_weight: int
    weights_disallowed: bool
    actions: dict[int, ActionInfo]


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """An indirect counter, meter or register array."""

    id: int
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class RegisterInfo(ArrayInfo):
    """A register array and the type of its cells."""

    bits: int
    type_spec: p4t.P4DataTypeSpec


@dataclass(frozen=True, slots=True)
class DigestInfo:
    """A digest."""

    id: int
    name: str
    bits: tuple[int, ...]
    type_spec: p4t.P4DataTypeSpec


@dataclass(frozen=True, slots=True)
class ValueSetInfo:
    """A parser value set."""

    id: int
    name: str
    size: int
    fields: tuple[MatchField, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One forwarding-pipeline config, ready for look-up by P4Info id."""

    config: p4r.ForwardingPipelineConfig
    """As the client sent it."""
    json: bytes
    """The BMv2 JSON inside."""
    tables: dict[int, TableInfo]
    profiles: dict[int, ProfileInfo]
    counters: dict[int, ArrayInfo]
    meters: dict[int, ArrayInfo]
    registers: dict[int, RegisterInfo]
    digests: dict[int, DigestInfo]
    value_sets: dict[int, ValueSetInfo]
    packet_in: tuple[Field, ...]
    packet_out: tuple[Field, ...]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class _Array(_Named, Protocol):
    @property
    def size(self) -> int: ...


_T = TypeVar("_T", bound=_Named)
_A = TypeVar("_A", bound=_Array)


def build(config: p4r.ForwardingPipelineConfig, check: Callable[[bytes], Program]) -> Pipeline:
    """Index a config; `check` compiles the JSON. Raises INVALID_ARGUMENT if P4Info and JSON are not of one program,
    and whatever `check` raises."""
    json = device_json(config.p4_device_config)
    if not json:
        raise invalid("p4_device_config is empty; it carries the BMv2 JSON")
    program, info = check(json), config.p4info
    scopes, types = _Scopes(info, program), DataCodec(info.type_info)
    return Pipeline(
        config=config,
        json=json,
        tables={t.preamble.id: scopes.table(t) for t in info.tables},
        profiles={p.preamble.id: scopes.profile(p) for p in info.action_profiles},
        counters={c.preamble.id: _array(c, program.counters, "counter") for c in info.counters},
        meters={m.preamble.id: _array(m, program.meters, "meter") for m in info.meters},
        registers={r.preamble.id: _register(r, program, types) for r in info.registers},
        digests={d.preamble.id: _digest(d, program, types) for d in info.digests},
        value_sets={v.preamble.id: _value_set(v, program) for v in info.value_sets},
        packet_in=_controller_header(info, "packet_in"),
        packet_out=_controller_header(info, "packet_out"),
    )


class _Scopes:
    """Resolves actions of tables and profiles."""

    def __init__(self, info: p4i.P4Info, program: Program) -> None:
        self._info = info
        self._program = program
        self._tables = {t.name: t for t in program.tables}
        self._actions = program.actions
        self._p4info_actions = {a.preamble.id: a for a in info.actions}
        self._p4info_tables = {t.preamble.id: t for t in info.tables}
        self._profiles = {p.preamble.id for p in info.action_profiles}
        self._counters = {c.preamble.id for c in info.direct_counters}
        self._meters = {m.preamble.id for m in info.direct_meters}

    def table(self, table: p4i.Table) -> TableInfo:
        name = table.preamble.name
        known = self._known(name)
        if len(known.key) != len(table.match_fields):
            raise invalid(
                f"table {name}: P4Info has {len(table.match_fields)} match fields, the JSON {len(known.key)}"
            )
        if table.implementation_id and table.implementation_id not in self._profiles:
            raise invalid(
                f"table {name}: P4Info has no action profile {table.implementation_id:#010x}"
            )
        resources = list(table.direct_resource_ids)
        return TableInfo(
            id=table.preamble.id,
            name=name,
            fields=_match_fields(name, table.match_fields, known),
            actions=self.actions(table, known),
            const_default=bool(table.const_default_action_id),
            is_const=table.is_const_table,
            profile=table.implementation_id,
            counter=next((r for r in resources if r in self._counters), 0),
            meter=next((r for r in resources if r in self._meters), 0),
            idle_timeout=table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
        )

    def profile(self, profile: p4i.ActionProfile) -> ProfileInfo:
        name = profile.preamble.name
        _find(name, self._program.profiles, "action profile")
        tables = [self._p4info_tables[t] for t in profile.table_ids if t in self._p4info_tables]
        actions = self.actions(tables[0], self._known(tables[0].preamble.name)) if tables else {}
        return ProfileInfo(
            id=profile.preamble.id,
            name=name,
            selector=profile.with_selector,
            size=profile.size,
            max_group_size=profile.max_group_size,
            counts_members=profile.HasField("sum_of_members"),
            max_member_weight=profile.sum_of_members.max_member_weight,
            weights_disallowed=profile.weights_disallowed,
            actions=actions,
        )

    def actions(self, table: p4i.Table, known: Table) -> dict[int, ActionInfo]:
        named = {self._actions[a].name: self._actions[a] for a in known.actions}
        return {ref.id: self._action(ref, table.preamble.name, named) for ref in table.action_refs}

    def _action(self, ref: p4i.ActionRef, table: str, named: dict[str, Action]) -> ActionInfo:
        action = self._p4info_actions.get(ref.id)
        if action is None:
            raise invalid(f"table {table}: action {ref.id:#010x} is not among P4Info's actions")
        name = action.preamble.name
        known = named.get(name)
        if known is None or len(known.parameters) != len(action.params):
            raise invalid(
                f"table {table}: the JSON has no such action {name}; P4Info and JSON are of one compilation?"
            )
        params = tuple(
            Field(p.id, f"{name}.{p.name}", _width(p, k.bits, name))
            for p, k in zip(action.params, known.parameters, strict=True)
        )
        return ActionInfo(ref.id, name, params, ref.scope)

    def _known(self, name: str) -> Table:
        if name not in self._tables:
            raise invalid(f"the JSON has no table {name}; P4Info and JSON are of one compilation?")
        return self._tables[name]


def _match_fields(
    table: str, fields: Iterable[p4i.MatchField], known: Table
) -> tuple[MatchField, ...]:
    """P4Info's fields in the JSON's order."""
    listed = list(fields)
    by_name = {f.name: f for f in listed}
    if set(by_name) == {k.name for k in known.key} and len(by_name) == len(listed):
        listed = [by_name[k.name] for k in known.key]
    result = []
    for field, key in zip(listed, known.key, strict=True):
        kinds = _MATCH_KINDS.get(field.match_type, ())
        if key.match not in kinds:
            raise invalid(
                f"table {table}: field {field.name} is {key.match} in the JSON, but not so in P4Info"
            )
        result.append(
            MatchField(field.id, f"{table}: {field.name}", _width(field, key.bits, table), kinds[0])
        )
    return tuple(result)


def _width(field: p4i.MatchField | p4i.Action.Param, bits: int, owner: str) -> int:
    if field.HasField("type_name") and not field.bitwidth:
        raise invalid(
            f"{owner}: {field.name} is translated to a string, which this switch cannot do"
        )
    return bits


def _find(name: str, known: Iterable[_T], what: str) -> _T:
    for item in known:
        if item.name == name:
            return item
    raise invalid(f"the JSON has no {what} {name}; P4Info and JSON are of one compilation?")


def _array(array: p4i.Counter | p4i.Meter, known: Iterable[_A], what: str) -> ArrayInfo:
    found = _find(array.preamble.name, known, what)
    return ArrayInfo(array.preamble.id, found.name, found.size)


def _register(register: p4i.Register, program: Program, types: DataCodec) -> RegisterInfo:
    known = _find(register.preamble.name, program.registers, "register")
    _check_widths(known.name, types.widths(register.type_spec), (known.bits,))
    return RegisterInfo(
        register.preamble.id, known.name, known.size, known.bits, register.type_spec
    )


def _digest(digest: p4i.Digest, program: Program, types: DataCodec) -> DigestInfo:
    known = _find(digest.preamble.name, program.digests, "digest")
    _check_widths(known.name, types.widths(digest.type_spec), known.bits)
    return DigestInfo(digest.preamble.id, known.name, known.bits, digest.type_spec)


def _value_set(value_set: p4i.ValueSet, program: Program) -> ValueSetInfo:
    known = _find(value_set.preamble.name, program.value_sets, "value set")
    _check_widths(known.name, tuple(f.bitwidth for f in value_set.match), known.bits)
    fields = []
    for field, bits in zip(value_set.match, known.bits, strict=True):
        kinds = _MATCH_KINDS.get(field.match_type)
        if kinds is None:
            raise invalid(f"value set {known.name}: match type of field {field.id} is not known")
        fields.append(MatchField(field.id, f"{known.name}: field {field.id}", bits, kinds[0]))
    return ValueSetInfo(value_set.preamble.id, known.name, known.size, tuple(fields))


def _check_widths(name: str, p4info: tuple[int, ...], json: tuple[int, ...]) -> None:
    if p4info != json:
        raise invalid(f"{name}: its fields have {p4info} bits in P4Info and {json} in the JSON")


def _controller_header(info: p4i.P4Info, name: str) -> tuple[Field, ...]:
    for header in info.controller_packet_metadata:
        if header.preamble.name == name:
            if any(m.bitwidth <= 0 for m in header.metadata):
                raise invalid(f"{name}: a metadata field has no width")
            return tuple(Field(m.id, m.name, m.bitwidth) for m in header.metadata)
    return ()

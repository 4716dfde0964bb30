"""BMv2 JSON -> the checked description of a program (the generator's input, and what the server may ask about)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

MatchKind = Literal["exact", "lpm", "ternary", "optional", "range", "valid"]


class UnsupportedProgram(Exception):
    """The program uses something this switch does not do: says what and at which source line."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of an action."""

    name: str
    bits: int


@dataclass(frozen=True)
class Action:
    """An action. Ids are the JSON's; several actions may share one name."""

    id: int
    name: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class KeyField:
    """One field of a table's key."""

    name: str
    """The @name or the path in the P4 source, as in p4info."""
    match: MatchKind
    bits: int


@dataclass(frozen=True)
class ActionProfile:
    """Members (and, with a selector, groups) that tables share."""

    id: int
    name: str
    size: int
    selector: bool


@dataclass(frozen=True)
class Table:
    """A match-action table."""

    id: int
    """Position in `Program.tables`."""
    name: str
    key: tuple[KeyField, ...]
    size: int
    actions: tuple[int, ...]
    """Ids into `Program.actions`."""
    profile: int | None
    """Index into `Program.profiles` of an indirect table."""
    const_entries: bool
    """Entries are fixed in the source: no writes."""
    const_default: bool
    """The default action may not be replaced."""
    counter: str | None
    """Name of the direct counter."""
    meter: str | None
    """Name of the direct meter."""
    idle_timeout: bool
    source: str
    """`file:line` in the P4 source."""

    @property
    def needs_priority(self) -> bool:
        """Whether entries are ordered by priority (ternary, optional or range fields)."""
        return any(field.match in ("ternary", "optional", "range") for field in self.key)


@dataclass(frozen=True)
class CounterArray:
    """An indirect counter."""

    id: int
    name: str
    size: int


@dataclass(frozen=True)
class MeterArray:
    """A meter; `table` names the table of a direct meter."""

    id: int
    name: str
    size: int
    unit: Literal["bytes", "packets"]
    table: str | None


@dataclass(frozen=True)
class RegisterArray:
    """A register array."""

    id: int
    name: str
    size: int
    bits: int


@dataclass(frozen=True)
class DigestList:
    """A digest: the bits of each field."""

    id: int
    name: str
    bits: tuple[int, ...]


@dataclass(frozen=True)
class ValueSet:
    """A parser value set: the bits of each field of its select key."""

    id: int
    name: str
    size: int
    bits: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A checked program."""

    name: str
    actions: dict[int, Action]
    tables: tuple[Table, ...]
    profiles: tuple[ActionProfile, ...]
    counters: tuple[CounterArray, ...]
    meters: tuple[MeterArray, ...]
    registers: tuple[RegisterArray, ...]
    digests: tuple[DigestList, ...]
    value_sets: tuple[ValueSet, ...]


def source_line(item: dict[str, Any]) -> str:
    """`file:line` of a JSON object's source_info, or the object's name where p4c gives none."""
    info = item.get("source_info")
    if isinstance(info, dict) and "line" in info:
        return f"{info.get('filename', '?')}:{info['line']}"
    return f"(no source line; {item.get('name', 'unnamed')})"


def unsupported(what: str, item: dict[str, Any]) -> UnsupportedProgram:
    """The refusal for a construct, with where it stands in the source."""
    fragment = (item.get("source_info") or {}).get("source_fragment")
    return UnsupportedProgram(
        f"{source_line(item)}: {what} is not supported" + (f": {fragment}" if fragment else "")
    )


@dataclass(frozen=True)
class _Fields:
    """Widths of all fields, to size keys and digests."""

    types: dict[str, dict[str, int]]
    headers: dict[str, str]

    def bits(self, reference: Any) -> int:
        header, field = reference
        if field == "$valid$":
            return 1
        return self.types[self.headers[header]][field]


def parse(text: bytes) -> tuple[Program, dict[str, Any]]:
    """The description of a BMv2 JSON and the decoded JSON itself.

    Raises ValueError when the text is not a BMv2 JSON, UnsupportedProgram when it needs what this switch lacks.
    """
    try:
        root = json.loads(text)
    except RecursionError as error:
        raise ValueError("not a BMv2 JSON: nested too deeply") from error
    if not isinstance(root, dict) or "pipelines" not in root or "header_types" not in root:
        raise ValueError("not a BMv2 JSON: it has no 'pipelines' or no 'header_types'")
    version = root.get("__meta__", {}).get("version", [2, 0])
    if version[0] != 2:
        raise ValueError(
            f"BMv2 JSON version {version[0]}.{version[1]}: this switch reads version 2"
        )
    for instance in root.get("extern_instances", []):
        raise unsupported(f"extern {instance.get('type')} {instance.get('name')}", instance)
    try:
        _check_numbers(root)
        _complete(root)
        return _describe(root), root
    except (
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        StopIteration,
        RecursionError,
    ) as error:
        raise ValueError(f"not a well-formed BMv2 JSON: {type(error).__name__} {error}") from error


_NUMBERS = (
    "id",
    "size",
    "max_size",
    "bitwidth",
    "compressed_bitwidth",
    "action_id",
    "max_length",
    "rate_count",
    "priority",
    "prefix_length",
)
_NUMBER_LISTS = ("action_ids", "header_ids", "header_union_ids")
MAX_SIZE = 1 << 26
"""Most cells of an array, entries of a table."""


def _check_numbers(node: Any) -> None:
    """What the generator writes into C as a number must be one, and no array larger than memory. A JSON comes from
    anyone who may set a pipeline."""
    if isinstance(node, list):
        for item in node:
            _check_numbers(item)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in _NUMBERS and value is not None:
            _number(value, key)
        elif key in _NUMBER_LISTS:
            for item in value:
                _number(item, key)
        elif key == "errors" or (key == "fields" and "name" in node):
            for item in value:
                if not (item[1] == "*" and key == "fields"):
                    _number(item[1], key)
        elif key == "value" and node.get("type") == "lookahead":
            for item in value:
                _number(item, "lookahead")
        elif key == "parameters" and node.get("op") == "shift":
            _number(value[0], "shift")
        _check_numbers(value)


def _number(value: Any, what: str) -> None:
    if type(value) is not int or value < 0:
        raise ValueError(f"not a well-formed BMv2 JSON: {what} is {value!r}, not a number")
    if value > MAX_SIZE and what in ("size", "max_size"):
        raise UnsupportedProgram(f"a {what} of {value} is not supported (at most {MAX_SIZE})")
    if value >= 1 << 31:
        raise ValueError(f"not a well-formed BMv2 JSON: {what} is {value}")


def _complete(root: dict[str, Any]) -> None:
    """Older JSONs name a table's actions without their ids."""
    ids = {a["name"]: a["id"] for a in reversed(root["actions"])}
    for pipeline in root["pipelines"]:
        for table in pipeline["tables"]:
            table.setdefault("action_ids", [ids[name] for name in table["actions"]])


def _describe(root: dict[str, Any]) -> Program:
    fields = _Fields(
        {
            t["name"]: {f[0]: f[1] if isinstance(f[1], int) else 0 for f in t["fields"]}
            for t in root["header_types"]
        },
        {h["name"]: h["header_type"] for h in root["headers"]},
    )
    actions = {
        a["id"]: Action(
            a["id"],
            a["name"],
            tuple(Parameter(p["name"], p["bitwidth"]) for p in a.get("runtime_data", [])),
        )
        for a in root["actions"]
    }
    profiles = [p for pipeline in root["pipelines"] for p in pipeline.get("action_profiles", [])]
    profile_ids = {p["name"]: i for i, p in enumerate(profiles)}
    direct_counters = {
        c["binding"]: c["name"] for c in root.get("counter_arrays", []) if c.get("is_direct")
    }
    tables = [t for pipeline in root["pipelines"] for t in pipeline["tables"]]
    return Program(
        name=root.get("program", "program"),
        actions=actions,
        tables=tuple(
            _table(i, t, fields, profile_ids, direct_counters) for i, t in enumerate(tables)
        ),
        profiles=tuple(
            ActionProfile(i, p["name"], p.get("max_size", 0), "selector" in p)
            for i, p in enumerate(profiles)
        ),
        counters=tuple(
            CounterArray(i, c["name"], c["size"])
            for i, c in enumerate(
                c for c in root.get("counter_arrays", []) if not c.get("is_direct")
            )
        ),
        meters=tuple(
            MeterArray(
                i, m["name"], m["size"], m["type"], m.get("binding") if m.get("is_direct") else None
            )
            for i, m in enumerate(root.get("meter_arrays", []))
        ),
        registers=tuple(
            RegisterArray(i, r["name"], r["size"], r["bitwidth"])
            for i, r in enumerate(root.get("register_arrays", []))
        ),
        digests=tuple(
            DigestList(i, d["name"], tuple(fields.bits(e["value"]) for e in d["elements"]))
            for i, d in enumerate(root.get("learn_lists", []))
        ),
        value_sets=_value_sets(root, fields),
    )


def _table(
    index: int,
    table: dict[str, Any],
    fields: _Fields,
    profiles: dict[str, int],
    direct_counters: dict[str, str],
) -> Table:
    if table["type"] not in ("simple", "indirect", "indirect_ws"):
        raise unsupported(f"table type {table['type']} of {table['name']}", table)
    key = []
    for part in table["key"]:
        valid = part["match_type"] == "valid"
        target = part["target"]
        if isinstance(target, dict):
            what = part.get("name") or target["type"]
            raise unsupported(f"an expression as a key ({what} of table {table['name']})", table)
        name = part.get("name") or (target if isinstance(target, str) else ".".join(target))
        key.append(
            KeyField(
                name, "exact" if valid else part["match_type"], 8 if valid else fields.bits(target)
            )
        )
    entries = table.get("entries")
    default = table.get("default_entry") or {}
    profile: Any = table.get("action_profile") or table.get("act_prof_name")
    return Table(
        id=index,
        name=table["name"],
        key=tuple(key),
        size=len(entries)
        if entries is not None and not _mutable(table)
        else table.get("max_size", 1024),
        actions=tuple(table["action_ids"]),
        profile=None if table["type"] == "simple" else profiles[profile],
        const_entries=entries is not None and not _mutable(table),
        const_default=bool(default.get("action_const")),
        counter=direct_counters.get(table["name"]) if table.get("with_counters") else None,
        meter=table.get("direct_meters"),
        idle_timeout=bool(table.get("support_timeout")),
        source=source_line(table),
    )


def _mutable(table: dict[str, Any]) -> bool:
    """p4c marks entries that are not const (`entries = {...}`) by `is_const` false on each."""
    entries = table.get("entries") or []
    return bool(entries) and all(entry.get("is_const") is False for entry in entries)


def _value_sets(root: dict[str, Any], fields: _Fields) -> tuple[ValueSet, ...]:
    keys: dict[str, tuple[int, ...]] = {}
    for parser in root["parsers"]:
        for state in parser["parse_states"]:
            for transition in state["transitions"]:
                if transition.get("type") == "parse_vset":
                    keys[transition["value"]] = tuple(
                        _select_bits(root, part, fields) for part in state["transition_key"]
                    )
    return tuple(
        ValueSet(
            i, v["name"], v.get("max_size", 0), keys.get(v["name"], (v["compressed_bitwidth"],))
        )
        for i, v in enumerate(root.get("parse_vsets", []))
    )


def _select_bits(root: dict[str, Any], part: dict[str, Any], fields: _Fields) -> int:
    """Width of one field of a select key."""
    value = part["value"]
    if part["type"] == "lookahead":
        return int(value[1])
    if part["type"] == "field":
        return fields.bits(value)
    if part["type"] == "stack_field":
        kind = next(s["header_type"] for s in root["header_stacks"] if s["name"] == value[0])
        return fields.types[kind][value[1]]
    union = next(s["union_type"] for s in root["header_union_stacks"] if s["name"] == value[0])
    members = next(dict(u["headers"]) for u in root["header_union_types"] if u["name"] == union)
    return fields.types[members[value[1]]][value[2]]

"""Reads .stf files, p4c's language for tests of a switch: entries, packets, and what must come out.

add TABLE [PRIORITY] FIELD:VALUE ... ACTION(PARAM:VALUE, ...) [= NAME]
setdefault TABLE ACTION(PARAM:VALUE, ...)
packet PORT HEX...                  expect PORT [HEX... [$]]      (* is any digit, $ is the end)
mirroring_add SESSION PORT          mirroring_add_mc SESSION GROUP
mc_mgrp_create GROUP                mc_node_create RID PORT...    mc_node_associate GROUP NODE
meter_set_rates METER INDEX RATE:BURST RATE:BURST                 meter_array_set_rates ...
register_write REGISTER INDEX VALUE                               register_reset REGISTER
check_counter COUNTER(INDEX) packets|bytes ==|!=|<|<=|>|>= NUMBER
wait, no_packet, and reads whose result p4c does not look at either
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


class StfError(Exception):
    """A line that is not STF: file, line and what is wrong."""


@dataclass(frozen=True)
class Add:
    """`add`: values are still text, because their meaning depends on the key."""

    table: str
    priority: int | None
    match: tuple[tuple[str, str], ...]
    action: str
    params: dict[str, int]


@dataclass(frozen=True)
class SetDefault:
    """`setdefault`."""

    table: str
    action: str
    params: dict[str, int]


@dataclass(frozen=True)
class Packet:
    """`packet`."""

    port: int
    data: bytes


@dataclass(frozen=True)
class Expect:
    """`expect`: hex digits with * and a closing $; None where any packet will do."""

    port: int
    data: str | None


@dataclass(frozen=True)
class CheckCounter:
    """`check_counter`."""

    counter: str
    index: int
    unit: str
    condition: str
    number: int


@dataclass(frozen=True)
class Direct:
    """A command with plain arguments: mirroring_*, mc_*, meter_*, register_*."""

    name: str
    arguments: tuple[str, ...]


Statement = Add | SetDefault | Packet | Expect | CheckCounter | Direct

_CALL = re.compile(r"(?P<action>[\w.$\[\]]+)\s*\((?P<params>[^)]*)\)\s*(=\s*\S+)?$")
_COUNTER = re.compile(
    r"(?P<name>[\w.$\[\]]+)\s*\(\s*(?P<index>[\w$]+)\s*\)"
    r"(\s*(?P<unit>packets|bytes)\s*(?P<condition>==|!=|<=|>=|<|>)\s*(?P<number>\w+))?$"
)
_READS = {
    "mirroring_get", "counter_read", "register_read", "meter_get_rates", "wait", "no_packet",
}  # fmt: skip
_DIRECT = {
    "mirroring_add", "mirroring_add_mc", "mc_mgrp_create", "mc_node_create", "mc_node_associate",
    "meter_set_rates", "meter_array_set_rates", "register_write", "register_reset",
}  # fmt: skip


def number(text: str) -> int:
    """A decimal, 0x or 0b constant (leading zeros are decimal)."""
    return int(text, 0 if text[:2].lower() in ("0x", "0b", "0o") else 10)


def read(path: Path) -> list[Statement]:
    """The statements of a file, in order; raises StfError."""
    statements = []
    for line, text in enumerate(path.read_text().splitlines(), 1):
        text = text.split("#")[0].strip()
        try:
            if text and (statement := _statement(text)) is not None:
                statements.append(statement)
        except (ValueError, KeyError) as error:
            raise StfError(f"{path.name}:{line}: {error}: {text}") from error
    return statements


def _statement(text: str) -> Statement | None:
    word, _, rest = text.partition(" ")
    word, rest = word.lower(), rest.strip()
    if word == "packet":
        port, _, data = rest.partition(" ")
        return Packet(int(port), bytes.fromhex("".join(data.split())))
    if word == "expect":
        port, _, data = rest.partition(" ")
        return Expect(int(port), "".join(data.split()).lower() or None)
    if word == "add":
        return _add(rest)
    if word == "setdefault":
        table, _, call = rest.partition(" ")
        return SetDefault(table, *_call(call))
    if word == "check_counter":
        return _check_counter(rest)
    if word in _READS:
        return None
    if word in _DIRECT:
        return Direct(word, tuple(rest.split()))
    raise ValueError("not a statement that this runner knows")


def _call(text: str) -> tuple[str, dict[str, int]]:
    call = _CALL.match(text.strip())
    if call is None:
        raise ValueError("no ACTION(...)")
    pairs = (pair.split(":") for pair in call["params"].split(",") if pair.strip())
    return call["action"], {name.strip(): number(value.strip()) for name, value in pairs}


def _add(text: str) -> Add:
    table, *words = text.split()
    priority = int(words.pop(0)) if words[0].isdigit() else None
    match = []
    while words and re.fullmatch(r"[\w.$\[\]\"]+:[\w*/]+", words[0]):
        field, value = words.pop(0).rsplit(":", 1)
        match.append((field.strip('"'), value))
    return Add(table, priority, tuple(match), *_call(" ".join(words)))


def _check_counter(text: str) -> CheckCounter:
    check = _COUNTER.match(text)
    if check is None:
        raise ValueError("not COUNTER(INDEX) packets|bytes CONDITION NUMBER")
    return CheckCounter(
        check["name"],
        number(check["index"]),
        check["unit"] or "packets",
        check["condition"] or "==",
        number(check["number"] or "0"),
    )

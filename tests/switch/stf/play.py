"""Plays the statements of an .stf file on a switch and says how what came out differs from what it expects."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.switch.drive.commands import (
    Call,
    CannotDo,
    CloneSession,
    Command,
    Default,
    Entry,
    Frame,
    Match,
    MeterRates,
    Multicast,
    RegisterWrite,
    Switch,
)
from tests.switch.drive.program import Table, array_sizes, tables
from tests.switch.stf.language import (
    Add,
    CheckCounter,
    Direct,
    Expect,
    Packet,
    SetDefault,
    Statement,
    StfError,
    number,
)

CONDITIONS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Script:
    """An .stf file resolved against the program it tests."""

    def __init__(self, statements: Sequence[Statement], json: Path) -> None:
        self.statements = statements
        self._tables = tables(json)
        self._meters = array_sizes(json, "meter_arrays")
        self._registers = array_sizes(json, "register_arrays")
        self._counters = array_sizes(json, "counter_arrays")
        self._groups: dict[int, list[tuple[int, int]]] = {}
        self._nodes: list[list[tuple[int, int]]] = []

    def play(self, switch: Switch) -> list[str]:
        """The differences; raises StfError, Refused (see `drive`)."""
        out: dict[int, list[bytes]] = {}
        expected: dict[int, list[str | None]] = {}
        wrong: list[str] = []
        packets: list[Frame] = []
        for statement in self.statements:
            if isinstance(statement, Packet):
                packets.append((statement.port, statement.data))
                continue
            if isinstance(statement, Expect):
                expected.setdefault(statement.port, []).append(statement.data)
                continue
            _collect(switch, packets, out)
            if isinstance(statement, CheckCounter):
                wrong += self._check_counter(switch, statement)
            else:
                for command in self._commands(statement):
                    try:
                        switch.tell(command)
                    except CannotDo:
                        # Registers on BMv2, which the samples set only to read them back.
                        if not isinstance(command, RegisterWrite):
                            raise
        _collect(switch, packets, out)
        return wrong + list(differences(expected, out))

    # -- statements to commands

    def _commands(self, statement: Statement) -> Iterator[Command]:
        match statement:
            case Add():
                table = self._table(statement.table)
                fields = dict(_key_match(table, *pair) for pair in statement.match)
                exact = {
                    name for name, (kind, _) in table.key.items() if kind in ("exact", "valid")
                }
                yield Entry(
                    table.name,
                    {name: Match(0) for name in exact - fields.keys()} | fields,
                    Call(_resolve(statement.action, table.actions, "action"), statement.params),
                    (statement.priority or 0) + 1,
                )
            case SetDefault():
                table = self._table(statement.table)
                action = _resolve(statement.action, table.actions, "action")
                yield Default(table.name, Call(action, statement.params))
            case Direct():
                yield from self._direct(statement.name, statement.arguments)

    def _table(self, name: str) -> Table:
        return self._tables[_resolve(name, self._tables, "table")]

    def _direct(self, name: str, arguments: tuple[str, ...]) -> Iterator[Command]:
        if name == "mirroring_add":
            yield CloneSession(int(arguments[0]), ((int(arguments[1]), 0),))
        elif name == "mirroring_add_mc":
            yield CloneSession(int(arguments[0]), tuple(self._groups[int(arguments[1])]))
        elif name == "mc_mgrp_create":
            self._groups[int(arguments[0])] = []
        elif name == "mc_node_create":
            self._nodes.append([(int(port), int(arguments[0])) for port in arguments[1:]])
        elif name == "mc_node_associate":
            # A group is complete when its last node is; create it anew under the same number.
            group = int(arguments[0])
            self._groups[group] += self._nodes[int(arguments[1])]
            yield Multicast(group, tuple(self._groups[group]))
        elif name.startswith("meter_"):
            meter = _resolve(arguments[0], self._meters, "meter")
            single = name == "meter_set_rates"
            rates = [pair.split(":") for pair in arguments[2 if single else 1 :]]
            # simple_switch_CLI counts per microsecond.
            (cir, cburst), (pir, pburst) = ((round(float(r) * 1e6), int(b)) for r, b in rates)
            for index in [int(arguments[1])] if single else range(self._meters[meter]):
                yield MeterRates(meter, index, cir, cburst, pir, pburst)
        else:
            register = _resolve(arguments[0], self._registers, "register")
            if name == "register_write":
                yield RegisterWrite(register, int(arguments[1]), number(arguments[2]))
            else:
                for index in range(self._registers[register]):
                    yield RegisterWrite(register, index, 0)

    def _check_counter(self, switch: Switch, check: CheckCounter) -> Iterator[str]:
        name = _resolve(check.counter, self._counters, "counter")
        packets, octets = switch.counter(name)[check.index]
        count = packets if check.unit == "packets" else octets
        if not CONDITIONS[check.condition](count, check.number):
            yield (
                f"counter {name}[{check.index}] has {count} {check.unit}, "
                f"not {check.condition} {check.number}"
            )


def _collect(switch: Switch, packets: list[Frame], out: dict[int, list[bytes]]) -> None:
    if packets:
        for frames in switch.play(packets).frames:
            for port, frame in frames:
                out.setdefault(port, []).append(frame)
        packets.clear()


def _resolve(name: str, known: Iterable[str], what: str) -> str:
    """The one known name that is or ends with `name`, as p4c's runner resolves them."""
    known = list(known)
    if name in known:
        return name
    found = [each for each in known if each.endswith(name)]
    if len(found) != 1:
        raise StfError(f"{what} {name}: {'ambiguous' if found else 'none such'} among {known}")
    return found[0]


def _key_match(table: Table, name: str, value: str) -> tuple[str, Match]:
    field = _key_field(table, name)
    kind, bits = table.key[field]
    if kind == "lpm":
        if "/" in value:
            base, prefix = value.split("/")
            return field, Match(number(base), prefix=int(prefix))
        per_digit = {"0x": 4, "0b": 1}.get(value[:2].lower())
        if per_digit is None:
            return field, Match(number(value))
        # Without a length the digits written count, as in p4c's runner.
        digits = len(value) - 2 - value.count("*")
        return field, Match(number(value.replace("*", "0")), prefix=min(bits, digits * per_digit))
    if kind == "ternary":
        mask = "f" if value[:2].lower() == "0x" else "1"
        if value[:2].lower() not in ("0x", "0b"):
            return field, Match(number(value))
        mask = value[:2] + "".join("0" if d == "*" else mask for d in value[2:])
        return field, Match(number(value.replace("*", "0")), mask=number(mask))
    return field, Match(number(value))


def _key_field(table: Table, name: str) -> str:
    name = table_index(name)
    candidates = [name, f"{name}$", f"{name}.$valid$"]
    if name.endswith(".valid"):
        candidates.append(name[:-5] + "$valid$")
    if name == "valid":
        candidates.append("$valid$")
    for each in candidates:
        if each in table.key:
            return each
    for field in table.key:
        if field.endswith((f".{name}", f".{name}$")) or (
            name == "valid" and field.endswith(".$valid$")
        ):
            return field
    raise StfError(f"table {table.name} has no key field {name}, only {list(table.key)}")


def table_index(name: str) -> str:
    """p4c's runner writes extra$0.h for extra[0].h."""
    head, dollar, tail = name.partition("$")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    return f"{head}[{digits}]{tail[len(digits) :]}" if dollar and digits else name


def differences(
    expected: dict[int, list[str | None]], out: dict[int, list[bytes]]
) -> Iterator[str]:
    """What came out against what was expected, port by port."""
    for port in sorted(expected.keys() | out.keys()):
        wanted, got = expected.get(port, []), out.get(port, [])
        if len(wanted) != len(got):
            yield f"port {port}: {len(got)} packets, expected {len(wanted)}"
            continue
        for place, (want, have) in enumerate(zip(wanted, got, strict=True)):
            if want is not None and not matches(want, have):
                yield f"port {port}, packet {place}: {have.hex()}, expected {want}"


def matches(want: str, have: bytes) -> bool:
    """Whether a packet begins with (or, with $, is) these digits; * is any."""
    digits = have.hex()
    if want.endswith("$"):
        want = want[:-1]
        if len(digits) > len(want):
            return False
    return len(digits) >= len(want) and all(
        w in ("*", d) for w, d in zip(want, digits, strict=False)
    )

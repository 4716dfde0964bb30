"""BMv2 JSON -> the checked description of a program (the generator's input, and what the server may ask about)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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

"""What a test tells a switch, in the names of the BMv2 JSON, and what it hears back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Match:
    """One field of an entry's key; what the field's kind does not use is ignored."""

    value: int
    """The value; the low end of a range."""
    mask: int | None = None
    """Of a ternary field; None is exact."""
    prefix: int | None = None
    """Bits of an lpm field; None is all."""
    high: int | None = None
    """The high end of a range; None is the low end."""


@dataclass(frozen=True)
class Call:
    """An action with its parameters."""

    action: str
    params: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """Inserts a table entry."""

    table: str
    match: dict[str, Match]
    """Field name -> match; an omitted field does not care."""
    does: Call | int
    """An action, or a group of the table's action profile."""
    priority: int = 1
    """The larger wins; only where the table has priorities."""


@dataclass(frozen=True)
class Default:
    """Sets a table's default action."""

    table: str
    does: Call


@dataclass(frozen=True)
class Group:
    """Creates a group of an action profile, each member a new member of weight 1."""

    profile: str
    id: int
    members: tuple[tuple[int, Call], ...]
    """(member id, its action)."""


@dataclass(frozen=True)
class Multicast:
    """Creates a multicast group."""

    id: int
    replicas: tuple[tuple[int, int], ...]
    """(port, replication id)."""


@dataclass(frozen=True)
class CloneSession:
    """Creates a clone session."""

    id: int
    replicas: tuple[tuple[int, int], ...]
    """(port, replication id)."""
    length: int = 0
    """Bytes kept; 0 is all."""


@dataclass(frozen=True)
class MeterRates:
    """Configures one cell of a meter array, in its unit (bytes or packets) per second."""

    meter: str
    index: int
    cir: int
    cburst: int
    pir: int
    pburst: int


@dataclass(frozen=True)
class RegisterWrite:
    """Writes one cell of a register array (BMv2 cannot over P4Runtime)."""

    register: str
    index: int
    value: int


Command = Entry | Default | Group | Multicast | CloneSession | MeterRates | RegisterWrite

Frame = tuple[int, bytes]
"""(port, frame)."""


@dataclass
class Outcome:
    """What came out of a switch for some frames."""

    frames: list[list[Frame]] = field(default_factory=list)
    """For each frame that went in, what left the ports, sorted by port (a port's own order is kept)."""
    packet_ins: list[bytes] = field(default_factory=list)
    """What left by the CPU port, its packet-in header in front, in order."""
    digests: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)
    """(digest, its fields), each distinct one once."""


class CannotDo(Exception):
    """The target has no way to carry out this command."""


class Refused(Exception):
    """The target refused the program or a command; says why."""


class Switch(Protocol):
    """A running switch with one program."""

    cpu_port: int

    def tell(self, command: Command) -> None:
        """Carry out a command; raises CannotDo or Refused."""

    def play(self, frames: list[Frame]) -> Outcome:
        """Feed frames one after the other; returns when all that they cause has left."""

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of an indirect counter."""

    def direct_counters(self, table: str) -> dict[tuple[int, ...], tuple[int, int]]:
        """(packets, bytes) of every entry, by the numbers of its key (lpm: value and prefix
        length; ternary: value and mask; range: low and high; what does not care is left out)."""

    def close(self) -> None:
        """Stop it."""

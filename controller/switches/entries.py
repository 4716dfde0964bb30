"""Table entries as the driver compares them: an entry's key, and the difference between two sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import finsy as fy

Key = tuple[str, tuple[tuple[str, Any], ...]]
"Table and match fields: what makes an entry the same entry."

Entries = dict[Key, fy.P4TableEntry]

FLOW_POLICY = "flow_policy"

TABLES = (
    "port_role",
    "live_port",
    "phantom_queue",
    "ecmp_group",
    "ipv4_forward",
    "ipv6_forward",
    FLOW_POLICY,
)
"The tables the driver owns, in the order of writing: a group exists before a route names it."


class Kind(Enum):
    """P4Runtime's three kinds of update."""

    INSERT = "+"
    MODIFY = "~"
    DELETE = "-"


@dataclass(frozen=True, slots=True)
class Change:
    """One update of one entry."""

    kind: Kind
    key: Key
    entry: fy.P4TableEntry
    "What shall be there; for a DELETE what was."

    def update(self) -> fy.P4TableEntry:
        """A fresh entity for `Switch.write` (finsy marks the kind in the entity itself)."""
        entry = self.entry
        match = entry.match
        if self.kind is Kind.DELETE:
            return -fy.P4TableEntry(entry.table_id, match=match)
        fresh = fy.P4TableEntry(
            entry.table_id, match=match, action=entry.action, meter_config=entry.meter_config
        )
        return +fresh if self.kind is Kind.INSERT else ~fresh

    def as_kind(self, kind: Kind) -> Change:
        """The same entry in another kind of update."""
        return Change(kind, self.key, self.entry)


def keyed(entries: Iterable[fy.P4TableEntry]) -> Entries:
    """Entries by key."""
    return {key_of(entry): entry for entry in entries}


def key_of(entry: fy.P4TableEntry) -> Key:
    """The entry's identity."""
    return entry.table_id, tuple(sorted((entry.match or {}).items()))


def difference(
    installed: Mapping[Key, fy.P4TableEntry], wanted: Mapping[Key, fy.P4TableEntry]
) -> list[Change]:
    """The updates that turn one set into the other: what is new or changed in table order, then what goes."""
    changes = []
    for key, entry in wanted.items():
        found = installed.get(key)
        if found is None:
            changes.append(Change(Kind.INSERT, key, entry))
        elif not _alike(found, entry):
            changes.append(Change(Kind.MODIFY, key, entry))
    gone = [
        Change(Kind.DELETE, key, entry) for key, entry in installed.items() if key not in wanted
    ]
    changes.sort(key=_table_rank)
    gone.sort(key=_table_rank, reverse=True)
    return changes + gone


def _alike(a: fy.P4TableEntry, b: fy.P4TableEntry) -> bool:
    return a.action == b.action and a.meter_config == b.meter_config


def _table_rank(change: Change) -> int:
    return TABLES.index(change.key[0])

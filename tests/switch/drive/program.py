"""What a test needs to know of a BMv2 JSON: its tables, keys and actions by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table's key and actions, in the JSON's order."""

    name: str
    key: dict[str, tuple[str, int]]
    """Field -> (kind of match, bits)."""
    actions: dict[str, dict[str, int]]
    """Action -> parameter -> bits."""


def _bits(root: dict[str, Any], target: Any) -> int:
    header, field = target
    kind = next(h["header_type"] for h in root["headers"] if h["name"] == header)
    if field == "$valid$":
        return 1
    fields = next(t["fields"] for t in root["header_types"] if t["name"] == kind)
    return int(next(f[1] for f in fields if f[0] == field))


def _key_name(part: dict[str, Any]) -> str:
    target = part["target"]
    return str(part.get("name") or (target if isinstance(target, str) else ".".join(target)))


def _key_bits(root: dict[str, Any], part: dict[str, Any]) -> int:
    return 1 if part["match_type"] == "valid" else _bits(root, part["target"])


def tables(path: Path) -> dict[str, Table]:
    """The tables of a BMv2 JSON file by name."""
    root = json.loads(path.read_text())
    parameters = {
        a["id"]: {p["name"]: p["bitwidth"] for p in a["runtime_data"]} for a in root["actions"]
    }
    return {
        t["name"]: Table(
            t["name"],
            {_key_name(k): (k["match_type"], _key_bits(root, k)) for k in t["key"]},
            {name: parameters[i] for name, i in zip(t["actions"], t["action_ids"], strict=True)},
        )
        for pipeline in root["pipelines"]
        for t in pipeline["tables"]
    }


def array_sizes(path: Path, kind: str) -> dict[str, int]:
    """Sizes of the `counter_arrays`, `meter_arrays` or `register_arrays` that are not direct."""
    root = json.loads(path.read_text())
    return {a["name"]: a["size"] for a in root.get(kind, []) if not a.get("is_direct")}

"""The nodes of one Chakra execution trace: protobuf (`.et`) or JSON, schema 0.0.4 and 1.x.

Field numbers are those of MLCommons' et_def.proto (ChakraProtoMsg): records of a length and a message,
first GlobalMetadata, then Node. Missing scalar fields are 0, as protobuf has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.profiles.errors import ProfileError
from controller.profiles.importers.protobuf import (
    BadWire,
    fields,
    number,
    records,
    signed,
    varint,
    zigzag,
)

COMPUTE, SEND, RECV, COLLECTIVE = 4, 5, 6, 7
"Node types."

_LARGEST = 64 * 2**20
_FLOATING = (3, 5)
_ZIGZAG = (15, 17)
_WORDS = (29, 31)
_TYPES = {"COMP_NODE": 4, "COMM_SEND_NODE": 5, "COMM_RECV_NODE": 6, "COMM_COLL_NODE": 7}
_COLLECTIVES = {
    "ALL_REDUCE": 0, "REDUCE": 1, "ALL_GATHER": 2, "GATHER": 3, "SCATTER": 4, "BROADCAST": 5,
    "ALL_TO_ALL": 6, "REDUCE_SCATTER": 7, "REDUCE_SCATTER_BLOCK": 8, "BARRIER": 9,
}  # fmt: skip


@dataclass(slots=True)
class Node:
    """One node of a trace."""

    id: int
    "Unique in its file."
    name: str = ""
    "What was run."
    type: int = 0
    "COMPUTE, SEND, RECV, COLLECTIVE; others carry nothing for us."
    control: list[int] = field(default_factory=list)
    "Nodes before it (parents)."
    data: list[int] = field(default_factory=list)
    "Nodes whose results it uses."
    start: float = 0.0
    "Microseconds."
    duration: float = 0.0
    "Microseconds."
    attributes: dict[str, Any] = field(default_factory=dict)
    "comm_type, comm_size, comm_src, comm_dst, comm_tag, is_cpu_op, num_ops, ..."

    def whole(self, name: str) -> int | None:
        """An attribute as a whole number; None where there is none."""
        value = self.attributes.get(name)
        try:
            return None if value is None else int(value)
        except (TypeError, ValueError, OverflowError):
            return None


def read(path: Path) -> tuple[str, list[Node]]:
    """(schema version, nodes). Raises `ProfileError` naming the node."""
    with path.open("rb") as file:
        is_json = file.read(64).lstrip()[:1] in (b"{", b"[")
    version, nodes = _read_json(path) if is_json else _read_binary(path)
    seen: set[int] = set()
    for node in nodes:
        if node.id in seen:
            raise ProfileError(str(path), f"node {node.id} is there twice")
        seen.add(node.id)
    return version, nodes


def _read_binary(path: Path) -> tuple[str, list[Node]]:
    version, nodes, place = "", [], 0
    try:
        with path.open("rb") as file:
            for place, record in enumerate(records(file, _LARGEST)):
                if place:
                    nodes.append(_node(record))
                else:
                    version = _version(record)
    except OSError as error:
        raise ProfileError(str(path), f"cannot be read: {error.strerror or error}") from None
    except (BadWire, UnicodeDecodeError) as error:
        raise ProfileError(str(path), f"behind record {place}: {error}") from None
    return version, nodes


def _version(record: bytes) -> str:
    for tag, wire, value in fields(record):
        if tag == 1 and isinstance(value, bytes):
            return value.decode()
        if tag == 2 and wire == 2 and isinstance(value, bytes):
            name, attribute = _attribute(value)
            if name in ("schema", "version"):
                return str(attribute)
    return ""


def _node(record: bytes) -> Node:
    node = Node(0)
    for tag, wire, value in fields(record):
        if tag == 1 and isinstance(value, int):
            node.id = value
        elif tag == 2 and isinstance(value, bytes):
            node.name = value.decode(errors="replace")
        elif tag == 3 and isinstance(value, int):
            node.type = value
        elif tag in (4, 5):
            (node.control if tag == 4 else node.data).extend(_packed(value))
        elif tag == 6:
            node.start = number(wire, value, floating=False)
        elif tag == 7:
            node.duration = number(wire, value, floating=False)
        elif tag == 10 and isinstance(value, bytes):
            name, attribute = _attribute(value)
            node.attributes[name] = attribute
    return node


def _packed(value: int | bytes) -> Iterator[int]:
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        found, at = varint(value, at)
        yield found


def _attribute(record: bytes) -> tuple[str, Any]:
    """(name, value): a number, a word, or None for the lists nobody needs."""
    name = ""
    found: Any = None
    for tag, wire, value in fields(record):
        if tag == 1 and isinstance(value, bytes):
            name = value.decode()
        elif tag in _WORDS and isinstance(value, bytes):
            found = value.decode(errors="replace")
        elif tag in _ZIGZAG and isinstance(value, int):
            found = zigzag(value)
        elif tag > 2 and isinstance(value, int):
            found = signed(value)
        elif tag > 2 and wire in (1, 5):
            found = number(wire, value, tag in _FLOATING)
    return name, found


def _read_json(path: Path) -> tuple[str, list[Node]]:
    """A document with `workload_graph` or `nodes`, or one message after another (jsonizer)."""
    try:
        text = path.read_bytes().decode()
        documents = list(_documents(text))
    except OSError as error:
        raise ProfileError(str(path), f"cannot be read: {error.strerror or error}") from None
    except json.JSONDecodeError as error:
        raise ProfileError(str(path), f"not valid JSON: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise ProfileError(str(path), f"not valid JSON: {error}") from None
    first = documents[0]
    entries: Any = documents[1:]
    version = ""
    if isinstance(first, dict):
        version = str(first.get("version") or first.get("schema") or "")
        entries = first.get("workload_graph", first.get("nodes", entries))
        if "id" in first or "Id" in first:
            entries = documents
    elif isinstance(first, list):
        entries = first
    if not isinstance(entries, list):
        raise ProfileError(str(path), "workload_graph: expected a list of nodes")
    return version, [_json_node(path, place, entry) for place, entry in enumerate(entries)]


def _documents(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(), 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return
        value, at = decoder.raw_decode(text, at)
        yield value


def _plain(value: Any) -> Any:
    """Protobuf's JSON writes 64-bit numbers as words."""
    digits = isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value)
    return int(value) if digits else value


def _json_node(path: Path, place: int, entry: Any) -> Node:
    key = f"workload_graph[{place}]"
    if not isinstance(entry, dict):
        raise ProfileError(str(path), "expected a node", key=key)
    plain = {str(name).lower().replace("_", ""): value for name, value in entry.items()}
    kind = plain.get("nodetype", plain.get("type", 0))
    attributes: dict[str, Any] = {}
    if "iscpuop" in plain:
        attributes["is_cpu_op"] = plain["iscpuop"]
    listed = plain.get("attr")
    for attribute in listed if isinstance(listed, list) else []:
        if isinstance(attribute, dict):
            values = [v for n, v in attribute.items() if n not in ("name", "docString")]
            attributes[str(attribute.get("name"))] = _plain(values[0]) if values else 0
    try:
        found = Node(
            int(plain.get("id", 0)),
            str(plain.get("name", "")),
            _TYPES.get(kind, 0) if isinstance(kind, str) else int(kind),
            [int(other) for other in plain.get("ctrldeps") or []],
            [int(other) for other in plain.get("datadeps") or []],
            float(plain.get("starttimemicros") or 0),
            float(plain.get("durationmicros") or plain.get("runtime") or 0),
            attributes,
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise ProfileError(str(path), f"not a node: {error}", key=key) from None
    kind = attributes.get("comm_type")
    if isinstance(kind, str) and kind.upper() in _COLLECTIVES:
        attributes["comm_type"] = _COLLECTIVES[kind.upper()]
    return found

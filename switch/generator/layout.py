"""Where headers, fields, stacks and unions live: C types and lvalues for everything a program names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from switch.program import unsupported


def c_name(text: str) -> str:
    """A C identifier that still reads like the P4 name."""
    return re.sub(r"\W", "_", text)


def comment(text: object) -> str:
    """Text that can stand in a C comment: a JSON comes from anyone who may set a pipeline."""
    return re.sub(r"[^\w .:$<>\[\],()-]", "?", str(text))


def c_string(text: str) -> str:
    """A C string literal with these bytes."""
    return (
        '"'
        + "".join(
            chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
            for b in text.encode()
        )
        + '"'
    )


def unique_names(names: Iterable[str], prefix: str) -> list[str]:
    """C identifiers for names, told apart by position where they would collide."""
    seen: set[str] = set()
    result = []
    for index, name in enumerate(names):
        candidate = prefix + c_name(name)
        if candidate in seen:
            candidate = f"{candidate}_{index}"
        seen.add(candidate)
        result.append(candidate)
    return result


@dataclass(frozen=True)
class Field:
    """A field of a header type. `bits` of a varbit is its maximum."""

    name: str
    member: str
    bits: int
    signed: bool
    varbit: bool

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8

    @property
    def wide(self) -> bool:
        """Stored as big-endian bytes, not as an integer."""
        return self.bits > 128 or self.varbit

    @property
    def c_type(self) -> str:
        for bits, name in ((8, "uint8_t"), (16, "uint16_t"), (32, "uint32_t"), (64, "uint64_t")):
            if self.bits <= bits:
                return name
        return "u128"

    def declaration(self) -> str:
        if self.varbit:
            return f"uint8_t {self.member}[{max(self.bytes, 1)}]; uint16_t {self.member}_bits;"
        return (
            f"uint8_t {self.member}[{self.bytes}];"
            if self.wide
            else f"{self.c_type} {self.member};"
        )


@dataclass(frozen=True)
class HeaderType:
    """A header or struct type; `bytes` counts a varbit as empty."""

    name: str
    tag: str
    fields: tuple[Field, ...]
    max_bytes: int

    @property
    def bits(self) -> int:
        return sum(f.bits for f in self.fields if not f.varbit)

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def varbit(self) -> Field | None:
        return next((f for f in self.fields if f.varbit), None)

    def field(self, name: str) -> Field:
        return next(f for f in self.fields if f.name == name)


@dataclass(frozen=True)
class UnionType:
    """A header union type: (member name, C member, header type)."""

    name: str
    tag: str
    members: tuple[tuple[str, str, HeaderType], ...]


@dataclass(frozen=True)
class Union:
    """A header union instance (or an element of a union stack)."""

    code: str
    type: UnionType

    def member(self, index: int) -> Header:
        _, member, kind = self.type.members[index]
        return Header(f"{self.code}.{member}", kind, False, self, index)


@dataclass(frozen=True)
class Header:
    """A header instance as a C lvalue."""

    code: str
    type: HeaderType
    metadata: bool = False
    union: Union | None = None
    index: int = 0

    @property
    def valid(self) -> str:
        return "1" if self.metadata else f"{self.code}.valid"

    def set_valid(self) -> str:
        """Statements that make it valid (and its siblings in a union invalid)."""
        if self.metadata:
            return ""
        others = (
            []
            if self.union is None
            else [
                f"{self.union.code}.{m}.valid = 0;"
                for i, (_, m, _) in enumerate(self.union.type.members)
                if i != self.index
            ]
        )
        return " ".join([f"{self.code}.valid = 1;", *others])

    def set_invalid(self) -> str:
        return "" if self.metadata else f"{self.code}.valid = 0;"

    def at(self, field: Field) -> str:
        return f"{self.code}.{field.member}"

    def moved(self, base: str) -> Header:
        """The same header of another PHV (`H->x` -> `base->x`)."""
        return replace(self, code=base + self.code[1:])

    @property
    def size(self) -> str:
        """C expression: bytes in the packet now."""
        varbit = self.type.varbit
        return f"{self.type.bytes}u" + (f" + {self.at(varbit)}_bits / 8u" if varbit else "")


@dataclass(frozen=True)
class Stack:
    """A stack of headers or unions. Element `size` exists too: what an index out of range reaches."""

    code: str
    count: str
    size: int
    header: HeaderType | None
    union: UnionType | None

    def element(self, index: str) -> str:
        return f"{self.code}[{index}]"


class Layout:
    """All names of a program resolved to C."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.types = self._types(root)
        self.union_types = self._union_types(root)
        self.headers: dict[str, Header] = {}
        self.stacks: dict[str, Stack] = {}
        self.union_stacks: dict[str, Stack] = {}
        self.unions: dict[str, Union] = {}
        self.members: list[str] = []
        self.metadata: list[Header] = []
        self._place(root)
        self.aliases = {
            alias: (target[0], target[1]) for alias, target in root.get("field_aliases", [])
        }

    def field(self, reference: Any) -> tuple[Header, Field]:
        header, name = self.aliases.get(".".join(reference), tuple(reference))
        found = self.headers[header]
        return found, found.type.field(name)

    def has_field(self, dotted: str) -> tuple[Header, Field] | None:
        """A field by the name the target knows it by, if the program has it."""
        header, name = self.aliases.get(dotted, tuple(dotted.split(".", 1)))
        found = self.headers.get(header)
        if found is None or name not in {f.name for f in found.type.fields}:
            return None
        return found, found.type.field(name)

    @staticmethod
    def _types(root: dict[str, Any]) -> dict[str, HeaderType]:
        tags = unique_names((t["name"] for t in root["header_types"]), "header_")
        result = {}
        for tag, kind in zip(tags, root["header_types"], strict=True):
            if kind.get("length_exp") is not None:
                raise unsupported(f"length expression of header type {kind['name']}", kind)
            members = unique_names((f[0] for f in kind["fields"]), "f_")
            fixed = sum(f[1] for f in kind["fields"] if f[1] != "*")
            limit = kind.get("max_length") or 0
            fields = []
            for member, field in zip(members, kind["fields"], strict=True):
                if len(field) > 3 and field[3]:
                    raise unsupported(f"saturating field {kind['name']}.{field[0]}", kind)
                varbit = field[1] == "*"
                bits = max(limit * 8 - fixed, 0) if varbit else field[1]
                fields.append(
                    Field(field[0], member, bits, len(field) > 2 and bool(field[2]), varbit)
                )
            result[kind["name"]] = HeaderType(
                kind["name"], tag, tuple(fields), max(limit, (fixed + 7) // 8)
            )
        return result

    def _union_types(self, root: dict[str, Any]) -> dict[str, UnionType]:
        kinds = root.get("header_union_types", [])
        tags = unique_names((k["name"] for k in kinds), "union_")
        return {
            kind["name"]: UnionType(
                kind["name"],
                tag,
                tuple(
                    (name, member, self.types[header])
                    for member, (name, header) in zip(
                        unique_names((h[0] for h in kind["headers"]), "m_"),
                        kind["headers"],
                        strict=True,
                    )
                ),
            )
            for tag, kind in zip(tags, kinds, strict=True)
        }

    def _place(self, root: dict[str, Any]) -> None:
        by_id = {h["id"]: h for h in root["headers"]}
        placed: set[int] = set()
        union_elements: set[int] = set()
        unions = {u["id"]: u for u in root.get("header_unions", [])}
        stacks = root.get("header_union_stacks", [])
        for code, item in zip(
            unique_names((s["name"] for s in stacks), "us_"), stacks, strict=True
        ):
            kind = self.union_types[item["union_type"]]
            ids = item["header_union_ids"]
            self._add_stack(
                self.union_stacks, item["name"], code, f"struct {kind.tag}", len(ids), None, kind
            )
            for index, union_id in enumerate(ids):
                union_elements.add(union_id)
                self._add_union(unions[union_id], f"H->{code}[{index}]", by_id, placed)
        for code, item in zip(
            unique_names((u["name"] for u in unions.values()), "u_"), unions.values(), strict=True
        ):
            if item["id"] not in union_elements:
                self.members.append(f"struct {self.union_types[item['union_type']].tag} {code};")
                self._add_union(item, f"H->{code}", by_id, placed)
        stacks = root.get("header_stacks", [])
        for code, item in zip(unique_names((s["name"] for s in stacks), "s_"), stacks, strict=True):
            header = self.types[item["header_type"]]
            ids = item["header_ids"]
            if placed.intersection(ids):
                raise unsupported(f"header stack {item['name']} of union members", item)
            self._add_stack(
                self.stacks, item["name"], code, f"struct {header.tag}", len(ids), header, None
            )
            for index, header_id in enumerate(ids):
                placed.add(header_id)
                self.headers[by_id[header_id]["name"]] = Header(f"H->{code}[{index}]", header)
        rest = [h for h in root["headers"] if h["id"] not in placed]
        for code, item in zip(unique_names((h["name"] for h in rest), "h_"), rest, strict=True):
            header = self.types[item["header_type"]]
            self.members.append(f"struct {header.tag} {code};")
            found = Header(f"H->{code}", header, bool(item["metadata"]))
            if header.bits % 8 and not found.metadata:
                raise unsupported(
                    f"header {item['name']} of {header.bits} bits (not whole bytes)", item
                )
            self.headers[item["name"]] = found
            if found.metadata:
                self.metadata.append(found)

    def _add_stack(
        self,
        table: dict[str, Stack],
        name: str,
        code: str,
        c_type: str,
        size: int,
        header: HeaderType | None,
        union: UnionType | None,
    ) -> None:
        self.members.append(f"{c_type} {code}[{size + 1}]; uint32_t {code}_count;")
        table[name] = Stack(f"H->{code}", f"H->{code}_count", size, header, union)

    def _add_union(
        self, item: dict[str, Any], code: str, by_id: dict[int, dict[str, Any]], placed: set[int]
    ) -> None:
        union = Union(code, self.union_types[item["union_type"]])
        self.unions[item["name"]] = union
        for index, header_id in enumerate(item["header_ids"]):
            placed.add(header_id)
            self.headers[by_id[header_id]["name"]] = union.member(index)

    def declarations(self) -> str:
        """The C structs: header types, union types, and struct phv."""
        lines = []
        for kind in self.types.values():
            lines.append(f"struct {kind.tag} {{  /* {comment(kind.name)} */")
            lines.append("    uint8_t valid;")
            lines += [f"    {f.declaration()}" for f in kind.fields]
            lines.append("};")
        for union in self.union_types.values():
            body = " ".join(f"struct {header.tag} {member};" for _, member, header in union.members)
            lines.append(f"struct {union.tag} {{ {body} }};  /* {comment(union.name)} */")
        lines.append("struct phv {")
        lines += [f"    {member}" for member in self.members]
        lines.append("    uint8_t end;")
        lines.append("};")
        return "\n".join(lines)

"""P4Data: values of P4Info types <-> the data plane's bytes (fields in order, each in whole bytes, big-endian)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from finsy.proto import p4d, p4t

from switch.server.bytestrings import narrow, narrow_signed, octets, widen, widen_signed
from switch.server.errors import Code, RequestError, invalid

_V = TypeVar("_V")


class DataCodec:
    """Encodes and decodes by the types of one P4Info."""

    def __init__(self, types: p4t.P4TypeInfo) -> None:
        self._types = types

    def encode(self, spec: p4t.P4DataTypeSpec, data: p4d.P4Data, what: str) -> bytes:
        """The bytes of a value. Raises INVALID_ARGUMENT if it is not of the type."""
        leaves = list(self._leaves(spec))
        values = list(_values(data))
        if len(leaves) != len(values):
            raise invalid(f"{what}: the data has {len(values)} values, its type {len(leaves)}")
        return b"".join(
            leaf.encode(value, what) for leaf, value in zip(leaves, values, strict=True)
        )

    def decode(self, spec: p4t.P4DataTypeSpec, value: bytes) -> p4d.P4Data:
        """The value in these bytes."""
        data, rest = self._decode(spec, value)
        assert not rest, "the data plane's bytes are longer than the type"
        return data

    def widths(self, spec: p4t.P4DataTypeSpec) -> tuple[int, ...]:
        """The bits of each field of a type. Raises UNIMPLEMENTED for types that v1model cannot send."""
        try:
            return tuple(leaf.bits for leaf in self._leaves(spec))
        except RecursionError:
            raise invalid("P4Info: a type contains itself") from None

    def _decode(self, spec: p4t.P4DataTypeSpec, value: bytes) -> tuple[p4d.P4Data, bytes]:
        members = self._members(spec)
        if members is None:
            leaf = next(iter(self._leaves(spec)))
            size = octets(leaf.bits)
            return leaf.decode(value[:size]), value[size:]
        if spec.WhichOneof("type_spec") == "header":
            header = p4d.P4Header(is_valid=True)
            for member in members:
                item, value = self._decode(member, value)
                header.bitstrings.append(item.bitstring)
            return p4d.P4Data(header=header), value
        items = []
        for member in members:
            item, value = self._decode(member, value)
            items.append(item)
        like = p4d.P4StructLike(members=items)
        return (
            p4d.P4Data(tuple=like) if spec.HasField("tuple") else p4d.P4Data(struct=like)
        ), value

    def _members(self, spec: p4t.P4DataTypeSpec) -> list[p4t.P4DataTypeSpec] | None:
        """The parts of a struct, tuple or header; None for a type without parts."""
        kind = spec.WhichOneof("type_spec")
        if kind == "struct":
            return [m.type_spec for m in _named(self._types.structs, spec.struct.name).members]
        if kind == "tuple":
            return list(spec.tuple.members)
        if kind == "header":
            return [
                p4t.P4DataTypeSpec(bitstring=m.type_spec)
                for m in _named(self._types.headers, spec.header.name).members
            ]
        if kind == "new_type":
            new_type = _named(self._types.new_types, spec.new_type.name)
            return (
                self._members(new_type.original_type)
                if new_type.HasField("original_type")
                else None
            )
        return None

    def _leaves(self, spec: p4t.P4DataTypeSpec) -> Iterator[_Leaf]:
        members = self._members(spec)
        if members is not None:
            for member in members:
                yield from self._leaves(member)
            return
        kind = spec.WhichOneof("type_spec")
        if kind == "bitstring" and spec.bitstring.HasField("bit"):
            yield _Leaf("bitstring", spec.bitstring.bit.bitwidth)
        elif kind == "bitstring" and spec.bitstring.HasField("int"):
            yield _Leaf("signed", spec.bitstring.int.bitwidth)
        elif kind == "bool":
            yield _Leaf("bool", 1)
        elif kind == "serializable_enum":
            enum = _named(self._types.serializable_enums, spec.serializable_enum.name)
            yield _Leaf("enum_value", enum.underlying_type.bitwidth)
        elif kind == "new_type":
            new_type = _named(self._types.new_types, spec.new_type.name)
            if new_type.HasField("original_type"):
                yield from self._leaves(new_type.original_type)
            else:
                yield _Leaf("bitstring", new_type.translated_type.sdn_bitwidth)
        else:
            raise RequestError(Code.UNIMPLEMENTED, f"values of type {kind} are not supported")


def _named(types: Mapping[str, _V], name: str) -> _V:
    # a protobuf map would make the entry that it does not have
    if name not in types:
        raise invalid(f"P4Info has no type {name}")
    return types[name]


class _Leaf:
    """A type without parts."""

    def __init__(self, kind: str, bits: int) -> None:
        self.kind = kind
        self.bits = bits

    def encode(self, data: p4d.P4Data | bytes, what: str) -> bytes:
        if isinstance(data, bytes):  # a field of a header
            return self._octets(data, what)
        kind = data.WhichOneof("data")
        if kind != ("bitstring" if self.kind == "signed" else self.kind):
            raise invalid(f"{what}: the data is {kind or 'empty'}, its type {self.kind}")
        if self.kind == "bool":
            return bytes([data.bool])
        return self._octets(data.enum_value if self.kind == "enum_value" else data.bitstring, what)

    def decode(self, value: bytes) -> p4d.P4Data:
        if self.kind == "bool":
            return p4d.P4Data(bool=bool(value[-1]))
        if self.kind == "enum_value":
            return p4d.P4Data(enum_value=narrow(value))
        return p4d.P4Data(
            bitstring=narrow_signed(value, self.bits) if self.kind == "signed" else narrow(value)
        )

    def _octets(self, value: bytes, what: str) -> bytes:
        return (
            widen_signed(value, self.bits, what)
            if self.kind == "signed"
            else widen(value, self.bits, what)
        )


def _values(data: p4d.P4Data) -> Iterator[p4d.P4Data | bytes]:
    kind = data.WhichOneof("data")
    if kind in ("struct", "tuple"):
        for member in (data.struct if kind == "struct" else data.tuple).members:
            yield from _values(member)
    elif kind == "header":
        yield from data.header.bitstrings
    else:
        yield data

"""Protocol buffers on the wire, read without a schema: fields, varints, length-delimited records."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO


class BadWire(ValueError):
    """Bytes that are no protocol buffer; says where in the message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, place behind it). Raises `BadWire`."""
    value = shift = 0
    while True:
        if at >= len(data):
            raise BadWire("a varint runs over the end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise BadWire("a varint of more than 10 bytes")


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(field number, wire type, value) of each field: an int, or bytes for fixed and delimited ones.

    Raises `BadWire`.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = (data[at], at + 1) if data[at] < 0x80 else varint(data, at)
        number, wire = key >> 3, key & 7
        if not number:
            raise BadWire(f"field number 0 at byte {at - 1}")
        if wire == 0:
            value, at = varint(data, at)
            yield number, wire, value
            continue
        if wire == 2:
            length, at = varint(data, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise BadWire(f"wire type {wire} at byte {at - 1}: expected 0, 1, 2 or 5")
        if at + length > end:
            raise BadWire(f"field {number} of {length} bytes runs over the end")
        yield number, wire, data[at : at + length]
        at += length


def signed(value: int) -> int:
    """An int64 from its varint."""
    return value - (1 << 64) if value >> 63 else value


def zigzag(value: int) -> int:
    """A sint64 from its varint."""
    return (value >> 1) ^ -(value & 1)


def number(wire: int, value: int | bytes, floating: bool) -> float:
    """A scalar field as a number."""
    if isinstance(value, int):
        return signed(value)
    if len(value) not in (4, 8) or wire == 2:
        raise BadWire("expected a number")
    code = ("f" if floating else "i") if len(value) == 4 else ("d" if floating else "q")
    return float(struct.unpack("<" + code, value)[0])


def records(stream: BinaryIO, most: int) -> Iterator[bytes]:
    """Length-delimited messages of a stream, none larger than `most` bytes. Raises `BadWire`."""
    while first := stream.read(1):
        head = first
        while head[-1] >= 0x80:
            more = stream.read(1)
            if not more or len(head) >= 10:
                raise BadWire("ends within the length of a record: is it truncated?")
            head += more
        length, _ = varint(head, 0)
        if length > most:
            raise BadWire(f"a record of {length} bytes: expected at most {most}")
        record = stream.read(length)
        if len(record) < length:
            raise BadWire(f"ends {length - len(record)} bytes early: is it truncated?")
        yield record

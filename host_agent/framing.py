"""What precedes a flow's bytes on a connection, so that the receiver knows whose they are."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("!IIQ")
SIZE = _HEADER.size
"""Bytes of a header; they count as the flow's own."""


def pack(number: int, iteration: int, size: int) -> bytes:
    """The header of flow `number` (of the plan) that has `size` bytes, this header included."""
    return _HEADER.pack(number, iteration, size)


def unpack(header: bytes) -> tuple[int, int, int]:
    """(number, iteration, size) of a header of `SIZE` bytes."""
    number, iteration, size = _HEADER.unpack(header)
    return number, iteration, size

"""Packet-in and packet-out headers: PacketMetadata <-> the header in front of a frame at the CPU port."""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4r

from switch.server.bytestrings import narrow, octets, widen
from switch.server.errors import invalid
from switch.server.pipeline import Field


class PacketHeader:
    """One controller header: fields of any width, packed without gaps."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = tuple(fields)
        self._bits = sum(field.bits for field in fields)
        self._size = octets(self._bits)
        self._by_id = {field.id: position for position, field in enumerate(fields)}

    def encode(self, packet: p4r.PacketOut) -> bytes:
        """The frame to feed to the parser. A field left out is 0, as in PI. Raises INVALID_ARGUMENT."""
        if not self._fields and packet.metadata:
            raise invalid("the program has no packet_out header, so a packet-out has no metadata")
        values = [0] * len(self._fields)
        for item in packet.metadata:
            position = self._by_id.get(item.metadata_id)
            if position is None:
                raise invalid(f"packet-out: no metadata field has id {item.metadata_id}")
            field = self._fields[position]
            values[position] = int.from_bytes(
                widen(item.value, field.bits, f"packet-out: {field.name}"), "big"
            )
        header = 0
        for field, value in zip(self._fields, values, strict=True):
            header = header << field.bits | value
        return (header << (self._size * 8 - self._bits)).to_bytes(
            self._size, "big"
        ) + packet.payload

    def decode(self, frame: bytes) -> p4r.PacketIn | None:
        """The packet-in of a frame with its header in front; None if the frame is too short for the header."""
        if len(frame) < self._size:
            return None
        header, left = int.from_bytes(frame[: self._size], "big"), self._size * 8
        packet = p4r.PacketIn(payload=frame[self._size :])
        for field in self._fields:
            left -= field.bits
            value = header >> left & ((1 << field.bits) - 1)
            packet.metadata.add(
                metadata_id=field.id, value=narrow(value.to_bytes(octets(field.bits), "big"))
            )
        return packet

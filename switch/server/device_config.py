"""`p4_device_config`: the BMv2 JSON itself, or wrapped as P4Runtime's early clients (and p4lang's tutorials) send it."""

from __future__ import annotations

_DEVICE_DATA = 3
"""Field number of `device_data` in p4.tmp.P4DeviceConfig {bool reassign = 1; Extras extras = 2; bytes device_data = 3}."""


def device_json(config: bytes) -> bytes:
    """The JSON inside. PI tries the deprecated p4.tmp.P4DeviceConfig first and takes anything else as JSON; a JSON
    document never parses as that message, as '{' is a group tag."""
    return _unwrap(config) if config[:1] in (b"\x08", b"\x12", b"\x1a") else config


def _unwrap(message: bytes) -> bytes:
    position, found = 0, b""
    try:
        while position < len(message):
            tag, position = _varint(message, position)
            value, position = _varint(message, position)
            if tag & 7 == 2:
                if tag >> 3 == _DEVICE_DATA:
                    found = message[position : position + value]
                position += value
    except IndexError:
        return message
    return found


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        octet = message[position]
        position += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, position
        shift += 7

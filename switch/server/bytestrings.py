"""P4Runtime's binary strings: any length on the way in, the shortest on the way out, fixed width inside."""

from __future__ import annotations

from switch.server.errors import invalid


def octets(bits: int) -> int:
    """Bytes that hold so many bits."""
    return (bits + 7) // 8


def widen(value: bytes, bits: int, what: str) -> bytes:
    """`value` as exactly ceil(bits / 8) big-endian bytes. Raises INVALID_ARGUMENT, as PI does, if it is empty or
    does not fit (`what` names the field in the message)."""
    size = (bits + 7) // 8
    if 0 < len(value) < size:
        return value.rjust(size, b"\0")  # the usual case, and it fits
    if not value:
        raise invalid(f"{what}: the value is empty; write 0 as one zero byte")
    number = int.from_bytes(value, "big")
    if number >> bits:
        raise invalid(f"{what}: {value.hex()} does not fit in {bits} bits")
    return number.to_bytes(size, "big")


def narrow(value: bytes) -> bytes:
    """The shortest binary string of the same unsigned value (P4Runtime's canonical form)."""
    return value.lstrip(b"\0") or b"\0"


def narrow_signed(value: bytes, bits: int) -> bytes:
    """The shortest two's-complement string of an int<bits> stored in ceil(bits / 8) bytes."""
    number = int.from_bytes(value, "big") & ((1 << bits) - 1)
    if number >> (bits - 1):
        number -= 1 << bits
    needed = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes(octets(needed), "big", signed=True)


def widen_signed(value: bytes, bits: int, what: str) -> bytes:
    """An int<bits> as ceil(bits / 8) bytes, the unused high bits 0. Raises INVALID_ARGUMENT as `widen`."""
    if not value:
        raise invalid(f"{what}: the value is empty; write 0 as one zero byte")
    number = int.from_bytes(value, "big", signed=True)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise invalid(f"{what}: {value.hex()} does not fit in a signed {bits} bits")
    return (number & ((1 << bits) - 1)).to_bytes(octets(bits), "big")

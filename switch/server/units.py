"""Rates and sizes as people type them."""

from __future__ import annotations

import re

_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def bits_per_second(text: str) -> int:
    """`40mbit`, `1.5gbit`, `9600` (bit/s) as a number. Raises ValueError."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([kmgt]?)(?:bit|bps|bit/s)?", text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} is not a rate; write for example 40mbit")
    return round(float(found[1]) * _PREFIXES[found[2]])


def queue_limit(text: str) -> tuple[int | None, int | None]:
    """(packets, bytes): `30` or `30p` limits packets, `64kb` or `9000b` bytes; with a comma both. Raises ValueError."""
    packets = octets = None
    for part in text.lower().split(","):
        found = re.fullmatch(r"([0-9]+)([kmg]?)(p|b|)", part.strip())
        if found is None:
            raise ValueError(
                f"{text!r} is not a queue limit; write for example 30 (packets) or 64kb (bytes)"
            )
        number = int(found[1]) * _PREFIXES[found[2]]
        if found[3] == "b":
            octets = number
        else:
            packets = number
    return packets, octets

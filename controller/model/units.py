"""Rates, sizes and times as people type them: `10mbit`, `1.5GB`, `20ms`."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z/]*)\s*")
_RATES = {"": 1.0, "bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}
_RATES |= {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9, "tbps": 1e12}
_SIZES = {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_SIZES |= {"kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40}
_TIMES = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}


def parse_rate(text: str | float) -> float:
    """`40mbit` -> 4e7, in bit/s. Raises ValueError naming the units it knows."""
    return _parse(text, _RATES, "rate", "40mbit or 1gbit")


def parse_size(text: str | float) -> float:
    """`1.5GB` -> 1.5e9, in bytes. Raises ValueError naming the units it knows."""
    return _parse(text, _SIZES, "size", "16MiB or 1.5GB")


def parse_time(text: str | float) -> float:
    """`20ms` -> 0.02, in seconds. Raises ValueError naming the units it knows."""
    return _parse(text, _TIMES, "time", "20ms or 1.5s")


def format_rate(rate: float) -> str:
    """4e7 -> `40mbit`."""
    for unit, factor in (("tbit", 1e12), ("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)):
        if rate >= factor:
            return f"{rate / factor:.4g}{unit}"
    return f"{rate:.4g}bit"


def format_size(size: float) -> str:
    """1.5e9 -> `1.5GB`."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.4g}{unit}"
    return f"{size:.4g}B"


def _parse(text: str | float, units: dict[str, float], what: str, example: str) -> float:
    if isinstance(text, (int, float)):
        return float(text)
    match = _NUMBER.fullmatch(text)
    if match is None or match[2].lower() not in units:
        raise ValueError(f"{text!r} is not a {what}: expected a number and a unit, as in {example}")
    return float(match[1]) * units[match[2].lower()]

"""Typed access to the parts of a document: each wrong one is an error at its line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from controller.model.units import parse_rate, parse_size, parse_time
from controller.profiles.documents import Document, Key
from controller.profiles.errors import ProfileError


class Reader:
    """Reads a document's parts. Every method raises `ProfileError` with file, line and key."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def fail(self, key: Key, message: str) -> ProfileError:
        """The error about the part at `key`."""
        return self.document.error(key, message)

    def mapping(
        self, value: Any, key: Key, required: Iterable[str], optional: Iterable[str] = ()
    ) -> dict[str, Any]:
        """A mapping that has all the required keys and none that is unknown."""
        if not isinstance(value, dict):
            raise self.fail(key, f"{shown(value)}: expected a mapping with {', '.join(required)}")
        known = [*required, *optional]
        for name in value:
            if name not in known:
                raise self.fail((*key, name), f"unknown key: expected one of {', '.join(known)}")
        for name in required:
            if name not in value:
                raise self.fail(key, f"{name} is missing")
        return value

    def entries(self, value: Any, key: Key) -> list[Any]:
        """A list; a key left empty is an empty one."""
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fail(key, f"{shown(value)}: expected a list")
        return value

    def text(self, value: Any, key: Key) -> str:
        """A word."""
        if not isinstance(value, str):
            hint = " (put a number in quotes)" if isinstance(value, (int, float)) else ""
            raise self.fail(key, f"{shown(value)}: expected a word{hint}")
        return value

    def texts(self, value: Any, key: Key) -> tuple[str, ...]:
        """A list of words."""
        found = self.entries(value, key)
        if all(type(entry) is str for entry in found):
            return tuple(found)
        return tuple(self.text(entry, (*key, i)) for i, entry in enumerate(found))

    def whole(self, value: Any, key: Key) -> int:
        """A whole number."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fail(key, f"{shown(value)}: expected a whole number")
        return value

    def seconds(self, value: Any, key: Key) -> float:
        """A time, in seconds or with a unit."""
        return self._quantity(value, key, parse_time, "seconds, as in 0.12 or 120ms")

    def size(self, value: Any, key: Key) -> float:
        """A size, in bytes or with a unit."""
        return self._quantity(value, key, parse_size, "bytes, as in 16777216 or 16MiB")

    def rate(self, value: Any, key: Key) -> float:
        """A rate, in bit/s or with a unit."""
        return self._quantity(value, key, parse_rate, "a rate, as in 100gbit")

    def number(self, value: Any, key: Key) -> float:
        """A number."""
        return self._quantity(value, key, _only_numbers, "a number")

    def _quantity(
        self, value: Any, key: Key, parse: Callable[[str | float], float], expected: str
    ) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise self.fail(key, f"{shown(value)}: expected {expected}")
        try:
            number = float(parse(value))
        except (ValueError, OverflowError):
            raise self.fail(key, f"{shown(value)}: expected {expected}") from None
        if not math.isfinite(number):
            raise self.fail(key, f"{shown(value)}: expected {expected}")
        return number


def shown(value: Any) -> str:
    """A value as an error message quotes it: short."""
    if value is None:
        return "nothing"
    if isinstance(value, (dict, list)):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    if isinstance(value, int) and abs(value) > 10**30:
        return "a huge number"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _only_numbers(value: str | float) -> float:
    return float("a word, not a number" if isinstance(value, str) else value)

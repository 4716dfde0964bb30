"""YAML and JSON documents as plain values that remember on which line each stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from controller.model.check import place
from controller.profiles.errors import ProfileError

Key = tuple[str | int, ...]
"Where a value stands: `('flows', 3, 'bytes')`."

_DEPTH = 32
"Deeper than any of our formats; bounds recursion."
_INT = re.compile(r"[-+]?[0-9]{1,400}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]{1,400}(\.[0-9]*)?)([eE][-+]?[0-9]{1,9})?")
_SPECIAL = {
    "": None, "~": None, "null": None, "true": True, "false": False,
    ".nan": float("nan"), "nan": float("nan"),
    ".inf": float("inf"), "inf": float("inf"), "-.inf": float("-inf"), "-inf": float("-inf"),
}  # fmt: skip
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Document:
    """A parsed file: its plain value, and the line of every part of it."""

    def __init__(self, source: str, text: str) -> None:
        """Parse. Raises `ProfileError` on bad syntax, keys given twice, and too deep nesting."""
        self.source = source
        self._text = text
        self.value: Any = self._parse()
        "dicts, lists, str, int, float, bool and None."

    @classmethod
    def load(cls, path: str | Path) -> Document:
        """Read and parse a file. Raises `ProfileError`, also when it cannot be read."""
        return cls(str(path), read_text(path))

    def error(self, key: Key, message: str) -> ProfileError:
        """The error to raise about the value at `key` (or the nearest thing that holds it)."""
        return ProfileError(self.source, message, self._line_of(key), place(key))

    def _parse(self) -> Any:
        failure: ProfileError | None = None
        if self._text.lstrip()[:1] in ("{", "["):
            try:
                return json.loads(self._text, object_pairs_hook=_unique)
            except json.JSONDecodeError as error:
                failure = ProfileError(self.source, f"not valid JSON: {error.msg}", error.lineno)
            except (ValueError, RecursionError):
                pass  # a key given twice, a huge number, deep nesting: YAML says where
        try:
            return _compose(self._text, self.source, None)
        except ProfileError as error:
            raise failure or error from None

    def _line_of(self, key: Key) -> int | None:
        lines: dict[Key, int] = {}
        try:
            _compose(self._text, self.source, lines)
        except ProfileError:
            return None
        while key and key not in lines:
            key = key[:-1]
        return lines.get(key)


def read_text(path: str | Path) -> str:
    """A file as text. Raises `ProfileError` when it cannot be read or is not UTF-8."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ProfileError(str(path), f"cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ProfileError(
            str(path), f"not text: byte {error.start} is not UTF-8; expected YAML or JSON"
        ) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _compose(text: str, source: str, lines: dict[Key, int] | None) -> Any:
    """The value of a YAML text of one document; notes the line of every part in `lines`."""
    try:
        events = iter(yaml.parse(text, Loader=_Loader))
        next(events)  # stream
        if isinstance(next(events), yaml.StreamEndEvent):
            raise ProfileError(source, "empty: expected a document", 1)
        value = _Composer(events, source, lines).value((), next(events))
        next(events)  # end of the document
        more = next(events)
        if not isinstance(more, yaml.StreamEndEvent):
            raise ProfileError(source, "a second document: expected one a file", _line(more))
        return value
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ProfileError(
            source, f"not valid YAML: {error.problem}", mark.line + 1 if mark else None
        ) from None
    except yaml.YAMLError as error:  # characters that YAML forbids
        raise ProfileError(source, f"not valid YAML: {str(error).splitlines()[0]}") from None
    except (UnicodeError, OverflowError) as error:
        raise ProfileError(source, f"not valid YAML: {error}") from None


class _Composer:
    """Builds values from YAML events: scalars by YAML 1.2's core rules, so `1e6` is a number."""

    def __init__(
        self, events: Iterator[yaml.Event], source: str, lines: dict[Key, int] | None
    ) -> None:
        self._events = events
        self._source = source
        self._lines = lines
        self._anchors: dict[str, Any] = {}

    def value(self, key: Key, event: yaml.Event) -> Any:
        """The value that begins with this event."""
        line = _line(event)
        if self._lines is not None:
            self._lines.setdefault(key, line)
        if len(key) > _DEPTH:
            raise ProfileError(self._source, f"nested deeper than {_DEPTH} levels", line)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise ProfileError(self._source, f"unknown alias *{event.anchor}", line)
            return self._anchors[event.anchor]
        value: Any
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(key)
        else:
            value = self._mapping(key)
        if event.anchor is not None:  # type: ignore[attr-defined]
            self._anchors[event.anchor] = value  # type: ignore[attr-defined]
        return value

    def _sequence(self, key: Key) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self.value((*key, len(found)), event))
        return found

    def _mapping(self, key: Key) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise ProfileError(self._source, "expected a word as key", line, place(key))
            name = event.value
            if name in found:
                raise ProfileError(self._source, "is given twice", line, place((*key, name)))
            if self._lines is not None:
                self._lines[(*key, name)] = line
            found[name] = self.value((*key, name), next(self._events))
        return found


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if not event.implicit[0]:  # quoted
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return _SPECIAL.get(text.lower(), text)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./<>+-]*")
_RESERVED = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def to_yaml(value: Any) -> str:
    """A document: a mapping in block style, entries of lists on one line each where flat."""
    return "\n".join(_block(value, "")) + "\n"


def to_json(value: Any) -> str:
    """The same document as JSON, one entry of a list a line."""
    return json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _block(value: dict[str, Any], indent: str) -> Iterator[str]:
    for key, part in value.items():
        if isinstance(part, dict) and not _is_flat(part):
            yield f"{indent}{_inline(key)}:"
            yield from _block(part, indent + "  ")
        elif isinstance(part, list) and any(isinstance(entry, dict) for entry in part):
            yield f"{indent}{_inline(key)}:"
            for entry in part:
                yield from _entry(entry, indent)
        else:
            yield f"{indent}{_inline(key)}: {_inline(part)}"


def _entry(entry: Any, indent: str) -> Iterator[str]:
    if not isinstance(entry, dict) or _is_flat(entry):
        yield f"{indent}  - {_inline(entry)}"
        return
    first, *rest = _block(entry, indent + "    ")
    yield f"{indent}  - {first.lstrip()}"
    yield from rest


def _is_flat(value: dict[str, Any]) -> bool:
    """Whether a mapping holds no list of mappings, at any depth."""
    for part in value.values():
        if isinstance(part, dict) and not _is_flat(part):
            return False
        if isinstance(part, list) and any(isinstance(entry, (dict, list)) for entry in part):
            return False
    return True


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_inline(k)}: {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
    if isinstance(value, float):
        text = repr(value)
        # YAML 1.1 readers take 1e-05 for a word
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return json.dumps(value)

"""The events of a Chrome trace (Kineto) as a stream: bounded memory, whatever the file's size."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from controller.profiles.errors import ProfileError

_CHUNK = 4 * 2**20
_MOST = 64 * 2**20
"No event, and nothing around the events, is larger than this."
_START = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"\}\s*,\s*\{")


class Event(msgspec.Struct):
    """One event; the members nobody needs are skipped while decoding."""

    name: str = ""
    "Name of the operation, kernel or annotation."
    cat: str = ""
    "cpu_op, kernel, user_annotation, ..."
    ph: str = ""
    "Phase: X is a complete event."
    ts: float = 0.0
    "Start, in microseconds."
    dur: float = 0.0
    "Duration, in microseconds."
    tid: int | str = 0
    "Thread or stream."
    args: msgspec.Raw = msgspec.Raw(b"{}")
    "Not decoded; see `arguments`."

    def arguments(self) -> dict[str, Any]:
        """The event's arguments; none where they are not a mapping."""
        found = msgspec.json.decode(self.args)
        return found if isinstance(found, dict) else {}


class _Whole(msgspec.Struct):
    traceEvents: list[Event]


class ChromeEvents:
    """Reads one file. `header` is complete once `events` is used up."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: dict[str, Any] = {}
        "Everything beside the events."

    def error(self, message: str) -> ProfileError:
        """The error about this file."""
        return ProfileError(str(self.path), message)

    def events(self) -> Iterator[Event]:
        """All events in the file's order. Raises `ProfileError`: what was found, and which event."""
        count = 0
        try:
            with _open(self.path) as stream:
                for batch in self._batches(stream):
                    yield from batch
                    count += len(batch)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self.error(f"not valid gzip behind event {count}: {error}") from None
        except OSError as error:
            raise self.error(f"cannot be read: {error.strerror or error}") from None
        except msgspec.ValidationError as error:
            raise self.error(f"behind event {count}: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self.error(f"not valid JSON behind event {count}: {error}") from None
        except RecursionError:
            raise self.error(f"nested too deep behind event {count}") from None

    def _batches(self, stream: BinaryIO) -> Iterator[list[Event]]:
        rest = self._header(stream)
        many = msgspec.json.Decoder(list[Event])
        while chunk := stream.read(_CHUNK):
            rest += chunk
            batch, rest = self._split(rest, many)
            yield batch
            if len(rest) > _MOST:
                raise self.error(f"an event of more than {_MOST >> 20} MiB")
        yield self._last(rest)

    def _header(self, stream: BinaryIO) -> bytes:
        """Reads up to the first event. What follows it so far."""
        head = b""
        while chunk := stream.read(_CHUNK):
            head += chunk
            if head.lstrip()[:1] == b"[":
                return head.lstrip()[1:]
            found = _START.search(head)
            if found:
                self._note(head[: found.start()] + b'"traceEvents": []}')
                return head[found.end() :]
            if len(head) > _MOST:
                break
        if not head.strip():
            raise self.error("empty: expected a Chrome trace")
        raise self.error('no "traceEvents": expected a Chrome trace of the PyTorch profiler')

    def _split(
        self, text: bytes, decoder: msgspec.json.Decoder[list[Event]]
    ) -> tuple[list[Event], bytes]:
        """The whole events at the start of a text, and the rest of it."""
        end = len(text)
        for _ in range(64):  # a brace may belong to the arguments of an event: try earlier ones
            cut = text.rfind(b"{", 0, end)
            if cut < 0:
                break
            end = cut
            found = _BETWEEN.search(text, max(0, cut - 64), cut + 1)
            while found and found.end() != cut + 1:
                found = _BETWEEN.search(text, found.end() - 1, cut + 1)
            if not found:
                continue
            try:
                return decoder.decode(b"[" + text[: found.start() + 1] + b"]"), text[cut:]
            except msgspec.ValidationError:
                raise
            except msgspec.DecodeError:
                continue
        return [], text

    def _last(self, text: bytes) -> list[Event]:
        """The events that are left, and the rest of the document."""
        try:
            whole = msgspec.json.decode(b'{"traceEvents":[' + text, type=_Whole)
            self._note(b'{"traceEvents":[' + text)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:  # the document is a plain list
            stripped = text.strip().rstrip(b",")
            if not stripped.endswith(b"]"):
                raise self.error("ends in the middle of its events: is it truncated?") from None
            return msgspec.json.decode(b"[" + stripped, type=list[Event])
        return whole.traceEvents

    def _note(self, document: bytes) -> None:
        found = msgspec.json.decode(document)
        self.header |= {key: value for key, value in found.items() if key != "traceEvents"}


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if zipped else path.open("rb")  # type: ignore[return-value]

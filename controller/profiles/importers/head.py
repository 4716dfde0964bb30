"""The beginning of a file, by which its format is recognised."""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from controller.profiles.errors import ProfileError

_LENGTH = 1 << 16


@dataclass(frozen=True)
class Head:
    """The first 64 KiB of a file, unzipped where it was gzip."""

    path: Path
    "The file."
    raw: bytes
    "Its first bytes."

    @classmethod
    def of(cls, path: Path) -> Head:
        """Read it. Raises `ProfileError` when the file cannot be read."""
        try:
            with path.open("rb") as file:
                zipped = file.read(2) == b"\x1f\x8b"
            with gzip.open(path) if zipped else path.open("rb") as file:
                return cls(path, file.read(_LENGTH))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ProfileError(str(path), f"not valid gzip: {error}") from None
        except OSError as error:
            raise ProfileError(str(path), f"cannot be read: {error.strerror or error}") from None

    @cached_property
    def text(self) -> str:
        """As text; what is not UTF-8 becomes a replacement character."""
        return self.raw.decode("utf-8-sig", errors="replace")

    @cached_property
    def lines(self) -> list[str]:
        """Its lines that are not blank."""
        return [line for line in self.text.splitlines() if line.strip()]

    @property
    def is_json(self) -> bool:
        """Whether it begins as a JSON object or list."""
        return re.match(r"""\s*(\{\s*["}]|\[\s*[\[{"\d\]])""", self.text) is not None

    @property
    def is_binary(self) -> bool:
        """Whether it holds bytes that no text has."""
        return b"\x00" in self.raw or "\ufffd" in self.text[:-4]

    def has_key(self, *names: str) -> bool:
        """Whether a JSON key of that name stands in it."""
        return any(re.search(rf'"{re.escape(name)}"\s*:', self.text) for name in names)

    def columns(self) -> list[str]:
        """The words of a CSV's first line, lower case."""
        first = self.lines[0] if self.lines else ""
        return [word.strip().strip('"').lower() for word in first.split(",")]

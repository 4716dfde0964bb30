"""The error of an input that cannot be read: file, line, key, and what was expected."""

from __future__ import annotations

from controller.model.errors import BadInput


class ProfileError(BadInput):
    """An input file is wrong; the message is one line: `gpt.yaml:12: flows[3].bytes: ...`."""

    def __init__(self, file: str, message: str, line: int | None = None, key: str = "") -> None:
        self.file = file
        "The file as the user named it."
        self.line = line
        "Line, from 1; None where the format has no lines or the place is unknown."
        self.key = key
        "Where in the document: `flows[3].bytes`; empty for the document itself."
        self.reason = " ".join(message.split())
        "What was found and what was expected."
        where = f"{file}:{line}" if line else file
        place = " ".join(key.split())[:200]  # a document's keys may be anything
        super().__init__(": ".join(part for part in (where, place, self.reason) if part))

"""The two ways a command ends badly: the input was wrong, or the work failed."""

from __future__ import annotations


class EchelonError(Exception):
    """Base of the errors whose one-line message is meant for the person at the terminal."""


class BadInput(EchelonError, ValueError):
    """What the user gave cannot be used: exit code 2."""


class WorkFailed(EchelonError, RuntimeError):
    """The input was fine, the work could not be done: exit code 1."""

"""P4Runtime errors: the canonical codes, the exception that carries one, and their form on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from finsy.proto import p4r, rpc_status

from switch.dataplane import DataplaneError, DuplicateEntry, NotFound, TableFull

SPACE = "ALL-echelon-switch"
"""The error space of `p4.v1.Error`: all architectures, this target."""


class Code(IntEnum):
    """google.rpc.Code, which gRPC's status codes equal."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class RequestError(Exception):
    """A request, or one update of it, that cannot be done: a canonical code and a sentence for a person."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


Outcome = RequestError | None
"""What became of one update of a batch."""


def invalid(message: str) -> RequestError:
    """The commonest error."""
    return RequestError(Code.INVALID_ARGUMENT, message)


def not_found(message: str) -> RequestError:
    """What the request names does not exist."""
    return RequestError(Code.NOT_FOUND, message)


def from_dataplane(error: DataplaneError) -> RequestError:
    """What the data plane refused, as P4Runtime says it."""
    if isinstance(error, DuplicateEntry):
        return RequestError(Code.ALREADY_EXISTS, str(error))
    if isinstance(error, TableFull):
        return RequestError(Code.RESOURCE_EXHAUSTED, str(error))
    if isinstance(error, NotFound):
        return RequestError(Code.NOT_FOUND, str(error))
    return RequestError(Code.INVALID_ARGUMENT, str(error))


def batch_status(outcomes: Sequence[Outcome], what: str) -> rpc_status.Status:
    """The status of a batch of which something failed: one `p4.v1.Error` an element, in the batch's order."""
    status = rpc_status.Status(code=Code.UNKNOWN, message=what)
    for outcome in outcomes:
        error = p4r.Error()
        if outcome is not None:
            error.canonical_code = outcome.code
            error.message = outcome.message
            error.space = SPACE
        status.details.add().Pack(error)
    return status

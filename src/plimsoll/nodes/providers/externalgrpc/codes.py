"""The mapping between gRPC status codes and failures of provider calls. Pure."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from plimsoll.core.errors import PlimsollError
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind


class Code(IntEnum):
    """gRPC status codes by number."""

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
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class RpcFailed(PlimsollError):
    """A call that ended with another status than OK."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code
        self.message = message


_CODES: Final = {
    FailureKind.OUT_OF_RESOURCES: Code.RESOURCE_EXHAUSTED,
    FailureKind.REFUSED: Code.FAILED_PRECONDITION,
    FailureKind.NO_SUCH_GROUP: Code.NOT_FOUND,
    FailureKind.FAILED: Code.INTERNAL,
    FailureKind.HELD: Code.FAILED_PRECONDITION,
    FailureKind.UNKNOWN: Code.DEADLINE_EXCEEDED,
}
# Servers in Go answer UNKNOWN for any error of theirs: the server answered and refused. UNAVAILABLE may come before the
# call was sent or after, which cannot be distinguished.
_KINDS: Final = {
    Code.RESOURCE_EXHAUSTED: FailureKind.OUT_OF_RESOURCES,
    Code.NOT_FOUND: FailureKind.NO_SUCH_GROUP,
    Code.CANCELLED: FailureKind.UNKNOWN,
    Code.DEADLINE_EXCEEDED: FailureKind.UNKNOWN,
    Code.UNAVAILABLE: FailureKind.UNKNOWN,
    Code.UNKNOWN: FailureKind.FAILED,
    Code.INTERNAL: FailureKind.FAILED,
    Code.ABORTED: FailureKind.FAILED,
    Code.DATA_LOSS: FailureKind.FAILED,
}


def to_failure(error: RpcFailed) -> CallFailed:
    """The outcome of a changing call; a code without a failure kind of its own is a refusal."""
    return CallFailed(kind=_KINDS.get(error.code, FailureKind.REFUSED), message=error.message or error.code.name)


def to_error(failure: CallFailed) -> RpcFailed:
    """The error that a server returns for a failure."""
    return RpcFailed(_CODES[failure.kind], failure.message)

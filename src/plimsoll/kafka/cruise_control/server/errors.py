"""Errors in Cruise Control's words. Clients depend on parts of these texts (docs/design/kafka.md 7.2)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from plimsoll.core.errors import NotEnoughData, PlimsollError, Unreachable
from plimsoll.kafka.executor.errors import RecordUnusable

_PACKAGE: Final = "com.linkedin.kafka.cruisecontrol.exception"
USER_REQUEST: Final = "com.linkedin.kafka.cruisecontrol.servlet.UserRequestException"
WRAPPED: Final = f"{_PACKAGE}.KafkaCruiseControlException"
ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
ILLEGAL_STATE: Final = "java.lang.IllegalStateException"
NUMBER_FORMAT: Final = "java.lang.NumberFormatException"
PATTERN_SYNTAX: Final = "java.util.regex.PatternSyntaxException"
TIMEOUT: Final = "org.apache.kafka.common.errors.TimeoutException"


class RequestRefused(PlimsollError):
    """A request that is wrong in itself. No task is created for it."""

    def __init__(self, message: str, *, status: HTTPStatus = HTTPStatus.BAD_REQUEST, cause: str = USER_REQUEST) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.cause = cause


class OperationFailed(PlimsollError):
    """An operation that failed: its task ends with an error."""

    def __init__(self, message: str, *, status: HTTPStatus = HTTPStatus.INTERNAL_SERVER_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def build_failure(error: PlimsollError) -> OperationFailed:
    """The failure of an operation. Clients find brokers and a record that did not answer in its text."""
    match error:
        case Unreachable() | NotEnoughData():
            return OperationFailed(f"{WRAPPED}: {TIMEOUT}: {error}")
        case RecordUnusable():
            return OperationFailed(f"{WRAPPED}: RecordUnusable: {error}")
    return OperationFailed(f"{WRAPPED}: {error}")

"""Errors of the executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason


class ExecutionRefused(PlimsollError):
    """An execution may not start: another one runs, a limit forbids it, replicas are not in sync. Nothing was sent."""

    exit_code: ClassVar[int] = 1

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class RecordUnusable(PlimsollError):
    """The record of executions cannot be read or written, or is damaged. It is never ignored."""

    exit_code: ClassVar[int] = 1

"""The errors of CEL expressions; callers outside this package catch only these.

CelError (PlimsollError)
├── CelCompileError      the expression is not valid; `message` is the text that Kubernetes prints
├── CelEvaluationError   a value made the expression fail: "no such key: b", "divide by zero"
└── CelBudgetExceeded    evaluation was stopped because it cost too much
"""

from __future__ import annotations

from plimsoll.core.errors import PlimsollError


class CelError(PlimsollError):
    """Base of what this package raises; `message` is the text without any prefix of the caller's."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CelCompileError(CelError):
    """The expression cannot be used: bad syntax, bad types, or a result of the wrong type."""


class CelEvaluationError(CelError):
    """The expression is valid, but failed on these values."""


class CelBudgetExceeded(CelError):
    """Evaluation cost more than was allowed for one call, or for all rules of an object together."""

"""The end of `--once` of a controller whose reconciles failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from plimsoll.core.errors import PlimsollError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Sequence


class ReconcileFailed(PlimsollError):
    """The server answered, and reconciles failed."""


class FailedObject(Protocol):
    """An object that could not be reconciled to the end."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def error(self) -> PlimsollError: ...


def build_failure(failed: Sequence[FailedObject]) -> PlimsollError:
    """The error to raise. A server that answers with an error is reachable: that is not exit code 4."""
    problems = "; ".join(f"{failure.namespace}/{failure.name}: {failure.error}" for failure in failed)
    is_lost = any(isinstance(failure.error, Unreachable) for failure in failed)
    return Unreachable(problems) if is_lost else ReconcileFailed(problems)

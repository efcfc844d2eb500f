"""Finds the object that a loop iteration failed on (docs/decisions/0013-failing-objects.md).

Everything that judges objects works on them one by one, so the innermost function that failed has the object among
its variables. Reading it from the traceback covers every present and future rule without a `try` in each of them, and
costs nothing while nothing fails. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.objects.api.meta import WireObject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_HOLDERS: Final = ("pod", "node", "request", "view")
"""Attributes under which the values of the planner hold the object that they are about."""


def may_be_due_to_object(error: BaseException) -> bool:
    """Whether an error may come from what an object holds: not a failure that the code expects."""
    return isinstance(error, Exception) and (isinstance(error, InvalidInput) or not isinstance(error, PlimsollError))


def find_candidates(error: BaseException) -> Iterator[WireObject]:
    """The objects that the failing functions worked on, those of the innermost function first."""
    seen: set[int] = set()
    for trace in reversed([*_walk(error.__traceback__)]):
        for value in trace.tb_frame.f_locals.values():
            for candidate in (value, *(getattr(value, name, None) for name in _HOLDERS)):
                if isinstance(candidate, WireObject) and candidate.metadata.name and id(candidate) not in seen:
                    seen.add(id(candidate))
                    yield candidate


def describe_failure(error: BaseException) -> str:
    """The error, and the function that failed."""
    innermost = [*_walk(error.__traceback__)][-1].tb_frame
    where = f"{innermost.f_globals.get('__name__', '')}.{innermost.f_code.co_name}"
    return f"cannot be judged: {type(error).__name__}: {error} (in {where})"


def _walk(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next

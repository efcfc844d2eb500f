"""Reconciles all objects of a kind, one after the other. A failure of one does not stop the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import structlog

from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedReconcile:
    """An object that could not be reconciled to the end."""

    namespace: str
    name: str
    error: PlimsollError


async def reconcile_all(
    keys: Iterable[tuple[str, str]], reconcile: Callable[[str, str], Awaitable[R | None]], *, what: str
) -> tuple[R | FailedReconcile, ...]:
    """The results in the order of namespace and name; an object that is gone has none.

    `keys` are namespaces and names. `what` begins the names of the log events: `WHAT.failed`, `WHAT.crashed`.
    """
    found: list[R | FailedReconcile] = []
    failed, crashed = f"{what}.failed", f"{what}.crashed"
    for namespace, name in sorted(keys):
        try:
            result = await reconcile(namespace, name)
        except PlimsollError as error:
            log.warning(failed, namespace=namespace, name=name, problem=str(error))
            found.append(FailedReconcile(namespace=namespace, name=name, error=error))
            continue
        except Exception as error:
            # A value that no check foresaw stops this object and no other.
            log.exception(crashed, namespace=namespace, name=name)
            problem = PlimsollError(f"unexpected {type(error).__name__}: {error}")
            found.append(FailedReconcile(namespace=namespace, name=name, error=problem))
            continue
        if result is not None:
            found.append(result)
    return tuple(found)

"""Background tasks for CustomResourceDefinitions: one at a time, with the watches that end with a definition.

A task that has begun runs to its end even if the client that caused it disconnects, because what is served must agree
with the store.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import structlog

from plimsoll.local.apiserver.status_errors import StatusError

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

_log: Final = structlog.get_logger()


class EndableWatch(Protocol):
    """A watch under way."""

    def end(self) -> None:
        """Let it deliver what it has and then end."""


class CrdTasks:
    """The background tasks of one server."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        """Held for the whole of a follow-up: names are given by what other definitions have at that moment."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._watches: dict[str, dict[EndableWatch, None]] = {}

    async def run_to_completion(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the task; it runs to its end even if the waiting caller is cancelled."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                task.add_done_callback(_log_failure)
            raise

    def add_watch(self, definition: str, watch: EndableWatch) -> None:
        self._watches.setdefault(definition, {})[watch] = None

    def remove_watch(self, definition: str, watch: EndableWatch) -> None:
        sessions = self._watches.get(definition, {})
        sessions.pop(watch, None)
        if not sessions:
            self._watches.pop(definition, None)

    def end_watches(self, definition: str) -> None:
        for session in tuple(self._watches.get(definition, ())):
            session.end()


def _log_failure(task: asyncio.Task[Any]) -> None:
    """Log the failure: no caller waits for the task any more."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, StatusError):
        _log.warning("apiserver.definition_work_failed", error=str(error))

"""A virtual loop that is run step by step: `VirtualRun`.

A scenario file's `{advance: 60s}` and `{at: …}` are `VirtualRun.advance_by` and `advance_to`: all timers up to that
moment fire. A run leaves nothing behind: tasks are cancelled in the order they were created, async generators and the
loop are closed.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

from plimsoll.core.errors import Deadlock, LeftVirtualTime, Runaway
from plimsoll.runtime.deadlocks import build_deadlock
from plimsoll.runtime.garbage_collection import SELDOM_COLLECTING
from plimsoll.runtime.virtual_loop import Limits, VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Sequence
    from types import TracebackType


T = TypeVar("T")

# Any fixed moment will do; a whole hour reads well in outputs.
DEFAULT_START = datetime(2025, 1, 1, tzinfo=UTC)

# How often, and for how much virtual time, what is left at the end is asked to stop: long enough for any grace period.
_CANCELLATIONS = 3
_CLEANING_UP_S = 3_600.0


class VirtualRun:
    """A virtual loop that runs only during the steps of its caller.

    A task started by `spawn` that fails ends the step in which it fails with its error, as in a TaskGroup.
    """

    def __init__(self, *, start: datetime = DEFAULT_START, limits: Limits | None = None) -> None:
        self.loop = VirtualLoop(start=start, limits=limits)
        self.clock = self.loop.clock
        self._failure: BaseException | None = None
        self._awaited: asyncio.Future[Any] | None = None
        self._is_closing = False
        SELDOM_COLLECTING.begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close(after_error=error is not None)

    def spawn(self, coro: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Start a task; it runs as far as the following steps let it."""
        task = self.loop.create_task(coro, name=name)
        task.add_done_callback(self._on_end)
        return task

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        # Work outside the loop's thread is reported by the loop itself.
        if error is not None and not self._is_closing and not isinstance(error, LeftVirtualTime):
            self._failure = self._failure or error
            self.loop.stop()

    def run_until(self, awaitable: Awaitable[T]) -> T:
        """Advance time until `awaitable` is done, and return its result."""
        future = self._run_until_done(awaitable)
        if not future.done():
            self._raise_failure()
            raise RuntimeError("the loop was stopped before its main coroutine ended")
        result = future.result()
        self._raise_failure()
        return result

    def _run_until_done(self, awaitable: Awaitable[T]) -> asyncio.Future[T]:
        self._awaited = future = asyncio.ensure_future(awaitable, loop=self.loop)
        future.add_done_callback(self._on_done)
        try:
            self.loop.run_forever()
        finally:
            # An error may come first, with the callback already on its way: it must not stop what runs next.
            self._awaited = None
        return future

    def _on_done(self, future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and future.exception() is self._failure:
            self._failure = None
        if future is self._awaited:
            self.loop.stop()

    def settle(self) -> None:
        """Run everything that is ready, without advancing time."""
        self._step(self.loop.get_elapsed_ns())

    def advance_by(self, seconds: float) -> None:
        """Advance time by `seconds`. Timers up to and including the last instant fire."""
        if seconds < 0:
            raise ValueError(f"time cannot go back: {seconds} s")
        self._step(self.loop.get_elapsed_ns() + round(seconds * 1_000_000_000))

    def advance_to(self, when: datetime) -> None:
        """Advance time to `when`. Timers up to and including it fire."""
        if when < self.clock.now():
            raise ValueError(f"time cannot go back: {when} is before {self.clock.now()}")
        self._step(max(self.clock.compute_elapsed_ns(when), self.loop.get_elapsed_ns()))

    def _step(self, horizon_ns: int) -> None:
        went_all_the_way = self.loop.run_up_to(horizon_ns)
        self._raise_failure()
        if went_all_the_way:
            self.loop.advance_to(horizon_ns)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self, *, after_error: bool = False) -> None:
        """Cancel what still runs and close the loop. `after_error`: the caller is already handling an error."""
        if self.loop.is_closed():
            return
        self._is_closing = True
        try:
            self._cancel_everything()
            self._run_until_done(self.loop.shutdown_asyncgens())
        except (Deadlock, LeftVirtualTime, Runaway):
            if not after_error:
                raise
        finally:
            self.loop.close()
            SELDOM_COLLECTING.end()

    def _cancel_everything(self) -> None:
        outside_call: LeftVirtualTime | None = None
        for _ in range(_CANCELLATIONS):
            tasks = self.loop.list_unfinished_tasks()
            for task in tasks:
                task.cancel()
            try:
                self._run_until_done(_wait_for_all(tasks))
            except LeftVirtualTime as error:
                outside_call = outside_call or error
            for task in tasks:
                self._report(task)
        if outside_call is not None:
            raise outside_call
        if unfinished := self.loop.list_unfinished_tasks():
            raise build_deadlock(unfinished, why="these tasks continue although they were cancelled:")

    def _report(self, task: asyncio.Task[Any]) -> None:
        """As `asyncio.run`: an error during shutdown is logged and does not hide the outcome of the run."""
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            message = "unhandled exception while a virtual run was closed"
            self.loop.call_exception_handler({"message": message, "exception": error, "task": task})


async def _wait_for_all(tasks: Sequence[asyncio.Task[Any]]) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=_CLEANING_UP_S)

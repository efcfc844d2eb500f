"""Runs transactions: in a thread when live, inline under virtual time; with errors of drivers as our own.

A transaction is a function of a connection, which may run more than once: if the connection is lost before the commit,
or the database asks for it. What was lost within a commit may have been done and is not repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from sqlalchemy import event, exc

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.fleet.errors import DatabaseUnreachable, UnusableDatabase
from plimsoll.fleet.store.dialects import CONNECTIONS

if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import ExceptionContext, ExecutionContext

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.ports import QueryMetrics
    from plimsoll.fleet.store.dialects import Dialect
    from plimsoll.fleet.store.urls import DatabaseAddress

T = TypeVar("T")
Work = Callable[["Connection"], T]
_ATTEMPTS: Final = 5
_LOST_ATTEMPTS: Final = 2
_KINDS: Final = frozenset({"select", "insert", "update", "delete"})
_STARTED: Final = "plimsoll_started_s"
_UNREACHABLE: Final = (exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.TimeoutError)


class RunBlocking(Protocol):
    """Where blocking calls run."""

    async def run(self, function: Callable[[], T]) -> T: ...

    def close(self) -> None: ...


class InlineRunner:
    """In the thread of the loop: for virtual time, on a database in memory."""

    async def run(self, function: Callable[[], T]) -> T:
        return function()

    def close(self) -> None:
        """Nothing waits."""


class ThreadRunner:
    """In threads of its own, as many as there are connections."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="database")

    async def run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    def close(self) -> None:
        self._executor.shutdown()


class Transactions:
    """The only way to the database."""

    def __init__(self, engine: Engine, dialect: Dialect, runner: RunBlocking, address: DatabaseAddress) -> None:
        self.dialect = dialect
        self._engine = engine
        self._runner = runner
        self._address = address

    async def read(self, work: Work[T]) -> T:
        return await self._runner.run(lambda: self.run_reading(work))

    async def write(self, work: Work[T]) -> T:
        return await self._runner.run(lambda: self.run_writing(work))

    def run_reading(self, work: Work[T]) -> T:
        return self._run(self.dialect.open_for_reading, work)

    def run_writing(self, work: Work[T]) -> T:
        return self._run(self.dialect.open_for_writing, work)

    def observe_queries(self, metrics: QueryMetrics, clock: Clock) -> None:
        """Counts every statement from now on."""

        def count(context: ExecutionContext | None, statement: str | None, *, is_success: bool) -> None:
            started_s = getattr(context, _STARTED, None)
            if statement is None or started_s is None:
                return
            duration_s = clock.monotonic_s() - started_s
            metrics.count_query(_find_kind(statement), is_success=is_success, duration_s=duration_s)

        def begin(*event_arguments: Any) -> None:
            setattr(event_arguments[4], _STARTED, clock.monotonic_s())

        def end(*event_arguments: Any) -> None:
            count(event_arguments[4], event_arguments[2], is_success=True)

        def fail(context: ExceptionContext) -> None:
            count(context.execution_context, context.statement, is_success=False)

        event.listen(self._engine, "before_cursor_execute", begin)
        event.listen(self._engine, "after_cursor_execute", end)
        event.listen(self._engine, "handle_error", fail)

    def close(self) -> None:
        self._runner.close()
        self._engine.dispose()

    def _run(self, opening: Callable[[Engine], Any], work: Work[T]) -> T:
        lost = 0
        for attempt in range(1, _ATTEMPTS + 1):
            is_connected = is_committing = False
            try:
                with opening(self._engine) as connection:
                    is_connected = True
                    with connection.begin() as transaction:
                        result = work(connection)
                        is_committing = True
                        transaction.commit()
                    return result
            except exc.SQLAlchemyError as error:
                is_lost = self._has_lost_connection(error)
                lost += is_lost
                is_repeatable = self._is_repeatable(error) or (is_lost and not is_committing and is_connected)
                if not is_repeatable or attempt == _ATTEMPTS or lost > _LOST_ATTEMPTS:
                    raise self._convert_error(error, may_have_committed=is_committing and is_lost) from error
        raise AssertionError("the last attempt returns or raises")

    def _has_lost_connection(self, error: exc.SQLAlchemyError) -> bool:
        if not isinstance(error, exc.DBAPIError) or not isinstance(error.orig, Exception):
            return False
        return error.connection_invalidated or self.dialect.has_lost_connection(error.orig)

    def _is_repeatable(self, error: exc.SQLAlchemyError) -> bool:
        orig = getattr(error, "orig", None)
        return isinstance(orig, Exception) and self.dialect.is_repeatable(orig)

    def _convert_error(self, error: exc.SQLAlchemyError, *, may_have_committed: bool) -> Exception:
        orig = getattr(error, "orig", None)
        if isinstance(orig, PlimsollError):
            return orig
        if isinstance(error, exc.DataError):
            return InvalidInput("the database cannot store this value")
        if isinstance(error, _UNREACHABLE) or self._has_lost_connection(error):
            lines = str(orig or error).strip().splitlines() or ["no answer"]
            problem = self._address.hide_password(lines[0])
            return DatabaseUnreachable(f"{self._address}: {problem}", may_have_committed=may_have_committed)
        if type(error) is exc.DatabaseError:
            return UnusableDatabase(f"{self._address}: {orig}")
        return error


def _find_kind(statement: str) -> str:
    first, _, _ = statement.lstrip().partition(" ")
    return kind if (kind := first.lower()) in _KINDS else "other"

"""The calls in flight on a transport: each has its time limit, and closing the transport ends them all.

Both transports, `kube.http` and that of the embedded server, end calls in the same way. Time is that of the event loop,
which may be virtual.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

T = TypeVar("T")


class InFlightCalls:
    """Deadlines that can be brought forward together."""

    def __init__(self) -> None:
        self._deadlines: set[asyncio.Timeout] = set()

    def limit_time(self, timeout_s: float) -> AbstractAsyncContextManager[None]:
        """Raises `TimeoutError` when time is up, and when `end_all` is called."""
        return _UnderWay(asyncio.timeout(timeout_s), self._deadlines)

    async def carry(self, doing: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Run the call within its time limit. A call that is answered at once needs no deadline."""
        try:
            waits_for = doing.send(None)
        except StopIteration as done:
            answer: T = done.value
            return answer
        async with self.limit_time(timeout_s):
            return await _Rest(doing, waits_for)

    def end_all(self) -> None:
        now = asyncio.get_running_loop().time()
        for deadline in self._deadlines:
            if not deadline.expired():
                deadline.reschedule(now)


class _UnderWay:
    """One call. A class, because every call comes through here and a generator costs three times as much."""

    __slots__ = ("_deadline", "_deadlines")

    def __init__(self, deadline: asyncio.Timeout, deadlines: set[asyncio.Timeout]) -> None:
        self._deadline = deadline
        self._deadlines = deadlines

    async def __aenter__(self) -> None:
        await self._deadline.__aenter__()
        self._deadlines.add(self._deadline)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.discard(self._deadline)
        await self._deadline.__aexit__(kind, error, trace)


class _Rest(Generic[T]):
    """The rest of a coroutine that has been run to its first wait."""

    __slots__ = ("_doing", "_waits_for")

    def __init__(self, doing: Coroutine[Any, Any, T], waits_for: Any) -> None:
        self._doing = doing
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        doing, waits_for = self._doing, self._waits_for
        try:
            while True:
                try:
                    came = yield waits_for
                except BaseException as error:  # noqa: BLE001 -- every exception of its task is passed on, above all cancellation
                    waits_for = doing.throw(error)
                else:
                    waits_for = doing.send(came)
        except StopIteration as done:
            answer: T = done.value
            return answer

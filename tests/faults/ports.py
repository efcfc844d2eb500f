"""The wrapper around a port, and what a fault may do to a call: refuse it, spoil its answer, hold the answer back.

Every public method of the port is wrapped: plain ones, coroutine functions, and those that return an async iterator (a
watch), of which every item counts as a call. Attributes that are no methods pass through, so a port inside a port must
be wrapped by itself.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable

P = TypeVar("P")


class Call(NamedTuple):
    """A call through a wrapped port. `number` counts from 1 over all ports of the fault."""

    number: int
    method: str


class Fault:
    """Base of all faults: lets everything pass. `struck` is the call that was hit, if any was."""

    def __init__(self) -> None:
        self.started = 0
        self.completed = 0
        self.struck: Call | None = None

    @property
    def has_crashed(self) -> bool:
        """Whether the process whose calls are struck has ended."""
        return False

    def wrap(self, port: P) -> P:
        return cast("P", _WrappedPort(port, self))

    def before(self, call: Call) -> None:
        """Raise to keep a call, numbered by its start, from taking effect."""

    def after(self, call: Call) -> None:
        """Raise to spoil the answer of a call, numbered by its end, that took effect (or failed by itself)."""

    async def hold(self, call: Call) -> None:
        """Wait before a call that took effect is answered."""

    def start(self, method: str) -> None:
        self.started += 1
        self.before(Call(self.started, method))

    def complete(self, method: str) -> Call:
        self.completed += 1
        call = Call(self.completed, method)
        self.after(call)
        return call


class _WrappedPort:
    def __init__(self, port: object, fault: Fault) -> None:
        self._port = port
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)
        if not callable(attribute):
            return attribute
        if inspect.iscoroutinefunction(attribute):
            return _coroutine(attribute, self._fault)
        return _plain(attribute, self._fault)

    def __repr__(self) -> str:
        return f"<{self._port!r} behind {type(self._fault).__name__}>"


def _coroutine(method: Callable[..., Awaitable[Any]], fault: Fault) -> Callable[..., Awaitable[Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        fault.start(method.__name__)
        return await _answer(method(*args, **kwargs), fault, method.__name__)

    return call


def _plain(method: Callable[..., Any], fault: Fault) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if inspect.isasyncgenfunction(method):
            return _items(method(*args, **kwargs), fault, method.__name__)
        fault.start(method.__name__)
        try:
            result = method(*args, **kwargs)
        except Exception:
            fault.complete(method.__name__)
            raise
        if inspect.isawaitable(result):
            return _answer(result, fault, method.__name__)
        fault.complete(method.__name__)
        return result

    return call


async def _answer(result: Awaitable[Any], fault: Fault, method: str) -> Any:
    try:
        answer = await result
    except Exception:
        await fault.hold(fault.complete(method))
        raise
    await fault.hold(fault.complete(method))
    return answer


async def _items(stream: AsyncIterable[Any], fault: Fault, method: str) -> AsyncIterator[Any]:
    async for item in stream:
        fault.start(method)
        await fault.hold(fault.complete(method))
        yield item

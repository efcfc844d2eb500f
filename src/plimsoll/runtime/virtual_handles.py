"""The callbacks, timers and tasks in the queues of a virtual loop: deterministic and fast.

They replace asyncio's `Handle`, `TimerHandle` and `Task`. Handles have no debug machinery and expose their fields to
the loop, which runs millions of them; tasks hash by number.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from plimsoll.runtime.thread_isolation import find_calling_place, is_asyncio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextvars import Context
    from types import CodeType

    from plimsoll.runtime.thread_isolation import Place

    Callback = Callable[..., object]

T = TypeVar("T")


class TimerOwner(Protocol):
    """The owner of a timer."""

    def on_timer_cancelled(self) -> None: ...


def _do_nothing() -> None:
    """What a cancelled handle holds, so that it keeps nothing else alive."""


class VirtualHandle(asyncio.Handle):
    """A callback that is ready."""

    __slots__ = ("args", "callback", "context", "dropped")

    def __init__(self, callback: Callback, args: tuple[Any, ...], context: Context | None) -> None:
        self.callback = callback
        self.args = args
        self.context = copy_context() if context is None else context
        self.dropped = False

    def cancel(self) -> None:
        self.dropped = True
        self.callback, self.args = _do_nothing, ()

    def cancelled(self) -> bool:
        return self.dropped

    def get_context(self) -> Context:
        return self.context

    def __repr__(self) -> str:
        return f"<VirtualHandle {self.callback!r}{' cancelled' if self.dropped else ''}>"


class VirtualTimer(asyncio.TimerHandle):
    """A callback that waits for its time. `held`: the loop still has it in its heap."""

    __slots__ = ("args", "callback", "context", "dropped", "held", "owner", "when_s")

    def __init__(
        self, when_s: float, callback: Callback, args: tuple[Any, ...], context: Context | None, owner: TimerOwner
    ) -> None:
        self.when_s = when_s
        self.callback = callback
        self.args = args
        self.context = copy_context() if context is None else context
        self.owner = owner
        self.dropped = False
        self.held = True

    def when(self) -> float:
        return self.when_s

    def cancel(self) -> None:
        if self.held:
            self.held = False
            self.owner.on_timer_cancelled()
        self.dropped = True
        self.callback, self.args = _do_nothing, ()

    def cancelled(self) -> bool:
        return self.dropped

    def get_context(self) -> Context:
        return self.context

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __repr__(self) -> str:
        return f"<VirtualTimer {self.callback!r} at {self.when_s}{' cancelled' if self.dropped else ''}>"


class VirtualTask(asyncio.Task[T]):
    """A task that hashes by its number instead of its address, so that sets of tasks have a stable order."""

    __slots__ = ("number", "origin")

    def __init__(
        self, coro: Coroutine[Any, Any, T], *, number: int, inside: CodeType, name: str | None = None, **options: Any
    ) -> None:
        # Before super().__init__, which puts the task into asyncio's set of all tasks.
        self.number = number
        self.origin: Place | None = _find_origin(coro, inside=inside)
        # asyncio's own default counts the tasks of the whole process: names would depend on what ran before.
        super().__init__(coro, name=name or f"Task-{number}", **options)

    def __hash__(self) -> int:
        return self.number


def _find_origin(coro: Coroutine[Any, Any, Any], *, inside: CodeType) -> Place | None:
    """The caller that started a coroutine of asyncio (`wait_for(to_thread(…))`), which its stack does not show."""
    code = getattr(coro, "cr_code", None)
    return find_calling_place(inside=inside) if code is not None and is_asyncio(code.co_filename) else None

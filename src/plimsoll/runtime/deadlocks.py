"""Error texts for a virtual loop that cannot continue: the waiting tasks, and the callbacks that never end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from plimsoll.core.errors import Deadlock, Runaway
from plimsoll.runtime.thread_isolation import Place, is_machinery

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

_TASKS_LISTED = 20
_CALLBACKS_LISTED = 5


_NOTHING_TO_DO = "nothing is ready and no timer is set, but these tasks still wait:"


def build_deadlock(tasks: Sequence[asyncio.Task[Any]], *, why: str = _NOTHING_TO_DO) -> Deadlock:
    lines = [why]
    lines += [f"  {describe_task_place(task)}" for task in tasks[:_TASKS_LISTED]]
    if len(tasks) > _TASKS_LISTED:
        lines.append(f"  and {len(tasks) - _TASKS_LISTED} more")
    return Deadlock("\n".join(lines))


def build_runaway(busiest: Counter[str], *, iterations: int) -> Runaway:
    lines = [f"the loop ran {iterations} iterations without time passing; busiest at the end:"]
    lines += [f"  {count} times {place}" for place, count in busiest.most_common(_CALLBACKS_LISTED)]
    return Runaway("\n".join(lines))


def describe_task_place(task: asyncio.Task[Any]) -> str:
    """`Task-3 (Worker.run) at worker.py:40 in Worker.fetch`: the innermost frame of the user's own code."""
    coro: Any = task.get_coro()
    title = f"{task.get_name()} ({getattr(coro, '__qualname__', type(coro).__name__)})"
    place: Place | None = None
    # A coroutine shows what it awaits, down to the future that is never resolved.
    while (frame := getattr(coro, "cr_frame", None)) is not None:
        if place is None or not is_machinery(frame.f_code.co_filename):
            place = Place(frame.f_code, frame.f_lineno)
        coro = coro.cr_await
    return title if place is None else f"{title} at {place}"


def describe_callback_place(callback: Any) -> str:
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return describe_task_place(owner)
    code = getattr(callback, "__code__", None)
    name = getattr(callback, "__qualname__", repr(callback))
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"

"""The port through which controllers run planning functions: in a worker thread, or inline in tests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class PlanRunner(Protocol):
    """Calls a planning function and returns its result without blocking the event loop."""

    async def __call__(self, plan: Callable[[], T], /) -> T: ...


async def run_in_thread(plan: Callable[[], T]) -> T:
    """Plans in a thread: kernels and the solver let the event loop go on meanwhile."""
    return await asyncio.to_thread(plan)


async def run_inline(plan: Callable[[], T]) -> T:
    """Plans at once: virtual time has no threads."""
    return plan()

"""Virtual time for tests: `run_virtual` runs a coroutine as `asyncio.run` does, but no real time passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from plimsoll.runtime.virtual_run import DEFAULT_START, VirtualRun

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime

    from plimsoll.runtime.clocks import VirtualClock
    from plimsoll.runtime.virtual_loop import Limits

T = TypeVar("T")


def run_virtual(
    main: Coroutine[Any, Any, T] | Callable[[VirtualClock], Coroutine[Any, Any, T]],
    *,
    start: datetime = DEFAULT_START,
    limits: Limits | None = None,
) -> T:
    """Run `main` to its end in virtual time. A function gets the clock and returns the coroutine."""
    with VirtualRun(start=start, limits=limits) as run:
        return run.run_until(main(run.clock) if callable(main) else main)

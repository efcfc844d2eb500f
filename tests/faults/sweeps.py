"""Drivers: the same story once for every call it makes, each time with the fault at another call.

Four functions describe the scenario.

* `build_world(clock)` makes what outlives a process: the API server, the cloud, the database.
* `build_instance(world, through)` makes a process from the world alone; it passes every port through `through`.
* `run(instance)` runs it, and returns when there is nothing left to do.
* `check(world)` raises if the world is not as it should be.

Each attempt has a new world and a new virtual loop. The sweep ends with the first attempt that the fault did not reach.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from plimsoll.testing import run_virtual
from tests.faults.crashes import CrashAfter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from plimsoll.runtime.clocks import VirtualClock
    from tests.faults.ports import Fault

    Through = Callable[[Any], Any]


class _SweptRun(NamedTuple):
    build_world: Callable[[VirtualClock], Any]
    build_instance: Callable[[Any, Through], Any]
    run: Callable[[Any], Awaitable[None] | None]
    check: Callable[[Any], Awaitable[None] | None]


def sweep_crashes(
    *,
    build_world: Callable[[VirtualClock], Any],
    build_instance: Callable[[Any, Through], Any],
    run: Callable[[Any], Awaitable[None] | None],
    check: Callable[[Any], Awaitable[None] | None],
    calls: Iterable[int] = range(1, 1_001),
) -> int:
    """Crash after every one of `calls` in turn; a second instance, unharmed, finishes. Gives the number of calls."""
    story = _SweptRun(build_world, build_instance, run, check)

    async def attempt(crash: CrashAfter, clock: VirtualClock) -> None:
        world = await _settled(story.build_world(clock))
        await _run_into(crash, story.run, story.build_instance(world, crash.wrap))
        if crash.struck is not None:
            await _settled(story.run(story.build_instance(world, _untouched)))
        await _settled(story.check(world))

    return _sweep(CrashAfter, attempt, calls)


def sweep_faults(
    make_fault: Callable[[int], Fault],
    *,
    build_world: Callable[[VirtualClock], Any],
    build_instance: Callable[[Any, Through], Any],
    run: Callable[[Any], Awaitable[None] | None],
    check: Callable[[Any], Awaitable[None] | None],
    calls: Iterable[int] = range(1, 1_001),
) -> int:
    """Put the fault on every one of `calls` in turn (`make_fault=LoseAnswers`); the same instance must get over it."""
    story = _SweptRun(build_world, build_instance, run, check)

    async def attempt(fault: Fault, clock: VirtualClock) -> None:
        world = await _settled(story.build_world(clock))
        await _settled(story.run(story.build_instance(world, fault.wrap)))
        await _settled(story.check(world))

    return _sweep(make_fault, attempt, calls)


def _sweep(make_fault: Callable[[int], Any], attempt: Callable[[Any, VirtualClock], Any], calls: Iterable[int]) -> int:
    completed = 0
    for n in calls:
        fault = make_fault(n)
        try:
            run_virtual(functools.partial(attempt, fault))
        except Exception as error:
            method = "no call" if fault.struck is None else f"call {fault.struck.number}, {fault.struck.method}"
            error.add_note(f"{type(fault).__name__} struck at {method}")
            raise
        if fault.struck is None:
            if completed == 0:
                raise AssertionError("the instance made no call through a wrapped port: the sweep tried nothing")
            return completed
        completed = n
    raise AssertionError(f"the fault still struck at call {completed}: is there an end to this run?")


async def _run_into(crash: CrashAfter, run: Callable[[Any], Any], instance: object) -> None:
    """Run the instance until it ends or crashes, and make sure that nothing of it goes on."""
    crashed = asyncio.Event()
    crash.on_crash = crashed.set
    running = asyncio.create_task(_settle(run, instance), name="the instance")
    waiting = asyncio.create_task(crashed.wait(), name="waiting for the crash")
    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if crash.struck is None:
        running.result()
        return
    running.cancel()
    await asyncio.wait((running, waiting))
    # Its errors are those of a dead process and do not matter; but it must not have taken its crash for an error.
    if not running.cancelled() and running.exception() is None:
        raise AssertionError("the instance went on after its crash: something swallows BaseException")


async def _settle(function: Callable[[Any], Any], argument: object) -> None:
    await _settled(function(argument))


async def _settled(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


def _untouched(port: Any) -> Any:
    return port

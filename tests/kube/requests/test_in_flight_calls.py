"""What a transport does about the time limits of its calls, most of which are answered without waiting."""

from __future__ import annotations

import asyncio
from unittest import mock

import pytest

from plimsoll.kube.requests.in_flight_calls import InFlightCalls
from plimsoll.runtime.virtual_run import VirtualRun


async def _after(seconds: float) -> str:
    if seconds:
        await asyncio.sleep(seconds)
    return "answer"


def test_a_call_that_is_answered_at_once_sets_no_timer():
    async def story() -> int:
        loop = asyncio.get_running_loop()
        with mock.patch.object(loop, "call_at", wraps=loop.call_at) as set_timer:
            assert await InFlightCalls().carry(_after(0), 30.0) == "answer"
        return set_timer.call_count

    with VirtualRun() as run:
        assert run.run_until(story()) == 0


def test_a_call_that_waits_is_answered_within_its_time():
    with VirtualRun() as run:
        assert run.run_until(InFlightCalls().carry(_after(29), 30.0)) == "answer"


def test_a_call_that_waits_too_long_is_ended_at_its_deadline():
    async def story() -> float:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        with pytest.raises(TimeoutError):
            await InFlightCalls().carry(_after(31), 30.0)
        return loop.time() - began_s

    with VirtualRun() as run:
        assert run.run_until(story()) == pytest.approx(30.0)


def test_closing_the_transport_ends_a_call_that_waits():
    async def story() -> None:
        calls = InFlightCalls()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_ended(calls))
            await asyncio.sleep(1)
            calls.end_all()
            await waiting

    async def _ended(calls: InFlightCalls) -> None:
        with pytest.raises(TimeoutError):
            await calls.carry(_after(10), 30.0)

    with VirtualRun() as run:
        run.run_until(story())


def test_whoever_cancels_the_caller_cancels_the_call():
    async def story() -> bool:
        task = asyncio.create_task(InFlightCalls().carry(_after(10), 30.0))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait((task,))
        return task.cancelled()

    with VirtualRun() as run:
        assert run.run_until(story())


def test_what_a_call_raises_is_raised():
    async def refused() -> None:
        raise ValueError("no")

    with VirtualRun() as run, pytest.raises(ValueError, match="no"):
        run.run_until(InFlightCalls().carry(refused(), 30.0))

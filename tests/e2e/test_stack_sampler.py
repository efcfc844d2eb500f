"""Profiles of a process by its own threads: what another thread is busy with is seen."""

from __future__ import annotations

import asyncio
import threading

from plimsoll.operator.profiler import StackSampler


def _busy_with_plans(ended: threading.Event) -> None:
    while not ended.is_set():
        sum(range(1000))


def test_what_another_thread_is_busy_with_is_seen():
    ended = threading.Event()
    worker = threading.Thread(target=_busy_with_plans, args=(ended,), name="planner")
    worker.start()
    try:
        reported = asyncio.run(StackSampler().profile(0.5))
    finally:
        ended.set()
        worker.join()

    seen = [line for line in reported.splitlines() if line.startswith("planner;")]
    assert sum(int(line.rpartition(" ")[2]) for line in seen) >= 2
    assert any("_busy_with_plans" in line for line in seen)


def test_a_profile_without_a_waiting_caller_ends_at_once():
    async def given_up() -> float:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(0.05):
                await StackSampler().profile(60)
        except TimeoutError:
            pass
        return begun

    async def timed() -> float:
        begun = await given_up()
        await asyncio.get_running_loop().shutdown_default_executor()
        return asyncio.get_running_loop().time() - begun

    assert asyncio.run(timed()) < 30

"""Time in an accelerated loop: timers are faster by one factor, and work of the loop hardly counts."""

from __future__ import annotations

import asyncio
import time

from plimsoll.app.tour.accelerated_loop import AcceleratedLoop


async def sleep_and_measure(loop: AcceleratedLoop, seconds: float) -> float:
    began_s = loop.clock.monotonic_s()
    await asyncio.sleep(seconds)
    return loop.clock.monotonic_s() - began_s


def test_a_sleep_takes_its_time_on_the_clock_of_the_loop():
    loop = AcceleratedLoop(1000)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        began = loop.clock.now()
        took_s = runner.run(sleep_and_measure(loop, 50))
        assert took_s >= 50
        assert (loop.clock.now() - began).total_seconds() >= 50


def test_work_of_the_loop_lets_no_timeout_pass():
    async def work() -> str:
        async with asyncio.timeout(60):
            until_s = time.process_time() + 0.3
            while time.process_time() < until_s:
                pass
            await asyncio.sleep(1)
        return "in time"

    with asyncio.Runner(loop_factory=lambda: AcceleratedLoop(1000)) as runner:
        assert runner.run(work()) == "in time"

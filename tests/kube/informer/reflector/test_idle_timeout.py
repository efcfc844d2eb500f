"""A connection may be silent for so long, counted from what was heard last; hearing something costs no timer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from plimsoll.kube.informer.reflector.idle_timeout import IdleTimeout
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock


async def heard_at(clock: VirtualClock, silence: IdleTimeout, *moments_s: float) -> None:
    """Something is heard after each of these times, and then nothing any more."""
    async with silence:
        for moment_s in moments_s:
            await clock.sleep(moment_s - clock.monotonic_s())
            silence.reset()
        await asyncio.Event().wait()


def test_a_silence_that_is_too_long_ends_the_wait():
    async def main(clock: VirtualClock) -> None:
        with pytest.raises(TimeoutError):
            await heard_at(clock, IdleTimeout(10))
        assert clock.monotonic_s() == 10

    run_virtual(main)


def test_any_received_byte_postpones_the_timeout():
    async def main(clock: VirtualClock) -> None:
        with pytest.raises(TimeoutError):
            await heard_at(clock, IdleTimeout(10), 9, 18, 27)
        assert clock.monotonic_s() == 37

    run_virtual(main)


def test_a_changed_timeout_counts_from_the_last_received_byte():
    async def main(clock: VirtualClock) -> None:
        silence = IdleTimeout(100)
        asyncio.get_running_loop().call_later(3, silence.set_limit, 5)
        with pytest.raises(TimeoutError):
            await heard_at(clock, silence, 1)
        assert clock.monotonic_s() == 6

    run_virtual(main)


def test_nothing_rings_after_the_end():
    async def main(clock: VirtualClock) -> None:
        async with IdleTimeout(10):
            await clock.sleep(1)
        await clock.sleep(100)

    run_virtual(main)

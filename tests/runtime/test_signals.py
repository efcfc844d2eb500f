"""Signals of a real process become cancellation. Real loops only, no waiting: the signals come from ourselves."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from plimsoll.core.errors import LeftVirtualTime
from plimsoll.runtime.signals import run_until_signalled
from plimsoll.testing import run_virtual


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_gracefully(number: signal.Signals):
    cleaned_up: list[str] = []

    async def main() -> None:
        try:
            send(number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned_up.append("all")

    assert asyncio.run(run_until_signalled(main())) is number
    assert cleaned_up == ["all"]


def test_a_second_signal_interrupts_the_cleanup():
    async def main() -> None:
        try:
            send(signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            send(signal.SIGINT)
            await asyncio.Event().wait()

    assert asyncio.run(run_until_signalled(main())) is signal.SIGTERM


def test_without_signal_the_end_is_the_end_of_main():
    assert asyncio.run(run_until_signalled(asyncio.sleep(0))) is None


def test_errors_of_main_come_out():
    async def main() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        asyncio.run(run_until_signalled(main()))


def test_a_cancellation_from_outside_is_passed_on():
    async def main() -> None:
        waiting = asyncio.create_task(run_until_signalled(asyncio.sleep(3600)))
        await asyncio.sleep(0)
        waiting.cancel()
        await waiting

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


def test_handlers_are_gone_afterwards():
    async def main() -> None:
        await run_until_signalled(asyncio.sleep(0))
        assert not asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)

    asyncio.run(main())


def test_virtual_time_has_no_signals():
    with pytest.raises(LeftVirtualTime, match=r"signals\.py"):
        run_virtual(run_until_signalled(asyncio.sleep(0)))

"""Both clocks keep the promises of `plimsoll.core.clock.Clock`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from plimsoll.runtime.clocks import RealClock, VirtualClock


class FixedTime:
    def __init__(self, elapsed_ns: int) -> None:
        self._elapsed_ns = elapsed_ns

    def get_elapsed_ns(self) -> int:
        return self._elapsed_ns

    def time(self) -> float:
        return self._elapsed_ns / 1e9


START = datetime(2025, 1, 1, tzinfo=UTC)


def test_the_real_clock_is_aware_and_in_utc():
    assert RealClock().now().utcoffset() == timedelta(0)


def test_the_real_clock_does_not_go_back():
    clock = RealClock()
    times = [clock.monotonic_s() for _ in range(100)]
    assert times == sorted(times)


def test_the_real_clock_sleeps_on_the_running_loop():
    async def story() -> list[str]:
        seen: list[str] = []
        asyncio.get_running_loop().call_soon(seen.append, "another callback")
        await RealClock().sleep(0)
        return seen

    assert asyncio.run(story()) == ["another callback"]


def test_a_date_cuts_off_what_is_less_than_a_microsecond():
    clock = VirtualClock(FixedTime(1_500_000_999), start=START)
    assert clock.now() == START + timedelta(seconds=1, microseconds=500_000)
    assert clock.monotonic_s() == 1.500000999


def test_dates_far_away_are_exact():
    ten_years = timedelta(days=3652, microseconds=1)
    clock = VirtualClock(FixedTime(ten_years // timedelta(microseconds=1) * 1_000), start=START)
    assert clock.now() == START + ten_years
    assert clock.compute_elapsed_ns(clock.now()) == ten_years // timedelta(microseconds=1) * 1_000


def test_a_date_without_time_zone_is_refused():
    clock = VirtualClock(FixedTime(0), start=START)
    with pytest.raises(ValueError, match="no time zone"):
        clock.compute_elapsed_ns(datetime(2025, 1, 1))  # noqa: DTZ001 -- that is the point

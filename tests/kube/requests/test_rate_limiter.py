"""Not more calls than agreed, first come first served, and a waiter that leaves the line delays no other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from plimsoll.kube.requests.rate_limiter import RateLimit
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock

arrivals_s = st.lists(st.floats(min_value=0, max_value=3).map(lambda s: round(s, 3)), min_size=1, max_size=40)


def passing(
    arrivals: list[float], *, qps: float, burst: int, leaving: dict[int, float] | None = None
) -> list[tuple[int, float]]:
    """Who passed and when, for callers that come at `arrivals`; those `leaving` are cancelled so much later."""
    passed: list[tuple[int, float]] = []

    async def caller(number: int, limit: RateLimit, clock: VirtualClock) -> None:
        await clock.sleep(arrivals[number])
        patience_s = (leaving or {}).get(number)
        try:
            async with asyncio.timeout(patience_s):
                await limit.wait()
        except TimeoutError:
            return
        passed.append((number, clock.monotonic_s()))

    async def main(clock: VirtualClock) -> None:
        limit = RateLimit(qps=qps, burst=burst, clock=clock)
        async with asyncio.TaskGroup() as tasks:
            for number in range(len(arrivals)):
                tasks.create_task(caller(number, limit, clock))

    run_virtual(main)
    return passed


def test_a_burst_passes_at_once_and_the_rest_at_the_rate():
    times = [at for _, at in passing([0.0] * 6, qps=2, burst=3)]
    assert times == [0, 0, 0, 0.5, 1.0, 1.5]


def test_without_a_rate_everything_passes_at_once():
    assert {at for _, at in passing([0.0] * 1_000, qps=0, burst=0)} == {0}


def test_an_idle_time_fills_the_bucket_only_to_its_brim():
    times = [at for _, at in passing([0.0, 0.0, 100.0, 100.0, 100.0], qps=1, burst=2)]
    assert times == [0, 0, 100, 100, 101]


def test_a_caller_that_is_cancelled_takes_no_token_and_delays_no_other():
    passed = passing([0.0] * 4, qps=1, burst=1, leaving={1: 0.5, 2: 0.7})
    assert passed == [(0, 0), (3, 1.0)]


@settings(max_examples=100)
@given(arrivals_s, st.sampled_from([0.5, 1, 7, 50, 333]), st.integers(1, 8), st.data())
def test_any_interval_holds_at_most_burst_and_rate(arrivals: list[float], qps: float, burst: int, data: st.DataObject):
    who = st.integers(0, len(arrivals) - 1)
    leaving = data.draw(st.dictionaries(who, st.floats(min_value=0.001, max_value=2), max_size=10))
    times = [at for _, at in passing(arrivals, qps=qps, burst=burst, leaving=leaving)]
    for first, start in enumerate(times):
        for last in range(first, len(times)):
            assert last - first + 1 <= burst + qps * (times[last] - start) + 1e-6


@settings(max_examples=100)
@given(arrivals_s, st.sampled_from([0.5, 7, 50]), st.integers(1, 8), st.data())
def test_callers_pass_in_the_order_they_came(arrivals: list[float], qps: float, burst: int, data: st.DataObject):
    who = st.integers(0, len(arrivals) - 1)
    leaving = data.draw(st.dictionaries(who, st.floats(min_value=0.001, max_value=2), max_size=10))
    passed = passing(arrivals, qps=qps, burst=burst, leaving=leaving)
    came = [arrivals[number] for number, _ in passed]
    assert came == sorted(came)
    assert {number for number, _ in passed} >= set(range(len(arrivals))) - set(leaving)


def test_a_long_wait_is_reported_once_until_the_congestion_is_over():
    with capture_logs() as reported:
        passing([0.0] * 10 + [60.0] * 10, qps=1, burst=2)
    assert [line["event"] for line in reported] == ["client.throttled"] * 2

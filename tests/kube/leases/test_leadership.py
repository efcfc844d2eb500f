from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.kube.leases import LeadershipLost, LeaseNotAcquired, Phase, run_while_leading, start_elector
from plimsoll.testing import run_virtual
from tests.kube.leases.simulated_leases import CallOutcome, lease_world

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.runtime.clocks import VirtualClock
    from tests.golden.reviewed_sentences import ReviewedSentences
    from tests.kube.leases.simulated_leases import Contender


async def lead(contender: Contender, main: Any, *, waits: bool = True) -> Any:
    async with start_elector(contender.elector) as holder:
        return await run_while_leading(holder, main, waits=waits)


def test_main_runs_when_the_lease_is_acquired_and_its_end_gives_the_lease_back():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()

            async def work() -> str:
                assert a.holder.is_leading
                await clock.sleep(40)
                return "done"

            return await lead(a, work), (await world.spec())["holderIdentity"], a.holder.phase

    assert run_virtual(main) == ("done", "", Phase.STOOD_DOWN)


def test_the_error_of_main_comes_out_as_it_is_and_the_lease_is_given_back():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:

            async def work() -> None:
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await lead(world.contender(), work)
            return (await world.spec())["holderIdentity"]

    assert run_virtual(main) == ""


def test_a_loss_cancels_main_and_does_not_touch_the_lease(reviewed: ReviewedSentences):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, ended_at_s = world.contender(), []

            async def work() -> None:
                try:
                    a.network.fate = lambda _: CallOutcome(outcome="unsent")
                    await clock.sleep(1000)
                finally:
                    ended_at_s.append(clock.monotonic_s())

            with pytest.raises(LeadershipLost) as raised:
                await lead(a, work)
            reviewed(str(raised.value))
            return ended_at_s, (await world.spec())["holderIdentity"]

    ended_at_s, holder = run_virtual(main)
    assert ended_at_s == [pytest.approx(10, abs=0.01)]
    assert holder == "a"


async def slow_to_stop(clock: Clock) -> None:
    try:
        await clock.sleep(1000)
    finally:
        await clock.sleep(3)


def test_a_cancelled_main_holds_the_lease_until_it_has_ended():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            leading = asyncio.create_task(lead(a, lambda: slow_to_stop(clock)))
            await clock.sleep(10)
            leading.cancel()
            await clock.sleep(2.5)
            during = (await world.spec())["holderIdentity"], a.holder.is_leading
            with pytest.raises(asyncio.CancelledError):
                await leading
            return during, clock.monotonic_s(), (await world.spec())["holderIdentity"]

    assert run_virtual(main) == (("a", True), 13, "")


def test_a_candidate_that_is_cancelled_before_it_leads_writes_nothing():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            world.start(a)
            await a.holder.wait_until_acquired()
            waiting = asyncio.create_task(lead(b, lambda: slow_to_stop(clock)))
            await clock.sleep(5)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return clock.monotonic_s(), b.holder.phase, (await world.spec())["holderIdentity"]

    assert run_virtual(main) == (5, Phase.STOOD_DOWN, "a")


def test_after_standing_down_nothing_is_allowed_however_long_the_lease_is_good():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender()
            a.network.fate = lambda call: CallOutcome(outcome="unsent" if call.method == "PATCH" else "ok")
            async with start_elector(a.elector) as holder:
                await holder.wait_until_acquired()
            return holder.is_leading, (await world.spec())["holderIdentity"]

    assert run_virtual(main) == (False, "a")


async def nothing_is_done() -> None:
    raise AssertionError("it does not lead")


def test_one_that_waits_for_no_living_leader_names_it_and_ends(reviewed: ReviewedSentences):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            world.start(a)
            await clock.sleep(30)
            with capture_logs() as logged, pytest.raises(LeaseNotAcquired) as raised:
                await lead(b, nothing_is_done, waits=False)
            warned = [str(entry["problem"]) for entry in logged if entry["event"] == "lease.waiting"]
            reviewed(*warned, str(raised.value))
            return clock.monotonic_s() - 30, (await world.spec())["holderIdentity"], raised.value.exit_code

    waited_s, holder, code = run_virtual(main)
    assert waited_s < 5
    assert (holder, code) == ("a", 1)


def test_one_that_waits_for_no_living_leader_takes_the_lease_of_a_dead_one():
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a, b = world.contender("a"), world.contender("b")
            world.start(a)
            await clock.sleep(30)
            a.network.fate = lambda _: CallOutcome(outcome="unsent")

            async def work() -> float:
                return clock.monotonic_s()

            return await lead(b, work, waits=False)

    assert 42 < run_virtual(main) < 30 + 15 + 2


def test_one_that_waits_for_no_living_leader_ends_when_the_lease_cannot_be_read(reviewed: ReviewedSentences):
    async def main(clock: VirtualClock):
        async with lease_world(clock) as world:
            a = world.contender("a")
            a.network.fate = lambda _: CallOutcome(outcome="unsent")
            with pytest.raises(LeaseNotAcquired) as raised:
                await lead(a, nothing_is_done, waits=False)
            reviewed(str(raised.value))
            return clock.monotonic_s()

    assert run_virtual(main) < 26

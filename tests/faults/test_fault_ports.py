"""What each fault does to the calls of a port."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from plimsoll.testing import run_virtual
from tests.faults import Answer5xx, Call, CrashAfter, Crashed, Delay, Fault, Flaky, LoseAnswers, ServerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.runtime.clocks import VirtualClock


class Cloud:
    """A port with every kind of method; `effects` is the world."""

    zone = "a"

    def __init__(self) -> None:
        self.effects: list[str] = []

    async def create(self, name: str) -> str:
        await asyncio.sleep(0)
        self.effects.append(name)
        return f"created {name}"

    def create_now(self, name: str) -> str:
        self.effects.append(name)
        return f"created {name}"

    async def refuse(self) -> None:
        raise KeyError("no quota")

    async def watch(self) -> AsyncIterator[str]:
        for name in "abc":
            yield name


def test_without_fault_everything_passes():
    async def main():
        cloud = Fault().wrap(Cloud())
        watched = [name async for name in cloud.watch()]
        return cloud.zone, await cloud.create("x"), cloud.create_now("y"), cloud.effects, watched

    assert run_virtual(main()) == ("a", "created x", "created y", ["x", "y"], ["a", "b", "c"])


def test_a_crash_comes_after_the_call_took_effect():
    async def main():
        world = Cloud()
        crash = CrashAfter(2)
        cloud = crash.wrap(world)
        await cloud.create("one")
        with pytest.raises(Crashed, match="after call 2, create"):
            await cloud.create("two")
        return world.effects, crash.struck

    assert run_virtual(main()) == (["one", "two"], Call(2, "create"))


def test_after_the_crash_no_call_of_any_kind_takes_effect():
    async def main():
        world = Cloud()
        crash = CrashAfter(1)
        cloud, other = crash.wrap(world), crash.wrap(Cloud())
        with pytest.raises(Crashed):
            cloud.create_now("one")
        with pytest.raises(Crashed):
            await cloud.create("two")
        with pytest.raises(Crashed):
            cloud.create_now("three")
        with pytest.raises(Crashed):
            await anext(cloud.watch())
        with pytest.raises(Crashed):
            other.create_now("four")
        return world.effects

    assert run_virtual(main()) == ["one"]


def test_calls_of_several_ports_are_counted_together():
    crash = CrashAfter(2)
    one, other = Cloud(), Cloud()
    crash.wrap(one).create_now("x")
    with pytest.raises(Crashed):
        crash.wrap(other).create_now("y")


def test_a_call_that_fails_by_itself_counts():
    async def main():
        with pytest.raises(Crashed):
            await CrashAfter(1).wrap(Cloud()).refuse()

    run_virtual(main())


def test_a_crash_may_come_between_two_items_of_a_watch():
    async def main():
        watch = CrashAfter(3).wrap(Cloud()).watch()
        seen = [await anext(watch), await anext(watch)]
        with pytest.raises(Crashed, match="after call 3, watch"):
            await anext(watch)
        return seen

    assert run_virtual(main()) == ["a", "b"]


def test_crashed_is_not_an_exception():
    assert not issubclass(Crashed, Exception)


def test_a_crash_before_the_first_call_is_no_crash_point():
    with pytest.raises(ValueError, match="counted from 1"):
        CrashAfter(0)


def test_a_lost_answer_leaves_the_effect():
    async def main():
        world = Cloud()
        cloud = LoseAnswers(1, 3).wrap(world)
        with pytest.raises(TimeoutError, match="the answer was lost"):
            await cloud.create("one")
        await cloud.create("two")
        with pytest.raises(TimeoutError):
            cloud.create_now("three")
        return world.effects

    assert run_virtual(main()) == ["one", "two", "three"]


def test_the_error_of_a_lost_answer_may_be_chosen():
    cloud = LoseAnswers(1, error=ConnectionResetError).wrap(Cloud())
    with pytest.raises(ConnectionResetError):
        cloud.create_now("one")


def test_a_5xx_answer_means_no_effect():
    async def main():
        world = Cloud()
        cloud = Answer5xx(2, 502, times=2).wrap(world)
        await cloud.create("one")
        for _ in range(2):
            with pytest.raises(ServerError, match="502"):
                await cloud.create("refused")
        await cloud.create("two")
        return world.effects

    assert run_virtual(main()) == ["one", "two"]


def test_a_delayed_answer_comes_later_than_its_effect():
    async def main(clock: VirtualClock):
        world = Cloud()
        cloud = Delay(30, clock=clock).wrap(world)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(cloud.create("one"), timeout=10)
        effects = list(world.effects)
        answer = await cloud.create("two")
        return effects, answer, clock.monotonic_s()

    assert run_virtual(main) == (["one"], "created two", 40.0)


def test_flaky_calls_fail_by_seed_with_and_without_effect():
    def outcomes(seed: int) -> list[tuple[bool, bool]]:
        world = Cloud()
        cloud = Flaky(seed, share=0.4).wrap(world)
        seen = []
        for number in range(200):
            try:
                cloud.create_now(str(number))
                answered = True
            except TimeoutError:
                answered = False
            seen.append((answered, str(number) in world.effects))
        return seen

    assert outcomes(1) == outcomes(1) != outcomes(2)
    assert set(outcomes(1)) == {(True, True), (False, True), (False, False)}
    assert 40 < sum(not answered for answered, _ in outcomes(1)) < 120

"""The sweep catches an actuator that a crash or a lost answer makes act twice, and passes one that looks first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults import Answer5xx, LoseAnswers, ServerError, sweep_crashes, sweep_faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.runtime.clocks import VirtualClock

WANTED = ("n1", "n2", "n3")


class SharedState:
    """A cloud that sells machines, and the records of who bought which for what."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.cloud = Cloud()
        self.records = Records()


class Cloud:
    def __init__(self) -> None:
        self.machines: list[str] = []

    async def create(self, tag: str) -> None:
        self.machines.append(tag)

    async def tags(self) -> list[str]:
        return list(self.machines)


class Records:
    def __init__(self) -> None:
        self.done: list[str] = []

    async def mark_done(self, tag: str) -> None:
        if tag not in self.done:
            self.done.append(tag)

    async def finished(self) -> list[str]:
        return list(self.done)


class UncheckedController:
    """Creates, then writes down that it did: a crash in between buys the machine twice."""

    def __init__(self, world: SharedState, through: Callable[[Any], Any]) -> None:
        self.clock = world.clock
        self.cloud: Cloud = through(world.cloud)
        self.records: Records = through(world.records)

    async def run(self) -> None:
        finished = await self.records.finished()
        for tag in WANTED:
            if tag not in finished:
                await self.cloud.create(tag)
                await self.records.mark_done(tag)


class IdempotentController(UncheckedController):
    """Looks at the cloud itself before it creates."""

    async def run(self) -> None:
        for tag in WANTED:
            if tag not in await self.cloud.tags():
                await self.cloud.create(tag)
            await self.records.mark_done(tag)


class RetryingController(IdempotentController):
    """Tries again, from looking on, when something does not answer."""

    async def run(self) -> None:
        for attempt in range(1, 6):
            try:
                await super().run()
            except (TimeoutError, ServerError):
                await self.clock.sleep(attempt)
            else:
                return


def check(world: SharedState) -> None:
    assert sorted(world.cloud.machines) == sorted(WANTED)
    assert sorted(world.records.done) == sorted(WANTED)


def test_the_sweep_catches_an_actuator_that_is_not_idempotent():
    with pytest.raises(AssertionError) as raised:
        sweep_crashes(
            build_world=SharedState, build_instance=UncheckedController, run=UncheckedController.run, check=check
        )
    assert raised.value.__notes__ == ["CrashAfter struck at call 2, create"]


def test_the_sweep_passes_an_idempotent_actuator_at_every_crash_point():
    tried = sweep_crashes(
        build_world=SharedState, build_instance=IdempotentController, run=IdempotentController.run, check=check
    )
    assert tried == 3 * len(WANTED)


@pytest.mark.parametrize("make_fault", [LoseAnswers, Answer5xx])
def test_lost_answers_and_refusals_are_swept_alike(make_fault: type[LoseAnswers | Answer5xx]):
    tried = sweep_faults(
        make_fault, build_world=SharedState, build_instance=RetryingController, run=RetryingController.run, check=check
    )
    # At the last call, the retry makes further calls, which lie beyond the first attempt's end.
    assert tried == 3 * len(WANTED)


def test_an_instance_that_cannot_bear_a_fault_is_caught():
    with pytest.raises(TimeoutError) as raised:
        sweep_faults(
            LoseAnswers,
            build_world=SharedState,
            build_instance=IdempotentController,
            run=IdempotentController.run,
            check=check,
        )
    assert raised.value.__notes__ == ["LoseAnswers struck at call 1, tags"]


def test_a_crash_in_a_background_task_takes_the_whole_instance_down():
    class Concurrent(IdempotentController):
        async def run(self) -> None:
            async with asyncio.TaskGroup() as group:
                for tag in WANTED:
                    group.create_task(self.ensure(tag))

        async def ensure(self, tag: str) -> None:
            if tag not in await self.cloud.tags():
                await self.cloud.create(tag)
            await self.records.mark_done(tag)

    assert sweep_crashes(build_world=SharedState, build_instance=Concurrent, run=Concurrent.run, check=check) == 9


def test_an_instance_that_swallows_its_crash_is_caught():
    class Undead(IdempotentController):
        async def run(self) -> None:
            try:
                await super().run()
            except BaseException:  # noqa: BLE001 -- the mistake that is to be caught
                return

    with pytest.raises(AssertionError, match="swallows BaseException"):
        sweep_crashes(build_world=SharedState, build_instance=Undead, run=Undead.run, check=check)


def test_an_instance_that_waits_elsewhere_when_it_crashes_is_stopped():
    class Waiting(IdempotentController):
        async def run(self) -> None:
            background = asyncio.create_task(super().run())
            await asyncio.wait({background})
            if background.exception() is not None:
                await asyncio.Event().wait()

    assert sweep_crashes(build_world=SharedState, build_instance=Waiting, run=Waiting.run, check=check) == 9


def test_a_sweep_that_tries_nothing_fails():
    def unwrapped(world: SharedState, _through: Callable[[Any], Any]) -> IdempotentController:
        return IdempotentController(world, lambda port: port)

    with pytest.raises(AssertionError, match="tried nothing"):
        sweep_crashes(build_world=SharedState, build_instance=unwrapped, run=IdempotentController.run, check=check)


def test_a_run_without_end_is_given_up():
    with pytest.raises(AssertionError, match="still struck at call 5"):
        sweep_crashes(
            build_world=SharedState,
            build_instance=IdempotentController,
            run=IdempotentController.run,
            check=check,
            calls=range(1, 6),
        )


def test_plain_functions_are_swept_too():
    class Ledger:
        def __init__(self, _clock: VirtualClock) -> None:
            self.rows: set[str] = set()

        def write(self, row: str) -> None:
            self.rows.add(row)

    def write_all(ledger: Ledger) -> None:
        for tag in WANTED:
            ledger.write(tag)

    def is_whole(ledger: Ledger) -> None:
        assert ledger.rows == set(WANTED)

    tried = sweep_crashes(
        build_world=Ledger, build_instance=lambda ledger, through: through(ledger), run=write_all, check=is_whole
    )
    assert tried == len(WANTED)

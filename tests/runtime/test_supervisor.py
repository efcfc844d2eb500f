"""Services are kept alive, in order, and stopped in reverse; all of it in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.core.errors import GaveUp, InvalidInput
from plimsoll.runtime.backoff import Backoff
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import OnEnd, RestartPolicy, Service, ServiceState, Supervisor
from plimsoll.runtime.virtual_run import VirtualRun
from tests.faults import Crashed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.golden.reviewed_sentences import ReviewedSentences

STEADY = RestartPolicy(backoff=Backoff(initial_s=1, factor=2, cap_s=60, jitter=0, reset_after_s=600))
ONE_SHOT = RestartPolicy(on_end=OnEnd.EXPECTED, backoff=STEADY.backoff)


@pytest.fixture
def run() -> Iterator[VirtualRun]:
    with VirtualRun() as run:
        yield run


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[Any]]:
    with capture_logs() as logs:
        yield logs


def supervisor_of(run: VirtualRun, *services: Service, grace_s: float = 10) -> Supervisor:
    return Supervisor(services, clock=run.clock, entropy=SeededEntropy(1), grace_s=grace_s)


def service(name: str, behave: Callable[[], Any], *, policy: RestartPolicy = STEADY) -> Service:
    return Service(name=name, run=behave, policy=policy)


async def for_ever() -> None:
    await asyncio.Event().wait()


async def crash_at_once() -> None:
    raise ValueError("boom")


def stop(run: VirtualRun, supervising: asyncio.Task[None]) -> None:
    supervising.cancel()
    with pytest.raises(asyncio.CancelledError):
        run.run_until(supervising)


# -- keeping alive


def test_a_crashing_service_is_restarted_with_growing_waits(run: VirtualRun):
    started_at: list[float] = []

    async def crash() -> None:
        started_at.append(run.clock.monotonic_s())
        raise ValueError("boom")

    run.spawn(supervisor_of(run, service("flaky", crash)).run())
    run.advance_by(100)
    assert started_at == [0, 1, 3, 7, 15, 31, 63]


def test_an_hour_of_restarts(run: VirtualRun):
    supervisor = supervisor_of(run, service("flaky", crash_at_once))
    run.spawn(supervisor.run())
    run.advance_by(3600)
    (status,) = supervisor.get_status()
    assert (status.state, status.failures, status.restarts) == (ServiceState.BACKING_OFF, 65, 64)
    assert status.last_error == "ValueError: boom"


def test_one_service_crashing_does_not_touch_the_others(run: VirtualRun):
    supervisor = supervisor_of(run, service("flaky", crash_at_once), service("steady", for_ever))
    run.spawn(supervisor.run())
    run.advance_by(60)
    steady = supervisor.get_status()[1]
    assert (steady.state, steady.restarts, steady.is_healthy) == (ServiceState.RUNNING, 0, True)
    assert not supervisor.get_status()[0].is_healthy


def test_a_service_that_was_well_for_long_starts_its_waits_afresh(run: VirtualRun):
    started_at: list[float] = []

    async def crash_after_a_while() -> None:
        started_at.append(run.clock.monotonic_s())
        await run.clock.sleep(0 if len(started_at) < 4 else 600)
        raise ValueError("boom")

    run.spawn(supervisor_of(run, service("flaky", crash_after_a_while)).run())
    run.advance_by(609)
    assert started_at == [0, 1, 3, 7, 608]


def test_a_service_that_returns_is_restarted_unless_that_is_expected(run: VirtualRun):
    starts = {"loop": 0, "one-shot": 0}

    def starting(name: str) -> Callable[[], Any]:
        async def start() -> None:
            starts[name] += 1

        return start

    supervisor = supervisor_of(
        run, service("loop", starting("loop")), service("one-shot", starting("one-shot"), policy=ONE_SHOT)
    )
    run.spawn(supervisor.run())
    run.advance_by(4)
    assert starts == {"loop": 3, "one-shot": 1}
    loop, one_shot = supervisor.get_status()
    assert (loop.failures, loop.restarts) == (0, 2)
    assert (one_shot.state, one_shot.is_healthy) == (ServiceState.ENDED, True)


def test_one_shots_that_crash_are_repeated(run: VirtualRun):
    outcomes = iter([ValueError("first"), ValueError("second"), None])

    async def migrate() -> None:
        if error := next(outcomes):
            raise error

    supervisor = supervisor_of(run, service("migration", migrate, policy=ONE_SHOT))
    run.run_until(supervisor.run())
    assert (supervisor.get_status()[0].state, run.clock.monotonic_s()) == (ServiceState.ENDED, 3.0)


def test_a_supervisor_ends_when_all_its_one_shots_did(run: VirtualRun):
    async def short() -> None:
        await run.clock.sleep(5)

    run.run_until(supervisor_of(run, service("a", short, policy=ONE_SHOT), service("b", short, policy=ONE_SHOT)).run())
    assert run.clock.monotonic_s() == 5.0


def test_a_service_cancelled_from_inside_counts_as_crashed(run: VirtualRun):
    async def await_something_cancelled() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    supervisor = supervisor_of(run, service("odd", await_something_cancelled))
    run.spawn(supervisor.run())
    run.advance_by(2)
    assert supervisor.get_status()[0].last_error == "CancelledError"
    assert supervisor.get_status()[0].restarts == 1


def test_the_errors_of_a_group_are_reported_in_one_line(run: VirtualRun):
    async def group() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(crash_at_once())

    supervisor = supervisor_of(run, service("group", group))
    run.spawn(supervisor.run())
    run.settle()
    assert supervisor.get_status()[0].last_error == "unhandled errors in a TaskGroup: ValueError: boom"


def test_crashes_are_logged_as_events(run: VirtualRun, logs: list[Any]):
    run.spawn(supervisor_of(run, service("flaky", crash_at_once)).run())
    run.advance_by(1)
    crashes = [entry for entry in logs if entry["event"] == "service.crashed"]
    assert [(entry["service"], entry["error"], entry["log_level"]) for entry in crashes] == [
        ("flaky", "ValueError: boom", "error")
    ] * 2


def test_two_services_of_one_name_are_refused(run: VirtualRun, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        supervisor_of(run, service("a", for_ever), service("a", for_ever))
    reviewed(str(raised.value))


# -- escalation


def test_too_many_failures_in_a_window_stop_the_whole(run: VirtualRun, reviewed: ReviewedSentences):
    policy = RestartPolicy(backoff=STEADY.backoff, escalate_after=3, window_s=60)
    supervisor = supervisor_of(run, service("steady", for_ever), service("flaky", crash_at_once, policy=policy))
    with pytest.raises(GaveUp) as raised:
        run.run_until(supervisor.run())
    reviewed(str(raised.value))
    assert isinstance(raised.value.__cause__, ValueError)
    assert [status.state for status in supervisor.get_status()] == [ServiceState.STOPPED, ServiceState.ESCALATED]
    assert run.clock.monotonic_s() == 3.0


def test_failures_outside_the_window_are_forgiven(run: VirtualRun):
    async def crash_hourly() -> None:
        await run.clock.sleep(3600)
        raise ValueError("boom")

    policy = RestartPolicy(backoff=STEADY.backoff, escalate_after=2, window_s=60)
    supervisor = supervisor_of(run, service("rare", crash_hourly, policy=policy))
    run.spawn(supervisor.run())
    run.advance_by(24 * 3600)
    (status,) = supervisor.get_status()
    assert (status.state, status.restarts) == (ServiceState.RUNNING, 23)


def test_used_up_attempts_escalate_too(run: VirtualRun, reviewed: ReviewedSentences):
    policy = RestartPolicy(backoff=Backoff(initial_s=1, jitter=0, max_attempts=2))
    with pytest.raises(GaveUp) as raised:
        run.run_until(supervisor_of(run, service("flaky", crash_at_once, policy=policy)).run())
    reviewed(str(raised.value))


def test_a_crash_of_the_tests_is_never_swallowed(run: VirtualRun):
    starts = 0

    async def crash() -> None:
        nonlocal starts
        starts += 1
        raise Crashed("by a test")

    supervisor = supervisor_of(run, service("crashing", crash), service("steady", for_ever))
    with pytest.raises(BaseExceptionGroup) as raised:
        run.run_until(supervisor.run())
    assert [type(part) for part in raised.value.exceptions] == [Crashed]
    run.advance_by(3600)
    assert starts == 1


# -- stopping


def test_services_stop_one_after_the_other_in_reverse_order(run: VirtualRun):
    stopped: list[tuple[str, float]] = []

    def slow_to_stop(name: str) -> Service:
        async def behave() -> None:
            try:
                await for_ever()
            finally:
                await run.clock.sleep(2)
                stopped.append((name, run.clock.monotonic_s()))

        return service(name, behave)

    supervisor = supervisor_of(run, *(slow_to_stop(name) for name in ("store", "api", "console")))
    supervising = run.spawn(supervisor.run())
    run.advance_by(100)
    stop(run, supervising)
    assert stopped == [("console", 102.0), ("api", 104.0), ("store", 106.0)]
    assert {status.state for status in supervisor.get_status()} == {ServiceState.STOPPED}


def test_stopping_interrupts_a_back_off(run: VirtualRun):
    supervising = run.spawn(supervisor_of(run, service("flaky", crash_at_once)).run())
    run.advance_by(40)
    stop(run, supervising)
    assert run.clock.monotonic_s() == 40.0


def test_a_service_that_overstays_its_grace_does_not_hold_up_the_others(run: VirtualRun, logs: list[Any]):
    stopped: list[tuple[str, float]] = []

    async def overstay() -> None:
        try:
            await for_ever()
        finally:
            try:
                await run.clock.sleep(3600)
            finally:
                stopped.append(("slow", run.clock.monotonic_s()))

    async def leave_at_once() -> None:
        try:
            await for_ever()
        finally:
            stopped.append(("quick", run.clock.monotonic_s()))

    supervisor = supervisor_of(run, service("quick", leave_at_once), service("slow", overstay), grace_s=10)
    supervising = run.spawn(supervisor.run())
    run.settle()
    stop(run, supervising)
    # Cancelled a second time once everybody else is done.
    assert stopped == [("quick", 10.0), ("slow", 10.0)]
    assert [entry["service"] for entry in logs if entry["event"] == "service.stop_overdue"] == ["slow"]


def test_a_second_cancel_stops_everything_at_once(run: VirtualRun):
    stopped: list[tuple[str, float]] = []

    def slow_to_stop(name: str) -> Service:
        async def behave() -> None:
            try:
                await for_ever()
            finally:
                try:
                    await run.clock.sleep(8)
                finally:
                    stopped.append((name, run.clock.monotonic_s()))

        return service(name, behave)

    supervising = run.spawn(supervisor_of(run, slow_to_stop("a"), slow_to_stop("b")).run())
    run.settle()
    supervising.cancel()
    run.advance_by(3)
    assert stopped == []
    stop(run, supervising)
    # b was in its clean-up and has to hurry; a begins its own.
    assert stopped == [("b", 3.0), ("a", 11.0)]


def test_statuses_show_since_when(run: VirtualRun):
    supervisor = supervisor_of(run, service("flaky", crash_at_once))
    assert supervisor.get_status()[0].state is ServiceState.WAITING
    run.spawn(supervisor.run())
    run.advance_by(5)
    status = supervisor.get_status()[0]
    assert (status.state, (run.clock.now() - status.since).total_seconds()) == (ServiceState.BACKING_OFF, 2.0)

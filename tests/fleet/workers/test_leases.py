"""Leases of workers: who acts, from when, and until when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.ports import LeaseLost
from plimsoll.fleet.workers.leases import GrantedLeases, LeaseTimes, WorkerLease, WorkerLeases
from plimsoll.testing import run_virtual
from tests.fleet.workers.lease_stores import MemoryLeases

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.fleet.ports import LeaseStore

SCALE_UP = Worker.DYNAMIC_SCALE_UP


def build_lease(store: LeaseStore, clock: Clock, holder: str = "one") -> WorkerLease:
    return WorkerLease(store, SCALE_UP, holder=holder, times=LeaseTimes(), clock=clock)


def test_a_holder_acts_until_twenty_seconds_before_its_lease_ends():
    async def story(clock: Clock) -> None:
        lease = build_lease(MemoryLeases(clock), clock)
        assert not lease.is_leading
        assert await lease.renew()
        await clock.sleep(39.9)
        lease.check()
        await clock.sleep(0.2)
        assert not lease.is_leading
        with pytest.raises(LeaseLost):
            lease.check()

    run_virtual(story)


def test_the_time_of_a_slow_answer_is_part_of_the_lease():
    async def story(clock: Clock) -> None:
        store = MemoryLeases(clock)
        store.answers_after_s = 30.0
        lease = build_lease(store, clock)
        assert await lease.renew()
        await clock.sleep(9.9)
        assert lease.is_leading
        await clock.sleep(0.2)
        assert not lease.is_leading

    run_virtual(story)


def test_a_second_process_waits_for_the_end_of_the_lease():
    async def story(clock: Clock) -> None:
        store = MemoryLeases(clock)
        first, second = build_lease(store, clock), build_lease(store, clock, "two")
        await first.renew()
        for _ in range(4):
            assert not await second.renew()
            await clock.sleep(15)
        assert not first.is_leading
        assert await second.renew()
        assert not await first.renew()

    run_virtual(story)


def test_a_database_that_does_not_answer_makes_no_leader():
    async def story(clock: Clock) -> None:
        store = MemoryLeases(clock)
        lease = build_lease(store, clock)
        await lease.renew()
        store.is_down = True
        assert not await lease.renew()
        assert not lease.is_leading
        await lease.release()

    run_virtual(story)


def test_a_holder_that_is_late_says_so_and_gives_the_lease_back():
    """Its time to act is over, the lease of the database is not: another process need not wait for the rest."""

    async def story(clock: Clock) -> None:
        store = MemoryLeases(clock)
        lease, other = build_lease(store, clock), build_lease(store, clock, "two")
        with capture_logs() as logs:
            await lease.renew()
            await clock.sleep(45)
            assert not lease.is_leading
            assert not await other.renew()
            await lease.renew()
            await clock.sleep(45)
            await lease.release()
        assert [entry["event"] for entry in logs] == ["lease.taken", "lease.lost", "lease.taken"]
        assert await other.renew()

    run_virtual(story)


def test_leases_are_renewed_and_released():
    async def story(clock: Clock) -> None:
        store = MemoryLeases(clock)
        gained: list[tuple[Worker, ...]] = []
        leases = WorkerLeases(store, (SCALE_UP, Worker.ACCEPTED_KAFKA), holder="one", times=LeaseTimes(), clock=clock)
        running = asyncio.create_task(leases.run(gained.append))
        for _ in range(20):
            await clock.sleep(10)
            assert leases.list_leading() == (SCALE_UP, Worker.ACCEPTED_KAFKA)
        assert gained == [(SCALE_UP, Worker.ACCEPTED_KAFKA)]
        running.cancel()
        await asyncio.wait((running,))
        assert leases.list_leading() == ()
        assert await store.list_holders() == {}

    run_virtual(story)


def test_a_dry_run_leads_beside_the_holder_while_the_database_answers():
    async def story(clock: Clock) -> None:
        rows = MemoryLeases(clock)
        holder = build_lease(rows, clock)
        assert await holder.renew()
        first, second = (build_lease(GrantedLeases(rows), clock, name) for name in ("two", "three"))
        assert await first.renew()
        assert await second.renew()
        await first.release()
        assert await rows.list_holders() == {SCALE_UP: holder.holder}
        rows.is_down = True
        assert not await second.renew()
        assert not second.has_answer
        rows.is_down = False
        assert await second.renew()
        assert second.has_answer

    run_virtual(story)


def test_a_lease_is_renewed_before_its_holder_stops_acting():
    with pytest.raises(InvalidInput, match="third"):
        LeaseTimes(duration_s=30.0, period_s=15.0)

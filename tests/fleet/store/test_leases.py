"""Leases, writes under a lease, and the pause, on every database.

The clock of SQLite is that of the process, which the test sets; that of PostgreSQL is the server's, so there an expired
lease is one that was taken for a moment.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.statuses import ClusterStatus
from plimsoll.fleet.ports import LeaseLost, LeaseTerm
from tests.fleet.store.databases import CHECK, at, build_kafka, build_ready

if TYPE_CHECKING:
    from plimsoll.fleet.store.database import FleetDatabase
    from tests.fleet.store.databases import DatabaseUnderTest

MOMENT_S = 1e-6


async def expire(database: DatabaseUnderTest, opened: FleetDatabase, worker: str, holder: str) -> None:
    """Let the lease of a holder end without its release."""
    await opened.leases.acquire_lease(worker, holder, duration_s=MOMENT_S)
    database.clock.time = at(1_000)


def test_a_lease_has_one_holder(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        leases = opened.leases
        assert await leases.acquire_lease("w", "a", duration_s=60) == LeaseTerm(worker="w", holder="a", duration_s=60)
        assert await leases.acquire_lease("w", "b", duration_s=60) is None
        assert await leases.acquire_lease("w", "a", duration_s=60) is not None
        assert await leases.acquire_lease("v", "b", duration_s=60) is not None
        assert await leases.list_holders() == {"v": "b", "w": "a"}

    database.play(story)


def test_an_expired_lease_is_free(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        await expire(database, opened, "w", "a")
        assert await opened.leases.list_holders() == {}
        assert await opened.leases.acquire_lease("w", "b", duration_s=60) is not None
        assert await opened.leases.acquire_lease("w", "a", duration_s=60) is None

    database.play(story)


def test_only_the_holder_releases(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        leases = opened.leases
        await leases.acquire_lease("w", "a", duration_s=60)
        await leases.release_lease("w", "b")
        assert await leases.list_holders() == {"w": "a"}
        await leases.release_lease("w", "a")
        assert await leases.list_holders() == {}
        assert await leases.acquire_lease("w", "b", duration_s=60) is not None

    database.play(story)


def test_of_many_that_try_at_once_one_takes_it(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        for round_number in range(5):
            tries = (opened.leases.acquire_lease(f"w{round_number}", f"p{n}", duration_s=60) for n in range(16))
            terms = [term for term in await asyncio.gather(*tries) if term is not None]
            assert len(terms) == 1
            assert (await opened.leases.list_holders())[f"w{round_number}"] == terms[0].holder

    database.play(story)


@pytest.mark.parametrize("duration_s", [0, -1, float("nan"), float("inf"), 1e9])
def test_odd_durations_are_refused(database: DatabaseUnderTest, duration_s: float):
    async def story(opened: FleetDatabase) -> None:
        await opened.leases.acquire_lease("w", "a", duration_s=duration_s)

    with pytest.raises(InvalidInput, match="duration"):
        database.play(story)


def test_an_empty_holder_is_refused(database: DatabaseUnderTest):
    """A released lease has an empty holder, which would own it."""

    async def story(opened: FleetDatabase) -> None:
        await opened.leases.acquire_lease("w", "", duration_s=60)

    with pytest.raises(InvalidInput, match="holder"):
        database.play(story)


def test_writes_under_a_lease_end_with_it(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        leased = opened.store.with_lease("w", "a")
        with pytest.raises(LeaseLost):
            await leased.insert_cluster(build_ready())
        await opened.leases.acquire_lease("w", "a", duration_s=60)
        assert await leased.insert_cluster(build_ready())
        assert await leased.list_clusters() == (build_ready(),)
        await expire(database, opened, "w", "a")
        with pytest.raises(LeaseLost):
            await leased.insert_kafka(build_kafka(), CHECK)
        with pytest.raises(LeaseLost):
            await leased.change_cluster("a", {"cluster_dns": "x"}, statuses=list(ClusterStatus))
        assert await leased.list_clusters() == (build_ready(),)
        await opened.leases.acquire_lease("w", "b", duration_s=60)
        with pytest.raises(LeaseLost):
            await leased.remove_cluster("a", statuses=list(ClusterStatus))
        assert await opened.store.list_clusters() == (build_ready(),)

    database.play(story)


def test_the_pause_is_shared(database: DatabaseUnderTest):
    async def story(opened: FleetDatabase) -> None:
        assert await opened.leases.read_pause() == ""
        assert await opened.leases.set_pause("ann: maintenance") == ""
        assert await opened.leases.read_pause() == "ann: maintenance"
        assert await opened.leases.set_pause(None) == "ann: maintenance"
        assert await opened.leases.read_pause() == ""

    database.play(story)

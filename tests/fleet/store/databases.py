"""Databases for tests: the same tests run on SQLite in memory, in a file, and on PostgreSQL.

In memory a story runs in virtual time, so that nothing can leave the thread of the loop. The others run in real time
with threads.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from plimsoll.fleet.model.clusters import Cluster, DynamicCapacity
from plimsoll.fleet.model.kafkas import KafkaRequest
from plimsoll.fleet.model.statuses import ClusterStatus
from plimsoll.fleet.ports import ClusterRoom, RegionCheck
from plimsoll.fleet.store.database import FleetDatabase, open_database
from plimsoll.fleet.store.secrets import SecretKeys
from plimsoll.fleet.store.urls import parse_url
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from plimsoll.fleet.ports import FleetStore

T = TypeVar("T")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEYS = SecretKeys({"new": b"n" * 32, "old": b"o" * 32})
CHECK = RegionCheck(limit=None, sizes={"x1": 1, "x2": 2}, unknown_size_units=2)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@dataclass
class SetClock:
    """A clock that a test sets."""

    time: datetime = field(default=NOON)

    def now(self) -> datetime:
        return self.time

    def monotonic_s(self) -> float:
        return (self.time - NOON).total_seconds()

    async def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class DatabaseUnderTest:
    """A database at a URL. `play` opens it, runs a story with it, and closes it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = SetClock()

    @property
    def is_memory(self) -> bool:
        return parse_url(self.url).is_memory

    @property
    def is_postgresql(self) -> bool:
        return parse_url(self.url).is_postgresql

    @contextmanager
    def open(self, keys: SecretKeys = KEYS) -> Iterator[FleetDatabase]:
        database = open_database(self.url, clock=self.clock, keys=keys)
        try:
            yield database
        finally:
            database.close()

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        return run_virtual(story) if self.is_memory else asyncio.run(story)

    def play(self, story: Callable[[FleetDatabase], Coroutine[Any, Any, T]]) -> T:
        with self.open() as database:
            return self.run(story(database))

    def play_store(self, story: Callable[[FleetStore], Coroutine[Any, Any, T]]) -> T:
        return self.play(lambda database: story(database.store))


def build_cluster(row_id: str = "a", **fields: Any) -> Cluster:
    given = {
        "id": row_id,
        "created_at": NOON,
        "updated_at": NOON,
        "cloud_provider": "aws",
        "region": "us-east-1",
        "supported_instance_type": "standard",
    }
    return Cluster(**{**given, **fields})


def build_ready(row_id: str = "a", **fields: Any) -> Cluster:
    """A ready cluster with 10 units."""
    given = {
        "cluster_id": f"cid-{row_id}",
        "status": ClusterStatus.READY,
        "multi_az": True,
        "dynamic_capacity_info": {"standard": DynamicCapacity(max_nodes=18, max_units=10, remaining_units=10)},
        "ready_at": NOON,
    }
    return build_cluster(row_id, **{**given, **fields})


def build_room(most_units: int, **fields: Any) -> ClusterRoom:
    """The room of a cluster for Kafkas of any type."""
    given = {"locator": None, "units": {"standard": CHECK.sizes}, "unknown_size_units": {"standard": 2}}
    return ClusterRoom(most_units=most_units, **{**given, **fields})


def build_kafka(row_id: str = "k", **fields: Any) -> KafkaRequest:
    given = {
        "id": row_id,
        "name": f"name-{row_id}",
        "created_at": NOON,
        "updated_at": NOON,
        "owner": "ann",
        "organisation_id": "org",
        "cloud_provider": "aws",
        "region": "us-east-1",
        "instance_type": "standard",
        "size_id": "x1",
    }
    return KafkaRequest(**{**given, **fields})

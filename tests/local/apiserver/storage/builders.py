"""Builders for tests of the store: objects with defaults, a stopped clock, both drivers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.apiserver.storage import (
    Delete,
    Durability,
    HistoryLimits,
    Key,
    MemoryDriver,
    Put,
    SqliteDriver,
    Store,
    Stored,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

both_drivers = pytest.mark.parametrize("driver", ["memory", "sqlite"])


class StoppedClock:
    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def now(self) -> datetime:
        return datetime(2025, 1, 1, tzinfo=UTC)

    def monotonic_s(self) -> float:
        return self.elapsed_s

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"the store slept {seconds} s")


def pod(name: str = "web", namespace: str = "default", *, labels: dict[str, str] | None = None, **spec: Any) -> Any:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if labels is not None:
        metadata["labels"] = labels
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def key(name: str = "web", namespace: str = "default", resource: str = "pods") -> Key:
    return Key(resource, namespace, name)


async def put(store: Store, name: str = "web", namespace: str = "default", **details: Any) -> Stored:
    resource = details.pop("resource", "pods")
    body = pod(name, namespace, **details)
    result = await store.update(key(name, namespace, resource), lambda _current: Put(body))
    assert result is not None
    return result


async def remove(store: Store, name: str = "web", namespace: str = "default") -> Stored | None:
    return await store.update(key(name, namespace), lambda _current: Delete())


@asynccontextmanager
async def opened(
    driver: str,
    directory: Path,
    *,
    limits: HistoryLimits | None = None,
    clock: StoppedClock | None = None,
    durability: Durability = Durability.PROCESS,
) -> AsyncIterator[Store]:
    made = MemoryDriver() if driver == "memory" else SqliteDriver(directory, durability=durability)
    store = Store.open(made, clock=clock or StoppedClock(), limits=limits)
    try:
        yield store
    finally:
        await store.aclose()


def names(items: tuple[Stored, ...]) -> list[str]:
    return [stored.key.path for stored in items]

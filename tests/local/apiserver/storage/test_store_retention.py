"""What the store holds on to, and for how long: resources that come and go, and histories."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from plimsoll.local.apiserver.storage import Compacted, Delete, HistoryLimits, ListQuery, Store
from tests.local.apiserver.storage.builders import StoppedClock, both_drivers, key, opened, put

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.asyncio, both_drivers]

AGE_S = 300.0
SHORT = HistoryLimits(age_s=AGE_S)


def held(store: Store) -> set[str]:
    """The resources the store has memory for."""
    return set(store._resources)


def history_bytes(store: Store) -> int:
    return sum(resource.collection.history.superseded_bytes for resource in store._resources.values())


async def come_and_go(store: Store, resource: str) -> None:
    await put(store, "a", resource=resource)
    await store.update(key("a", resource=resource), lambda _: Delete())


# ---- resources that are empty


async def test_reads_leave_nothing_behind(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        assert store.count("x.example/nothing") == 0
        assert store.list("x.example/nothing", ListQuery(limit=1)).items == ()
        assert store.get_oldest_revision("x.example/nothing") == 0
        store.select_fields("x.example/nothing", lambda _body: {})
        assert held(store) == set()


async def test_a_watch_of_nothing_is_held_while_it_lasts(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        with store.watch("pods"), store.watch("pods", namespace="a", since=1):
            assert held(store) == {"pods"}
        assert held(store) == set()


async def test_a_refused_watch_leaves_nothing_behind(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        await put(store, "a")
        store.compact(store.revision)
        with pytest.raises(Compacted):
            store.watch("nodes", since=1)
        assert held(store) == {"pods"}


async def test_an_empty_resource_goes_when_its_history_has_aged(driver: str, tmp_path: Path):
    clock = StoppedClock()
    async with opened(driver, tmp_path, limits=SHORT, clock=clock) as store:
        await come_and_go(store, "x.example/gone")
        await put(store, "a")
        clock.elapsed_s = AGE_S - 1
        await put(store, "a")
        assert held(store) == {"pods", "x.example/gone"}
        clock.elapsed_s = AGE_S + 1
        await put(store, "a")
        assert held(store) == {"pods"}


async def test_an_empty_resource_goes_with_a_compaction(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        await come_and_go(store, "x.example/gone")
        store.compact(store.revision)
        assert held(store) == set()


async def test_no_watch_resumes_across_what_was_forgotten(driver: str, tmp_path: Path):
    clock = StoppedClock()
    async with opened(driver, tmp_path, limits=SHORT, clock=clock) as store:
        await come_and_go(store, "x.example/gone")
        deletion = store.revision
        clock.elapsed_s = AGE_S + 1
        await put(store, "a")
        assert held(store) == {"pods"}
        assert store.get_oldest_revision("x.example/gone") == deletion
        with pytest.raises(Compacted):
            store.watch("x.example/gone", since=deletion - 1)
        with store.watch("x.example/gone", since=deletion) as watch:
            await put(store, "b", resource="x.example/gone")
            assert (await anext(watch)).object.name == "b"


async def test_fields_are_read_the_same_way_when_a_resource_comes_back(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        store.select_fields("pods", lambda body: {"name": body["metadata"]["name"]})
        await come_and_go(store, "pods")
        store.compact(store.revision)
        written = await put(store, "b")
        assert written.fields == {"name": "b"}
        store.select_fields("pods", lambda _body: {"name": "another"})
        assert written.fields == {"name": "another"}


async def test_fields_are_read_the_same_way_from_old_and_new_objects_after_a_restart(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        await put(store, "old")
    async with opened(driver, tmp_path) as store:
        await put(store, "new")
        store.select_fields("pods", lambda body: {"is": body["metadata"]["name"]})
        listed = store.list("pods").items
        assert [stored.fields["is"] for stored in listed] == (["new"] if driver == "memory" else ["new", "old"])


async def test_a_watcher_of_an_empty_resource_outlives_its_history(driver: str, tmp_path: Path):
    clock = StoppedClock()
    async with opened(driver, tmp_path, limits=SHORT, clock=clock) as store:
        with store.watch("x.example/gone", since=1) as watch:
            waiting = asyncio.create_task(watch.wait_for_batch())
            await come_and_go(store, "x.example/gone")
            reported = [(event.type.value, event.revision) for event in await waiting]
            clock.elapsed_s = AGE_S + 1
            await put(store, "a")
            store.compact(store.revision)
            assert held(store) == {"pods", "x.example/gone"}
            back = await put(store, "b", resource="x.example/gone")
            while not reported or reported[-1][1] < back.revision:
                reported += [(event.type.value, event.revision) for event in await watch.wait_for_batch()]
        assert reported == [("ADDED", 2), ("DELETED", 3), ("ADDED", back.revision)]


async def test_a_write_that_is_under_way_brings_its_resource_back(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        await come_and_go(store, "pods")
        writing = asyncio.create_task(put(store, "b"))
        await asyncio.sleep(0)
        store.compact(store.revision)
        written = await writing
        assert store.get(key("b")) is written


# ---- all histories together


async def test_many_resources_together_keep_to_one_bound(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path, limits=HistoryLimits(bytes_in_all=50_000)) as store:
        for number in range(40):
            for _ in range(3):
                await put(store, "a", resource=f"x.example/k{number}", text="x" * 1_000)
            assert history_bytes(store) <= 50_000
        assert history_bytes(store) > 40_000
        assert store._history_bytes == history_bytes(store)


async def test_the_oldest_changes_go_first_whosever_they_are(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path, limits=HistoryLimits(bytes_in_all=20_000)) as store:
        for resource in ("early", "late"):
            for _ in range(12):
                await put(store, "a", resource=resource, text="x" * 1_000)
        assert store.get_oldest_revision("early") > 1
        assert store.get_oldest_revision("late") == 0
        assert store.count("early") == store.count("late") == 1


async def test_the_bytes_are_known_again_after_a_restart(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        for _ in range(12):
            await put(store, "a", text="x" * 1_000)
    async with opened(driver, tmp_path, limits=HistoryLimits(bytes_in_all=5_000)) as store:
        assert store._history_bytes == history_bytes(store) <= 5_000

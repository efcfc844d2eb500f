from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from plimsoll.local.apiserver.storage import Delete, Keep, Put, StoreClosed, Stored
from tests.local.apiserver.storage.builders import both_drivers, key, opened, pod, put, remove

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.asyncio, both_drivers]


class Refused(Exception):
    pass


async def test_a_write_carries_its_revision_in_the_stored_bytes(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        body = pod("a")
        written = await store.update(key("a"), lambda _: Put(body))
        assert written is not None
        assert msgspec.json.decode(written.data)["metadata"]["resourceVersion"] == str(written.revision)
        assert store.get(key("a")) is written
        assert "resourceVersion" not in body["metadata"]


async def test_an_empty_store_is_at_revision_one_and_every_write_moves_it_on(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        assert store.revision == 1
        first = await put(store, "a")
        second = await put(store, "a", resource="apps/deployments")
        assert [first.revision, second.revision, store.revision] == [2, 3, 3]


async def test_keep_writes_nothing_and_gives_back_what_is_there(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        written = await put(store, "a")
        assert await store.update(key("a"), lambda _: Keep()) is written
        assert await store.update(key("b"), lambda _: Keep()) is None
        assert store.revision == written.revision


async def test_deleting_gives_the_last_object_under_the_revision_of_the_deletion(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        written = await put(store, "a", labels={"app": "x"})
        gone = await remove(store, "a")
        assert gone is not None
        assert gone.revision == store.revision == written.revision + 1
        assert gone.decode_body() == {**written.decode_body(), "metadata": gone.decode_body()["metadata"]}
        assert gone.decode_body()["metadata"]["resourceVersion"] == str(gone.revision)
        assert store.get(key("a")) is None


async def test_deleting_what_is_not_there_writes_nothing(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        assert await remove(store, "a") is None
        assert store.revision == 1


async def test_a_failed_precondition_passes_through_and_the_next_writer_has_its_turn(driver: str, tmp_path: Path):
    def refuse(_current: Stored | None) -> Put:
        raise Refused

    async with opened(driver, tmp_path) as store:
        written = await put(store, "a")
        with pytest.raises(Refused):
            await store.update(key("a"), refuse)
        assert store.get(key("a")) is written
        assert (await put(store, "a")).revision == written.revision + 1


async def test_an_object_that_cannot_be_encoded_costs_no_revision(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        with pytest.raises(TypeError):
            await store.update(key("a"), lambda _: Put(pod("a", odd=object())))
        assert (await put(store, "a")).revision == 2


def count_one_up(current: Stored | None) -> Put:
    count = current.decode_body()["spec"]["count"] if current is not None else 0
    return Put(pod("counter", count=count + 1))


async def test_concurrent_updates_of_one_object_lose_nothing(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        await asyncio.gather(*(store.update(key("counter"), count_one_up) for _ in range(200)))
        counter = store.get(key("counter"))
        assert counter is not None
        assert counter.decode_body()["spec"]["count"] == 200


async def test_a_cancelled_writer_neither_undoes_its_write_nor_blocks_the_next(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        writers = [asyncio.create_task(store.update(key("counter"), count_one_up)) for _ in range(10)]
        await asyncio.sleep(0)
        for writer in writers[::2]:
            writer.cancel()
        outcomes = await asyncio.gather(*writers, return_exceptions=True)
        last = await store.update(key("counter"), count_one_up)
        assert last is not None
        acknowledged = sum(isinstance(outcome, Stored) for outcome in outcomes)
        assert last.decode_body()["spec"]["count"] in {
            acknowledged + 1,
            acknowledged + 2,
        }  # the first one was under way


async def test_several_objects_change_together_and_are_seen_together(driver: str, tmp_path: Path):
    seen: list[tuple[bool, bool]] = []

    async with opened(driver, tmp_path) as store:
        await put(store, "a")
        with store.watch("pods", since=store.revision) as events:
            moved = asyncio.create_task(
                store.update_all([key("b"), key("a")], lambda _: (Put(pod("b")), Delete())),
            )
            async for event in events:
                seen.append((store.get(key("a")) is not None, store.get(key("b")) is not None))
                if event.revision == 4:
                    break
        created, deleted = await moved
        assert created is not None
        assert deleted is not None
        assert (created.key.name, created.revision, deleted.key.name, deleted.revision) == ("b", 3, "a", 4)
        assert seen == [(False, True), (False, True)]


async def test_transactions_over_the_same_keys_in_any_order_do_not_wait_in_a_circle(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        pairs = [("a", "b"), ("b", "a")] * 20
        await asyncio.gather(
            *(
                store.update_all(list(map(key, pair)), lambda _, pair=pair: [Put(pod(name)) for name in pair])  # type: ignore[misc]
                for pair in pairs
            )
        )
        assert store.revision == 1 + 2 * len(pairs)


async def test_nothing_is_visible_before_it_is_acknowledged_or_after(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        acknowledged: dict[str, int] = {}

        async def write(name: str) -> None:
            written = await put(store, name)
            acknowledged[name] = written.revision

        with store.watch("pods", since=store.revision) as events:
            writers = asyncio.gather(*(write(f"p{number}") for number in range(100)))
            for _ in range(100):
                event = await anext(events)
                assert store.revision >= event.revision
                assert store.get(event.object.key) is event.object
            await writers
        assert sorted(acknowledged.values()) == list(range(2, 102))


async def test_a_closed_store_refuses_writes_and_ends_its_watches(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        watch = store.watch("pods")
        waiting = asyncio.create_task(watch.wait_for_batch())
        await asyncio.sleep(0)
        await store.aclose()
        with pytest.raises(StopAsyncIteration):
            await waiting
        with pytest.raises(StoreClosed):
            await put(store)


async def test_waiting_for_a_revision_ends_when_it_is_there(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        assert await store.wait_for(1, timeout_s=0)
        waiting = asyncio.create_task(store.wait_for(3, timeout_s=60))
        await put(store, "a")
        assert not waiting.done()
        await put(store, "b")
        assert await waiting
        assert not await store.wait_for(99, timeout_s=0)


async def test_fields_for_selectors_follow_the_function_given_for_the_resource(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        before = await put(store, "a", nodeName="n1", labels={"app": "x"})
        store.select_fields("pods", lambda body: {"spec.nodeName": body["spec"]["nodeName"]})
        after = await put(store, "b", nodeName="n2")
        assert [before.fields, after.fields] == [{"spec.nodeName": "n1"}, {"spec.nodeName": "n2"}]
        assert [before.labels, after.labels] == [{"app": "x"}, {}]

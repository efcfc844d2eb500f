from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from plimsoll.local.apiserver.storage import Compacted, Event, Expired, HistoryLimits, Stored, Watch
from tests.local.apiserver.storage.builders import StoppedClock, both_drivers, opened, put, remove

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.asyncio, both_drivers]


async def reported(watch: Watch, count: int) -> list[str]:
    return [short(await anext(watch)) for _ in range(count)]


def short(event: Event) -> str:
    return f"{event.type.value} {event.object.name} {event.revision}"


def has_w(stored: Stored) -> bool:
    return "w" in stored.labels


async def test_a_watch_replays_everything_after_its_revision_and_goes_on_live(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        await put(store, "a")
        await put(store, "b")
        with store.watch("pods", since=2) as watch:
            await put(store, "a")
            await remove(store, "b")
            assert await reported(watch, 3) == ["ADDED b 3", "MODIFIED a 4", "DELETED b 5"]


async def test_a_watch_without_a_revision_starts_with_the_state(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        for name in ("b", "a"):
            await put(store, name)
        with store.watch("pods") as watch:
            await put(store, "c")
            assert (watch.initial_left, watch.revision) == (2, 0)
            assert await reported(watch, 2) == ["ADDED a 3", "ADDED b 2"]
            assert (watch.initial_left, watch.revision) == (0, 3)
            assert await reported(watch, 1) == ["ADDED c 4"]


async def test_a_watch_sees_its_namespace_and_resource_only(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        with store.watch("pods", namespace="a", since=1) as watch:
            await put(store, "x", "b")
            await put(store, "y", "a", resource="apps/deployments")
            await put(store, "z", "a")
            assert await reported(watch, 1) == ["ADDED z 4"]


async def test_leaving_a_selector_is_deleted_and_entering_it_is_added(driver: str, tmp_path: Path):
    """Recorded from a real server: golden watch-005."""
    async with opened(driver, tmp_path) as store:
        await put(store, "a", labels={"w": "1"})
        with store.watch("pods", since=2, matches=has_w) as watch:
            await put(store, "a", labels={})
            await put(store, "a", labels={}, out="1")
            await put(store, "a", labels={"w": "1"}, out="1")
            await put(store, "a", labels={"w": "2"}, out="1")
            left, entered, changed = [await anext(watch) for _ in range(3)]
        assert [short(left), short(entered), short(changed)] == ["DELETED a 3", "ADDED a 5", "MODIFIED a 6"]
        assert left.object.decode_body()["metadata"]["labels"] == {"w": "1"}
        assert left.object.decode_body()["metadata"]["resourceVersion"] == "3"
        assert entered.object.decode_body()["spec"] == {"out": "1"}


async def test_deleting_what_is_out_of_sight_is_not_reported(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        with store.watch("pods", since=1, matches=has_w) as watch:
            await put(store, "a")
            await remove(store, "a")
            await put(store, "b", labels={"w": ""})
            await remove(store, "b")
            assert await reported(watch, 2) == ["ADDED b 4", "DELETED b 5"]


async def test_an_event_is_encoded_once_for_all_watchers(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        watches = [store.watch("pods", since=1), store.watch("pods", namespace="default", since=1, matches=has_w)]
        await put(store, "a", labels={"w": "1"})
        first, second = [await anext(watch) for watch in watches]
        assert first.wire is second.wire
        assert second.get_encoding("names") is None
        first.keep_encoding("names", b"a")
        assert second.get_encoding("names") == b"a"
        frame = msgspec.json.decode(first.wire)
        assert frame == {"type": "ADDED", "object": first.object.decode_body()}
        assert first.wire.endswith(b"}\n")


async def test_a_watch_from_a_compacted_revision_is_refused(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        for name in "abc":
            await put(store, name)
        store.compact(3)
        with pytest.raises(Compacted, match=r"too old resource version: 2 \(3\)"):
            store.watch("pods", since=2)
        assert await reported(store.watch("pods", since=3), 1) == ["ADDED c 4"]


async def test_a_watch_from_a_future_revision_begins_after_it(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        with store.watch("pods", since=3) as watch:
            for name in "abc":
                await put(store, name)
            assert await reported(watch, 1) == ["ADDED c 4"]


async def test_a_slow_watcher_is_ended_and_slows_no_other(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path, limits=HistoryLimits(changes_per_resource=64)) as store:
        slow = store.watch("pods", since=1)
        quick = store.watch("pods", since=1)
        for number in range(1_000):
            await put(store, f"p{number}")
            assert (await anext(quick)).revision == number + 2
        with pytest.raises(Expired) as gone:
            await reported(slow, 1_000)
        assert gone.value.oldest == store.get_oldest_revision("pods")
        with pytest.raises(StopAsyncIteration):
            await anext(slow)


async def test_a_watcher_does_not_expire_for_changes_out_of_its_sight(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path, limits=HistoryLimits(changes_per_resource=16)) as store:
        with (
            store.watch("pods", namespace="quiet", since=1) as elsewhere,
            store.watch("pods", since=1, matches=has_w) as other_labels,
        ):
            for number in range(200):
                await put(store, f"p{number}", "loud")
            written = await put(store, "x", "quiet", labels={"w": ""})
            assert await reported(elsewhere, 1) == [f"ADDED x {written.revision}"]
            assert await reported(other_labels, 1) == [f"ADDED x {written.revision}"]


async def test_progress_never_runs_ahead_of_what_was_delivered(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        with store.watch("pods", namespace="a", since=1) as watch:
            assert watch.revision == 1
            await put(store, "x", "b")
            assert watch.revision == 2
            await put(store, "y", "a")
            await put(store, "z", "a")
            assert watch.revision == 2
            await anext(watch)
            assert watch.revision == 3
            await anext(watch)
            await put(store, "d", resource="apps/deployments")
            assert watch.revision == 5


async def test_closing_a_watch_ends_the_task_that_waits_for_it(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        watch = store.watch("pods")
        waiting = asyncio.create_task(watch.wait_for_batch())
        await asyncio.sleep(0)
        watch.close()
        with pytest.raises(StopAsyncIteration):
            await waiting


async def test_a_cancelled_wait_loses_no_event(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        with store.watch("pods", since=1) as watch:
            waiting = asyncio.create_task(watch.wait_for_batch())
            await asyncio.sleep(0)
            writing = asyncio.create_task(put(store, "a"))
            waiting.cancel()
            await writing
            assert await reported(watch, 1) == ["ADDED a 2"]


async def test_batches_hold_whatever_is_at_hand_in_order(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        with store.watch("pods", since=1) as watch:
            for number in range(600):
                await put(store, f"p{number}")
            seen: list[int] = []
            while len(seen) < 600:
                seen += [event.revision for event in await watch.wait_for_batch()]
            assert seen == list(range(2, 602))


async def test_history_keeps_to_its_limits_of_count_bytes_and_age(driver: str, tmp_path: Path):
    clock = StoppedClock()
    limits = HistoryLimits(changes_per_resource=100, bytes_per_resource=20_000, age_s=300)
    async with opened(driver, tmp_path, limits=limits, clock=clock) as store:
        for number in range(150):
            await put(store, f"p{number}")
        assert 100 >= store.revision - store.get_oldest_revision("pods") >= 80
        for _ in range(50):
            await put(store, "large", text="x" * 2_000)
        assert 10 >= store.revision - store.get_oldest_revision("pods") >= 7
        clock.elapsed_s = 601
        await put(store, "p0")
        assert store.get_oldest_revision("pods") == store.revision - 1
        assert store.get_oldest_revision("nodes") == 0


async def test_what_a_bookmark_may_say_never_goes_back(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        with store.watch("pods", since=1) as watch:
            await put(store, "y", "a", resource="apps/deployments")
            before = watch.revision
            assert before == store.revision
            await put(store, "z", "a")
            # There is an event at hand by now that was not delivered.
            assert watch.revision == before

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.local.apiserver.storage import Compacted, ListQuery, RevisionAhead, Store
from tests.local.apiserver.storage.builders import both_drivers, names, opened, put, remove

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.asyncio, both_drivers]


async def pages(store: Store, *, limit: int, namespace: str | None = None, at: int | None = None) -> list[list[str]]:
    start: str | None = ""
    found = []
    while start is not None:
        page = store.list("pods", ListQuery(namespace=namespace, start=start, limit=limit, at=at))
        found.append(names(page.items))
        start = page.next
    return found


async def test_a_list_is_in_the_order_of_paths_where_the_slash_takes_part(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        for namespace, name in (("a", "y"), ("a-b", "x"), ("a", "x"), ("b", "a")):
            await put(store, name, namespace)
        assert names(store.list("pods").items) == ["a-b/x", "a/x", "a/y", "b/a"]


async def test_a_namespace_is_listed_without_its_neighbours(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        for namespace in ("a", "a-b", "a0", "aa"):
            await put(store, "x", namespace)
        assert names(store.list("pods", ListQuery(namespace="a")).items) == ["a/x"]
        assert [store.count("pods"), store.count("pods", "a"), store.count("pods", "z")] == [4, 1, 0]


async def test_resources_do_not_mix_and_an_unknown_one_is_empty(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        await put(store, "a", resource="apps/deployments")
        assert store.list("pods").items == ()
        assert store.list("pods").revision == store.revision
        assert store.list_resources() == ("apps/deployments",)


async def test_pages_show_where_to_go_on_and_how_much_is_left(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        for number in range(5):
            await put(store, f"p{number}")
        await put(store, "other", "elsewhere")
        page = store.list("pods", ListQuery(namespace="default", limit=2))
        assert (names(page.items), page.next, page.remaining) == (["default/p0", "default/p1"], "default/p1\0", 3)
        last = store.list("pods", ListQuery(namespace="default", limit=2, start="default/p3"))
        assert (names(last.items), last.next, last.remaining) == (["default/p3", "default/p4"], None, None)


async def test_pages_go_on_after_an_object_that_was_deleted_meanwhile(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        for number in range(4):
            await put(store, f"p{number}")
        page = store.list("pods", ListQuery(limit=2))
        await remove(store, "p1")
        assert names(store.list("pods", ListQuery(start=page.next or "")).items) == ["default/p2", "default/p3"]


async def test_a_selected_page_is_full_of_matches_and_does_not_count_the_rest(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        for number in range(6):
            await put(store, f"p{number}", labels={"even": str(number % 2 == 0)})
        page = store.list("pods", ListQuery(limit=2), matches=lambda stored: stored.labels["even"] == "True")
        assert (names(page.items), page.next, page.remaining) == (["default/p0", "default/p2"], "default/p2\0", None)


async def test_pages_at_one_revision_are_one_consistent_list(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        for number in range(5):
            await put(store, f"p{number}")
        then = store.revision
        await remove(store, "p0")
        await remove(store, "p3")
        await put(store, "p2", changed=True)
        await put(store, "p2x")
        await remove(store, "p2x")
        await put(store, "p3x")
        assert await pages(store, limit=2, at=then) == [
            ["default/p0", "default/p1"],
            ["default/p2", "default/p3"],
            ["default/p4"],
        ]
        page = store.list("pods", ListQuery(limit=1, at=then, start="default/p2"))
        assert page.items[0].decode_body()["spec"] == {}
        assert (page.revision, page.remaining) == (then, 2)


async def test_lists_before_the_compaction_and_ahead_of_time_are_refused(driver: str, tmp_path: Path):
    async with opened(driver, tmp_path) as store:
        for number in range(4):
            await put(store, f"p{number}")
        store.compact(4)
        assert names(store.list("pods", ListQuery(at=4)).items) == ["default/p0", "default/p1", "default/p2"]
        with pytest.raises(Compacted) as gone:
            store.list("pods", ListQuery(at=3))
        assert (gone.value.requested, gone.value.oldest) == (3, 4)
        with pytest.raises(RevisionAhead, match="Too large resource version: 9, current: 5"):
            store.list("pods", ListQuery(at=9))
        with pytest.raises(Compacted):
            store.list("never/written", ListQuery(at=3))

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from plimsoll.local.apiserver.storage import (
    Compacted,
    HistoryLimits,
    Key,
    ListQuery,
    NotStored,
    Put,
    SchemaTooNew,
    SqliteDriver,
    Store,
    StoreCorrupt,
    StoreInUse,
    StoreUnusable,
)
from plimsoll.local.apiserver.storage.drivers import store_file
from plimsoll.local.apiserver.storage.drivers.store_file import DATA_FILE, MIGRATIONS
from tests.local.apiserver.storage.builders import StoppedClock, key, names, opened, pod, put, remove

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences

pytestmark = pytest.mark.asyncio


def open_again(directory: Path) -> Store:
    return Store.open(SqliteDriver(directory), clock=StoppedClock())


async def filled(directory: Path, count: int = 3) -> None:
    async with opened("sqlite", directory) as store:
        for number in range(count):
            await put(store, f"p{number}", labels={"n": str(number)})


def tamper(directory: Path, *statements: str) -> None:
    connection = sqlite3.connect(directory / DATA_FILE)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def row_count(directory: Path) -> int:
    connection = sqlite3.connect(directory / DATA_FILE)
    (count,) = connection.execute("SELECT count(*) FROM rows").fetchone()
    connection.close()
    return int(count)


async def test_objects_revisions_and_history_are_there_after_a_restart(tmp_path: Path):
    async with opened("sqlite", tmp_path) as store:
        await put(store, "a", labels={"w": "1"})
        await put(store, "b")
        await put(store, "a", labels={})
        await remove(store, "b")
    async with opened("sqlite", tmp_path) as store:
        assert (store.revision, names(store.list("pods").items)) == (5, ["default/a"])
        assert names(store.list("pods", ListQuery(at=3)).items) == ["default/a", "default/b"]
        with store.watch("pods", since=2, matches=lambda stored: stored.labels.get("w") == "1") as watch:
            assert (await anext(watch)).object.decode_body()["metadata"]["labels"] == {"w": "1"}
        with store.watch("pods", since=2) as watch:
            reported = [await anext(watch) for _ in range(3)]
        assert [(event.type.value, event.object.name, event.revision) for event in reported] == [
            ("ADDED", "b", 3),
            ("MODIFIED", "a", 4),
            ("DELETED", "b", 5),
        ]
        assert (await put(store, "c")).revision == 6


async def test_the_revision_of_a_forgotten_deletion_is_not_given_again(tmp_path: Path):
    async with opened("sqlite", tmp_path) as store:
        await put(store, "a")
        await remove(store, "a")
        store.compact(store.revision)
    assert row_count(tmp_path) == 0
    async with opened("sqlite", tmp_path) as store:
        assert store.revision == 3
        with pytest.raises(Compacted):
            store.watch("pods", since=2)


async def test_history_on_disk_keeps_to_the_same_limits(tmp_path: Path):
    async with opened("sqlite", tmp_path, limits=HistoryLimits(changes_per_resource=20)) as store:
        for number in range(300):
            await put(store, "a", number=number)
        oldest = store.get_oldest_revision("pods")
    assert row_count(tmp_path) <= 21
    async with opened("sqlite", tmp_path) as store:
        assert store.get_oldest_revision("pods") == oldest
        with store.watch("pods", since=oldest) as watch:
            assert (await anext(watch)).type == "MODIFIED"
    async with opened("sqlite", tmp_path, limits=HistoryLimits(changes_per_resource=5)) as store:
        assert store.revision - store.get_oldest_revision("pods") <= 5
    assert row_count(tmp_path) <= 6


async def test_after_a_stop_that_was_not_clean_revisions_go_on_far_above(tmp_path: Path):
    await filled(tmp_path)
    tamper(tmp_path, "UPDATE state SET value = 0 WHERE name = 'closed'")
    async with opened("sqlite", tmp_path) as store:
        assert store.revision > 100_000
        with store.watch("pods", since=3) as watch:
            assert (await anext(watch)).revision == 4


async def test_rows_that_could_not_be_forgotten_are_dropped_at_the_next_start(tmp_path: Path):
    async with opened("sqlite", tmp_path) as store:
        for _ in range(3):
            await put(store, "a")
        await put(store, "b")
        await remove(store, "b")
    tamper(tmp_path, "INSERT INTO floors VALUES ('', 6)")
    async with opened("sqlite", tmp_path) as store:
        assert names(store.list("pods").items) == ["default/a"]
    assert row_count(tmp_path) == 1


async def test_a_newer_schema_is_refused_naming_both_versions(tmp_path: Path):
    await filled(tmp_path)
    tamper(tmp_path, "PRAGMA user_version=7")
    with pytest.raises(SchemaTooNew, match=rf"{DATA_FILE}: .*version 7, .* up to {len(MIGRATIONS)}"):
        open_again(tmp_path)


async def test_an_older_schema_is_migrated(tmp_path: Path):
    await filled(tmp_path)
    further = (*MIGRATIONS, ("ALTER TABLE floors ADD COLUMN reason TEXT",))
    file = tmp_path / DATA_FILE
    store_file.open_file(file, further).close()
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(further),)
    assert connection.execute("SELECT reason FROM floors").fetchall() == []
    assert connection.execute("SELECT count(*) FROM rows").fetchone() == (3,)
    connection.close()


async def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path):
    await filled(tmp_path)
    broken = (*MIGRATIONS, ("CREATE TABLE half (a)", "this is no SQL"))
    with pytest.raises(StoreUnusable, match=DATA_FILE):
        store_file.open_file(tmp_path / DATA_FILE, broken)
    async with opened("sqlite", tmp_path) as store:
        assert store.count("pods") == 3


async def test_a_second_store_on_the_directory_is_refused_naming_the_holder(tmp_path: Path):
    async with opened("sqlite", tmp_path):
        with pytest.raises(StoreInUse, match=f"in use by process {os.getpid()}"):
            open_again(tmp_path)
    await open_again(tmp_path).aclose()


async def test_a_second_process_on_the_directory_is_refused(tmp_path: Path):
    program = """
import sys
from plimsoll.local.apiserver.storage import SqliteDriver, StoreInUse
try:
    SqliteDriver(sys.argv[1]).recover()
except StoreInUse as error:
    print(error)
"""
    async with opened("sqlite", tmp_path):
        command = [sys.executable, "-c", program, str(tmp_path)]
        answer = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    assert f"in use by process {os.getpid()}" in answer.stdout


@pytest.mark.parametrize("content", [b"not a database at all, just some text" * 200, random.Random(1).randbytes(8_192)])
async def test_a_file_that_is_no_database_is_named(tmp_path: Path, content: bytes):
    (tmp_path / DATA_FILE).write_bytes(content)
    with pytest.raises(StoreCorrupt, match=DATA_FILE):
        open_again(tmp_path)
    (tmp_path / DATA_FILE).unlink()
    await open_again(tmp_path).aclose()


async def test_a_database_of_something_else_is_left_alone(tmp_path: Path, reviewed: ReviewedSentences):
    tamper(tmp_path, "CREATE TABLE theirs (a)")
    with pytest.raises(StoreCorrupt) as raised:
        open_again(tmp_path)
    reviewed(str(raised.value))
    tamper(tmp_path, "DROP TABLE theirs")


async def test_a_flipped_byte_in_an_object_is_found_at_the_start(tmp_path: Path, reviewed: ReviewedSentences):
    await filled(tmp_path)
    file = tmp_path / DATA_FILE
    content = file.read_bytes()
    assert content.count(b'"n":"1"') == 1
    file.write_bytes(content.replace(b'"n":"1"', b'"n":"7"'))
    with pytest.raises(StoreCorrupt) as raised:
        open_again(tmp_path)
    reviewed(str(raised.value))


async def test_a_damaged_page_is_an_error_that_names_the_file(tmp_path: Path):
    await filled(tmp_path, 500)
    file = tmp_path / DATA_FILE
    content = bytearray(file.read_bytes())
    content[20_000:40_000] = random.Random(1).randbytes(20_000)
    file.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=DATA_FILE):
        open_again(tmp_path)


async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnusable, match="file/data"):
        open_again(tmp_path / "file" / "data")


async def test_files_are_readable_by_their_owner_only(tmp_path: Path):
    async with opened("sqlite", tmp_path / "data") as store:
        await put(store, "secret")
        for file in (tmp_path / "data").iterdir():
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


async def test_a_full_disk_fails_the_write_leaves_nothing_and_the_store_goes_on(tmp_path: Path):
    driver = SqliteDriver(tmp_path)
    store = Store.open(driver, clock=StoppedClock())
    before = await put(store, "a")
    (pages,) = driver._connection.execute("PRAGMA page_count").fetchone()
    driver._connection.execute(f"PRAGMA max_page_count={pages + 3}")
    with store.watch("pods", since=store.revision) as watch:
        with pytest.raises(NotStored, match=rf"{DATA_FILE}: the write failed, .*: database or disk is full"):
            await put(store, "a", text="x" * 100_000)
        assert store.get(key("a")) is before
        assert store.revision == before.revision
        assert "database or disk is full" in store.problem
        after = await put(store, "b")
        assert store.problem == ""
        assert after.revision > before.revision + 1
        assert (await anext(watch)).revision == after.revision
    await store.aclose()
    assert store.problem == "the store is closed"
    async with opened("sqlite", tmp_path) as again:
        assert names(again.list("pods").items) == ["default/a", "default/b"]
        assert again.revision == after.revision


async def test_one_write_that_fails_does_not_fail_the_others_of_its_commit(tmp_path: Path):
    driver = SqliteDriver(tmp_path)
    store = Store.open(driver, clock=StoppedClock())
    await put(store, "a")
    (pages,) = driver._connection.execute("PRAGMA page_count").fetchone()
    driver._connection.execute(f"PRAGMA max_page_count={pages + 10}")
    sizes = [10, 1_000_000, 10, 10]
    outcomes = await asyncio.gather(
        *(put(store, f"p{number}", text="x" * size) for number, size in enumerate(sizes)), return_exceptions=True
    )
    assert [isinstance(outcome, NotStored) for outcome in outcomes] == [False, True, False, False]
    assert names(store.list("pods").items) == ["default/a", "default/p0", "default/p2", "default/p3"]
    await store.aclose()


async def test_a_file_that_became_read_only_fails_writes_until_it_is_not(tmp_path: Path, reviewed: ReviewedSentences):
    driver = SqliteDriver(tmp_path)
    store = Store.open(driver, clock=StoppedClock())
    await put(store, "a")
    driver._connection.execute("PRAGMA query_only=ON")
    with pytest.raises(NotStored) as raised:
        await put(store, "b")
    reviewed(str(raised.value))
    driver._connection.execute("PRAGMA query_only=OFF")
    await put(store, "b")
    assert names(store.list("pods").items) == ["default/a", "default/b"]
    await store.aclose()


async def test_a_transaction_that_fails_leaves_none_of_its_objects(tmp_path: Path):
    driver = SqliteDriver(tmp_path)
    store = Store.open(driver, clock=StoppedClock())
    await put(store, "a")
    (pages,) = driver._connection.execute("PRAGMA page_count").fetchone()
    driver._connection.execute(f"PRAGMA max_page_count={pages + 3}")
    with pytest.raises(NotStored):
        await store.update_all(
            [key("small"), key("large")], lambda _: (Put(pod("small")), Put(pod("large", text="x" * 100_000)))
        )
    await store.aclose()
    async with opened("sqlite", tmp_path) as again:
        assert names(again.list("pods").items) == ["default/a"]


async def test_a_name_that_cannot_be_written_fails_alone(tmp_path: Path):
    async with opened("sqlite", tmp_path) as store:
        with pytest.raises(NotStored):
            await store.update(Key("pods", "default", "\ud800"), lambda _: Put(pod("x")))
        await put(store, "a")
        assert store.count("pods") == 1


@pytest.mark.parametrize(("durability", "level"), [("process", 1), ("power", 2)])
async def test_durability_sets_how_far_a_commit_goes(tmp_path: Path, durability: str, level: int):
    driver = SqliteDriver(tmp_path, durability=durability)
    store = Store.open(driver, clock=StoppedClock())
    await put(store, "a")
    assert driver._connection.execute("PRAGMA synchronous").fetchone() == (level,)
    assert driver._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await store.aclose()


async def test_closing_finishes_the_writes_under_way(tmp_path: Path):
    store = open_again(tmp_path)
    writes = [asyncio.create_task(put(store, f"p{number}")) for number in range(50)]
    await asyncio.sleep(0)
    await store.aclose()
    assert len(await asyncio.gather(*writes)) == 50
    async with opened("sqlite", tmp_path) as again:
        assert again.count("pods") == 50

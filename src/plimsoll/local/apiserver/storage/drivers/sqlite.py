"""The driver that keeps everything in a SQLite file: one writer thread, many writes per commit.

Writes that arrive during a commit go into the next one together, so concurrent writers share its cost. A write that
fails in a batch is tried again alone, so that only the cause of a failure (a full disk, an object too large) fails. The
thread never touches the store: it notifies the event loop, which applies the write.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple
from zlib import crc32

from plimsoll.local.apiserver.storage.drivers.interface import Compaction, Recovered, Row, Write
from plimsoll.local.apiserver.storage.drivers.store_file import DATA_FILE, ERRORS, lock_directory, open_file
from plimsoll.local.apiserver.storage.errors import NotStored, StoreClosed, StoreCorrupt, StoreUnusable
from plimsoll.runtime.sqlite_file import explain_errors, run_transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plimsoll.local.apiserver.storage.drivers.interface import Problem, Settle
    from plimsoll.runtime.sqlite_file import FileLock

    Outcomes = list[tuple[Write, Problem | None]]

# Bounds how long the first of many waiting writes waits for the others.
_MOST_IN_ONE_COMMIT: Final = 1_000

# After a stop that was not clean, revisions go on this much further up. Some may have been given to writes that never
# reached the file (or, with durability "process", were in it only until the power went), and none is ever given twice.
_UNCLEAN_GAP: Final = 1_000_000

# What SQLite, or the conversion of what it is given, may raise.
_FAILURES: Final = (sqlite3.Error, OverflowError, ValueError, MemoryError)


class Durability(StrEnum):
    """What an acknowledged write survives."""

    PROCESS = "process"
    """The end of the process, however it comes (kill -9): the operating system has it."""
    POWER = "power"
    """A power failure as well: the disk has it."""


class SqliteDriver:
    """Rows in `objects.sqlite3` of a directory that no other process uses."""

    is_inline: ClassVar[bool] = False

    def __init__(self, directory: Path | str, *, durability: Durability | str = Durability.PROCESS) -> None:
        self._directory = Path(directory)
        self._file = self._directory / DATA_FILE
        self._durability = Durability(durability)
        self._queue: SimpleQueue[Write | Compaction | _Stop] = SimpleQueue()
        self._in_hand: Sequence[Write | Compaction] = ()
        self._thread: threading.Thread | None = None
        self._over: asyncio.Future[None] | None = None
        self._ended = False
        self._lock: FileLock
        self._connection: sqlite3.Connection
        self._settle: Settle
        self._loop: asyncio.AbstractEventLoop

    def recover(self) -> Recovered:
        self._lock = lock_directory(self._directory)
        try:
            self._connection = open_file(self._file)
        except StoreUnusable:
            self._lock.release()
            raise
        try:
            with explain_errors(self._file, ERRORS):
                return self._read()
        except StoreUnusable:
            self._connection.close()
            self._lock.release()
            raise

    def _read(self) -> Recovered:
        connection = self._connection
        state = dict(connection.execute("SELECT name, value FROM state"))
        floors = dict(connection.execute("SELECT resource, revision FROM floors"))
        (newest,) = connection.execute("SELECT coalesce(max(revision), 0) FROM rows").fetchone()
        revision = max(newest, state["revision"], *floors.values(), 0)
        if not state["closed"]:
            revision += _UNCLEAN_GAP
        _remember(connection, revision=revision, closed=False)
        level = "FULL" if self._durability is Durability.POWER else "NORMAL"
        connection.execute(f"PRAGMA synchronous={level}")
        return Recovered(rows=list(self._read_rows()), floors=floors, revision=revision)

    def _read_rows(self) -> Iterator[Row]:
        columns = "revision, resource, namespace, name, data, checksum"
        for *row, checksum in self._connection.execute(f"SELECT {columns} FROM rows ORDER BY revision"):  # noqa: S608 -- a constant
            found = Row(*row)
            if crc32(found.data or b"") != checksum:
                where = f"revision {found.revision}, {found.resource} {found.namespace}/{found.name}"
                raise StoreCorrupt(self._file, f"is damaged: the object at {where} is not what was written")
            yield found

    def start(self, settle: Settle) -> None:
        self._settle = settle

    def submit(self, write: Write) -> None:
        if self._ended:
            raise StoreClosed(f"{self._file}: nothing writes to it any more")
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._run_writer, name="plimsoll-store-writer", daemon=True)
            self._thread.start()
        self._queue.put(write)

    def forget(self, forgotten: Compaction) -> None:
        self._queue.put(forgotten)

    async def aclose(self, revision: int) -> None:
        self._queue.put(_Stop(revision))
        if self._thread is None:
            self._write_until_stopped()
            self._ended = True
            return
        if self._ended:  # the thread died of something unforeseen
            self._delete_history(revision)
            return
        self._over = asyncio.get_running_loop().create_future()
        await self._over
        self._thread.join()

    # ---- in the writer's thread

    def _run_writer(self) -> None:
        try:
            self._write_until_stopped()
        finally:
            self._notify(self._end)

    def _write_until_stopped(self) -> None:
        while True:
            batch, stop = self._wait_for_batch()
            self._in_hand = batch
            outcomes = self._commit(batch)
            self._in_hand = ()
            if outcomes:
                self._notify(self._settle, outcomes)
            if stop is not None:
                self._delete_history(stop.revision)
                return

    def _wait_for_batch(self) -> tuple[list[Write | Compaction], _Stop | None]:
        """Wait for something to do, and take whatever else is waiting with it."""
        batch: list[Write | Compaction] = []
        item = self._queue.get()
        while not isinstance(item, _Stop):
            batch.append(item)
            if len(batch) == _MOST_IN_ONE_COMMIT:
                return batch, None
            try:
                item = self._queue.get_nowait()
            except Empty:
                return batch, None
        return batch, item

    def _commit(self, batch: Sequence[Write | Compaction]) -> Outcomes:
        if not batch:
            return []
        try:
            with run_transaction(self._connection):
                for item in batch:
                    self._put(item)
        except _FAILURES as error:
            if len(batch) > 1:
                return [outcome for item in batch for outcome in self._commit([item])]
            problem = NotStored(f"{self._file}: the write failed, nothing of it was stored: {error}")
            return [(item, problem) for item in batch if isinstance(item, Write)]
        return [(item, None) for item in batch if isinstance(item, Write)]

    def _put(self, item: Write | Compaction) -> None:
        if isinstance(item, Write):
            rows = ((*row, crc32(row.data or b"")) for row in item.iterate_rows())
            self._connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", rows)
            return
        self._connection.executemany(
            "DELETE FROM rows WHERE revision = ?", ((revision,) for revision in item.revisions)
        )
        self._connection.executemany("INSERT OR REPLACE INTO floors VALUES (?, ?)", item.floors.items())

    def _delete_history(self, revision: int) -> None:
        # A disk that is full now does not matter: the next start takes the stop for an unclean one, and goes on.
        with suppress(sqlite3.Error):
            _remember(self._connection, revision=revision, closed=True)
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
        self._lock.release()

    def _notify(self, listener: Callable[..., None], *words: object) -> None:
        # A loop that was closed without closing the store has no waiters left.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(listener, *words)

    # ---- in the loop's thread again

    def _end(self) -> None:
        """The thread has ended: nothing that is still here will ever be written."""
        self._ended = True
        left = list(self._in_hand)
        while not self._queue.empty():
            item = self._queue.get()
            if not isinstance(item, _Stop):
                left.append(item)
        problem = StoreClosed(f"{self._file}: the writer has stopped")
        if abandoned := [(item, problem) for item in left if isinstance(item, Write)]:
            self._settle(abandoned)
        if self._over is not None and not self._over.done():
            self._over.set_result(None)


class _Stop(NamedTuple):
    revision: int


def _remember(connection: sqlite3.Connection, *, revision: int, closed: bool) -> None:
    with run_transaction(connection):
        connection.execute("UPDATE state SET value = ? WHERE name = 'revision'", (revision,))
        connection.execute("UPDATE state SET value = ? WHERE name = 'closed'", (closed,))

"""The journal of a fleet, in its database: every replica answers the same (`journal.ports.Journal`).

An entry is stored compressed, with a checksum. `journal_subjects` maps an object to the entries that name it, by a hash
of its name, as in the file of other controllers.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs
from sqlalchemy import delete, func, insert, select, update

from plimsoll.core.durations import add_seconds
from plimsoll.core.errors import InvalidInput, Unreachable
from plimsoll.fleet.store.schema import JOURNAL, JOURNAL_NUMBERS, JOURNAL_SUBJECTS
from plimsoll.journal.entries import Entry, Query, Retention, decode_entry, encode_entry, limit_size
from plimsoll.journal.errors import JournalClosed, JournalError
from plimsoll.journal.journal_file import hash_subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Connection

    from plimsoll.core.plans import Outcome, Plan
    from plimsoll.fleet.store.transactions import Transactions, Work

T = TypeVar("T")
_DAY_S = 86_400.0


class DatabaseJournal:
    """A journal in the database of a fleet. Closing it leaves the database open."""

    def __init__(self, transactions: Transactions, retention: Retention | None = None) -> None:
        self._transactions = transactions
        self._retention = retention or Retention()
        self._is_open = True

    async def append(self, plan: Plan, outcomes: tuple[Outcome, ...] = ()) -> Entry:
        return await self._write(lambda connection: self._append(connection, plan, outcomes))

    async def conclude(self, number: int, outcomes: tuple[Outcome, ...]) -> None:
        def conclude(connection: Connection) -> None:
            kept = _find_entry(connection, number)
            if kept is not None:
                ended = structs.replace(kept, outcomes=outcomes)
                values = _encode(limit_size(ended, self._retention.entry_bytes))
                connection.execute(update(JOURNAL).where(JOURNAL.c.number == number).values(values))

        await self._write(conclude)

    async def list_entries(self, query: Query) -> tuple[Entry, ...]:
        def find(connection: Connection) -> tuple[Entry, ...]:
            statement = select(JOURNAL.c.number, JOURNAL.c.data, JOURNAL.c.checksum).order_by(JOURNAL.c.number.desc())
            found: list[Entry] = []
            with connection.execute(statement.where(*_build_conditions(query)).execution_options(yield_per=50)) as rows:
                for row in rows:
                    if query.limit is not None and len(found) >= query.limit:
                        break
                    entry = _decode(*row)
                    if query.matches(entry):
                        found.append(entry)
            return tuple(found)

        return await self._read(find)

    async def get_entry(self, number: int) -> Entry | None:
        return await self._read(lambda connection: _find_entry(connection, number))

    async def close(self) -> None:
        self._is_open = False

    async def _read(self, work: Work[T]) -> T:
        self._check_open()
        try:
            return await self._transactions.read(work)
        except Unreachable as error:
            raise JournalError(str(error)) from error

    async def _write(self, work: Work[T]) -> T:
        self._check_open()
        try:
            return await self._transactions.write(work)
        except Unreachable as error:
            raise JournalError(str(error)) from error

    def _check_open(self) -> None:
        if not self._is_open:
            raise JournalClosed("the journal is closed")

    def _append(self, connection: Connection, plan: Plan, outcomes: tuple[Outcome, ...]) -> Entry:
        # The lock of this row gives numbers in the order of commits.
        numbering = update(JOURNAL_NUMBERS).values(last=JOURNAL_NUMBERS.c.last + 1).returning(JOURNAL_NUMBERS.c.last)
        number: int = connection.execute(numbering).scalar_one()
        entry = limit_size(Entry(number=number, plan=plan, outcomes=outcomes), self._retention.entry_bytes)
        values = {"number": number, "at": plan.at, "subsystem": plan.subsystem, **_encode(entry)}
        connection.execute(insert(JOURNAL).values(values))
        hashes = sorted({hash_subject(ref) for ref in entry.list_subjects()})
        if hashes:
            rows = [{"hash": subject, "number": number} for subject in hashes]
            connection.execute(insert(JOURNAL_SUBJECTS), rows)
        self._drop_old(connection, entry)
        return entry

    def _drop_old(self, connection: Connection, newest: Entry) -> None:
        oldest = add_seconds(newest.at, -self._retention.days * _DAY_S)
        is_old = (JOURNAL.c.number <= newest.number - self._retention.entries) | (JOURNAL.c.at < oldest)
        _delete(connection, connection.execute(select(JOURNAL.c.number).where(is_old)).scalars().all())
        used: int = connection.execute(select(func.coalesce(func.sum(JOURNAL.c.data_bytes), 0))).scalar_one()
        excess = int(used) - self._retention.total_bytes
        if excess <= 0:
            return
        sizes = select(JOURNAL.c.number, JOURNAL.c.data_bytes).where(JOURNAL.c.number < newest.number)
        dropped: list[int] = []
        for number, size in connection.execute(sizes.order_by(JOURNAL.c.number)):
            if excess <= 0:
                break
            dropped.append(number)
            excess -= size
        _delete(connection, dropped)


def _delete(connection: Connection, numbers: Sequence[int]) -> None:
    for start in range(0, len(numbers), 500):
        part = numbers[start : start + 500]
        connection.execute(delete(JOURNAL_SUBJECTS).where(JOURNAL_SUBJECTS.c.number.in_(part)))
        connection.execute(delete(JOURNAL).where(JOURNAL.c.number.in_(part)))


def _find_entry(connection: Connection, number: int) -> Entry | None:
    statement = select(JOURNAL.c.number, JOURNAL.c.data, JOURNAL.c.checksum).where(JOURNAL.c.number == number)
    row = connection.execute(statement).first()
    return None if row is None else _decode(*row)


def _encode(entry: Entry) -> dict[str, object]:
    data = zlib.compress(encode_entry(entry))
    return {"data": data, "data_bytes": len(data), "checksum": zlib.crc32(data)}


def _decode(number: int, data: bytes, checksum: int) -> Entry:
    try:
        if zlib.crc32(data) != checksum:
            raise JournalError(f"entry {number} of the journal is damaged")
        return decode_entry(zlib.decompress(data))
    except (zlib.error, InvalidInput, TypeError) as error:
        raise JournalError(f"entry {number} of the journal cannot be read: {error}") from error


def _build_conditions(query: Query) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if query.subsystem:
        conditions.append(JOURNAL.c.subsystem == query.subsystem)
    if query.since is not None:
        conditions.append(JOURNAL.c.at >= query.since)
    if query.until is not None:
        conditions.append(JOURNAL.c.at <= query.until)
    if query.ref is not None:
        named = select(JOURNAL_SUBJECTS.c.number).where(JOURNAL_SUBJECTS.c.hash == hash_subject(query.ref))
        conditions.append(JOURNAL.c.number.in_(named))
    return conditions

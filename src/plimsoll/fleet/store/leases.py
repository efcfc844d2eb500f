"""Leases of workers, and transactions that hold one; the pause of all workers.

A lease is taken by one statement, which compares and computes its end by the clock of the database
(docs/design/fleet.md 12, D-11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import or_, select, update

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.ports import LeaseLost, LeaseTerm
from plimsoll.fleet.store.schema import LEASES, SETTINGS

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Table

    from plimsoll.fleet.store.transactions import Transactions, Work

T = TypeVar("T")
_LONGEST_S: Final = 86_400.0
_PAUSE: Final = "pause"


class LeasedTransactions:
    """Transactions of a worker. Without a worker they check nothing."""

    def __init__(self, transactions: Transactions, worker: str = "", holder: str = "") -> None:
        self._transactions = transactions
        self._worker = worker
        self._holder = holder

    def with_lease(self, worker: str, holder: str) -> LeasedTransactions:
        return LeasedTransactions(self._transactions, worker, holder)

    async def read(self, work: Work[T]) -> T:
        return await self._transactions.read(work)

    async def write(self, work: Work[T]) -> T:
        if not self._worker:
            return await self._transactions.write(work)

        def check_and_work(connection: Connection) -> T:
            self._check_lease(connection)
            return work(connection)

        return await self._transactions.write(check_and_work)

    def lock_text(self, connection: Connection, name: str) -> None:
        self._transactions.dialect.lock_text(connection, name)

    def build_now(self) -> ColumnElement[datetime]:
        """The time of the database."""
        return self._transactions.dialect.build_now()

    def build_insert(self, table: Table) -> Any:
        return self._transactions.dialect.build_insert(table)

    def _check_lease(self, connection: Connection) -> None:
        """A shared lock of the row: until the end of the transaction the lease can be neither taken nor renewed."""
        now = self._transactions.dialect.build_now()
        held = (LEASES.c.worker == self._worker) & (LEASES.c.holder == self._holder) & (LEASES.c.expires_at > now)
        if connection.execute(select(LEASES.c.worker).where(held).with_for_update(read=True)).first() is None:
            raise LeaseLost(f"{self._holder} no longer holds the lease of {self._worker}")


class DatabaseLeases:
    """Implements `fleet.ports.LeaseStore` and `fleet.ports.PauseStore`."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    async def acquire_lease(self, worker: str, holder: str, *, duration_s: float) -> LeaseTerm | None:
        if not holder:
            raise InvalidInput("is empty", path="holder")
        if not 0 < duration_s <= _LONGEST_S:
            raise InvalidInput(f"must be more than 0 and at most {_LONGEST_S:g}, is {duration_s:g}", path="duration")

        def acquire(connection: Connection) -> bool:
            dialect = self._transactions.dialect
            ends = dialect.build_now(plus_s=duration_s)
            statement = dialect.build_insert(LEASES).values(worker=worker, holder=holder, expires_at=ends)
            # One that was given back is free whatever the clock says: it may have been set back since.
            is_free = or_(LEASES.c.holder.in_((holder, "")), LEASES.c.expires_at <= dialect.build_now())
            changed = {"holder": statement.excluded.holder, "expires_at": statement.excluded.expires_at}
            taking = statement.on_conflict_do_update(index_elements=[LEASES.c.worker], set_=changed, where=is_free)
            return connection.execute(taking.returning(LEASES.c.worker)).first() is not None

        is_held = await self._transactions.write(acquire)
        return LeaseTerm(worker=worker, holder=holder, duration_s=duration_s) if is_held else None

    async def release_lease(self, worker: str, holder: str) -> None:
        def release(connection: Connection) -> None:
            own = (LEASES.c.worker == worker) & (LEASES.c.holder == holder)
            ended = {"holder": "", "expires_at": self._transactions.dialect.build_now()}
            connection.execute(update(LEASES).where(own).values(ended))

        await self._transactions.write(release)

    async def list_holders(self) -> dict[str, str]:
        def list_held(connection: Connection) -> dict[str, str]:
            held = LEASES.c.expires_at > self._transactions.dialect.build_now()
            statement = select(LEASES.c.worker, LEASES.c.holder).where(held).order_by(LEASES.c.worker)
            return {row.worker: row.holder for row in connection.execute(statement)}

        return await self._transactions.read(list_held)

    async def read_pause(self) -> str:
        return await self._transactions.read(_read_pause)

    async def set_pause(self, why: str | None) -> str:
        def set_value(connection: Connection) -> str:
            self._transactions.dialect.lock_text(connection, _PAUSE)
            before = _read_pause(connection)
            statement = self._transactions.dialect.build_insert(SETTINGS).values(name=_PAUSE, value=why or "")
            changed = {"value": statement.excluded.value}
            connection.execute(statement.on_conflict_do_update(index_elements=[SETTINGS.c.name], set_=changed))
            return before

        return await self._transactions.write(set_value)


def _read_pause(connection: Connection) -> str:
    return connection.execute(select(SETTINGS.c.value).where(SETTINGS.c.name == _PAUSE)).scalar_one_or_none() or ""

"""Reads the journal of a fleet, and its pause, for commands beside the service. The schema is left as it is."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from plimsoll.fleet.store.dialects import build_dialect
from plimsoll.fleet.store.journal import DatabaseJournal
from plimsoll.fleet.store.leases import DatabaseLeases
from plimsoll.fleet.store.transactions import ThreadRunner, Transactions
from plimsoll.fleet.store.urls import parse_url
from plimsoll.journal.errors import NothingKnown
from plimsoll.runtime.clocks import RealClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.fleet.ports import PauseStore
    from plimsoll.journal.ports import Journal


@contextmanager
def open_fleet_journal(url: str) -> Iterator[Journal]:
    """Raises `NothingKnown` if the database is a file that does not exist."""
    with _open_transactions(url) as transactions:
        yield DatabaseJournal(transactions)


@contextmanager
def open_fleet_pause(url: str) -> Iterator[PauseStore]:
    with _open_transactions(url) as transactions:
        yield DatabaseLeases(transactions)


@contextmanager
def _open_transactions(url: str) -> Iterator[Transactions]:
    address = parse_url(url)
    if not address.is_postgresql and (address.file is None or not address.file.exists()):
        raise NothingKnown(
            f"there is no database {address}", hint="plimsoll run fleet makes one; pass its URL with --database-url"
        )
    dialect = build_dialect(address, RealClock())
    transactions = Transactions(dialect.build_engine(), dialect, ThreadRunner(), address)
    try:
        yield transactions
    finally:
        transactions.close()

"""Opens the database of a fleet: checks and migrates its schema, and gives the ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.fleet.errors import UnusableDatabase
from plimsoll.fleet.store.dialects import build_dialect
from plimsoll.fleet.store.journal import DatabaseJournal
from plimsoll.fleet.store.kafkas import KafkaRows
from plimsoll.fleet.store.leases import DatabaseLeases, LeasedTransactions
from plimsoll.fleet.store.migrations.runner import check_revision, migrate
from plimsoll.fleet.store.rows import RowCodec
from plimsoll.fleet.store.secrets import SecretKeys, generate_keys
from plimsoll.fleet.store.transactions import InlineRunner, ThreadRunner, Transactions
from plimsoll.fleet.store.transfer import Transfer
from plimsoll.fleet.store.urls import parse_url

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.fleet.store.transactions import RunBlocking
    from plimsoll.fleet.store.urls import DatabaseAddress


class FleetDatabase:
    """An open database. `close` it at the end."""

    def __init__(self, address: DatabaseAddress, transactions: Transactions, keys: SecretKeys, clock: Clock) -> None:
        self.address = address
        self.transactions = transactions
        self._codec = RowCodec(keys)
        self.store = KafkaRows(LeasedTransactions(transactions), self._codec, clock)
        self.leases = DatabaseLeases(transactions)
        self.journal = DatabaseJournal(transactions)
        self.transfer = Transfer(transactions, self.store, self._codec)

    async def rotate_secrets(self) -> int:
        """Encrypts secrets of older keys with the newest one. Returns their number."""
        return await self.transactions.write(self._codec.rotate_secrets)

    def close(self) -> None:
        self.transactions.close()


def open_database(
    url: str,
    *,
    clock: Clock,
    keys: SecretKeys | None = None,
    runner: RunBlocking | None = None,
    reads_only: bool = False,
) -> FleetDatabase:
    """Opens and migrates a database. Blocking.

    A database in memory gets a key of its own, and runs its calls in the thread of the loop. `reads_only`: a database
    of another schema, or a file that is not there, is refused; secrets are not read, so that no key is needed.
    """
    address = parse_url(url)
    if reads_only and address.file is not None and not address.file.exists():
        raise UnusableDatabase(f"{address}: there is no such file")
    dialect = build_dialect(address, clock)
    if keys is None:
        keys = generate_keys() if address.is_memory else SecretKeys({})
    if runner is None:
        runner = InlineRunner() if address.is_memory else ThreadRunner()
    transactions = Transactions(dialect.build_engine(), dialect, runner, address)
    try:
        transactions.run_reading(dialect.check_server)
        if reads_only:
            check_revision(transactions, address)
        else:
            migrate(transactions, address)
            transactions.run_reading(RowCodec(keys).check_keys)
    except BaseException:  # The error is passed on; connections must not stay open behind it.
        transactions.close()
        raise
    return FleetDatabase(address, transactions, keys, clock)

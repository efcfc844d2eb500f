"""What differs between SQLite and PostgreSQL. No other module of the store names either.

| | SQLite | PostgreSQL |
|---|---|---|
| a writing transaction | `BEGIN IMMEDIATE`: a read that becomes a write fails as "locked" | read committed |
| a reading transaction | a snapshot by itself | repeatable read, read-only |
| locks of rows and locators | dropped, because there is one writer | `FOR UPDATE`, `pg_advisory_xact_lock` |
| the clock of leases | that of the process, because there is one | `clock_timestamp()` |
| text | binary order; `like` respects case by a pragma | collation "C", declared by the migrations |
"""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from sqlalchemy import bindparam, create_engine, event, func, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import QueuePool, StaticPool

from plimsoll.core.durations import add_seconds
from plimsoll.fleet.errors import DatabaseUnreachable, UnusableDatabase
from plimsoll.fleet.store.columns import UtcTime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Engine, Table

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.store.urls import DatabaseAddress

CONNECTIONS: Final = 8
"""Connections per process, and threads that use them."""
_WAIT_S: Final = 15.0
"""How long a writer waits for another one, and a call for a free connection."""
_WRITES: Final = "plimsoll_writes"
_NOW: Final = UtcTime("now")
_SESSION: Final = {
    "timezone": "UTC",
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    # A process that is stopped within a transaction keeps its lease, until the server ends the transaction.
    "idle_in_transaction_session_timeout": "10s",
}
_RETRIED: Final = frozenset({"40001", "40P01"})
"""Serialization failure, deadlock: the transaction was rolled back and may run again."""
_ENDED: Final = ("08", "57P0")
"""Classes of errors that end a connection: lost, and shut down by an administrator."""


class Dialect(Protocol):
    """One kind of database."""

    def build_engine(self) -> Engine: ...

    def open_for_writing(self, engine: Engine) -> Any:
        """A context manager of a connection within a writing transaction."""
        ...

    def open_for_reading(self, engine: Engine) -> Any: ...

    def lock_text(self, connection: Connection, name: str) -> None:
        """A lock until the end of the transaction, for what has no row."""
        ...

    def build_now(self, *, plus_s: float = 0.0) -> ColumnElement[datetime]:
        """The time of the database."""
        ...

    def build_insert(self, table: Table) -> Any:
        """An INSERT that has `on_conflict_do_nothing` and `on_conflict_do_update`."""
        ...

    def is_repeatable(self, error: Exception) -> bool:
        """The database asks to run the transaction again."""
        ...

    def has_lost_connection(self, error: Exception) -> bool: ...

    def check_server(self, connection: Connection) -> None: ...


def build_dialect(address: DatabaseAddress, clock: Clock) -> Dialect:
    return PostgresqlDialect(address) if address.is_postgresql else SqliteDialect(address, clock)


class PostgresqlDialect:
    """PostgreSQL by psycopg 3."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address

    def build_engine(self) -> Engine:
        given = self._address.url.query.get("options", ())
        options = [f"-c {name}={value}" for name, value in _SESSION.items()]
        arguments = {
            "connect_timeout": 5,
            "application_name": "plimsoll",
            "client_encoding": "utf8",
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 30_000,
            "options": " ".join([*options, *((given,) if isinstance(given, str) else given)]),
        }
        return create_engine(
            self._address.url,
            poolclass=QueuePool,
            pool_size=CONNECTIONS,
            max_overflow=0,
            pool_timeout=_WAIT_S,
            pool_pre_ping=True,
            connect_args=arguments,
            hide_parameters=True,
        )

    @contextmanager
    def open_for_writing(self, engine: Engine) -> Iterator[Connection]:
        with engine.connect() as connection:
            yield connection

    @contextmanager
    def open_for_reading(self, engine: Engine) -> Iterator[Connection]:
        with engine.connect() as connection:
            yield connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def lock_text(self, connection: Connection, name: str) -> None:
        connection.execute(select(func.pg_advisory_xact_lock(hash_text(name))))

    def build_now(self, *, plus_s: float = 0.0) -> ColumnElement[datetime]:
        now = func.clock_timestamp(type_=_NOW)
        return now if not plus_s else now + func.make_interval(0, 0, 0, 0, 0, 0, plus_s)

    def build_insert(self, table: Table) -> Any:
        return postgresql.insert(table)

    def is_repeatable(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) in _RETRIED

    def has_lost_connection(self, error: Exception) -> bool:
        return (getattr(error, "sqlstate", None) or "").startswith(_ENDED)

    def check_server(self, connection: Connection) -> None:
        encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
        if encoding != "UTF8":
            problem = f"{self._address}: the database has the encoding {encoding}; create it with ENCODING 'UTF8'"
            raise UnusableDatabase(problem)


class SqliteDialect:
    """SQLite, in a file or in memory. Writers of one process wait for each other here: SQLite itself would poll."""

    def __init__(self, address: DatabaseAddress, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._lock = threading.Lock()

    def build_engine(self) -> Engine:
        if self._address.file is not None:
            self._address.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._address.file.touch(mode=0o600)
        pool: dict[str, Any] = (
            {"poolclass": StaticPool}
            if self._address.is_memory
            else {"poolclass": QueuePool, "pool_size": CONNECTIONS, "max_overflow": 0, "pool_timeout": _WAIT_S}
        )
        arguments = {"check_same_thread": False, "timeout": _WAIT_S}
        engine = create_engine(self._address.url, connect_args=arguments, hide_parameters=True, **pool)
        event.listen(engine, "connect", self._set_up_connection)
        event.listen(engine, "begin", _begin)
        return engine

    def _set_up_connection(self, connection: Any, _record: object) -> None:
        connection.isolation_level = None  # The driver begins no transaction by itself.
        for pragma in ("case_sensitive_like=ON", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}").close()

    @contextmanager
    def open_for_writing(self, engine: Engine) -> Iterator[Connection]:
        with self._hold_lock(), engine.connect() as connection:
            yield connection.execution_options(**{_WRITES: True})

    @contextmanager
    def open_for_reading(self, engine: Engine) -> Iterator[Connection]:
        if self._address.is_memory:  # All calls share one connection.
            with self._hold_lock(), engine.connect() as connection:
                yield connection
        else:
            with engine.connect() as connection:
                yield connection

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=_WAIT_S):
            raise DatabaseUnreachable(f"{self._address}: other writers kept the database for {_WAIT_S:g} s")
        try:
            yield
        finally:
            self._lock.release()

    def lock_text(self, connection: Connection, name: str) -> None:
        """A writing transaction is the only one."""

    def build_now(self, *, plus_s: float = 0.0) -> ColumnElement[datetime]:
        return bindparam(None, add_seconds(self._clock.now(), plus_s), _NOW)

    def build_insert(self, table: Table) -> Any:
        return sqlite.insert(table)

    def is_repeatable(self, error: Exception) -> bool:  # noqa: ARG002
        return False

    def has_lost_connection(self, error: Exception) -> bool:  # noqa: ARG002
        return False

    def check_server(self, connection: Connection) -> None:
        """The library comes with Python."""


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def hash_text(name: str) -> int:
    """The number of an advisory lock."""
    return int.from_bytes(hashlib.blake2b(f"plimsoll {name}".encode(), digest_size=8).digest(), "big", signed=True)

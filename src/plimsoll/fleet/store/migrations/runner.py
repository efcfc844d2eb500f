"""Brings a database to the newest schema, in one transaction under a lock: several processes may start at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from plimsoll.fleet.errors import UnusableDatabase

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from plimsoll.fleet.store.transactions import Transactions
    from plimsoll.fleet.store.urls import DatabaseAddress

_LOCK: Final = "migration"
_TABLES: Final = frozenset({"clusters", "kafka_requests", "leases"})


def migrate(transactions: Transactions, address: DatabaseAddress, revision: str = "head") -> None:
    """Migrates to a revision. A schema that is newer than this Plimsoll is refused."""
    config = build_config()
    script = ScriptDirectory.from_config(config)
    wanted = script.as_revision_number(revision)
    if transactions.run_reading(lambda connection: _read_revision(connection, script, address)) == wanted:
        return

    def upgrade(connection: Connection) -> None:
        transactions.dialect.lock_text(connection, _LOCK)
        if _read_revision(connection, script, address) != wanted:
            config.attributes["connection"] = connection
            command.upgrade(config, revision)

    transactions.run_writing(upgrade)


def check_revision(transactions: Transactions, address: DatabaseAddress) -> None:
    """Refuses a database that has another schema, without changing it."""
    script = ScriptDirectory.from_config(build_config())
    found = transactions.run_reading(lambda connection: _read_revision(connection, script, address))
    if found is None:
        raise UnusableDatabase(f"{address}: the database has no tables of a fleet")
    if found != script.get_current_head():
        problem = f"{address}: the schema has version {found}, which an older Plimsoll wrote"
        raise UnusableDatabase(f"{problem}; start this version of the fleet manager on it once to migrate it")


def build_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


def list_revisions() -> list[str]:
    """All revisions, oldest first."""
    script = ScriptDirectory.from_config(build_config())
    return [revision.revision for revision in script.walk_revisions()][::-1]


def _read_revision(connection: Connection, script: ScriptDirectory, address: DatabaseAddress) -> str | None:
    """The revision of the database. None: it is empty."""
    revision = MigrationContext.configure(connection).get_current_revision()
    newest = script.get_current_head() or ""
    if revision is None:
        if foreign := _TABLES & set(inspect(connection).get_table_names()):
            problem = f"{address}: the table {min(foreign)} is that of another program; give an empty database"
            raise UnusableDatabase(problem)
        return None
    if revision in {known.revision for known in script.walk_revisions()}:
        return revision
    if revision > newest:
        problem = f"{address}: the schema has version {revision}, this Plimsoll knows versions up to {newest}"
        raise UnusableDatabase(f"{problem}; use the newer Plimsoll, or restore a backup from before its migration")
    raise UnusableDatabase(f"{address}: the schema version {revision} is that of another program")

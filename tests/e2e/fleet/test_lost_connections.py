"""The server restarted and connections killed under load: no call is answered wrongly, none lost that was answered."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from msgspec import structs

from plimsoll.fleet.errors import DatabaseUnreachable, UnusableDatabase
from plimsoll.fleet.model.statuses import KafkaStatus
from plimsoll.fleet.ports import InsertResult, KafkaFilter, Page
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.dialects import build_dialect
from plimsoll.fleet.store.migrations.runner import list_revisions, migrate
from plimsoll.fleet.store.transactions import InlineRunner, Transactions
from plimsoll.fleet.store.urls import parse_url
from plimsoll.runtime.clocks import RealClock
from tests.e2e.fleet.postgresql_servers import PASSWORD
from tests.e2e.timeouts import PATIENCE_S
from tests.fleet.store.databases import CHECK, build_kafka

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.fleet.ports import FleetStore
    from tests.e2e.fleet.postgresql_servers import PostgresqlServer
    from tests.fleet.store.databases import DatabaseUnderTest

WRITERS = 12
LIMIT = 150
ROUNDS = 6
ANY = tuple(KafkaStatus)
REPOSITORY = Path(__file__).parents[3]


@dataclass
class Load:
    """What clients were answered."""

    acknowledged: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    is_ending: bool = False

    async def write(self, store: FleetStore, writer: int) -> None:
        """Create Kafkas one after the other. A call whose outcome is not known is not repeated."""
        number = 0
        check = structs.replace(CHECK, limit=LIMIT)
        while not self.is_ending:
            number += 1
            row_id = f"{writer}-{number}"
            try:
                result = await store.insert_kafka(build_kafka(row_id), check)
            except DatabaseUnreachable as error:
                self.errors.append(str(error))
                (self.unknown if error.may_have_committed else self.refused).add(row_id)
                await asyncio.sleep(0.01)
                continue
            assert result in {InsertResult.DONE, InsertResult.LIMIT_REACHED}
            (self.acknowledged if result is InsertResult.DONE else self.refused).add(row_id)

    async def wait_for_answers(self, count: int) -> None:
        """Wait until so many Kafkas were acknowledged."""
        while len(self.acknowledged) < count:  # noqa: ASYNC110 - a count, and no event
            await asyncio.sleep(0.01)

    async def read(self, store: FleetStore) -> None:
        """What was acknowledged before a read is in its answer."""
        while not self.is_ending:
            before = set(self.acknowledged)
            try:
                total, kafkas = await store.search_kafkas(KafkaFilter(), None, Page(size=10_000))
            except DatabaseUnreachable as error:
                self.errors.append(str(error))
                await asyncio.sleep(0.01)
                continue
            assert total == len(kafkas) <= LIMIT
            assert before <= {kafka.id for kafka in kafkas}


async def run_load(store: FleetStore, disturb: Callable[[], object]) -> Load:
    """Clients at work while the server is disturbed again and again; then a last look at the rows."""
    load = Load()

    async def disturb_rounds() -> None:
        for round_number in range(1, ROUNDS + 1):
            await load.wait_for_answers(LIMIT * round_number // (ROUNDS + 1))
            await asyncio.to_thread(disturb)
        load.is_ending = True

    async with asyncio.timeout(4 * PATIENCE_S), asyncio.TaskGroup() as group:
        for writer in range(WRITERS):
            group.create_task(load.write(store, writer))
        group.create_task(load.read(store))
        group.create_task(disturb_rounds())
    kafkas = await store.list_kafkas(ANY)
    stored = {kafka.id for kafka in kafkas}
    assert load.acknowledged <= stored
    assert stored <= load.acknowledged | load.unknown
    assert not stored & load.refused
    assert len(stored) <= LIMIT
    assert not any(PASSWORD in error for error in load.errors)
    return load


def test_connections_killed_under_load(database: DatabaseUnderTest, postgresql_server: PostgresqlServer):
    name = urlsplit(database.url).path.strip("/")
    killed: list[int] = []
    load = database.play_store(
        lambda store: run_load(store, lambda: killed.append(postgresql_server.kill_connections(name)))
    )
    assert sum(killed) > ROUNDS
    assert load.acknowledged


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_the_server_restarted_under_load(
    database: DatabaseUnderTest, postgresql_server: PostgresqlServer, how: signal.Signals
):
    def restart() -> None:
        postgresql_server.stop(how=how)
        postgresql_server.start()

    load = database.play_store(lambda store: run_load(store, restart))
    assert load.errors
    assert load.acknowledged


def test_a_killed_connection_is_replaced_before_a_call_notices(
    database: DatabaseUnderTest, postgresql_server: PostgresqlServer
):
    name = urlsplit(database.url).path.strip("/")

    async def story(store: FleetStore) -> None:
        for number in range(5):
            await asyncio.to_thread(postgresql_server.kill_connections, name)
            assert await store.insert_kafka(build_kafka(str(number)), CHECK) is InsertResult.DONE
            assert len(await store.list_kafkas(ANY)) == number + 1

    database.play_store(story)


@pytest.mark.parametrize("revision", ["", *list_revisions()[:-1]])
def test_three_processes_migrate_at_once(postgresql_url: str, tmp_path: Path, revision: str):
    """An empty database, and one of every earlier version."""
    for url in (postgresql_url, f"sqlite:///{tmp_path}/fleet.sqlite3"):
        if revision:
            migrate_to(url, revision)
        command = [sys.executable, "-m", "tests.e2e.fleet.fleet_opener", url]
        processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY) for _ in range(3)
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        for process in processes:
            _, errors = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, errors.decode()
        open_database(url, clock=RealClock(), reads_only=True).close()


def migrate_to(url: str, revision: str) -> None:
    address = parse_url(url)
    dialect = build_dialect(address, RealClock())
    transactions = Transactions(dialect.build_engine(), dialect, InlineRunner(), address)
    migrate(transactions, address, revision)
    transactions.close()


def test_a_wrong_password_is_not_shown(postgresql_url: str):
    with pytest.raises(DatabaseUnreachable) as raised:
        open_database(postgresql_url.replace(PASSWORD, "wr0ng-password"), clock=RealClock())
    assert "wr0ng" not in str(raised.value)


def test_another_encoding_is_refused(postgresql_server: PostgresqlServer):
    options = "ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C'"
    url = postgresql_server.create_database("ascii", options=options)
    with pytest.raises(UnusableDatabase, match="SQL_ASCII"):
        open_database(url, clock=RealClock())

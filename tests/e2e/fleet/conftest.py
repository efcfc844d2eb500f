"""One PostgreSQL server per worker of the run, and a new database per test."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet.postgresql_servers import PostgresqlServer
from tests.fleet.store.databases import DatabaseUnderTest

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """A running server. Tests that stop it start it again."""
    server = PostgresqlServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def postgresql_url(postgresql_server: PostgresqlServer) -> str:
    """The URL of an empty database."""
    return postgresql_server.create_database(f"fleet_{next(_NUMBERS)}")


@pytest.fixture
def database(postgresql_url: str) -> DatabaseUnderTest:
    return DatabaseUnderTest(postgresql_url)


@pytest.fixture
def lasting(database: DatabaseUnderTest) -> DatabaseUnderTest:
    return database

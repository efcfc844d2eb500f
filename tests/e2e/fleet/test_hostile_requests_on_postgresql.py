"""Generated and hostile requests on PostgreSQL, which stores no NUL character and bounds the entries of indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet.api.api_world import ApiWorld
from tests.fleet.api.test_generated_requests import *  # noqa: F403 - the same tests with another fixture
from tests.fleet.api.test_generated_requests import GeneratedRequests
from tests.fleet.api.test_hostile_requests import *  # noqa: F403 - likewise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.fleet.postgresql_servers import PostgresqlServer


@pytest.fixture(scope="module")  # type: ignore[no-redef]
def shared(postgresql_server: PostgresqlServer) -> Iterator[ApiWorld]:
    world = ApiWorld(url=postgresql_server.create_database("hostile"))
    world.add_cluster()
    yield world
    world.close()


@pytest.fixture(scope="module")  # type: ignore[no-redef]
def generated(postgresql_server: PostgresqlServer) -> Iterator[GeneratedRequests]:
    generated = GeneratedRequests(postgresql_server.create_database("generated"))
    yield generated
    generated.world.close()

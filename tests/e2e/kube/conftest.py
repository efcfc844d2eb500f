"""One cluster for the suite, a client and a namespace for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.e2e.kube.clusters import cluster_access, connected, fresh_namespace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client


@pytest.fixture(scope="session")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    with cluster_access(tmp_path_factory.mktemp("cluster") / "data") as found:
        yield found


@pytest_asyncio.fixture
async def client(access: Access) -> AsyncIterator[Client]:
    async with connected(access) as made:
        yield made


@pytest_asyncio.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    async with fresh_namespace(client) as name:
        yield name

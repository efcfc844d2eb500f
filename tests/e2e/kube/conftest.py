"""One cluster and one namespace for the suite; every test finds the namespace empty, and has a client of its own.

One namespace, because a cluster takes seconds to remove one, and minutes for dozens.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.e2e.kube.clusters import (
    access_of,
    cluster_kubeconfig,
    connected,
    delete_namespace,
    empty_namespace,
    make_namespace,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with cluster_kubeconfig(tmp_path_factory.mktemp("cluster") / "data") as found:
        yield found


@pytest.fixture(scope="session")
def access(kubeconfig: Path) -> Access:
    return access_of(kubeconfig)


@pytest_asyncio.fixture
async def client(access: Access) -> AsyncIterator[Client]:
    async with connected(access) as made:
        yield made


@pytest.fixture(scope="session")
def namespace_of_the_suite(access: Access) -> Iterator[str]:
    name = asyncio.run(make_namespace(access))
    try:
        yield name
    finally:
        asyncio.run(delete_namespace(access, name))


@pytest_asyncio.fixture
async def namespace(client: Client, namespace_of_the_suite: str) -> AsyncIterator[str]:
    try:
        yield namespace_of_the_suite
    finally:
        await empty_namespace(client, namespace_of_the_suite)

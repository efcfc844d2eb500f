"""One cluster for the suite; every test finds it without nodes, groups and pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.nodes.live_clusters import bare_cluster, cleared
from tests.e2e.up.up_processes import needs_kubectl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.nodes.live_clusters import Cluster


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    needs_kubectl()
    with bare_cluster(tmp_path_factory.mktemp("nodes")) as found:
        yield found


@pytest.fixture
def cluster(bare: Cluster) -> Iterator[Cluster]:
    try:
        yield bare
    finally:
        cleared(bare)

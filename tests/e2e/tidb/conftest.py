"""One real Prometheus with recorded blocks for the suite, and the cluster they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.tidb import prometheus_processes as processes
from tests.e2e.tidb.recorded_loads import open_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def binaries(request: pytest.FixtureRequest) -> processes.Binaries:
    """Fetched once: pytest keeps them with its other things between runs."""
    assert request.config.cache is not None
    return processes.needs_prometheus(request.config.cache.mkdir("prometheus"))


@pytest.fixture(scope="session")
def blocks(binaries: processes.Binaries, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("blocks") / "data"
    processes.fill(binaries, open_metrics(), directory)
    return directory


@pytest.fixture(scope="session")
def recorded(binaries: processes.Binaries, blocks: Path) -> Iterator[processes.PrometheusProcess]:
    with processes.prometheus(binaries, blocks) as found:
        yield found

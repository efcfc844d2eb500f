"""One cluster of real brokers, in parts, for all tests of this folder: they leave it with three brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.kafka.scaling.kafka_chain import KafkaChain
from tests.e2e.kafka.shared_cluster import SharedCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.kafka.processes.distribution import KafkaDistribution


@pytest.fixture(scope="session")
def chain(kafka_distribution: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaChain]:
    assert kafka_distribution
    directory = tmp_path_factory.mktemp("chain")
    shared = SharedCluster(lambda number: KafkaChain(directory / str(number)))
    try:
        yield shared.get()
    finally:
        shared.close()

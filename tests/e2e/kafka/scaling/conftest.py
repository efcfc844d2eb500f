"""One cluster of real brokers, in parts, for all tests of this folder: they leave it with three brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.kafka.scaling.kafka_chain import KafkaChain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.kafka.processes.distribution import KafkaDistribution


@pytest.fixture(scope="session")
def chain(kafka_distribution: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaChain]:
    assert kafka_distribution
    started = KafkaChain(tmp_path_factory.mktemp("chain"))
    try:
        started.start()
        yield started
    finally:
        started.close()

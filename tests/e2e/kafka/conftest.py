"""One real Kafka cluster for all tests of a worker."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.kafka.kafka_distributions import need_distribution
from tests.e2e.kafka.real_kafka import RealKafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.kafka.processes.distribution import KafkaDistribution


@pytest.fixture(scope="session")
def kafka_distribution() -> KafkaDistribution:
    return need_distribution()


@pytest.fixture(scope="session")
def kafka_cluster(
    kafka_distribution: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealKafka]:
    """A running cluster. Tests use `kafka`."""
    cluster = RealKafka(kafka_distribution, tmp_path_factory.mktemp("kafka"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def kafka(kafka_cluster: RealKafka) -> RealKafka:
    """A cluster of three brokers without topics."""
    kafka_cluster.make_as_new()
    return kafka_cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for kind in ("socket", "ssl"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore:unclosed <{kind}:ResourceWarning"))


@pytest.fixture(scope="session", autouse=True)
def _collect_all_sockets() -> Iterator[None]:
    yield
    _collect_garbage()


@pytest.fixture(autouse=True)
def _collect_sockets() -> Iterator[None]:
    yield
    _collect_garbage()


def _collect_garbage() -> None:
    """Collect the sockets of failed connections, which kafka-python leaves to the garbage collector."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()

"""One real Kafka cluster for all tests of a worker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.kafka.kafka_distributions import need_distribution
from tests.e2e.kafka.real_kafka import RealKafka
from tests.e2e.kafka.shared_cluster import SharedCluster
from tests.kafka.brokers.tls_listeners import UNCLOSED, collect_sockets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.kafka.processes.distribution import KafkaDistribution


LONGEST = Path(__file__).with_name("test_scaling.py")


@pytest.fixture(scope="session")
def kafka_distribution() -> KafkaDistribution:
    return need_distribution()


@pytest.fixture(scope="session")
def kafka_cluster(
    kafka_distribution: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedCluster[RealKafka]]:
    """The cluster of the worker. Tests use `kafka`."""
    directory = tmp_path_factory.mktemp("kafka")
    shared = SharedCluster(lambda number: RealKafka(kafka_distribution, directory / str(number)))
    try:
        yield shared
    finally:
        shared.close()


@pytest.fixture
def kafka(kafka_cluster: SharedCluster[RealKafka]) -> RealKafka:
    """A cluster of three brokers without topics."""
    return kafka_cluster.get(RealKafka.make_as_new)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The longest file first: a worker that takes it last works alone at the end.
    items.sort(key=lambda item: item.path != LONGEST)
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for unclosed in UNCLOSED:
                item.add_marker(unclosed)


@pytest.fixture(scope="session", autouse=True)
def _collect_all_sockets() -> Iterator[None]:
    yield
    collect_sockets()


@pytest.fixture(autouse=True)
def _collect_sockets() -> Iterator[None]:
    yield
    collect_sockets()

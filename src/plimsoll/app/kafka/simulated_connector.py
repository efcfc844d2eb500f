"""Simulated clusters behind the port of connections: `SimulatedBrokers` is a `BrokerConnector`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.app.kafka.simulated_admin import SimulatedAdmin
from plimsoll.kafka.brokers.ports import KafkaUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.brokers.ports import ClusterConnection, KafkaAdmin
    from plimsoll.local.kafka.cluster import SimulatedKafka
    from plimsoll.objects.api.kafka import Kafka


class SimulatedBrokers:
    """Finds the simulated cluster of a Kafka by namespace and name. None: no broker of it runs yet."""

    def __init__(self, find: Callable[[str, str], SimulatedKafka | None]) -> None:
        self._find = find

    async def connect(self, kafka: Kafka) -> ClusterConnection:
        cluster = self._find(kafka.metadata.namespace, kafka.metadata.name)
        if cluster is None:
            raise KafkaUnavailable(f"no broker of {kafka.metadata.namespace}/{kafka.metadata.name} runs")
        return _SimulatedConnection(SimulatedAdmin(cluster))


class _SimulatedConnection:
    """Nothing is opened, and nothing has to be closed."""

    def __init__(self, admin: SimulatedAdmin) -> None:
        self._admin = admin

    @property
    def admin(self) -> KafkaAdmin:
        return self._admin

    async def refresh(self, kafka: Kafka) -> None:
        """There are no certificates."""

    async def close(self) -> None:
        """There is no socket."""

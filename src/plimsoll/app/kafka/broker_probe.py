"""Asks real brokers which of them are not fenced: a `BrokerProbe` over any `BrokerConnector`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable

if TYPE_CHECKING:
    from plimsoll.kafka.brokers.ports import BrokerConnector, ClusterConnection
    from plimsoll.objects.api.kafka import Kafka

_ANSWER_S: Final = 5.0


class ConnectedBrokerProbe:
    """One connection per cluster, opened again after a failure: the brokers that it knew may be gone."""

    def __init__(self, connector: BrokerConnector) -> None:
        self._connector = connector
        self._connections: dict[str, ClusterConnection] = {}

    async def list_unfenced(self, kafka: Kafka) -> frozenset[int]:
        uid = kafka.metadata.uid
        try:
            async with asyncio.timeout(_ANSWER_S):
                if uid not in self._connections:
                    self._connections[uid] = await self._connector.connect(kafka)
                nodes = await self._connections[uid].admin.describe_nodes()
        except (KafkaUnavailable, KafkaRefused, TimeoutError):
            await self._close(uid)
            return frozenset()
        return frozenset(broker.id for broker in nodes.brokers if broker.is_registered and not broker.is_fenced)

    async def close(self) -> None:
        for uid in tuple(self._connections):
            await self._close(uid)

    async def _close(self, uid: str) -> None:
        connection = self._connections.pop(uid, None)
        if connection is not None:
            await connection.close()

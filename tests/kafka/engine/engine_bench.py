"""Engines over simulated brokers in virtual time, with a record that outlives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kafka.cruise_control.client.client import CruiseControlClient
from plimsoll.kafka.engine.broker_view import ConnectedBrokerView
from plimsoll.kafka.engine.engine import EngineDependencies, run_inline
from plimsoll.kafka.engine.engines import BrokerConnections, Engines
from plimsoll.kafka.executor.record_stores import MemoryExecutionStore
from plimsoll.local.kafka.cluster import SimulatedKafka
from plimsoll.objects.api.kafka import Kafka, KafkaNodePool
from plimsoll.runtime.entropy import SeededEntropy

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.executor.record import ExecutionStore
    from plimsoll.web.client import HttpClient

MB = 1_000_000


def build_kafka(name: str = "c", *, uid: str = "u1", **cruise_control: Any) -> Kafka:
    return msgspec.convert(
        {
            "apiVersion": "kafka.strimzi.io/v1",
            "metadata": {"name": name, "namespace": "ns", "uid": uid},
            "spec": {"kafka": {}, "cruiseControl": cruise_control},
        },
        Kafka,
    )


def build_pool(name: str = "p", *, ids: tuple[int, ...] = (0, 1, 2), **spec: Any) -> KafkaNodePool:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"replicas": len(ids), "roles": ["broker"], **spec},
            "status": {"nodeIds": ids},
        },
        KafkaNodePool,
    )


class EngineBench:
    """Four brokers, three of which hold replicas, and an operator that can be restarted."""

    def __init__(self, clock: Clock, *, partitions: int = 30, size: int = 20 * MB) -> None:
        self.clock = clock
        self.kafka = build_kafka()
        self.brokers = SimulatedKafka(clock)
        for broker in range(4):
            self.brokers.add_broker(broker, rack=f"r{broker}", bytes_per_s=10 * MB)
        replicas = [[(number + offset) % 3 for offset in range(3)] for number in range(partitions)]
        self.brokers.create_topic("orders", replicas, size_bytes=size)
        self.stores: dict[str, ExecutionStore] = {}
        self.open_store: Callable[[Kafka], ExecutionStore] = self._open_memory
        self.journal = MemoryJournal()
        self.wrap_web: Callable[[HttpClient], HttpClient] = lambda web: web
        self._restarts = 0
        self.start()

    def start(self) -> None:
        """A new process."""
        self._restarts += 1
        self.connections = BrokerConnections(SimulatedBrokers(self._find), clock=self.clock)
        dependencies = EngineDependencies(
            clock=self.clock,
            entropy=SeededEntropy(self._restarts),
            run_blocking=run_inline,
            journal=self.journal,
            wrap_web=self.wrap_web,
        )
        self.engines = Engines(self.connections, dependencies, self._open_store)
        self.view = ConnectedBrokerView(self.connections, clock=self.clock, engines=self.engines, journal=self.journal)

    async def restart(self) -> None:
        """The process ends in the middle of what it does, and another one starts."""
        await self.connections.close()
        self.start()

    async def find(self, kafka: Kafka | None = None) -> CruiseControlClient:
        found = await self.engines.find(kafka or self.kafka)
        assert isinstance(found, CruiseControlClient), found
        return found

    def count_replicas(self, broker: int) -> int:
        return sum(broker in partition.replicas for partition in self.brokers.catch_up().iterate_partitions())

    @property
    def is_moving(self) -> bool:
        return any(partition.is_reassigning for partition in self.brokers.catch_up().iterate_partitions())

    def list_rates(self, broker: int) -> list[str]:
        return [key for key in self.brokers.catch_up().settings.read("broker", str(broker)) if "throttled" in key]

    def list_throttles(self) -> list[str]:
        state = self.brokers.catch_up()
        held = [state.settings.read("topic", name) for name in state.topics]
        held += [state.settings.read("broker", str(broker)) for broker in state.brokers]
        return sorted(key for values in held for key in values if "throttled" in key)

    def _find(self, namespace: str, name: str) -> SimulatedKafka | None:
        return self.brokers if (namespace, name) == ("ns", "c") else None

    def _open_store(self, kafka: Kafka) -> ExecutionStore:
        return self.open_store(kafka)

    def _open_memory(self, kafka: Kafka) -> ExecutionStore:
        return self.stores.setdefault(kafka.metadata.uid, MemoryExecutionStore())

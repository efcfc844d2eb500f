"""The connections and engines of all Kafka clusters: opened when they are first needed, closed when the Kafka is gone.

`Engines` is where the rebalance reconciler finds the "Cruise Control" of a cluster that has our engine.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable
from plimsoll.kafka.cruise_control.client.answers import UNCONNECTED
from plimsoll.kafka.engine.engine import Engine
from plimsoll.kafka.engine.guarded_admin import GuardedKafkaAdmin
from plimsoll.kafka.executor.errors import RecordUnusable
from plimsoll.kafka.model.rebalances import RebalanceRefused
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.reporting.cluster_journal import ClusterJournal
from plimsoll.operator.pause import ActionGuard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.brokers.ports import BrokerConnector, ClusterConnection, KafkaAdmin
    from plimsoll.kafka.cruise_control.client.client import CruiseControlClient
    from plimsoll.kafka.engine.engine import EngineDependencies
    from plimsoll.kafka.executor.record import ExecutionStore
    from plimsoll.kafka.model.description import BrokerCapacity
    from plimsoll.kafka.model.executions import ExecutionProgress
    from plimsoll.kube.transport import Guard
    from plimsoll.objects.api.kafka import Kafka

    OpenStore = Callable[[Kafka], ExecutionStore]
    """The record of a cluster: in ConfigMaps, in a file, in memory."""
    ReadPause = Callable[[Kafka], Awaitable[ActionGuard]]
    """What forbids new movements of a cluster now."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

REFRESH_S: Final = 60.0
"""How often certificates are looked at."""


@dataclass(slots=True)
class _Entry:
    """What is open for one Kafka. One of the same name that is made anew, with another uid, gets its own."""

    kafka: Kafka
    """As it was seen last: it may be paused meanwhile."""
    connection: ClusterConnection
    admin: KafkaAdmin
    refreshed_at_s: float
    engine: Engine | None = None


class BrokerConnections:
    """The connection to each cluster's brokers, with its engine. One at a time is opened per cluster.

    `guard`: the leader's, asked before changes at the brokers.
    """

    def __init__(self, connector: BrokerConnector, *, clock: Clock, guard: Guard | None = None) -> None:
        self._connector = connector
        self._clock = clock
        self._guard = guard
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    async def get_admin(self, kafka: Kafka) -> KafkaAdmin:
        """The brokers of a Kafka. Raises `KafkaUnavailable`."""
        async with self.lock(kafka):
            return (await self.open(kafka)).admin

    def lock(self, kafka: Kafka) -> asyncio.Lock:
        """Held while the connection or the engine of a Kafka is opened or closed."""
        return self._locks.setdefault(_build_key(kafka), asyncio.Lock())

    async def open(self, kafka: Kafka) -> _Entry:
        """The open connection, under the lock. Raises `KafkaUnavailable`."""
        key, now_s = _build_key(kafka), self._clock.monotonic_s()
        entry = self._entries.get(key)
        if entry is not None and entry.kafka.metadata.uid != kafka.metadata.uid:
            await self._close(key)
            entry = None
        if entry is None:
            connection = await self._connector.connect(kafka)
            admin = GuardedKafkaAdmin(connection.admin, self._guard, on_failure=lambda: self._expire(key))
            entry = self._entries[key] = _Entry(kafka, connection, admin, now_s)
        entry.kafka = kafka
        if now_s - entry.refreshed_at_s >= REFRESH_S:
            entry.refreshed_at_s = now_s
            await entry.connection.refresh(kafka)
        return entry

    def _expire(self, key: tuple[str, str]) -> None:
        """A request failed: the next use of the connection looks at the certificates first."""
        if (entry := self._entries.get(key)) is not None:
            entry.refreshed_at_s = -math.inf

    async def close_cluster(self, namespace: str, name: str) -> None:
        """Close what is open for a Kafka that is gone."""
        key = (namespace, name)
        async with self._locks.setdefault(key, asyncio.Lock()):
            await self._close(key)
        self._locks.pop(key, None)

    def find_engine(self, kafka: Kafka) -> Engine | None:
        """The running engine of a Kafka."""
        entry = self._entries.get(_build_key(kafka))
        return None if entry is None else entry.engine

    def list_engines(self) -> list[tuple[tuple[str, str], Engine]]:
        """The running engines, by namespace and name of their Kafkas."""
        return [(key, entry.engine) for key, entry in sorted(self._entries.items()) if entry.engine is not None]

    async def close(self) -> None:
        """Close everything: the process ends, or another one leads."""
        for namespace, name in tuple(self._entries):
            await self.close_cluster(namespace, name)

    async def _close(self, key: tuple[str, str]) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        if entry.engine is not None:
            await entry.engine.close()
        await entry.connection.close()


@dataclass(slots=True)
class Engines:
    """Our engine per Kafka cluster."""

    connections: BrokerConnections
    dependencies: EngineDependencies
    open_store: OpenStore
    read_pause: ReadPause | None = None
    on_execution_ended: Callable[[str, str], None] = lambda _namespace, _name: None
    """Called with namespace and name of the Kafka."""
    _configured: dict[tuple[str, str], tuple[dict[int, BrokerCapacity], AnalyzerSettings]] = field(default_factory=dict)
    """By namespace and name of the Kafka: for an engine that is started later."""

    async def find(self, kafka: Kafka) -> CruiseControlClient | RebalanceRefused:
        """The engine of a Kafka as a Cruise Control; it is started if it is not running."""
        try:
            return (await self.start(kafka)).client
        except (KafkaUnavailable, KafkaRefused) as error:
            return RebalanceRefused(reason=UNCONNECTED, message=str(error), is_transient=True)
        except RecordUnusable as error:
            return RebalanceRefused(reason="RecordUnusable", message=str(error), is_transient=True)

    async def start(self, kafka: Kafka) -> Engine:
        """The running engine. Raises `KafkaUnavailable` and `RecordUnusable`."""
        async with self.connections.lock(kafka):
            entry = await self.connections.open(kafka)
            if entry.engine is None:
                engine = self._build(entry)
                await engine.start()
                entry.engine = engine
                log.info("engine.started", namespace=kafka.metadata.namespace, name=kafka.metadata.name)
            return entry.engine

    async def configure(self, kafka: Kafka, capacities: dict[int, BrokerCapacity], settings: AnalyzerSettings) -> None:
        """Capacities and goals for the engine of a Kafka; starts it. Raises `KafkaUnavailable` and `RecordUnusable`."""
        self._configured[_build_key(kafka)] = (capacities, settings)
        (await self.start(kafka)).configure(capacities, settings)

    async def close_cluster(self, namespace: str, name: str) -> None:
        """Close the engine and the connection of a Kafka that is gone."""
        self._configured.pop((namespace, name), None)
        await self.connections.close_cluster(namespace, name)

    def list_progress(self) -> dict[tuple[str, str], ExecutionProgress]:
        """Where each engine stands, by namespace and name of its Kafka."""
        return {key: engine.get_progress() for key, engine in self.connections.list_engines()}

    def _build(self, entry: _Entry) -> Engine:
        async def read_guard() -> ActionGuard:
            return ActionGuard() if self.read_pause is None else await self.read_pause(entry.kafka)

        kafka, journal = entry.kafka, self.dependencies.journal
        engine = Engine(
            self.dependencies,
            admin=entry.admin,
            store=self.open_store(kafka),
            read_guard=read_guard,
            journal=None if journal is None else ClusterJournal(journal, kafka.metadata.namespace, kafka.metadata.name),
            on_execution_ended=lambda: self.on_execution_ended(*_build_key(kafka)),
        )
        engine.configure(*self._configured.get(_build_key(kafka), ({}, AnalyzerSettings())))
        return engine


class NoEngines:
    """The engines of a dry run: none is started, because it would go on with an execution that another process has."""

    async def find(self, kafka: Kafka) -> CruiseControlClient | RebalanceRefused:
        where = f"{kafka.metadata.namespace}/{kafka.metadata.name}"
        return RebalanceRefused(reason="DryRun", message=f"a dry run starts no engine for {where}", is_transient=True)


def _build_key(kafka: Kafka) -> tuple[str, str]:
    return kafka.metadata.namespace, kafka.metadata.name

"""What the cluster reconciler sees and changes at the brokers: a `BrokerView` (`kafka.controllers.ports`)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.kafka.brokers.cordons import change_cordons
from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable
from plimsoll.kafka.brokers.replica_placement import read_replica_placement
from plimsoll.kafka.controllers.ports import BrokerSnapshot, KnownBrokers
from plimsoll.kafka.executor.errors import RecordUnusable
from plimsoll.kafka.executor.reasons import name_some
from plimsoll.kafka.executor.unregistering import unregister_and_record, unregister_broker
from plimsoll.kafka.model.rebalances import RebalanceRefused
from plimsoll.kafka.planning.scaling.reasons import format_brokers
from plimsoll.kafka.reporting.cluster_journal import ClusterJournal
from plimsoll.kafka.wire.analyzer_settings import read_analyzer_settings
from plimsoll.kafka.wire.broker_capacities import read_broker_capacities

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from plimsoll.core.clock import Clock
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.brokers.ports import ClusterNodes, KafkaAdmin
    from plimsoll.kafka.cruise_control.client.access import CruiseControlAccess
    from plimsoll.kafka.engine.engines import BrokerConnections, Engines
    from plimsoll.kafka.model.description import LogDir
    from plimsoll.objects.api.kafka import Kafka, KafkaNodePool

BROKER_TIMEOUT_S: Final = 10.0
_NOT_ENOUGH_WINDOWS: Final = "NotEnoughValidWindowsException"


class ConnectedBrokerView:
    """The brokers of all clusters. Either our engines plan for them, or a Cruise Control of each does."""

    def __init__(
        self,
        connections: BrokerConnections,
        *,
        clock: Clock,
        engines: Engines | None = None,
        cruise_controls: CruiseControlAccess | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._engines = engines
        self._cruise_controls = cruise_controls
        self._journal = journal
        self._refused: dict[tuple[str, str], dict[int, Reason]] = {}
        """By Kafka and broker: why its registration stays."""

    async def observe(self, kafka: Kafka, *, leaving: Collection[int] = ()) -> BrokerSnapshot:
        admin = await self._connections.get_admin(kafka)
        nodes, placement = await asyncio.gather(admin.describe_nodes(), read_replica_placement(admin))
        if placement.unseen:
            raise KafkaUnavailable(f"topics could not be described: {name_some(placement.unseen)}")
        alive = _list_alive(nodes)
        in_use = frozenset(placement.partitions)
        looks_empty = sorted((alive & frozenset(leaving)) - in_use)
        has_logs = await asyncio.gather(*(_has_logs(admin, broker) for broker in looks_empty))
        return BrokerSnapshot(
            cluster_id=nodes.cluster_id,
            registered=alive,
            fenced=frozenset(broker.id for broker in nodes.brokers if broker.is_registered and broker.is_fenced),
            in_use=in_use
            | {broker for broker, holds in zip(looks_empty, has_logs, strict=True) if holds}
            | self._list_throttled(kafka),
            replicas={broker: len(partitions) for broker, partitions in placement.partitions.items()},
            voters=nodes.voters,
        )

    def _list_throttled(self, kafka: Kafka) -> frozenset[int]:
        """A broker that went before the end of the execution would keep its rate: only itself can remove it."""
        engine = self._connections.find_engine(kafka)
        return frozenset() if engine is None else engine.list_throttled_brokers()

    async def list_alive(self, kafka: Kafka) -> frozenset[int]:
        admin = await self._connections.get_admin(kafka)
        try:
            async with asyncio.timeout(BROKER_TIMEOUT_S):
                return _list_alive(await admin.describe_nodes())
        except TimeoutError:
            raise KafkaUnavailable(f"no broker answered within {BROKER_TIMEOUT_S:g} s") from None

    async def list_known(self, kafka: Kafka, brokers: Collection[int]) -> KnownBrokers:
        if self._cruise_controls is not None:
            return await self._ask_cruise_control(self._cruise_controls, kafka, brokers)
        admin = await self._connections.get_admin(kafka)
        answers = await asyncio.gather(*(_list_log_dirs(admin, broker) for broker in brokers))
        answered = {broker: log_dirs for broker, log_dirs in zip(brokers, answers, strict=True) if log_dirs}
        closed = {broker for broker, log_dirs in answered.items() if not any(map(_takes_replicas, log_dirs))}
        problem = _explain_closed(sorted(closed)) if closed else None
        return KnownBrokers(brokers=frozenset(answered) - closed, problem=problem)

    async def _ask_cruise_control(
        self, cruise_controls: CruiseControlAccess, kafka: Kafka, brokers: Collection[int]
    ) -> KnownBrokers:
        client = await cruise_controls.find(kafka)
        known = client if isinstance(client, RebalanceRefused) else await client.list_known_brokers()
        if not isinstance(known, RebalanceRefused):
            return KnownBrokers(brokers=known & frozenset(brokers))
        if known.reason == _NOT_ENOUGH_WINDOWS:
            # Too few samples say nothing about brokers, and Cruise Control itself says so to a request.
            return KnownBrokers(brokers=frozenset(brokers))
        return KnownBrokers(problem=Reason(code=known.reason, message=known.message))

    async def change_cordons(
        self, kafka: Kafka, *, leaving: Collection[int], staying: Collection[int]
    ) -> tuple[Reason, ...]:
        return await change_cordons(await self._connections.get_admin(kafka), leaving=leaving, staying=staying)

    async def unregister(self, kafka: Kafka, broker: int, is_gone: Callable[[int], Awaitable[bool]]) -> Reason | None:
        admin = await self._connections.get_admin(kafka)
        if self._journal is None:
            return await unregister_broker(admin, broker, is_gone)
        namespace, name = kafka.metadata.namespace, kafka.metadata.name
        refused = self._refused.setdefault((namespace, name), {})
        refusal = await unregister_and_record(
            admin,
            broker,
            is_gone,
            journal=ClusterJournal(self._journal, namespace, name),
            clock=self._clock,
            known=refused.pop(broker, None),
        )
        if refusal is not None:
            refused[broker] = refusal
        return refusal

    async def configure(self, kafka: Kafka, pools: Collection[KafkaNodePool]) -> tuple[Reason, ...]:
        if self._engines is None:
            return ()
        capacities, analyzer = read_broker_capacities(kafka, pools), read_analyzer_settings(kafka)
        problems = (*capacities.problems, *analyzer.problems)
        try:
            await self._engines.configure(kafka, capacities.brokers, analyzer.settings)
        except RecordUnusable as error:
            problems = (*problems, Reason(code="RecordUnusable", message=str(error)))
        return problems

    async def forget(self, namespace: str, name: str) -> None:
        self._refused.pop((namespace, name), None)
        await (self._engines or self._connections).close_cluster(namespace, name)


def _list_alive(nodes: ClusterNodes) -> frozenset[int]:
    return frozenset(broker.id for broker in nodes.brokers if broker.is_registered and not broker.is_fenced)


async def _has_logs(admin: KafkaAdmin, broker: int) -> bool:
    """Whether the broker itself has logs of partitions. Raises `KafkaUnavailable` if it does not answer."""
    try:
        async with asyncio.timeout(BROKER_TIMEOUT_S):
            return bool((await admin.describe_log_dirs(broker)).replicas)
    except TimeoutError:
        raise KafkaUnavailable(f"broker {broker} did not answer within {BROKER_TIMEOUT_S:g} s") from None


async def _list_log_dirs(admin: KafkaAdmin, broker: int) -> tuple[LogDir, ...]:
    """The log directories that the broker reports: the engine then knows its capacity."""
    try:
        async with asyncio.timeout(BROKER_TIMEOUT_S):
            return (await admin.describe_log_dirs(broker)).log_dirs
    except (TimeoutError, KafkaUnavailable, KafkaRefused):
        return ()


def _takes_replicas(log_dir: LogDir) -> bool:
    return log_dir.is_online and not log_dir.is_cordoned


def _explain_closed(brokers: list[int]) -> Reason:
    return Reason(
        code="BrokersTakeNoReplicas",
        message=f"{format_brokers(brokers)} cannot take replicas: all log directories are cordoned or offline",
        facts={"brokers": brokers},
    )

"""Cordons and registrations of the brokers of a Kafka: steps 7 and 8 of docs/design/kafka.md section 4.2.

Brokers that leave are cordoned, and unregistered when they hold no replica and their pod is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from plimsoll.core.plans import Reason
from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable
from plimsoll.kafka.model.requests import Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kafka.controllers.cluster_actuator import ClusterActuator
    from plimsoll.kafka.controllers.ports import BrokerSnapshot, BrokerView
    from plimsoll.kafka.model.auto_rebalance import AutoRebalance
    from plimsoll.kafka.model.node_ids import NodeIdAssignment, NodePool, PoolNodeIds
    from plimsoll.kafka.wire.auto_rebalance_config import AutoRebalanceConfiguration
    from plimsoll.objects.api.kafka import Kafka

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class ClusterDecision:
    """What one reconcile knows and has decided, step by step."""

    configuration: AutoRebalanceConfiguration
    assignment: NodeIdAssignment
    stored: AutoRebalance
    snapshot: BrokerSnapshot | None = None
    blocked: tuple[int, ...] = ()
    left_cordoned: frozenset[int] = frozenset()
    """Brokers that stay and whose cordon could not be removed."""
    warnings: list[Reason] = field(default_factory=list)
    unavailable: Reason | None = None
    """Why a cluster that was up is down."""
    is_waiting: bool = False
    """Something changes without an event of Kubernetes: look again soon."""

    def list_unlisted(self, kafka: Kafka) -> frozenset[int]:
        """Brokers that were not seen registered yet. One of them may have the id, and the cordon, of one that left."""
        listed = frozenset(kafka.status.registered_node_ids).difference(self.assignment.added_brokers)
        return frozenset(self.assignment.desired_brokers) - listed

    def get_cluster_id(self, kafka: Kafka) -> str:
        """The id that the brokers say, or the one that is stored."""
        return self.snapshot.cluster_id if self.snapshot is not None else kafka.status.cluster_id

    def list_pools(self, requested: Sequence[NodePool]) -> list[tuple[NodePool, PoolNodeIds]]:
        """The node pools with their node ids, in the order of the assignment."""
        by_name = {pool.name: pool for pool in requested}
        return [(by_name[ids.pool], ids) for ids in self.assignment.pools]


class BrokerRegistrations:
    """Cordons and unregisters the brokers of one Kafka; `pools` are the names of its node pools."""

    def __init__(self, brokers: BrokerView, actuator: ClusterActuator, kafka: Kafka, pools: Sequence[str]) -> None:
        self._brokers = brokers
        self._actuator = actuator
        self._kafka = kafka
        self._pools = pools

    async def change_cordons(self, decision: ClusterDecision) -> None:
        """Leaving brokers get no new replicas. Brokers whose removal was withdrawn, or that come back, do again."""
        if decision.snapshot is None:
            return
        stored, assignment, registered = decision.stored, decision.assignment, decision.snapshot.registered
        leaving = registered.intersection(
            decision.blocked if decision.configuration.has_mode(Mode.REMOVE_BROKERS) else ()
        )
        changed = {*stored.remove_brokers, *stored.add_brokers, *decision.list_unlisted(self._kafka)}
        kept = registered.intersection({*assignment.desired_brokers, *decision.blocked})
        staying = kept.intersection(changed) - leaving
        problems = await self._brokers.change_cordons(self._kafka, leaving=sorted(leaving), staying=sorted(staying))
        failed = {problem.facts["broker"]: problem for problem in problems if problem.facts["broker"] in staying}
        decision.left_cordoned = frozenset(failed)
        decision.is_waiting = decision.is_waiting or bool(failed)
        starting = decision.left_cordoned & decision.list_unlisted(self._kafka)
        decision.warnings += [problem for problem in problems if problem.facts["broker"] not in starting]

    async def unregister(self, decision: ClusterDecision) -> tuple[int, ...]:
        """Unregister brokers that have left. Gives the node ids that are registered afterwards."""
        current = {node_id for ids in decision.assignment.pools for node_id in ids.list_kept(decision.blocked)}
        seen = decision.snapshot.registered if decision.snapshot is not None else frozenset[int]()
        # A broker that is still cordoned is not listed: so the next reconcile tries to uncordon it again.
        unseen = (decision.list_unlisted(self._kafka) - seen) | decision.left_cordoned
        listed = self._kafka.status.registered_node_ids
        if not listed and decision.snapshot is not None:
            listed = tuple(decision.snapshot.fenced)  # Strimzi's definitions prune the list
        registered = {*listed, *current, *decision.assignment.removed_brokers} - unseen
        pools = {node_id: ids.pool for ids in decision.assignment.pools for node_id in ids.current}
        for broker in sorted(registered - current):
            reason = await self._unregister_broker(decision, broker, pools.get(broker))
            if reason is None:
                registered.discard(broker)
            else:
                decision.is_waiting = True
                log.info("broker.not_unregistered", broker=broker, reason=str(reason))
        return tuple(sorted(registered))

    async def _unregister_broker(self, decision: ClusterDecision, broker: int, pool: str | None) -> Reason | None:
        if decision.snapshot is None:
            return Reason(code="KafkaUnavailable", message="the brokers cannot be seen")

        async def is_gone(node_id: int) -> bool:
            names = [pool] if pool is not None else self._pools
            gone = [await self._actuator.is_pod_gone(self._kafka, name, node_id) for name in names]
            return all(gone)

        try:
            return await self._brokers.unregister(self._kafka, broker, is_gone)
        except (KafkaUnavailable, KafkaRefused) as error:
            return Reason(code="KafkaUnavailable", message=str(error))

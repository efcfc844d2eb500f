"""The controllers of Kafkas and KafkaRebalances: reconcile on relevant changes, periodically, and after failures.

A status that we wrote does not cause a reconcile of its object. KafkaRebalanceSettings are not watched: they are read
when a rebalance is requested.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kafka.model.rebalances import RebalanceState
from plimsoll.kafka.reporting.operator_metrics import KAFKA, KAFKA_REBALANCE, OperatorMetrics
from plimsoll.kafka.settings import KafkaMode
from plimsoll.kafka.wire.names import CLUSTER_LABEL
from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key, list_states
from plimsoll.kube.controller.workqueue import QueueSettings
from plimsoll.kube.informer.events import BecameUnreadable, Key, UnreadableDeleted, Updated
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.kafka import Kafka, KafkaNodePool, KafkaRebalance, StrimziPodSet
from plimsoll.runtime.backoff import Backoff
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kafka.controllers.cluster_reconciler import ClusterReconciler
    from plimsoll.kafka.controllers.companion_reconciler import CompanionReconciler
    from plimsoll.kafka.controllers.rebalance_reconciler import RebalanceReconciler
    from plimsoll.kafka.settings import KafkaSettings
    from plimsoll.kube.informer.events import Change
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.objects.api.meta import WireObject

BACKOFF: Final = Backoff(initial_s=1.0, factor=2.0, cap_s=100.0, jitter=0.1)
CLUSTERS: Final = "kafka-controller"
REBALANCES: Final = "kafka-rebalance-controller"


class KafkaControllers:
    """Both controllers. Built before the informers run."""

    def __init__(
        self,
        clusters: ClusterReconciler | CompanionReconciler,
        rebalances: RebalanceReconciler,
        informers: SharedInformerFactory,
        *,
        clock: Clock,
        entropy: Entropy,
        settings: KafkaSettings,
    ) -> None:
        self._metrics = OperatorMetrics(clock)
        self._cluster_reconciler = clusters
        self._rebalance_reconciler = rebalances
        selection = Selection(namespace=settings.namespace)
        self._kafkas = informers.get_informer(Kafka, selection)
        self._pools = informers.get_informer(KafkaNodePool, selection)
        self._rebalances = informers.get_informer(KafkaRebalance, selection)
        self._owns_rebalances = settings.mode is KafkaMode.OPERATOR
        controller_settings = ControllerSettings(
            workers=settings.workers, resync_s=settings.resync_s, queue=QueueSettings(backoff=BACKOFF)
        )
        self.clusters: Controller[Key] = Controller(
            CLUSTERS,
            self._reconcile_cluster,
            clock=clock,
            entropy=entropy,
            all_keys=self._list_clusters,
            settings=controller_settings,
        )
        self.rebalances: Controller[Key] = Controller(
            REBALANCES,
            self._reconcile_rebalance,
            clock=clock,
            entropy=entropy,
            all_keys=lambda: self._list_keys(self._rebalances),
            settings=controller_settings,
        )
        enqueue_on(self._kafkas, self.clusters, _map_own)
        enqueue_on(self._pools, self.clusters, self._map_pool)
        enqueue_on(informers.get_informer(StrimziPodSet, selection), self.clusters, _map_to_cluster)
        enqueue_on(self._rebalances, self.clusters, _map_to_cluster)
        enqueue_on(self._rebalances, self.rebalances, _map_own)
        enqueue_on(self._kafkas, self.rebalances, self._map_to_rebalances)

    def list_services(self) -> list[Service]:
        return [Service(name=controller.name, run=controller.run) for controller in self.list_controllers()]

    def list_controllers(self) -> list[Controller[Key]]:
        """Beside Strimzi the rebalances are Strimzi's: two that both ask for their execution would have two."""
        return [self.clusters, self.rebalances] if self._owns_rebalances else [self.clusters]

    def look_at_rebalances(self, namespace: str, name: str) -> None:
        """An execution of a cluster has ended: its rebalance need not wait for its next look."""
        for key in self._list_rebalances_of(namespace, name) if self._owns_rebalances else ():
            self.rebalances.queue.add(key)

    def expose_metrics(self) -> bytes:
        """Reconciles and resources in Prometheus' text format."""
        found: Counter[tuple[str, str]] = Counter()
        for kind, informer in ((KAFKA, self._kafkas), (KAFKA_REBALANCE, self._rebalances)):
            found.update((kind, key.namespace) for key in self._list_keys(informer))
        self._metrics.set_resources(found)
        return self._metrics.format_exposition()

    def _list_clusters(self) -> Iterable[Key]:
        """The Kafkas, and the clusters of node pools that are deleted or unreadable: their Kafka may be gone."""
        waiting = [pool for pool in self._pools.cache.list() if pool.metadata.deletion_timestamp is not None]
        clusters = (_get_cluster_of_pool(pool) for pool in waiting)
        unreadable = [Key(namespace, "") for namespace, _ in self._pools.cache.bad]
        return dict.fromkeys([*self._list_keys(self._kafkas), *clusters, *unreadable])

    def _list_keys(self, informer: Any) -> Iterable[Key]:
        cache = informer.cache
        return [*(Key(found.metadata.namespace, found.metadata.name) for found in cache.list()), *cache.bad]

    async def _reconcile_cluster(self, key: Key) -> Done | Again:
        with self._metrics.measure(KAFKA, key.namespace, key.name) as measured:
            result = await self._cluster_reconciler.run(key.namespace, key.name)
            measured.is_gone = result is None
            measured.problem = "" if result is None or result.problem is None else result.problem.code
        return _wait(None if result is None else result.retry_after_s)

    async def _reconcile_rebalance(self, key: Key) -> Done | Again:
        with self._metrics.measure(KAFKA_REBALANCE, key.namespace, key.name) as measured:
            result = await self._rebalance_reconciler.run(key.namespace, key.name)
            measured.is_gone = result is None
            is_failed = result is not None and result.state is RebalanceState.NOT_READY
            measured.problem = RebalanceState.NOT_READY.value if is_failed else ""
        return _wait(None if result is None else result.retry_after_s)

    def _map_pool(self, change: Change[Any]) -> Iterable[Key]:
        """The cluster of a node pool, before and after. One that cannot be decoded may belong to any cluster."""
        keys = [_get_cluster_of_pool(state) for state in list_states(change)]
        if isinstance(change, BecameUnreadable | UnreadableDeleted):
            namespace = change.key.namespace
            kafkas = (Key(*key) for key in self._list_keys(self._kafkas))
            keys += [Key(namespace, ""), *(key for key in kafkas if key.namespace == namespace)]
        return dict.fromkeys(keys)

    def _map_to_rebalances(self, change: Change[Any]) -> Iterable[Key]:
        """The rebalances of a Kafka that came, went, or changed its readiness or its Cruise Control."""
        if isinstance(change, Updated):
            before, after = (_get_rebalance_inputs(state) for state in list_states(change))
            if before == after:
                return ()
        return self._list_rebalances_of(change.key.namespace, change.key.name)

    def _list_rebalances_of(self, namespace: str, name: str) -> list[Key]:
        return [
            Key(namespace, rebalance.metadata.name)
            for rebalance in self._rebalances.cache.list()
            if rebalance.metadata.namespace == namespace and rebalance.metadata.labels.get(CLUSTER_LABEL) == name
        ]


def _wait(retry_after_s: float | None) -> Done | Again:
    return Done() if retry_after_s is None else Again(after_s=retry_after_s)


def _map_own(change: Change[Any]) -> Iterable[Key]:
    """The object itself, unless only its status changed."""
    if isinstance(change, Updated):
        before, after = (_get_inputs(state) for state in list_states(change))
        if before == after:
            return ()
    return get_own_key(change)


def _map_to_cluster(change: Change[Any]) -> Iterable[Key]:
    """The cluster that the object is labelled with, before and after."""
    names = {state.metadata.labels.get(CLUSTER_LABEL, "") for state in list_states(change)} - {""}
    return [Key(change.key.namespace, name) for name in sorted(names)]


def _get_cluster_of_pool(pool: WireObject) -> Key:
    """Without a name: a pool that belongs to no cluster."""
    return Key(pool.metadata.namespace, pool.metadata.labels.get(CLUSTER_LABEL, ""))


def _get_inputs(state: WireObject) -> tuple[object, ...]:
    metadata = state.metadata
    return (
        metadata.uid,
        metadata.generation,
        metadata.deletion_timestamp,
        metadata.labels,
        metadata.annotations,
        metadata.finalizers,
    )


def _get_rebalance_inputs(state: WireObject) -> tuple[object, ...]:
    assert isinstance(state, Kafka)
    ready = [(condition.type, condition.status) for condition in state.status.conditions if condition.type == "Ready"]
    return state.metadata.uid, state.spec.cruise_control is None, ready, state.metadata.annotations

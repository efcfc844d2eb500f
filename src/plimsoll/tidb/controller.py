"""The controller of the TiDB autoscaler: reconciles on relevant changes, every 30 seconds, and after failures.

Objects change for many reasons, including our own writes. A status that we wrote, or a heartbeat of a store, does not
cause a reconcile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.errors import Unreachable
from plimsoll.kube.controller.controller import Again, AlreadyReported, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key, list_states
from plimsoll.kube.controller.workqueue import QueueSettings
from plimsoll.kube.informer.events import Key, Updated
from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.runtime.backoff import Backoff
from plimsoll.runtime.supervisor import Service
from plimsoll.tidb.observing.observer import get_base_namespace
from plimsoll.tidb.reporting.messages import build_sentences
from plimsoll.tidb.settings import DRAIN_LOOK_S, NAME
from plimsoll.tidb.wire.annotations import BASE_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.informer.events import Change
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.tidb.model.reconcile_result import ReconcileResult
    from plimsoll.tidb.reconciler import TidbReconciler

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

BACKOFF: Final = Backoff(initial_s=1.0, factor=2.0, cap_s=100.0, jitter=0.1)
_UP: Final = "Up"


class AdviceMissing(AlreadyReported, Unreachable):
    """The planner, PD or an external service gave no usable answer: retried with back-off."""


class TidbController:
    """The controller. Built before the informers run."""

    def __init__(
        self,
        autoscaler: TidbReconciler,
        informers: SharedInformerFactory,
        *,
        clock: Clock,
        entropy: Entropy,
        resync_s: float,
    ) -> None:
        self._autoscaler = autoscaler
        self._missing_advice: dict[Key, tuple[str, bool]] = {}
        """The last reported problem per autoscaler, and whether it was expected."""
        self._scalers = informers.get_informer(TidbClusterAutoScaler)
        self.controller: Controller[Key] = Controller(
            NAME,
            self._reconcile,
            clock=clock,
            entropy=entropy,
            all_keys=self._list_keys,
            settings=ControllerSettings(
                resync_s=resync_s, resync_jitter=0.0, queue=QueueSettings(backoff=BACKOFF, retries_per_s=0)
            ),
        )
        enqueue_on(self._scalers, self.controller, _map_changed_autoscaler)
        enqueue_on(informers.get_informer(TidbCluster), self.controller, self._map_changed_cluster)

    def list_services(self) -> list[Service]:
        return [Service(name=self.controller.name, run=self.controller.run)]

    def _list_keys(self) -> Iterable[Key]:
        cache = self._scalers.cache
        return [*(Key(scaler.metadata.namespace, scaler.metadata.name) for scaler in cache.list()), *cache.bad]

    async def _reconcile(self, key: Key) -> Done | Again:
        result = await self._autoscaler.run(key.namespace, key.name)
        if result is not None and result.failures:
            raise self._build_advice_missing(key, result)
        self._missing_advice.pop(key, None)
        if result is None:
            return Done()
        if result.is_underway or (result.message and not result.is_released):
            return Again(after_s=DRAIN_LOOK_S)
        log.debug("reconcile.ended", current=build_sentences(result))
        return Done()

    def _build_advice_missing(self, key: Key, result: ReconcileResult) -> AdviceMissing:
        """Logged when it changes. While a new cluster starts up it is not a warning."""
        problem = "; ".join(result.failures)
        current = problem, result.awaits_cluster
        if self._missing_advice.get(key) != current:
            log_event = log.info if result.awaits_cluster else log.warning
            log_event("advice.missing", autoscaler=str(key), problem=problem)
        self._missing_advice[key] = current
        return AdviceMissing(problem)

    def _map_changed_cluster(self, change: Change[Any]) -> Iterable[Key]:
        """The autoscalers of the cluster, and of the base cluster that it was created for."""
        states = list_states(change)
        if _is_of_no_matter(change):
            return ()
        names = {change.key.name, *(wire_object.metadata.labels.get(BASE_CLUSTER, "") for wire_object in states)}
        return [
            Key(scaler.metadata.namespace, scaler.metadata.name)
            for scaler in self._scalers.cache.list()
            if get_base_namespace(scaler) == change.key.namespace and scaler.spec.cluster.name in names
        ]


def _map_changed_autoscaler(change: Change[Any]) -> Iterable[Key]:
    """The autoscaler, unless only its status was written."""
    return () if _is_of_no_matter(change) else get_own_key(change)


def _is_of_no_matter(change: Change[Any]) -> bool:
    if not isinstance(change, Updated):
        return False
    before, after = (_get_relevant_fields(wire_object) for wire_object in list_states(change))
    return before == after


def _get_relevant_fields(view: WireObject) -> tuple[object, ...]:
    """What a reconcile depends on. TidbClusters have no status subresource: every write is a new generation."""
    metadata = view.metadata
    current = metadata.uid, metadata.deletion_timestamp, metadata.labels
    if isinstance(view, TidbCluster):
        parts = view.status.tikv, view.status.tidb
        sizes = [(status.phase, status.stateful_set.replicas if status.stateful_set else None) for status in parts]
        up = sum(store.state == _UP for store in view.status.tikv.stores.values())
        return *current, view.spec, sizes, up
    return *current, metadata.generation, metadata.annotations

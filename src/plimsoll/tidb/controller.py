"""When the TiDB autoscaler looks at which autoscaler: on changes that matter, every 30 seconds, and after trouble.

Objects of Kubernetes change for many reasons, our own writes among them: a status that we wrote is no reason to look
again, and neither is a heartbeat of a store. Whoever wires the program hands `services()` to a supervisor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.errors import Unreachable
from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done, ToldAlready
from plimsoll.kube.controller.enqueue import enqueue_on, of_itself, states_in
from plimsoll.kube.controller.workqueue import QueueSettings
from plimsoll.kube.informer.events import Key, Updated
from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.runtime.backoff import Backoff
from plimsoll.runtime.services import Service
from plimsoll.tidb.observing.observer import namespace_of_base
from plimsoll.tidb.reporting.messages import sentences_of
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


class AdviceMissing(ToldAlready, Unreachable):
    """The planner, PD or an external service gave nothing that could be used: asked again with back-off."""


class TidbController:
    """Made before the informers run."""

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
        self._missed: dict[Key, tuple[str, bool]] = {}
        """What was last told of each to be missing, and whether that was to be expected."""
        self._scalers = informers.of(TidbClusterAutoScaler)
        self.controller: Controller[Key] = Controller(
            NAME,
            self._reconcile,
            clock=clock,
            entropy=entropy,
            all_keys=self._keys,
            settings=ControllerSettings(
                resync_s=resync_s, resync_jitter=0.0, queue=QueueSettings(backoff=BACKOFF, retries_per_s=0)
            ),
        )
        enqueue_on(self._scalers, self.controller, _of_changed_autoscaler)
        enqueue_on(informers.of(TidbCluster), self.controller, self._of_changed_cluster)

    def services(self) -> list[Service]:
        return [Service(name=self.controller.name, run=self.controller.run)]

    def _keys(self) -> Iterable[Key]:
        return [Key(scaler.metadata.namespace, scaler.metadata.name) for scaler in self._scalers.cache.list()]

    async def _reconcile(self, key: Key) -> Done | Again:
        result = await self._autoscaler.run(key.namespace, key.name)
        if result is not None and result.failures:
            raise self._missing(key, result)
        self._missed.pop(key, None)
        if result is None:
            return Done()
        if result.is_underway or (result.told and not result.is_released):
            return Again(after_s=DRAIN_LOOK_S)
        log.debug("pass.ended", said=sentences_of(result))
        return Done()

    def _missing(self, key: Key, result: ReconcileResult) -> AdviceMissing:
        """Told when it is news; while a new cluster comes up it is nothing to be warned of."""
        problem = "; ".join(result.failures)
        said = problem, result.awaits_cluster
        if self._missed.get(key) != said:
            tell = log.info if result.awaits_cluster else log.warning
            tell("advice.missing", autoscaler=str(key), problem=problem)
        self._missed[key] = said
        return AdviceMissing(problem)

    def _of_changed_cluster(self, change: Change[Any]) -> Iterable[Key]:
        """Autoscalers of the cluster, and of the cluster that it was made beside."""
        states = states_in(change)
        if _is_of_no_matter(change):
            return ()
        names = {change.key.name, *(wire_object.metadata.labels.get(BASE_CLUSTER, "") for wire_object in states)}
        return [
            Key(scaler.metadata.namespace, scaler.metadata.name)
            for scaler in self._scalers.cache.list()
            if namespace_of_base(scaler) == change.key.namespace and scaler.spec.cluster.name in names
        ]


def _of_changed_autoscaler(change: Change[Any]) -> Iterable[Key]:
    """Not of one whose status alone was written."""
    return () if _is_of_no_matter(change) else of_itself(change)


def _is_of_no_matter(change: Change[Any]) -> bool:
    if not isinstance(change, Updated):
        return False
    before, after = (_matters(wire_object) for wire_object in states_in(change))
    return before == after


def _matters(view: WireObject) -> tuple[object, ...]:
    """What a pass would decide on. TidbClusters have no status of their own: any write to one is a new generation."""
    metadata = view.metadata
    said = metadata.uid, metadata.deletion_timestamp, metadata.labels
    if isinstance(view, TidbCluster):
        parts = view.status.tikv, view.status.tidb
        sizes = [(status.phase, status.stateful_set.replicas if status.stateful_set else None) for status in parts]
        up = sum(store.state == _UP for store in view.status.tikv.stores.values())
        return *said, view.spec, sizes, up
    return *said, metadata.generation, metadata.annotations

"""Event handlers: update the scheduler's cache and queue from the informers.

Every change is handled without awaiting, so that cache and queue always agree. Nothing is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.informer.events import Added, BecameUnreadable, Deleted, UnreadableDeleted, Updated
from plimsoll.local.scheduler.queue.cluster_events import ClusterEvent
from plimsoll.objects.api.core import Namespace
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from plimsoll.scheduling.cluster_view import PodKey, get_pod_key
from plimsoll.scheduling.priorities import get_priority
from plimsoll.scheduling.rules.scheduling_gates import is_gated
from plimsoll.scheduling.verdicts import Fits

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.delivery.handler import HandlerRunner
    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component
    from plimsoll.local.scheduler.cache import SchedulerCache
    from plimsoll.local.scheduler.equivalence import PodClasses
    from plimsoll.local.scheduler.queue.queue import SchedulingQueue

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_HANDLER: Final = "scheduler"


class EventHandlers:
    """Registers itself with the informers when created. `on_news` is called when there may be a pod to schedule."""

    def __init__(
        self,
        component: Component,
        *,
        scheduler: str,
        cache: SchedulerCache,
        queue: SchedulingQueue,
        classes: PodClasses,
        on_news: Callable[[], None],
    ) -> None:
        self._clock = component.clock
        self._scheduler = scheduler
        self._cache = cache
        self._queue = queue
        self._classes = classes
        self._on_news = on_news
        informers = component.informers
        self.pods = informers.get_informer(Pod)
        self._feeds: list[HandlerRunner[Any]] = []
        self._follow(informers.get_informer(Namespace), self._on_namespace)
        self._follow(informers.get_informer(Node), self._on_node)
        for kind, known, event in (
            (StorageClass, cache.classes, ClusterEvent.CLASS_CHANGED),
            (PersistentVolume, cache.volumes, ClusterEvent.VOLUME_CHANGED),
            (CSINode, cache.csi_nodes, ClusterEvent.LIMITS_CHANGED),
            (PersistentVolumeClaim, cache.claims, ClusterEvent.CLAIM_CHANGED),
        ):
            self._follow(informers.get_informer(kind), self._build_storage_handler(known, event))
        self._follow(self.pods, self._on_pod)

    def _follow(self, informer: Informer[Any], handler: Callable[[Change[Any]], None]) -> None:
        self._feeds.append(informer.add_handler(handler, name=_HANDLER))

    async def wait_until_synced(self) -> None:
        for feed in self._feeds:
            await feed.wait_until_synced()

    @property
    def is_behind(self) -> bool:
        """Whether informers know of something that we have not worked off."""
        return any(feed.pending for feed in self._feeds)

    def handle_cluster_event(self, event: ClusterEvent, node: str = "") -> None:
        """Pods that may profit are tried again."""
        self._queue.move_to_active_or_backoff(event, self._clock.monotonic_s(), helps=self._build_fit_hint(node))
        self._on_news()

    def _build_fit_hint(self, node: str) -> Callable[[Pod], bool]:
        """Whether a pod fits on the node now, or would fit after preemption."""

        def helps(pod: Pod) -> bool:
            place = self._cache.view.find_node(node)
            if place is None:
                return False
            verdict = self._classes.find_class(pod).evaluate(place).verdict
            if isinstance(verdict, Fits):
                return True
            if not verdict.reason.resolvable:
                return False
            mine = get_priority(pod)
            return any(get_priority(placed.pod) < mine for placed in place.pods.values())

        return helps

    # ---- pods

    def _on_pod(self, change: Change[Pod]) -> None:
        match change:
            case Added(new=pod):
                self._cache.drop_bad_pod(get_pod_key(pod))
                self._on_pod_added_or_updated(None, pod)
            case Updated(old=old, new=pod):
                self._on_pod_added_or_updated(old, pod)
            case Deleted(last=pod):
                self._classes.forget_pod(pod.metadata.uid)
                self._on_pod_left(get_pod_key(pod))
            case BecameUnreadable(bad=bad):
                self._queue.delete(PodKey(*change.key))
                self._cache.put_bad_pod(PodKey(*change.key), bad)
            case UnreadableDeleted():
                if node := self._cache.drop_bad_pod(PodKey(*change.key)):
                    self.handle_cluster_event(ClusterEvent.POD_LEFT, node)

    def _on_pod_added_or_updated(self, old: Pod | None, pod: Pod) -> None:
        if pod.status.phase in _ENDED:
            self._on_pod_left(get_pod_key(pod))
        elif pod.spec.node_name:
            self._on_pod_placed(pod)
        else:
            self._on_pod_pending(old, pod)

    def _on_pod_placed(self, pod: Pod) -> None:
        key = get_pod_key(pod)
        was_assumed = self._cache.is_assumed(key)
        was_known = bool(self._cache.find_node_of(key)) and not was_assumed
        is_changed = self._cache.put_pod(pod)
        self._queue.delete(key)
        if was_known and is_changed:
            self.handle_cluster_event(ClusterEvent.POD_LEFT, pod.spec.node_name)
        elif not was_known:
            self.handle_cluster_event(ClusterEvent.POD_PLACED, pod.spec.node_name)

    def _on_pod_pending(self, old: Pod | None, pod: Pod) -> None:
        key = get_pod_key(pod)
        if pod.spec.scheduler_name != self._scheduler or pod.metadata.deletion_timestamp is not None or is_gated(pod):
            self._on_pod_left(key)
            return
        nominated = pod.status.nominated_node_name
        if nominated or (old is not None and old.status.nominated_node_name):
            self._cache.nominate(pod, nominated)
        if key not in self._queue and self._cache.is_assumed(key):
            return  # an older state: it is bound, and informers will show it
        if key not in self._queue or old is None or _changes_requirements(old, pod):
            self._queue.add(pod, self._clock.monotonic_s())
            self._on_news()
        else:
            self._queue.update(pod)

    def _on_pod_left(self, key: PodKey) -> None:
        self._queue.delete(key)
        nominated = self._cache.find_nominated_node(key)
        for node in {self._cache.drop_pod(key): None, nominated: None}:
            if node:
                self.handle_cluster_event(ClusterEvent.POD_LEFT, node)

    # ---- everything else

    def _on_node(self, change: Change[Node]) -> None:
        match change:
            case Added(new=node) | Updated(new=node):
                if self._cache.put_node(node):
                    self.handle_cluster_event(ClusterEvent.NODE_CHANGED, node.metadata.name)
            case _:
                # A node that cannot be read is not one to place pods on.
                self._cache.drop_node(change.key.name)
                self._classes.forget_node(change.key.name)

    def _on_namespace(self, change: Change[Namespace]) -> None:
        match change:
            case Added(new=namespace) | Updated(new=namespace):
                self._cache.namespaces[namespace.metadata.name] = namespace.metadata.labels
            case _:
                self._cache.namespaces.pop(change.key.name, None)
        self._cache.on_namespaces_changed()
        self.handle_cluster_event(ClusterEvent.NAMESPACE_CHANGED)

    def _build_storage_handler(
        self, known: MutableMapping[Any, Any], event: ClusterEvent
    ) -> Callable[[Change[Any]], None]:
        def handle(change: Change[Any]) -> None:
            key = (change.key.namespace, change.key.name) if change.key.namespace else change.key.name
            match change:
                case Added(new=new) | Updated(new=new):
                    known[key] = new
                case _:
                    known.pop(key, None)
            self._cache.on_storage_changed()
            self.handle_cluster_event(event)

        return handle


def _changes_requirements(old: Pod, new: Pod) -> bool:
    """Whether a change affects where the pod can go; the scheduler itself writes its status."""
    return old.spec != new.spec or old.metadata.labels != new.metadata.labels

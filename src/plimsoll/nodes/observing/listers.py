"""The cluster as informers show it: one consistent read of everything that a loop iteration needs, and its age.

`ClusterListers` registers the informers before they run; `read()` returns what their caches hold at that moment.
Objects that cannot be decoded are included: an unreadable pod must not make its node look empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from plimsoll.nodes.observing.failing_objects import describe_failure, find_candidates, may_be_due_to_object
from plimsoll.nodes.observing.pod_owners import PodOwnerIndex
from plimsoll.nodes.observing.pod_store import PodStore
from plimsoll.nodes.planning.scaledown.drainability import ControllerInfo
from plimsoll.objects.api.core import Namespace
from plimsoll.objects.api.meta import LabelSelector, ObjectMeta
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PriorityClass
from plimsoll.objects.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from plimsoll.objects.api.workloads import DaemonSet, Job, ReplicaSet, ReplicationController, StatefulSet
from plimsoll.scheduling import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.informer.informer import Informer
    from plimsoll.nodes.planning.scaledown.drainability import ControllerKey
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.objects.codec.decode_problems import BadObject

_CONTROLLERS: Final[tuple[type[WireObject], ...]] = (ReplicaSet, ReplicationController, StatefulSet, Job)
_KINDS: Final = tuple(kind.get_kind_name() for kind in _CONTROLLERS)
_STALE_AFTER_S: Final = 180.0
"""A watch without changes sends a bookmark about once a minute. A cache without any for this long is stale."""
_TROUBLED_AFTER_S: Final = 15.0
"""The shorter limit while requests of the watch fail: then silence does not mean that nothing changed. It is about as
long as a leader acts without renewing its lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObjects:
    """Everything at one moment, in the order of the caches."""

    nodes: tuple[Node, ...] = ()
    pods: PodStore
    """Until the next read."""
    bad_pods: tuple[BadObject, ...] = ()
    bad_nodes: tuple[BadObject, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    controllers: Mapping[ControllerKey, ControllerInfo] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    storage: Storage = field(default_factory=Storage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A resource whose cache is too old to be used."""

    resource: str
    age_s: float

    def __str__(self) -> str:
        return f"{self.resource} were last heard of {self.age_s:.0f} s ago"


def is_stale(informer: Informer[Any]) -> bool:
    """Whether its last news is too old, with a shorter limit while its watch has problems."""
    age_s = informer.get_age_s()
    return age_s > _STALE_AFTER_S or (age_s > _TROUBLED_AFTER_S and bool(informer.status.trouble))


class ClusterListers:
    """The informers of a node autoscaler. `knows_owners`: an owner that no cache holds is gone, not merely unknown.

    `as_scheduled` gives pods as the cluster's scheduler sees them, where that differs from what they say.
    """

    def __init__(
        self,
        informers: SharedInformerFactory,
        *,
        knows_owners: Callable[[str], bool] | None = None,
        as_scheduled: Callable[[Pod], Pod] | None = None,
    ) -> None:
        self._informers = informers
        self._knows = knows_owners or (lambda _uid: True)
        self.nodes = informers.get_informer(Node)
        self.pods = informers.get_informer(Pod)
        self._pod_store = PodStore(self.pods.cache, as_scheduled=as_scheduled)
        self._named_owners = PodOwnerIndex(self.pods.cache, _KINDS)
        self._daemon_sets = informers.get_informer(DaemonSet)
        self._budgets = informers.get_informer(PodDisruptionBudget)
        self._controllers = [informers.get_informer(kind) for kind in _CONTROLLERS]
        self._namespaces = informers.get_informer(Namespace)
        self._claims = informers.get_informer(PersistentVolumeClaim)
        self._volumes = informers.get_informer(PersistentVolume)
        self._classes = informers.get_informer(StorageClass)
        self._csi_nodes = informers.get_informer(CSINode)
        self.priority_classes = informers.get_informer(PriorityClass)

    @property
    def _all(self) -> tuple[Informer[Any], ...]:
        return (
            self.nodes,
            self.pods,
            self._daemon_sets,
            self._budgets,
            *self._controllers,
            self._namespaces,
            self._claims,
            self._volumes,
            self._classes,
            self._csi_nodes,
        )

    async def wait_until_synced(self) -> None:
        for informer in self._all:
            await informer.wait_until_synced()

    def find_stale(self) -> Stale | None:
        """The kind whose watch has been silent for longest, if too long; None while all are fresh."""
        oldest = max(
            (informer for informer in self._all if is_stale(informer)),
            key=lambda informer: informer.get_age_s(),
            default=None,
        )
        return None if oldest is None else Stale(resource=oldest.resource, age_s=oldest.get_age_s())

    def find_contradiction(self) -> str:
        """Why a list of one of the kinds is not believed; empty if all are."""
        statuses = (informer.status for informer in self._all)
        return next((status.contradiction for status in statuses if status.contradiction), "")

    def set_aside(self, error: BaseException) -> BadObject | None:
        """Set aside the object that caused an error; None if it cannot be determined.

        Until it changes, it counts as an object that cannot be decoded: present and unmovable.
        """
        if not may_be_due_to_object(error):
            return None
        problem = describe_failure(error)
        found = (self._informers.set_aside(candidate, problem) for candidate in find_candidates(error))
        return next(filter(None, found), None)

    def list_bad(self) -> tuple[BadObject, ...]:
        """Objects of all kinds that exist and cannot be decoded or judged."""
        return self._informers.list_bad()

    def get_node(self, name: str) -> Node | None:
        return self.nodes.cache.get(name)

    def list_budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """All budgets. One that cannot be decoded or judged may select any pod of its namespace, and allows nothing."""
        unknown = (
            PodDisruptionBudget(
                metadata=ObjectMeta(namespace=bad.namespace, name=bad.name, uid=bad.uid),
                spec=PodDisruptionBudgetSpec(selector=LabelSelector()),
            )
            for bad in self._budgets.cache.bad.values()
        )
        return (*self._budgets.cache.list(), *unknown)

    def read_owners(self) -> dict[ControllerKey, ControllerInfo]:
        """Existing controllers with their replicas, and deleted controllers that pods still name."""
        found: dict[ControllerKey, ControllerInfo] = {}
        for informer, kind in zip(self._controllers, _KINDS, strict=True):
            for wire_object in informer.cache:
                spec: Any = getattr(wire_object, "spec", None)
                key = (wire_object.metadata.namespace, kind, wire_object.metadata.name)
                found[key] = ControllerInfo(replicas=getattr(spec, "replicas", None))
        for key, uid in self._named_owners.list_owners():
            if key not in found and self._knows(uid):
                found[key] = ControllerInfo(exists=False)
        return found

    def read(self) -> ClusterObjects:
        self._pod_store.renew()
        return ClusterObjects(
            nodes=self.nodes.cache.list(),
            pods=self._pod_store,
            bad_pods=tuple(self.pods.cache.bad.values()),
            bad_nodes=tuple(self.nodes.cache.bad.values()),
            daemon_sets=self._daemon_sets.cache.list(),
            budgets=self.list_budgets(),
            controllers=self.read_owners(),
            namespaces={namespace.metadata.name: namespace.metadata.labels for namespace in self._namespaces.cache},
            storage=Storage(
                claims=self._claims.cache.list(),
                volumes=self._volumes.cache.list(),
                classes=self._classes.cache.list(),
                csi_nodes=self._csi_nodes.cache.list(),
            ),
        )

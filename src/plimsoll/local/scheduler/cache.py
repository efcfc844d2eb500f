"""The scheduler cache: the informers' view of the cluster, with assumed pods that they do not have yet.

A change replaces the state of one node, all others stay, so placing a pod costs the same in a cluster of ten nodes and
of ten thousand. `view` is the rules' view of this moment and must not be kept over an await; a snapshot may be kept.

Caches of verdicts compare node states by identity; a change that no rule looks at (a heartbeat, a pod's phase)
therefore leaves the state as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import ZERO
from plimsoll.scheduling.cluster_view import ClusterView, NodeState, PlacedPod, PodKey, get_pod_key
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.scheduling.priorities import outranks
from plimsoll.scheduling.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.core.resources import ResourceVector
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
    from plimsoll.objects.codec.decode_problems import BadObject

# A reader that is behind by so many changes reads everything.
_REMEMBERED_CHANGES: Final = 8_192


class SchedulerCache:
    """Mutable; belongs to one scheduler. `changes` counts the changes of nodes' states so far."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeState] = {}
        self.changes = 0
        self._last_changes: list[str] = []
        self._anti_affine: dict[str, None] = {}
        self._pods: dict[PodKey, tuple[str, PlacedPod]] = {}
        # Informers are not in step: pods may be seen before their node is.
        self._on_unknown: dict[str, dict[PodKey, PlacedPod]] = {}
        self._outdated: dict[PodKey, Pod] = {}
        self._bad: dict[PodKey, BadObject] = {}
        self._assumed: dict[PodKey, Pod] = {}
        self._nominated: dict[PodKey, tuple[str, Pod]] = {}
        self._view: ClusterView | None = None
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self._storage: Storage | None = None

    # ---- reading

    @property
    def view(self) -> ClusterView:
        if self._view is None:
            self._view = ClusterView(
                self._nodes, namespaces=self.namespaces, storage=self.storage, anti_affine=self._anti_affine
            )
        return self._view

    def list_changed_since(self, changes: int) -> Iterable[str] | None:
        """Nodes that changed after the given number of changes, each once; None: too long ago."""
        missed = self.changes - changes
        if missed > len(self._last_changes):
            return None
        return dict.fromkeys(self._last_changes[len(self._last_changes) - missed :])

    def take_snapshot(self) -> ClusterView:
        """A view that stays as it is, with everything about its pods up to date."""
        for key, pod in self._outdated.items():
            if key in self._pods:
                self._put(PlacedPod(pod), self._pods[key][0])
        self._outdated.clear()
        return ClusterView(
            dict(self._nodes),
            namespaces=dict(self.namespaces),
            storage=self.storage,
            anti_affine=dict(self._anti_affine),
        )

    @property
    def storage(self) -> Storage:
        if self._storage is None:
            self._storage = Storage()
            # Shared, not copied: one claim of thousands has changed.
            self._storage.volumes, self._storage.claims = self.volumes, self.claims
            self._storage.classes, self._storage.csi_nodes = self.classes, self.csi_nodes
        return self._storage

    def find_node_of(self, key: PodKey) -> str:
        """Where a pod is counted; empty: nowhere."""
        found = self._pods.get(key)
        return "" if found is None else found[0]

    def is_assumed(self, key: PodKey) -> bool:
        return key in self._assumed

    def list_assumed(self) -> list[PodKey]:
        return list(self._assumed)

    def list_nominated_against(self, pod: Pod) -> dict[str, list[Pod]]:
        """Pods for which room was made, by node: those that `pod` must not take the room from."""
        found: dict[str, list[Pod]] = {}
        own = get_pod_key(pod)
        for key, (name, other) in self._nominated.items():
            if key != own and name in self._nodes and not outranks(pod, other):
                found.setdefault(name, []).append(other)
        return found

    def find_nominated_node(self, key: PodKey) -> str:
        found = self._nominated.get(key)
        return "" if found is None else found[0]

    def list_nominated_on(self, name: str) -> list[Pod]:
        return [pod for node, pod in self._nominated.values() if node == name]

    # ---- nodes

    def put_node(self, node: Node) -> bool:
        """Gives whether anything changed that a rule looks at."""
        name = node.metadata.name
        before = self._nodes.get(name)
        if before is not None and _looks_the_same(before.node, node):
            return False
        placed = before.pods.values() if before is not None else self._on_unknown.pop(name, {}).values()
        self._set_state(self._build(node, placed))
        return True

    def drop_node(self, name: str) -> None:
        before = self._nodes.pop(name, None)
        self._anti_affine.pop(name, None)
        self._has_changed(name)
        if before is not None and before.pods:
            self._on_unknown[name] = dict(before.pods)

    # ---- pods

    def put_pod(self, pod: Pod) -> bool:
        """A pod that has its node, as informers show it. Gives whether anything changed that a rule looks at."""
        key = get_pod_key(pod)
        self._assumed.pop(key, None)
        self._nominated.pop(key, None)
        before = self._pods.get(key)
        if before is not None and _has_same_counts(before[1], pod):
            self._outdated[key] = pod
            return False
        self._outdated.pop(key, None)
        if before is not None:
            self._take_off(key)
        self._put(PlacedPod(pod), pod.spec.node_name)
        return True

    def drop_pod(self, key: PodKey) -> str:
        """It is gone or has ended. Gives the node it was counted on."""
        self._assumed.pop(key, None)
        self._nominated.pop(key, None)
        self._outdated.pop(key, None)
        return self._take_off(key)

    def put_bad_pod(self, key: PodKey, bad: BadObject) -> None:
        """What is free on its node is not known any more."""
        self.drop_pod(key)
        self._bad[key] = bad
        self._rebuild(bad.node_name)

    def drop_bad_pod(self, key: PodKey) -> str:
        bad = self._bad.pop(key, None)
        if bad is None:
            return ""
        self._rebuild(bad.node_name)
        return bad.node_name

    def assume(self, pod: Pod, name: str) -> None:
        """Count a pod on the node chosen for it until informers show it there."""
        key = get_pod_key(pod)
        self._take_off(key)
        self._assumed[key] = pod
        self._put(PlacedPod(structs.replace(pod, spec=structs.replace(pod.spec, node_name=name))), name)

    def forget(self, key: PodKey) -> str:
        """It will not come to the node it was assumed on, which is given."""
        return self._take_off(key) if self._assumed.pop(key, None) is not None else ""

    def nominate(self, pod: Pod, name: str) -> None:
        """Room is being made for it there; no name: no longer."""
        self._nominated.pop(get_pod_key(pod), None)
        if name:
            self._nominated[get_pod_key(pod)] = (name, pod)

    # ---- the rest

    def on_storage_changed(self) -> None:
        self._storage = self._view = None

    def on_namespaces_changed(self) -> None:
        self._view = None

    # ---- inside

    def _put(self, placed: PlacedPod, name: str) -> None:
        self._pods[placed.key] = (name, placed)
        state = self._nodes.get(name)
        if state is None:
            self._on_unknown.setdefault(name, {})[placed.key] = placed
        else:
            self._set_state(state.with_pods((placed,)))

    def _take_off(self, key: PodKey) -> str:
        name, _ = self._pods.pop(key, ("", None))
        if not name:
            return ""
        state = self._nodes.get(name)
        if state is not None:
            self._set_state(state.without(key))
        elif name in self._on_unknown:
            self._on_unknown[name].pop(key, None)
            if not self._on_unknown[name]:
                del self._on_unknown[name]
        return name

    def _rebuild(self, name: str) -> None:
        state = self._nodes.get(name)
        if state is not None:
            self._set_state(self._build(state.node, state.pods.values()))

    def _build(self, node: Node, placed: Iterable[PlacedPod]) -> NodeState:
        state = NodeState(node).with_pods(placed)
        for bad in self._bad.values():
            if bad.node_name == state.name:
                state = state.with_unreadable(bad)
        return state

    def _set_state(self, state: NodeState) -> None:
        self._nodes[state.name] = state
        if any(placed.anti_affinity for placed in state.pods.values()):
            self._anti_affine[state.name] = None
        else:
            self._anti_affine.pop(state.name, None)
        self._has_changed(state.name)

    def _has_changed(self, name: str) -> None:
        self._view = None
        self.changes += 1
        self._last_changes.append(name)
        if len(self._last_changes) > 2 * _REMEMBERED_CHANGES:
            del self._last_changes[:_REMEMBERED_CHANGES]


def _looks_the_same(old: Node, new: Node) -> bool:
    return (
        old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.status.allocatable == new.status.allocatable
    )


def _has_same_counts(old: PlacedPod, new: Pod) -> bool:
    """What rules read of a placed pod; the rest of it is brought up to date apart (`take_snapshot`)."""
    same = (
        old.pod.metadata.uid == new.metadata.uid
        and old.labels == new.metadata.labels
        and old.leaving == (new.metadata.deletion_timestamp is not None)
        and old.pod.spec == new.spec
    )
    # Only an in-place resize makes a pod with the same spec need something else.
    return same and (_extract_granted(old.pod) == _extract_granted(new) or _compute_demand(new) == old.demand)


def _compute_demand(pod: Pod) -> ResourceVector:
    """As `PlacedPod` counts it."""
    try:
        return compute_pod_demand(pod)
    except InvalidQuantity:
        return ZERO


def _extract_granted(pod: Pod) -> list[object]:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return [
        (container_status.name, container_status.allocated_resources, container_status.resources)
        for container_status in statuses
    ]

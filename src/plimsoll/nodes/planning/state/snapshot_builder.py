"""Builds each snapshot of a changing cluster from the previous one. Pure.

The caller passes what changed (`update`) and gets the next snapshot. Unchanged nodes keep their states, and the
snapshot carries a `PlannerCache`, so that planners too read only what changed: a loop iteration costs by changes.

Snapshots are immutable and stay valid after the next one was built. Their content does not depend on the order of the
changes: nodes are sorted by name, pods of a node and pending pods by key. The builder filters nothing: the caller
leaves out pods that do not count, and puts pods that are nominated for a node onto it.

Pending pods are grouped into few entries: ten thousand pods of a hundred controllers are a hundred `PendingPods`. The
pods of an entry have one owner and are equal to every scheduling rule; pods with their own claims are not grouped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from plimsoll.nodes.model.planner_cache import PlannerCache
from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
from plimsoll.nodes.planning.equivalence.scheduling_keys import compute_fingerprint
from plimsoll.nodes.planning.equivalence.volume_keys import touches_storage
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.owners import find_controller
from plimsoll.scheduling import ClusterView, Storage
from plimsoll.scheduling.cluster_view import NodeState, PlacedPod, PodKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.nodes.model.snapshot import MachineType, NodeGroup
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.policy import PodDisruptionBudget
    from plimsoll.objects.api.workloads import DaemonSet
    from plimsoll.scheduling.cluster_view import LabelsKey


_ENDED: Final = frozenset({"Succeeded", "Failed"})
Touched = dict[str, dict[PodKey, None]]
"""By node, whose pods there came, went or are others."""
# Label groups are only ever added; with this many more than pods they are rebuilt.
_STALE_LABELS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChanges:
    """Changed objects by name: the current object, or None if it is gone or does not count any more."""

    nodes: Mapping[str, Node | None] = field(default_factory=dict)
    pods: Mapping[PodKey, Pod | BadObject | None] = field(default_factory=dict)
    """A pod with a node is on it, a pod without one is pending, an ended pod is neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotInputs:
    """The rest of a snapshot, small enough to pass every time."""

    at: datetime
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    storage: Storage = field(default_factory=Storage)
    groups: tuple[NodeGroup, ...] = ()
    machine_types: tuple[MachineType, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    group_of: Mapping[str, str] = field(default_factory=dict)
    creation_backoffs: Mapping[tuple[str, str, str], str] = field(default_factory=dict)


class SnapshotBuilder:
    """Builds the snapshots of one cluster. Planning with a snapshot must end before the next one is built."""

    def __init__(self) -> None:
        self.cache = PlannerCache()
        self._number = 0
        self._nodes: dict[str, Node] = {}
        self._states: dict[str, NodeState] = {}
        """States of existing nodes by name; replaced on a change, never modified."""
        self._anti_affine: dict[str, None] = {}
        self._pods_of: dict[str, dict[PodKey, PlacedPod | BadObject]] = {}
        """Pods by node, also for nodes that do not exist (yet)."""
        self._node_of: dict[PodKey, str] = {}
        self._labels_of: dict[LabelsKey, LabelsKey] = {}
        self._waiting = PendingPodGroups()

    def update(self, changes: SnapshotChanges, inputs: SnapshotInputs) -> Snapshot:
        """The next snapshot: the cluster with these changes."""
        touched: Touched = {}
        for key, pod in changes.pods.items():
            self._put_pod(key, pod, touched)
        for name, node in changes.nodes.items():
            touched.setdefault(name, {})
            if node is None:
                self._nodes.pop(name, None)
            else:
                self._nodes[name] = node
        self._make_states(touched)
        self._number += 1
        if len(self._labels_of) > _STALE_LABELS + len(self._node_of):
            self._labels_of = {}
        return self._build_from_inputs(inputs)

    # ---- pods

    def _put_pod(self, key: PodKey, pod: Pod | BadObject | None, touched: Touched) -> None:
        before = self._node_of.pop(key, "")
        if before:
            del self._pods_of[before][key]
            touched.setdefault(before, {})[key] = None
        if _waits(pod):
            self._waiting.put(key, pod)
            return
        self._waiting.drop(key)
        if isinstance(pod, BadObject):
            self._settle(key, pod.node_name, pod, touched)
        elif pod is not None and pod.status.phase not in _ENDED:
            placed = PlacedPod(pod)
            # Replicas share one object, so that lookups by it are fast.
            placed.labels_key = self._labels_of.setdefault(placed.labels_key, placed.labels_key)
            self._settle(key, pod.spec.node_name, placed, touched)

    def _settle(self, key: PodKey, node: str, pod: PlacedPod | BadObject, touched: Touched) -> None:
        """Record the node of a pod; an unreadable pod without a node has no effect."""
        if node:
            self._node_of[key] = node
            self._pods_of.setdefault(node, {})[key] = pod
            touched.setdefault(node, {})[key] = None

    # ---- nodes

    def _make_states(self, touched: Touched) -> None:
        if not touched:
            return
        states, anti_affine = dict(self._states), dict(self._anti_affine)
        for name, keys in touched.items():
            anti_affine.pop(name, None)
            node = self._nodes.get(name)
            if node is None:
                states.pop(name, None)
                if not self._pods_of.get(name):
                    self._pods_of.pop(name, None)
                continue
            states[name] = state = self._build_state(node, self._states.get(name), keys)
            if any(placed.anti_affinity for placed in state.pods.values()):
                anti_affine[name] = None
        if states.keys() != self._states.keys():
            states = {name: states[name] for name in sorted(states)}
        self._states = states
        self._anti_affine = dict.fromkeys(sorted(anti_affine))

    def _build_state(self, node: Node, before: NodeState | None, keys: Iterable[PodKey]) -> NodeState:
        """`keys` are all whose pod on the node may be another than before."""
        held = self._pods_of.get(node.metadata.name, {})
        if before is None or before.node is not node or before.unreadable_pods:
            before, keys = NodeState(node), held
        there = before.pods
        changed = [key for key in keys if there.get(key) is not held.get(key)]
        state = before.exchange(
            [key for key in changed if key in there],
            [pod for key in changed if isinstance(pod := held.get(key), PlacedPod)],
        )
        for _, pod in sorted((key, pod) for key in changed if isinstance(pod := held.get(key), BadObject)):
            state = state.with_unreadable(pod)
        return state

    def _build_from_inputs(self, inputs: SnapshotInputs) -> Snapshot:
        return Snapshot(
            number=self._number,
            at=inputs.at,
            view=ClusterView(
                self._states,
                namespaces=inputs.namespaces,
                storage=inputs.storage,
                anti_affine=self._anti_affine,
            ),
            pending=self._waiting.list_pending(),
            groups=inputs.groups,
            machine_types=inputs.machine_types,
            daemon_sets=inputs.daemon_sets,
            budgets=inputs.budgets,
            group_of=inputs.group_of,
            creation_backoffs=inputs.creation_backoffs,
            cache=self.cache,
        )


def _waits(pod: Pod | BadObject | None) -> TypeGuard[Pod]:
    if pod is None or isinstance(pod, BadObject):
        return False
    return not pod.spec.node_name and pod.status.phase not in _ENDED


SimilarityRules = tuple[Any, ...]

_FAR_AHEAD: Final = datetime.max.replace(tzinfo=UTC)


class PendingPodGroups:
    """Entries by group key; only entries whose pods changed are built again."""

    def __init__(self) -> None:
        self._groups: dict[SimilarityRules, _Group] = {}
        self._group_key: dict[PodKey, SimilarityRules] = {}
        self._entries: dict[SimilarityRules, PendingPods] = {}
        self._changed: dict[SimilarityRules, None] = {}
        self._listed: tuple[PendingPods, ...] = ()

    def put(self, key: PodKey, pod: Pod) -> None:
        """A pod that waits, or waits still with something about it changed."""
        group_key = _get_group_key(pod)
        if self._group_key.get(key) not in {None, group_key}:
            self.drop(key)
        self._group_key[key] = group_key
        if group_key not in self._groups:
            self._groups[group_key] = _Group()
        if self._groups[group_key].put(key, pod):
            self._changed[group_key] = None

    def drop(self, key: PodKey) -> None:
        """The pod is no longer pending. Unknown pods are ignored."""
        group_key = self._group_key.pop(key, None)
        if group_key is not None:
            self._groups[group_key].drop(key)
            self._changed[group_key] = None

    def list_pending(self) -> tuple[PendingPods, ...]:
        """In the order of their keys, whatever order the pods came in."""
        if self._changed:
            for group_key in self._changed:
                if self._groups[group_key].queue:
                    self._entries[group_key] = self._groups[group_key].build_entry()
                else:
                    del self._groups[group_key]
                    self._entries.pop(group_key, None)
            self._changed = {}
            self._listed = tuple(sorted(self._entries.values(), key=lambda pending: pending.key))
        return self._listed


class _Group:
    """The pods of one entry, oldest first."""

    def __init__(self) -> None:
        self._pods: dict[PodKey, Pod] = {}
        self._queue: list[tuple[datetime, PodKey]] = []
        self._is_in_order = True

    def put(self, key: PodKey, pod: Pod) -> bool:
        """Whether that changes the entry; of a pod in the middle of the line only its place and name are in it."""
        before = self._pods.get(key)
        if before is not None and _get_queue_key(key, before) != _get_queue_key(key, pod):
            self.drop(key)
            before = None
        self._pods[key] = pod
        if before is None:
            self._queue.append(_get_queue_key(key, pod))
            self._is_in_order = False
            return True
        return self.queue[0][1] == key

    def drop(self, key: PodKey) -> None:
        self._queue.remove(_get_queue_key(key, self._pods.pop(key)))

    @property
    def queue(self) -> list[tuple[datetime, PodKey]]:
        """Sorted on demand, because thousands of pods may come at once."""
        if not self._is_in_order:
            self._queue.sort()
            self._is_in_order = True
        return self._queue

    def build_entry(self) -> PendingPods:
        """Named after the first in line."""
        queue = self.queue
        key = queue[0][1]
        return PendingPods(
            key=str(key),
            pod=self._pods[key],
            count=len(queue),
            created=self._pods[key].metadata.creation_timestamp,
            names=tuple([pod_key.name for _, pod_key in queue]),
        )


def _get_queue_key(key: PodKey, pod: Pod) -> tuple[datetime, PodKey]:
    return (pod.metadata.creation_timestamp or _FAR_AHEAD, key)


def _get_group_key(pod: Pod) -> SimilarityRules:
    meta = pod.metadata
    owner = find_controller(meta)
    own_claims = bool(pod.spec.volumes) and touches_storage(pod)
    return (
        meta.namespace,
        None if owner is None else owner.uid,
        frozenset(meta.labels.items()),
        compute_fingerprint(pod),
        meta.name if own_claims else "",
    )

"""The pods on each node, grouped into kinds: pods that are equal to every rule about moving them. Read incrementally.

A cluster has a hundred thousand pods and a few hundred kinds. A node is read again when something on it changed; pods
that are the same objects as before are not read again.

* `kinds[k].pod` represents every pod of the kind, without spec.nodeName.
* `row[P]`, `kind[P]`: the node and the kind of each pod, in the order of nodes; `pods(row)`: the pods themselves.
* `NodeFlags`: what the node object says about its own removal: ready, being deleted, upcoming, scale-down disabled.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import structs

from plimsoll.nodes.model.node_labels import find_karpenter_pool
from plimsoll.nodes.model.node_templates import TEMPLATE_LABEL
from plimsoll.nodes.model.pod_traits import (
    DELETION_COST,
    KUBE_SYSTEM,
    SAFE_LOCAL_VOLUMES,
    SAFE_TO_EVICT,
    is_daemon_pod,
    is_mirror_pod,
    list_local_volumes,
)
from plimsoll.nodes.model.taints import BEING_DELETED
from plimsoll.nodes.planning.equivalence.scheduling_keys import compute_fingerprint
from plimsoll.nodes.planning.equivalence.volume_keys import touches_storage
from plimsoll.nodes.planning.state.placeholder_pods import is_placeholder
from plimsoll.objects.api.nodes import is_node_ready_or_unreported
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState, PlacedPod
    from plimsoll.solver.problem import Ints


# Kinds are only ever added; with this many more than pods they are renumbered.
_STALE_KINDS: Final = 4096

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PodKind:
    """Pods that are equal in everything that decides whether and where they can move."""

    number: int
    pod: Pod
    sample: PlacedPod
    is_mirror: bool
    is_daemon: bool

    @property
    def stays_on_node(self) -> bool:
        """Whether its pods never move to another node."""
        return self.is_mirror or self.is_daemon


class PodKinds:
    """Numbers of pod kinds, assigned once and shared by several loop iterations."""

    def __init__(self) -> None:
        self.kinds: list[PodKind] = []
        self.terminating: list[int] = []
        """Kinds of terminating pods."""
        self.placeholders: list[int] = []
        """Kinds of placeholder pods."""
        self._numbers: dict[Key, int] = {}

    def assign_number(self, placed: PlacedPod) -> int:
        pod = placed.pod
        is_mirror = is_mirror_pod(pod)
        is_daemon = not is_mirror and is_daemon_pod(pod)
        stays = is_mirror or is_daemon
        loose = pod if stays else remove_node_name(pod)
        key = (is_mirror, is_daemon, *_build_kind_key(placed, loose, stays=stays))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.kinds)
            self.kinds.append(PodKind(number, loose, placed, is_mirror, is_daemon))
            if placed.leaving:
                self.terminating.append(number)
            if is_placeholder(pod):
                self.placeholders.append(number)
        return number


def remove_node_name(pod: Pod) -> Pod:
    """The pod as its controller would create it again: without spec.nodeName."""
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name="")) if pod.spec.node_name else pod


def _build_kind_key(placed: PlacedPod, loose: Pod, *, stays: bool) -> Key:
    meta = loose.metadata
    owner = find_controller(meta)
    notes = meta.annotations
    made_by = None if owner is None else (owner.kind, owner.name)
    leaving = (meta.deletion_timestamp, loose.spec.termination_grace_period_seconds)
    if stays:
        need = frozenset(placed.demand.items())
        return (placed.labels_key, made_by, leaving if placed.leaving else None, need)
    # Age counts for pods of the system only; others of one kind may be of any age.
    age = meta.creation_timestamp if meta.namespace == KUBE_SYSTEM else None
    with_storage = bool(loose.spec.volumes) and touches_storage(loose)
    return (
        placed.labels_key,
        made_by,
        leaving if placed.leaving else None,
        age,
        (notes.get(SAFE_TO_EVICT), notes.get(SAFE_LOCAL_VOLUMES), notes.get(DELETION_COST)) if notes else None,
        list_local_volumes(loose) if loose.spec.volumes else (),
        meta.name if with_storage else "",
        loose.status.phase,
        compute_fingerprint(loose),
    )


@dataclass(frozen=True, slots=True, eq=False)
class NodePods:
    """The pods of one node, and the kind of each."""

    state: NodeState
    pods: tuple[PlacedPod, ...]
    kinds: Ints
    flags: NodeFlags

    @classmethod
    def from_state(cls, state: NodeState, kinds: PodKinds, before: NodePods | None) -> NodePods:
        pods = tuple(state.pods.values())
        numbers = (
            [kinds.assign_number(placed_pod) for placed_pod in pods]
            if before is None
            else before.assign_kind_numbers(pods, kinds)
        )
        standing = (
            NodeFlags.from_node(state.node) if before is None or before.state.node is not state.node else before.flags
        )
        return cls(state, pods, np.array(numbers, dtype=np.int64), standing)

    def assign_kind_numbers(self, pods: tuple[PlacedPod, ...], kinds: PodKinds) -> list[int]:
        """List the kind numbers of a node's pods. Pods that were there before are not examined again."""
        known = dict(zip(map(id, self.pods), self.kinds.tolist(), strict=True))
        numbers = list(map(known.get, map(id, pods)))
        fresh = [place for place, number in enumerate(numbers) if number is None]
        # In a rebuilt view the pods are the same objects; only what was computed from them is new.
        same = {id(placed_pod.pod): known[id(placed_pod)] for placed_pod in self.pods} if len(fresh) > 1 else {}
        for place in fresh:
            number = same.get(id(pods[place].pod))
            numbers[place] = kinds.assign_number(pods[place]) if number is None else number
        return [number for number in numbers if number is not None]

    def list_pods_with_kinds(self) -> list[tuple[PlacedPod, int]]:
        return list(zip(self.pods, self.kinds.tolist(), strict=True))


class PodsByNode:
    """The pods of all nodes of a view, in its order."""

    def __init__(self, kinds: PodKinds, nodes: Sequence[NodePods]) -> None:
        self.kind_index = kinds
        self.kinds: tuple[PodKind, ...] = tuple(kinds.kinds)
        self.terminating_kinds = tuple(kinds.terminating)
        self.placeholder_kinds = tuple(kinds.placeholders)
        self.nodes = tuple(nodes)
        self.states = tuple(node_pods.state for node_pods in self.nodes)
        sizes = np.array([len(node_pods.pods) for node_pods in self.nodes], dtype=np.int64)
        self.starts: Ints = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
        self.row: Ints = np.repeat(np.arange(len(self.nodes), dtype=np.int64), sizes)
        empty = [np.zeros(0, dtype=np.int64)]
        self.kind: Ints = np.concatenate(empty + [node_pods.kinds for node_pods in self.nodes])

    @classmethod
    def from_view(cls, view: ClusterView, before: PodsByNode | None = None) -> PodsByNode:
        if before is not None and len(before.kinds) > len(before.kind) + _STALE_KINDS:
            before = None
        states = tuple(view.nodes.values())
        if before is None:
            kinds = PodKinds()
            return cls(kinds, [NodePods.from_state(state, kinds, None) for state in states])
        nodes = before.read_changed(states)
        return before if nodes is None else cls(before.kind_index, nodes)

    def read_changed(self, states: tuple[NodeState, ...]) -> list[NodePods] | None:
        """The pods of these nodes, read where a state changed; None if none did."""
        kinds = self.kind_index
        if len(states) == len(self.states):
            changed = [row for row, same in enumerate(map(is_, states, self.states)) if not same]
            if not changed:
                return None
            if all(states[row].name == self.states[row].name for row in changed):
                nodes = list(self.nodes)
                for row in changed:
                    nodes[row] = NodePods.from_state(states[row], kinds, nodes[row])
                return nodes
        known = {node_pods.state.name: node_pods for node_pods in self.nodes}
        return [_build_node_pods(state, kinds, known.get(state.name)) for state in states]

    def find_placeholder_rows(self) -> Ints:
        """Nodes with placeholder pods."""
        if not self.placeholder_kinds:
            return np.zeros(0, dtype=np.int64)
        meant = np.zeros(len(self.kinds), dtype=np.bool_)
        meant[list(self.placeholder_kinds)] = True
        return np.unique(self.row[meant[self.kind]])

    def list_pods(self, row: int) -> list[tuple[PlacedPod, int]]:
        """Pods of a node with their kinds."""
        return self.nodes[row].list_pods_with_kinds()


class PodsByNodeCache:
    """The pods of the latest view. Only nodes that changed since then are read again."""

    def __init__(self) -> None:
        self._latest: PodsByNode | None = None

    def update(self, view: ClusterView) -> PodsByNode:
        self._latest = PodsByNode.from_view(view, self._latest)
        return self._latest


def _build_node_pods(state: NodeState, kinds: PodKinds, before: NodePods | None) -> NodePods:
    if before is not None and before.state is state:
        return before
    return NodePods.from_state(state, kinds, before)


SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFlags:
    """What a node object says about its own removal."""

    ready: bool
    """A node without the condition counts as ready: files leave conditions out."""
    being_deleted: bool
    upcoming: bool
    """It represents a machine that has not joined yet."""
    scale_down_disabled: bool
    """Annotated not to be removed."""
    karpenter_pool: str = ""
    """The NodePool of Karpenter, whose node it is; empty: not Karpenter's."""

    @property
    def is_plain(self) -> bool:
        is_special = self.being_deleted or self.upcoming or self.scale_down_disabled or self.karpenter_pool
        return self.ready and not is_special

    @classmethod
    def from_node(cls, node: Node) -> NodeFlags:
        meta = node.metadata
        tainted = any(taint.key == BEING_DELETED for taint in node.spec.taints)
        return cls(
            ready=is_node_ready_or_unreported(node),
            being_deleted=tainted or meta.deletion_timestamp is not None,
            upcoming=meta.labels.get(TEMPLATE_LABEL) == "true",
            scale_down_disabled=meta.annotations.get(SCALE_DOWN_DISABLED) == "true",
            karpenter_pool=find_karpenter_pool(meta.labels),
        )

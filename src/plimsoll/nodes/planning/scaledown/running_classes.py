"""Kinds of running pods sorted into pod classes, and kept sorted while kinds come and go.

Kinds are distinguished by everything that matters for moving a pod, classes by what matters for where it may go.
Sorting all kinds of a large cluster takes longer than the rest of a loop iteration, so only new kinds are sorted. Kinds
that are gone stay in the table, with no pods, until one of them affects how others are distinguished.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.planning.equivalence.pod_classes import ClassTable
from plimsoll.nodes.planning.equivalence.volume_keys import touches_storage
from plimsoll.nodes.planning.predicates.affinity_counts import matches_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.equivalence.pod_classes import PodClass
    from plimsoll.nodes.planning.equivalence.scheduling_keys import SchedulingKeys
    from plimsoll.nodes.planning.state.node_arrays import NodeArrays
    from plimsoll.nodes.planning.state.node_pods import PodKind, PodsByNode
    from plimsoll.nodes.planning.state.node_pods import PodKinds as PodKindIndex
    from plimsoll.nodes.planning.state.running_pods import LabelGroups
    from plimsoll.scheduling.affinity_terms import AffinityTerm
    from plimsoll.scheduling.cluster_view import ClusterView
    from plimsoll.scheduling.storage import Storage
    from plimsoll.solver.problem import Flags, Ints


class ClassInputs(NamedTuple):
    """The input of the classes of running pods, apart from the kinds."""

    numbered_by: PodKindIndex
    label_groups: LabelGroups
    anti_affinity_numbers: tuple[int, ...]
    storage: Storage
    namespaces: Mapping[str, Mapping[str, str]]

    def equals(self, other: ClassInputs) -> bool:
        """Whether the content is equal; mostly the objects are identical."""
        return (
            self.numbered_by is other.numbered_by
            and self.label_groups is other.label_groups
            and self.anti_affinity_numbers == other.anti_affinity_numbers
            and (self.storage is other.storage or _is_same_storage(self.storage, other.storage))
            and self.namespaces == other.namespaces
        )

    @property
    def terms(self) -> list[AffinityTerm]:
        """The anti-affinity terms of running pods."""
        return [
            term
            for number in self.anti_affinity_numbers
            for term in self.label_groups.anti_affinity_groups[number].terms
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningClasses:
    """Kinds of running pods, grouped into classes."""

    table: ClassTable
    class_of: Ints
    """[K]: the class; -1 for kinds that belong to their node, and for kinds that no longer existed."""
    interacting: Flags
    """[C]: more than resources decides how many fit: terms, ports, volumes, or anti-affinity of other pods."""
    distinguishing: Ints
    """Kinds with terms or storage; other kinds are distinguished by what these terms select."""
    inputs: ClassInputs


class RunningClassesCache:
    """The classes of the latest snapshot. Only kinds that are new since then are classified."""

    def __init__(self) -> None:
        self._latest: RunningClasses | None = None

    def update(
        self, view: ClusterView, arrays: NodeArrays, pods_by_node: PodsByNode, *, forms: SchedulingKeys
    ) -> RunningClasses:
        self._latest = classify_kinds(view, arrays, pods_by_node, forms=forms, before=self._latest)
        return self._latest


def classify_kinds(
    view: ClusterView,
    arrays: NodeArrays,
    pods_by_node: PodsByNode,
    *,
    forms: SchedulingKeys,
    before: RunningClasses | None,
) -> RunningClasses:
    anti_affinity_numbers = tuple(arrays.running_pods.anti_affinity_rows)
    made_from = ClassInputs(
        pods_by_node.kind_index, arrays.running_pods.label_groups, anti_affinity_numbers, view.storage, view.namespaces
    )
    there = np.bincount(pods_by_node.kind, minlength=len(pods_by_node.kinds)) > 0
    if before is not None and before.inputs.equals(made_from) and there[before.distinguishing].all():
        found = _extend_classes(before, view, pods_by_node, there, forms)
        if found is not None:
            return found
    ours = [
        kind
        for kind, is_there in zip(pods_by_node.kinds, there.tolist(), strict=True)
        if is_there and not kind.stays_on_node
    ]
    avoided = arrays.running_pods.collect_visible_labels()
    table = ClassTable.build(_build_entries(ours), view, scheduling_keys=forms, visible_to_running=avoided)
    class_of = np.full(len(pods_by_node.kinds), -1, dtype=np.int64)
    class_of[[pod_kind.number for pod_kind in ours]] = table.class_of
    distinguishing = [
        pod_kind.number
        for pod_kind, number in zip(ours, table.class_of.tolist(), strict=True)
        if table.classes[number].scheduling_key.has_pod_constraints or _has_storage(pod_kind)
    ]
    return RunningClasses(
        table=table,
        class_of=class_of,
        interacting=_find_dependent_kinds(table.classes, made_from, view),
        distinguishing=np.array(distinguishing, dtype=np.int64),
        inputs=made_from,
    )


def _extend_classes(
    before: RunningClasses, view: ClusterView, pods_by_node: PodsByNode, there: Flags, forms: SchedulingKeys
) -> RunningClasses | None:
    """The classes with the new kinds; None if these could change the classes of the others."""
    class_of = np.full(len(pods_by_node.kinds), -1, dtype=np.int64)
    class_of[: len(before.class_of)] = before.class_of
    unsorted = np.flatnonzero(there & (class_of < 0)).tolist()
    new = [kind for kind in map(pods_by_node.kinds.__getitem__, unsorted) if not kind.stays_on_node]
    if not new:
        return before if len(class_of) == len(before.class_of) else replace(before, class_of=class_of)
    if any(_has_storage(pod_kind) for pod_kind in new):
        return None
    table = before.table.extend(_build_entries(new), view, scheduling_keys=forms)
    if table is None:
        return None
    class_of[[pod_kind.number for pod_kind in new]] = table.class_of[len(before.table.class_of) :]
    fresh = table.classes[len(before.interacting) :]
    looks = np.concatenate((before.interacting, _find_dependent_kinds(fresh, before.inputs, view)))
    return replace(before, table=table, class_of=class_of, interacting=looks)


def _build_entries(kinds: Iterable[PodKind]) -> list[PendingPods]:
    return [PendingPods(key=str(pod_kind.number), pod=pod_kind.pod, count=1) for pod_kind in kinds]


def _find_dependent_kinds(classes: Sequence[PodClass], made_from: ClassInputs, view: ClusterView) -> Flags:
    terms = made_from.terms
    found = [
        not pod_class.is_simple or any(matches_term(term, pod_class.pod, view.namespaces) for term in terms)
        for pod_class in classes
    ]
    return np.array(found, dtype=np.bool_)


def _has_storage(kind: PodKind) -> bool:
    return bool(kind.pod.spec.volumes) and touches_storage(kind.pod)


def _is_same_storage(before: Storage, now: Storage) -> bool:
    return (
        before.claims == now.claims
        and before.volumes == now.volumes
        and before.classes == now.classes
        and before.csi_nodes == now.csi_nodes
    )

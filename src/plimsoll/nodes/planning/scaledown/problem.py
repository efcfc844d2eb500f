"""The input of scale-down planning, built once: which pods are on which node, which may move, and where each may go.

Rows are nodes [N], kinds are pods equal to every rule about moving [K], classes are pods equal to every scheduling rule
[C]. Building costs by what changed since the cache was filled, and by kinds and classes, not by pods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plimsoll.nodes.model.planner_cache import PlannerCache
from plimsoll.nodes.planning.equivalence.scheduling_keys import get_running_keys
from plimsoll.nodes.planning.predicates.predicates import Predicates
from plimsoll.nodes.planning.predicates.static_predicates import get_refusal_cache
from plimsoll.nodes.planning.scaledown.drainability import DrainOutcome
from plimsoll.nodes.planning.scaledown.drainability_cache import DrainabilityCache
from plimsoll.nodes.planning.scaledown.running_classes import RunningClassesCache
from plimsoll.nodes.planning.scaledown.term_counts import TermCountsCache
from plimsoll.nodes.planning.state.node_arrays import NodeArraysCache
from plimsoll.nodes.planning.state.node_pods import PodsByNodeCache

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.planning.equivalence.pod_classes import PodClass
    from plimsoll.nodes.planning.scaledown.drainability import DrainabilityStatus, DrainRules
    from plimsoll.nodes.planning.scaledown.drainability_cache import KindDrainability
    from plimsoll.nodes.planning.scaledown.running_classes import RunningClasses
    from plimsoll.nodes.planning.scaledown.term_counts import TermCounts
    from plimsoll.nodes.planning.state.node_arrays import NodeArrays
    from plimsoll.nodes.planning.state.node_pods import PodsByNode
    from plimsoll.scheduling.cluster_view import PlacedPod, PodKey
    from plimsoll.solver.problem import Flags, Ints


class PodToMove(NamedTuple):
    """A pod that needs another node, and the number of its class."""

    placed: PlacedPod
    class_number: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaleDownProblem:
    """One snapshot under one set of drain rules."""

    snapshot: Snapshot
    rules: DrainRules
    arrays: NodeArrays
    pods_by_node: PodsByNode
    running_classes: RunningClasses
    predicates: Predicates
    drainability: KindDrainability
    first_pod: Ints
    """[C]: the position of its first pod: an order of classes that does not depend on earlier snapshots."""
    requests: Ints
    """[C, R]: requests, of the resources that any class requests."""
    free: Ints
    """[N, R]"""
    moving: Ints
    """[N]: pods that must be rescheduled if the node is removed."""
    pdb_use: Ints
    """[N, B]: pods under each disruption budget among them."""
    blocking_kind: dict[int, int]
    """Row to the kind of the first pod that blocks the removal."""
    interacting: Flags
    """[N]: rows with pods to move that depend on other pods, or have volumes or ports."""
    uncounted: Flags
    """[N]: rows with pods to move that have volumes or ports: only the plain rules can move them."""
    cache: PlannerCache

    @classmethod
    def from_snapshot(
        cls, snapshot: Snapshot, rules: DrainRules, *, cache: PlannerCache | None = None
    ) -> ScaleDownProblem:
        known = cache or snapshot.cache or PlannerCache()
        view = snapshot.view
        arrays = known.get(NodeArraysCache).update(view)
        pods_by_node = known.get(PodsByNodeCache).update(view)
        kinds = known.get(RunningClassesCache).update(view, arrays, pods_by_node, forms=get_running_keys(known))
        predicates = Predicates(kinds.table, arrays, view, refusal_cache=get_refusal_cache(known))
        first = _find_first_pods(pods_by_node, kinds)
        # Classes that are only cached have no pods and must not affect the order of the others.
        requests = np.where((first < len(pods_by_node.kind))[:, None], predicates.requests, 0)
        columns = np.flatnonzero((requests > 0).any(axis=0))
        drainability = known.get(DrainabilityCache).update(pods_by_node, rules)
        movable = drainability.moves & (kinds.class_of >= 0)
        interacting_kinds = movable & _select_flags(kinds.interacting, kinds.class_of)
        uncounted_kinds = movable & _select_flags(_find_uncounted(kinds), kinds.class_of)
        return cls(
            snapshot=snapshot,
            rules=rules,
            arrays=arrays,
            pods_by_node=pods_by_node,
            running_classes=kinds,
            predicates=predicates,
            drainability=drainability,
            first_pod=first,
            requests=np.ascontiguousarray(requests[:, columns]),
            free=np.ascontiguousarray(arrays.free[:, columns]),
            moving=_count_pods(pods_by_node, drainability.moves),
            pdb_use=_count_pdb_use(pods_by_node, rules, drainability),
            blocking_kind=_find_first_blocking(pods_by_node, drainability.blocks),
            interacting=_count_pods(pods_by_node, interacting_kinds) > 0,
            uncounted=_count_pods(pods_by_node, uncounted_kinds) > 0,
            cache=known,
        )

    @property
    def statuses(self) -> tuple[DrainabilityStatus, ...]:
        """The drainability per kind [K]."""
        return self.drainability.statuses

    def get_term_counts(self) -> TermCounts:
        """The rules of the pods about each other, as counts."""
        cache = self.cache.get(TermCountsCache)
        return cache.update(self.running_classes.table, self.arrays, self.snapshot.view.namespaces)

    def list_pods_to_move(self, row: int) -> list[PodToMove]:
        """Pods of a node that must be rescheduled if it is removed."""
        return [
            PodToMove(placed, int(self.running_classes.class_of[kind]))
            for placed, kind in self.pods_by_node.list_pods(row)
            if self.statuses[kind].outcome is DrainOutcome.MOVE
        ]

    def find_first_of_class(self, row: int, number: int) -> PodKey | None:
        """The first pod of a class on a node; None if such pods are only there by moves."""
        class_of = self.running_classes.class_of
        return next((placed.key for placed, kind in self.pods_by_node.list_pods(row) if class_of[kind] == number), None)

    def list_disposable_pods(self, row: int) -> list[PlacedPod]:
        """Pods that may be evicted and are not rescheduled, such as daemon pods."""
        return [
            placed
            for placed, kind in self.pods_by_node.list_pods(row)
            if self.statuses[kind].outcome is DrainOutcome.LET_GO
        ]

    def count_classes(self, rows: Flags) -> tuple[Ints, Ints]:
        """The first entry of each row [N + 1], and entries (class, pods) of the pods to move from the chosen rows."""
        chosen = rows[self.pods_by_node.row]
        chosen[chosen] = self.drainability.moves[self.pods_by_node.kind[chosen]]
        classes = max(len(self.running_classes.table), 1)
        cells = self.pods_by_node.row[chosen] * classes + self.running_classes.class_of[self.pods_by_node.kind[chosen]]
        found, pods = np.unique(cells, return_counts=True)
        starts = np.searchsorted(found, np.arange(len(self.arrays) + 1) * classes)
        return starts.astype(np.int64), np.column_stack((found % classes, pods)).astype(np.int64)

    def find_static_fit(self, pod_class: PodClass) -> Flags:
        """[N]: rows that cordon, taints and node affinity allow for a class."""
        fits = np.ones(len(self.arrays), dtype=np.bool_)
        if pod_class.problem is not None:
            return ~fits
        known = self.predicates.node_predicates.static
        for codes in (
            known.check_unschedulable(pod_class),
            known.check_node_name(pod_class),
            known.check_taints(pod_class),
            known.check_node_affinity(pod_class),
        ):
            if codes is not None:
                fits &= codes == 0
        return fits

    def find_node_kinds(self) -> tuple[Ints, Flags]:
        """[N], [node kinds, C]: nodes that accept the same simple classes are of one kind."""
        constraints: dict[object, int] = {}
        rows: list[Flags] = []
        read = np.zeros(len(self.running_classes.table), dtype=np.int64)
        for pod_class in self.running_classes.table:
            constraint = (
                None
                if pod_class.problem is not None
                else (
                    pod_class.scheduling_key.tolerations,
                    pod_class.scheduling_key.node_constraints,
                    pod_class.scheduling_key.node_name,
                )
            )
            if constraint not in constraints:
                constraints[constraint] = len(rows)
                rows.append(self.find_static_fit(pod_class))
            read[pod_class.index] = constraints[constraint]
        if not rows:
            return np.zeros(len(self.arrays), dtype=np.int64), np.zeros((1, 0), dtype=np.bool_)
        kinds, kind_of = np.unique(np.stack(rows, axis=1), axis=0, return_inverse=True)
        allowed = kinds[:, read] & ~self.running_classes.interacting
        return kind_of.reshape(-1).astype(np.int64), np.ascontiguousarray(allowed)


def _find_first_pods(pods_by_node: PodsByNode, kinds: RunningClasses) -> Ints:
    """[C]: the position of the first pod of each class; after all pods if there is none."""
    pods = len(pods_by_node.kind)
    first = np.full(len(kinds.table), pods, dtype=np.int64)
    classes = kinds.class_of[pods_by_node.kind[::-1]]
    ours = classes >= 0
    # Written from the last to the first, so that the first one remains.
    first[classes[ours]] = np.arange(pods - 1, -1, -1, dtype=np.int64)[ours]
    return first


def _find_uncounted(kinds: RunningClasses) -> Flags:
    """[C]: classes with ports or volumes, for which counts of labels are not enough."""
    found = [bool(pods.scheduling_key.ports or pods.volumes) for pods in kinds.table]
    return np.array(found, dtype=np.bool_)


def _select_flags(flags: Flags, numbers: Ints) -> Flags:
    return flags[np.maximum(numbers, 0)] if len(flags) else np.zeros(len(numbers), dtype=np.bool_)


def _count_pods(pods_by_node: PodsByNode, kinds: Flags) -> Ints:
    """[N]: pods of some kinds."""
    return np.bincount(pods_by_node.row[kinds[pods_by_node.kind]], minlength=len(pods_by_node.nodes)).astype(np.int64)


def _count_pdb_use(pods_by_node: PodsByNode, rules: DrainRules, drainability: KindDrainability) -> Ints:
    use = np.zeros((len(pods_by_node.nodes), len(rules.pdbs.allowed)), dtype=np.int64)
    for pdb, kinds in drainability.by_pdb.items():
        meant = np.zeros(len(pods_by_node.kinds), dtype=np.bool_)
        meant[list(kinds)] = True
        use[:, pdb] = _count_pods(pods_by_node, meant & drainability.moves)
    return use


def _find_first_blocking(pods_by_node: PodsByNode, keeps: Flags) -> dict[int, int]:
    if not keeps.any():
        return {}
    places = np.flatnonzero(keeps[pods_by_node.kind])
    rows, first = np.unique(pods_by_node.row[places], return_index=True)
    return dict(zip(rows.tolist(), pods_by_node.kind[places[first]].tolist(), strict=True))

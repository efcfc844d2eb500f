"""Every scheduling rule for pod classes over all nodes of a cluster at once.

`Predicates(table, arrays, view)` answers, for class `c` of the table and each row of the arrays:

* `find_codes(c)[N]`: 0 where a pod of the class fits, else the number of the first refusal in kube-scheduler's order;
  `get_refusal(code)` gives its message. `find_fitting(c)[N]`: the same as flags. Equal, pair by pair, to
  `scheduling.feasible`.
* `count_room(c)[N]`: how many more pods of the class a row takes when all of them go to that row; 0 where none fits.
* `build_fit_error(c)`: counted reasons in kube-scheduler's words, as `compute_scheduling_outcome` gives them before
preemption.
* `allowed[C, N]`: `find_fitting` of all classes; `interacts[C]`: classes that cannot be placed by resources alone.
* `get_spreads(c)` and `get_affinity_counts(c)`: counts per domain for planners that place in bulk over zones.
* `requests[C, R]`: demands in the columns of the arrays.

What a planner has placed is passed to the same functions, as free resources and as pods per class and row. Results of
static rules are kept by content in `RefusalCache`, which may be reused in the next loop iteration.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.planning.predicates.affinity_counts import (
    AFFINITY_UNMET,
    ANTI_AFFINITY_UNMET,
    EXISTING_ANTI_AFFINITY_UNMET,
    AffinityCounts,
    AffinityTerms,
)
from plimsoll.nodes.planning.predicates.node_predicates import NodePredicates, merge_codes
from plimsoll.nodes.planning.predicates.spread_counts import MISSING_LABEL, TOO_SKEWED, SpreadCount, build_spread_counts
from plimsoll.nodes.planning.predicates.static_predicates import RefusalCache
from plimsoll.scheduling.feasibility import DEFAULT_PROFILE, Profile
from plimsoll.scheduling.messages import NO_NODES, format_refused_everywhere
from plimsoll.scheduling.rules.inter_pod_affinity import INTER_POD_AFFINITY
from plimsoll.scheduling.rules.node_affinity import NODE_AFFINITY, RequiredNodes
from plimsoll.scheduling.rules.scheduling_gates import GATED_MESSAGE, SCHEDULING_GATES
from plimsoll.scheduling.rules.topology_spread import TOPOLOGY_SPREAD
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.planning.equivalence.pod_classes import ClassTable, PodClass
    from plimsoll.nodes.planning.state.node_arrays import NodeArrays
    from plimsoll.scheduling.cluster_view import ClusterView
    from plimsoll.scheduling.verdicts import Refusal
    from plimsoll.solver.problem import Flags, Ints

_NOT_NAMED = f"node(s) didn't satisfy plugin(s) [{NODE_AFFINITY}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class FitError:
    """Why no node takes a class: messages with their number of nodes, in kube-scheduler's order."""

    nodes: int
    reasons: tuple[tuple[str, int], ...]
    message: str
    """"0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."."""


class Predicates:
    """The rules over one state of a cluster."""

    def __init__(
        self,
        table: ClassTable,
        arrays: NodeArrays,
        view: ClusterView,
        *,
        refusal_cache: RefusalCache | None = None,
        profile: Profile = DEFAULT_PROFILE,
    ) -> None:
        """`arrays` must have columns for all demands: `NodeArrays.from_pod(view, resources=table.resources)`."""
        self.table = table
        self.arrays = arrays
        self._view = view
        self._profile = profile
        known = RefusalCache() if refusal_cache is None else refusal_cache
        self.node_predicates = NodePredicates(table, arrays, view, refusal_cache=known, profile=profile)
        self._terms: dict[int, AffinityTerms] = {}
        self._spreads: dict[int, tuple[SpreadCount, ...]] = {}
        self._affinity_counts: dict[int, AffinityCounts] = {}

    @property
    def requests(self) -> Ints:
        return self.node_predicates.requests

    @property
    def allowed(self) -> Flags:
        """[C, N]."""
        rows = [self.find_fitting(number) for number in range(len(self.table))]
        return np.stack(rows) if rows else np.zeros((0, len(self.arrays)), dtype=np.bool_)

    @property
    def interacts(self) -> Flags:
        """[C]: classes with terms, ports or volumes, and classes that the anti-affinity of a pending class matches."""
        found = np.array([not spread.is_simple for spread in self.table], dtype=np.bool_)
        avoiding = [self.get_affinity_terms(spread.index) for spread in self.table if spread.has_anti_affinity]
        for pod_class in self.table:
            if not found[pod_class.index]:
                found[pod_class.index] = any(
                    terms.collect_anti_affinity_keys(pod_class.pod, self._view.namespaces) for terms in avoiding
                )
        return found

    def get_refusal(self, code: int) -> Refusal:
        return self.node_predicates.refusals.get_refusal(code)

    def find_codes(self, number: int, *, free: Ints | None = None, placed: Mapping[int, Ints] | None = None) -> Ints:
        """[N]: codes. `free` and `placed` (pods by class, [N] each) are of a simulation; default: nothing placed."""
        others = placed or {}
        pods = self.table.classes[number]
        codes = self.node_predicates.find_codes(number, self.arrays.free if free is None else free, others)
        if pods.problem is not None:
            return codes
        if pods.has_spread and TOPOLOGY_SPREAD not in self._profile.disabled:
            codes = self._add_spread_codes(number, codes, others)
        if INTER_POD_AFFINITY not in self._profile.disabled and self._may_interact(pods, others):
            codes = self._add_affinity_codes(number, codes, others)
        return codes

    def find_fitting(self, number: int) -> Flags:
        return np.equal(self.find_codes(number), 0)

    def count_room(self, number: int, *, free: Ints | None = None, placed: Mapping[int, Ints] | None = None) -> Ints:
        others = placed or {}
        pods = self.table.classes[number]
        room = self.node_predicates.count_room(number, self.arrays.free if free is None else free, others)
        room = np.where(self.find_codes(number, free=free, placed=placed) == 0, room, 0)
        if pods.problem is not None:
            return room
        if pods.has_anti_affinity and INTER_POD_AFFINITY not in self._profile.disabled:
            for key in self.get_affinity_terms(number).collect_anti_affinity_keys(pods.pod, self._view.namespaces):
                room = np.where(self.arrays.get_label_ids(key) >= 0, np.minimum(room, 1), room)
        if TOPOLOGY_SPREAD not in self._profile.disabled:
            for spread_count in self.get_spreads(number):
                room = np.minimum(room, self._count_headroom(spread_count, others))
        return room

    def build_fit_error(self, number: int) -> FitError:
        """The reasons of all nodes that do not take the class."""
        pods = self.table.classes[number]
        total = len(self.arrays)
        if pods.problem is not None and pods.problem.plugin == SCHEDULING_GATES:
            return FitError(nodes=total, reasons=((GATED_MESSAGE, total),), message=GATED_MESSAGE)
        if not total:
            return FitError(nodes=0, reasons=((NO_NODES, 0),), message=NO_NODES)
        if pods.problem is not None:
            reasons = tuple((message, total) for message in pods.problem.messages)
            return FitError(nodes=total, reasons=reasons, message=format_refused_everywhere(pods.problem, total))
        counts: Counter[str] = Counter()
        kinds, numbers = np.unique(self._restrict_to_named_nodes(pods, self.find_codes(number)), return_counts=True)
        for code, nodes in zip(kinds.tolist(), numbers.tolist(), strict=True):
            if code:
                for words in (_NOT_NAMED,) if code < 0 else self.get_refusal(code).messages:
                    counts[words] += nodes
        listed = sorted(counts.items(), key=lambda item: f"{item[1]} {item[0]}")
        listed_text = ", ".join(f"{nodes} {message}" for message, nodes in listed)
        message = f"0/{total} nodes are available:{f' {listed_text}.' if listed_text else ''}"
        return FitError(nodes=total, reasons=tuple(listed), message=message)

    def _restrict_to_named_nodes(self, pods: PodClass, codes: Ints) -> Ints:
        """If the pod's affinity names nodes, kube-scheduler filters only these; the others get -1."""
        required = RequiredNodes.from_pod(pods.pod) if NODE_AFFINITY not in self._profile.disabled else None
        if required is None or required.named is None:
            return codes
        is_named = [name in required.named for name in self.arrays.names]
        return np.where(np.array(is_named, dtype=np.bool_), codes, -1)

    def get_affinity_terms(self, number: int) -> AffinityTerms:
        found = self._terms.get(number)
        if found is None:
            found = self._terms[number] = AffinityTerms.from_pods(self.table.classes[number])
        return found

    def get_spreads(self, number: int) -> tuple[SpreadCount, ...]:
        """The hard constraints of a class, counted over running pods."""
        found = self._spreads.get(number)
        if found is None:
            pods = self.table.classes[number]
            usable = pods.has_spread and pods.problem is None
            found = self._spreads[number] = (
                build_spread_counts(pods, self.arrays, self.node_predicates.static) if usable else ()
            )
        return found

    def get_affinity_counts(self, number: int) -> AffinityCounts:
        found = self._affinity_counts.get(number)
        if found is None:
            found = AffinityCounts(self.get_affinity_terms(number), self.arrays, self._view.namespaces)
            self._affinity_counts[number] = found
        return found

    def _may_interact(self, pods: PodClass, placed: Mapping[int, Ints]) -> bool:
        if pods.has_affinity or pods.has_anti_affinity or self.arrays.running_pods.anti_affinity_rows:
            return True
        return any(self.table.classes[other].has_anti_affinity for other in placed)

    def count_current_spread(self, spread: SpreadCount, placed: Mapping[int, Ints]) -> Ints:
        """[D]: the count of a constraint per domain, with the pods of a simulation."""
        counts = spread.base
        for other, rows in placed.items():
            if spread.matches(self.table.classes[other].pod):
                counts = counts + spread.count_by_domain(rows)
        return counts

    def find_affinity_conflicts(self, number: int, placed: Mapping[int, Ints]) -> tuple[Flags, Flags, Flags]:
        """[N] each: rows with unmet affinity, with pods that the class avoids, with pods that avoid it."""
        known = self.get_affinity_counts(number)
        spaces = self._view.namespaces
        pod = self.table.classes[number].pod
        others = [
            (self.table.classes[other].pod, self.get_affinity_terms(other), rows) for other, rows in placed.items()
        ]
        targets = [rows for other, _, rows in others if known.terms.is_affinity_target(other, spaces)]
        avoided = [
            (key, rows) for other, _, rows in others for key in known.terms.collect_anti_affinity_keys(other, spaces)
        ]
        avoiding = [(key, rows) for _, terms, rows in others for key in terms.collect_anti_affinity_keys(pod, spaces)]
        return (
            known.find_unmet_affinity(targets),
            known.find_conflicts(known.anti_affinity_domains, avoided),
            known.find_conflicts(known.repelling_domains, avoiding),
        )

    def _add_spread_codes(self, number: int, codes: Ints, placed: Mapping[int, Ints]) -> Ints:
        for spread_count in self.get_spreads(number):
            codes = merge_codes(codes, (spread_count.domains < 0) * self.node_predicates.refusals.intern(MISSING_LABEL))
            skewed = spread_count.find_skewed_rows(self.count_current_spread(spread_count, placed))
            codes = merge_codes(codes, skewed * self.node_predicates.refusals.intern(TOO_SKEWED))
        return codes

    def _count_headroom(self, spread: SpreadCount, placed: Mapping[int, Ints]) -> Ints:
        """[N]: pods that the row's domain can take before maxSkew is reached, if the minimum stays the same."""
        if not spread.counts_itself or not len(spread.base):
            return np.full(len(self.arrays), UNBOUNDED, dtype=np.int64)
        counts = self.count_current_spread(spread, placed)
        left = np.maximum(spread.max_skew + spread.compute_minimum(counts) - counts, 0)
        # A row that does not count itself never fills its domain.
        return np.where(spread.eligible, left[np.maximum(spread.domains, 0)], UNBOUNDED)

    def _add_affinity_codes(self, number: int, codes: Ints, placed: Mapping[int, Ints]) -> Ints:
        for refusal, rows in zip(
            (AFFINITY_UNMET, ANTI_AFFINITY_UNMET, EXISTING_ANTI_AFFINITY_UNMET),
            self.find_affinity_conflicts(number, placed),
            strict=True,
        ):
            codes = merge_codes(codes, rows * self.node_predicates.refusals.intern(refusal))
        return codes

"""Topology spread of a class as counts per domain, with the pods that a simulation has added.

There is one `SpreadCount` per hard constraint of a class. Which rows make up the domains follows from the class (its
node affinity, its tolerations, the keys of all its constraints), so counts belong to the class. Planners that place in
bulk read `domains`, `eligible` and `base`. The rule is `plimsoll.scheduling.rules.topology_spread`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.scheduling.rules.topology_spread import TOPOLOGY_SPREAD
from plimsoll.scheduling.selectors import parse_label_selector, with_label_keys
from plimsoll.scheduling.verdicts import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.nodes.planning.equivalence.pod_classes import PodClass
    from plimsoll.nodes.planning.predicates.static_predicates import StaticPredicates
    from plimsoll.nodes.planning.state.node_arrays import NodeArrays
    from plimsoll.objects.api.affinity import TopologySpreadConstraint
    from plimsoll.objects.api.pods import Pod
    from plimsoll.solver.problem import Flags, Ints

MISSING_LABEL: Final = Refusal(
    plugin=TOPOLOGY_SPREAD,
    messages=("node(s) didn't match pod topology spread constraints (missing required label)",),
)
TOO_SKEWED: Final = Refusal(plugin=TOPOLOGY_SPREAD, messages=("node(s) didn't match pod topology spread constraints",))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpreadCount:
    """One hard constraint of a class over the rows of some arrays."""

    key: str
    max_skew: int
    min_domains: int
    namespace: str
    selector: LabelSelector
    counts_itself: bool
    honors_affinity: bool
    honors_taints: bool
    domains: Ints
    """[N]: the domain of each row, -1 without the label."""
    eligible: Flags
    """[N]: eligible rows."""
    exists: Flags
    """[D]: domains with an eligible row."""
    base: Ints
    """[D]: pods counted in each domain by running pods alone."""

    def matches(self, pod: Pod) -> bool:
        """Whether the constraint counts a new pod."""
        if pod.metadata.namespace != self.namespace or self.selector.is_empty:
            return False
        return self.selector.matches(pod.metadata.labels)

    def count_by_domain(self, placed: Ints) -> Ints:
        """[D]: pods on rows ([N]) as the constraint counts them, by domain."""
        rows = self.eligible & (placed > 0)
        return np.bincount(self.domains[rows], weights=placed[rows], minlength=len(self.base)).astype(np.int64)

    def compute_minimum(self, counts: Ints) -> int:
        present = counts[self.exists]
        return int(present.min()) if len(present) and len(present) >= self.min_domains else 0

    def find_skewed_rows(self, counts: Ints) -> Flags:
        """[N]: rows where one more pod of the class breaks the constraint; rows without the label are not among them.

        A domain without eligible rows counts as empty; its rows are still checked.
        """
        by_domain = counts + int(self.counts_itself) - self.compute_minimum(counts) > self.max_skew
        found: Flags = self.domains >= 0
        if not len(by_domain):
            return found
        return found & by_domain[np.maximum(self.domains, 0)]


def build_spread_counts(pods: PodClass, arrays: NodeArrays, static: StaticPredicates) -> tuple[SpreadCount, ...]:
    """The counts of a class with valid selectors; empty without hard constraints."""
    hard = [
        spread_constraint
        for spread_constraint in pods.pod.spec.topology_spread_constraints
        if spread_constraint.when_unsatisfiable in {"", "DoNotSchedule"}
    ]
    if not hard:
        return ()
    has_keys = np.ones(len(arrays), dtype=np.bool_)
    for constraint in hard:
        has_keys &= arrays.get_label_ids(constraint.topology_key) >= 0
    codes = {"affinity": static.find_unselected(pods), "taints": static.find_untolerated(pods)}
    return tuple(
        _count_constraint(spread_constraint, pods.pod, arrays, has_keys=has_keys, codes=codes)
        for spread_constraint in hard
    )


def _count_constraint(
    wire: TopologySpreadConstraint, pod: Pod, arrays: NodeArrays, *, has_keys: Flags, codes: Mapping[str, Ints | None]
) -> SpreadCount:
    labels = pod.metadata.labels
    selector = with_label_keys(parse_label_selector(wire.label_selector), labels, match=wire.match_label_keys)
    honors_affinity = wire.node_affinity_policy in {"", "Honor"}
    honors_taints = wire.node_taints_policy == "Honor"
    eligible = has_keys.copy()
    for honored, refused in ((honors_affinity, codes["affinity"]), (honors_taints, codes["taints"])):
        if honored and refused is not None:
            eligible &= refused == 0
    domains = arrays.get_label_ids(wire.topology_key)
    known = len(arrays.get_label_values(wire.topology_key))
    here = _count_matching_pods(selector, pod.metadata.namespace, arrays)
    return SpreadCount(
        key=wire.topology_key,
        max_skew=wire.max_skew,
        min_domains=1 if wire.min_domains is None else wire.min_domains,
        namespace=pod.metadata.namespace,
        selector=selector,
        counts_itself=selector.matches(labels),
        honors_affinity=honors_affinity,
        honors_taints=honors_taints,
        domains=domains,
        eligible=eligible,
        exists=np.bincount(domains[eligible], minlength=known) > 0,
        base=np.bincount(domains[eligible], weights=here[eligible], minlength=known).astype(np.int64),
    )


def _count_matching_pods(selector: LabelSelector, namespace: str, arrays: NodeArrays) -> Ints:
    """[N]: pods of the namespace that match and stay."""
    running_pods = arrays.running_pods
    selected = running_pods.build_empty_selection()
    selected[running_pods.label_groups.find_counted(selector, namespace)] = True
    return running_pods.count_selected(selected, skip_terminating=True)

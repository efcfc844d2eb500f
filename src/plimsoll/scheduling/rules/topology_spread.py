"""Topology spread constraints with DoNotSchedule (kube-scheduler's PodTopologySpread).

In each domain (value of the topology key) the matching pods of the pod's namespace are counted; the pod fits where
one more pod keeps the domain within maxSkew of the emptiest one. Which nodes make a domain is part of the rule: they
carry the keys of all constraints, and, by default, the pod's own node affinity allows them.
ScheduleAnyway only ranks nodes and is ignored.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.scheduling.rules.node_affinity import RequiredNodes
from plimsoll.scheduling.rules.taints import Tolerations
from plimsoll.scheduling.selectors import parse_label_selector, with_label_keys
from plimsoll.scheduling.verdicts import Refusal, refuse_malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.objects.api.affinity import TopologySpreadConstraint
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, LabelsKey, NodeState, PlacedPod

TOPOLOGY_SPREAD: Final = "PodTopologySpread"

_MISSING_LABEL: Final = Refusal(
    plugin=TOPOLOGY_SPREAD,
    messages=("node(s) didn't match pod topology spread constraints (missing required label)",),
)
_WORDS: Final = ("node(s) didn't match pod topology spread constraints",)


class _Constraint:
    """One constraint with the counts of its domains."""

    def __init__(self, wire: TopologySpreadConstraint, pod: Pod, *, path: str) -> None:
        self.key = wire.topology_key
        self.max_skew = wire.max_skew
        self._min_domains = 1 if wire.min_domains is None else wire.min_domains
        self._honors_affinity = wire.node_affinity_policy in {"", "Honor"}
        self._honors_taints = wire.node_taints_policy == "Honor"
        labels = pod.metadata.labels
        selector = parse_label_selector(wire.label_selector, path=f"{path}.labelSelector")
        self._selector = with_label_keys(selector, labels, match=wire.match_label_keys)
        self.counts_itself = self._selector.matches(labels)
        self._meant: dict[LabelsKey, bool] = {}
        self.counts: dict[str, int] = {}
        self.minimum = 0
        self._domains_at: Counter[int] = Counter()
        self._has_minimum = False

    @property
    def selector(self) -> LabelSelector:
        return self._selector

    def includes(self, place: NodeState, required: RequiredNodes | None, tolerations: Tolerations) -> bool:
        if self._honors_affinity and required is not None and not required.allows(place):
            return False
        return not self._honors_taints or tolerations.find_untolerated(place.node.spec.taints) is None

    def count(self, place: NodeState, namespace: str) -> None:
        """The node's domain exists even with no pod in it; pods on their way out do not count.

        A selector that is there but empty counts no pod: kube-scheduler skips it.
        """
        matching = sum(placed.count for placed in place.pods.values() if self.selects(placed, namespace))
        domain = place.labels[self.key]
        self.counts[domain] = self.counts.get(domain, 0) + matching

    def selects(self, placed: PlacedPod, namespace: str) -> bool:
        if self._selector.is_empty or placed.leaving or placed.namespace != namespace:
            return False
        meant = self._meant.get(placed.labels_key)
        if meant is None:
            meant = self._meant[placed.labels_key] = self._selector.matches(placed.labels)
        return meant

    def close(self) -> None:
        self._domains_at = Counter(self.counts.values())
        self._has_minimum = len(self.counts) >= self._min_domains
        self.minimum = min(self.counts.values(), default=0) if self._has_minimum else 0

    def note(self, placed: PlacedPod, place: NodeState, namespace: str) -> None:
        """Count one more pod. The minimum is kept by levels, because there may be one domain per node."""
        domain = place.labels[self.key]
        if domain not in self.counts or not self.selects(placed, namespace):
            return
        before = self.counts[domain]
        self.counts[domain] = before + 1
        self._domains_at[before] -= 1
        self._domains_at[before + 1] += 1
        if self._has_minimum and before == self.minimum and not self._domains_at[before]:
            self.minimum += 1

    def note_domain(self, domain: str) -> None:
        """A node has joined; if its domain is new, it is an empty one."""
        if domain in self.counts:
            return
        self.counts[domain] = 0
        if self._has_minimum:
            self._domains_at[0] += 1
            self.minimum = 0
        else:
            self.close()

    def compute_skew(self, domain: str) -> int:
        return self.counts.get(domain, 0) + self.counts_itself - self.minimum


class Spread:
    """The hard constraints of one pod, counted over one view."""

    def __init__(self, constraints: list[_Constraint], pod: Pod, view: ClusterView) -> None:
        self._constraints = constraints
        self._namespace = pod.metadata.namespace
        self._required = RequiredNodes.from_pod(pod)
        self._tolerations = Tolerations(pod.spec.tolerations)
        self._keys = [constraint.key for constraint in constraints]
        for place in view.nodes.values():
            for constraint in self._list_counting(place):
                constraint.count(place, self._namespace)
        for constraint in constraints:
            constraint.close()

    @property
    def selectors(self) -> tuple[LabelSelector, ...]:
        """The selectors of pods that are counted."""
        return tuple(constraint.selector for constraint in self._constraints)

    def _list_counting(self, place: NodeState) -> list[_Constraint]:
        """The constraints for which a node makes a domain."""
        if not all(key in place.labels for key in self._keys):
            return []
        return [
            constraint
            for constraint in self._constraints
            if constraint.includes(place, self._required, self._tolerations)
        ]

    def concerns(self, placed: PlacedPod) -> bool:
        """Whether a pod like this one is counted at all."""
        return any(constraint.selects(placed, self._namespace) for constraint in self._constraints)

    def note(self, placed: PlacedPod, place: NodeState) -> None:
        """A pod was placed after these counts were taken (`replays`)."""
        for constraint in self._list_counting(place):
            constraint.note(placed, place, self._namespace)

    def note_node(self, place: NodeState) -> None:
        """A node has joined after these counts were taken, with no pods yet."""
        for constraint in self._list_counting(place):
            constraint.note_domain(place.labels[constraint.key])

    def refuse(self, place: NodeState) -> Refusal | None:
        labels: Mapping[str, str] = place.labels
        for constraint in self._constraints:
            domain = labels.get(constraint.key)
            if domain is None:
                return _MISSING_LABEL
            skew = constraint.compute_skew(domain)
            if skew > constraint.max_skew:
                detail = (
                    f"{constraint.key}={domain} would be {skew} above the emptiest, maxSkew is {constraint.max_skew}"
                )
                return Refusal(plugin=TOPOLOGY_SPREAD, messages=_WORDS, resolvable=True, detail=detail)
        return None


def prepare_spread(pod: Pod, view: ClusterView) -> Spread | Refusal | None:
    if not pod.spec.topology_spread_constraints:
        return None
    try:
        constraints = [
            _Constraint(wire, pod, path=f"spec.topologySpreadConstraints[{index}]")
            for index, wire in enumerate(pod.spec.topology_spread_constraints)
            if wire.when_unsatisfiable in {"", "DoNotSchedule"}
        ]
        return Spread(constraints, pod, view) if constraints else None
    except InvalidSelector as error:
        return refuse_malformed(TOPOLOGY_SPREAD, str(error))

"""The score of a single node for a pod: kube-scheduler's scores of its default profile.

Least allocated and balanced resources, PreferNoSchedule taints, preferred node affinity, each out of 100 with
kube-scheduler's weights; whole numbers throughout. Scores that kube-scheduler normalises by the best node are relative
to the reachable maximum here, so that a node's score does not depend on others and can be cached. Scores beyond the
node are in `preferences`. Images are not scored.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.core.errors import InvalidQuantity, InvalidSelector
from plimsoll.core.resources import CPU, MEMORY, ZERO
from plimsoll.objects.api.affinity import NodeSelector
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.scheduling.rules.taints import Tolerations
from plimsoll.scheduling.selectors import parse_node_selector

if TYPE_CHECKING:
    from plimsoll.core import node_selectors
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import LabelsKey, NodeState
    from plimsoll.scheduling.verdicts import Verdict

BEST: Final = 100
_TAINTS_WEIGHT: Final = 3
_AFFINITY_WEIGHT: Final = 2
# What a pod that asks for nothing is taken to use, so that such pods do not all go to one node.
_DEFAULT_REQUESTS: Final = {CPU: 100, MEMORY: 200 * 1024 * 1024}


class NodeLoad(NamedTuple):
    """Sums over the pods on one state of a node."""

    place: NodeState
    used: dict[str, int]
    """With what pods that ask for nothing are taken to use."""
    pods_by_labels: Counter[LabelsKey]
    """How many pods stay there that no selector can distinguish."""
    answers: dict[bytes, tuple[Verdict, int]]
    """What was found out about the place for pods that ask for the same: the verdict, and the score."""


class NodeEvaluation(NamedTuple):
    """The verdict of the narrow rules on one state of a node, and its score."""

    place: NodeState
    verdict: Verdict
    score: int
    siblings: int
    """Pods on the node that no selector can distinguish from this one."""


class NodeLoads:
    """Sums over the pods of nodes, computed once per state of a node for all classes."""

    def __init__(self) -> None:
        self.known: dict[str, NodeLoad] = {}
        """By the name of the node, perhaps of an older state. Callers that need thousands read it before `get_load`."""

    def get_load(self, place: NodeState) -> NodeLoad:
        known = self.known.get(place.name)
        if known is None or known.place is not place:
            pods = place.pods.values()
            used = {
                name: sum([placed.demand[name] or default for placed in pods])
                for name, default in _DEFAULT_REQUESTS.items()
            }
            pods_by_labels = Counter([placed.labels_key for placed in pods if not placed.leaving])
            known = self.known[place.name] = NodeLoad(place, used, pods_by_labels, {})
        return known

    def forget(self, name: str) -> None:
        self.known.pop(name, None)


class NodeScores:
    """Scores for the pods of one class."""

    def __init__(self, pod: Pod) -> None:
        try:
            self._demand = compute_pod_demand(pod)
        except InvalidQuantity:
            self._demand = ZERO  # nothing is scored for it: the rules refuse it everywhere
        self._tolerations = Tolerations(
            toleration for toleration in pod.spec.tolerations if toleration.effect in {"", "PreferNoSchedule"}
        )
        self._preferred = _list_preferred_terms(pod)
        self._reachable = sum(weight for weight, _ in self._preferred)
        self._requested = {name: self._demand[name] for name in _DEFAULT_REQUESTS}
        self._taken = {name: self._demand[name] or default for name, default in _DEFAULT_REQUESTS.items()}

    def compute_score(self, load: NodeLoad) -> int:
        place = load.place
        return (
            self._score_least_allocated(load)
            + self._score_balance(place)
            + _TAINTS_WEIGHT * self._score_taints(place)
            + _AFFINITY_WEIGHT * self._score_affinity(place)
        )

    def _score_least_allocated(self, load: NodeLoad) -> int:
        scores = []
        for name, taken in self._taken.items():
            offered = load.place.allocatable[name]
            if offered <= 0:
                continue
            left = offered - load.used[name] - taken
            scores.append(max(left, 0) * BEST // offered)
        return sum(scores) // len(scores) if scores else 0

    def _score_balance(self, place: NodeState) -> int:
        """How evenly cpu and memory would be used; the same everywhere for a pod that asks for neither."""
        if not any(self._requested.values()):
            return 0
        parts = []
        for name, requested in self._requested.items():
            offered = place.allocatable[name]
            if offered > 0:
                parts.append(min((place.used[name] + requested) * BEST // offered, BEST))
        return BEST - abs(parts[0] - parts[-1]) // 2 if parts else 0

    def _score_taints(self, place: NodeState) -> int:
        if not place.node.spec.taints:
            return BEST
        untolerated = sum(
            taint.effect == "PreferNoSchedule" and not self._tolerations.accept(taint)
            for taint in place.node.spec.taints
        )
        return BEST // (1 + untolerated)

    def _score_affinity(self, place: NodeState) -> int:
        if not self._reachable:
            return 0
        reached = sum(weight for weight, nodes in self._preferred if nodes.matches(place.labels, name=place.name))
        return reached * BEST // self._reachable


def _list_preferred_terms(pod: Pod) -> list[tuple[int, node_selectors.NodeSelector]]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return []
    terms = []
    for term in affinity.node_affinity.preferred_during_scheduling_ignored_during_execution:
        if term.weight <= 0 or not (term.preference.match_expressions or term.preference.match_fields):
            continue
        try:
            nodes = parse_node_selector(NodeSelector(node_selector_terms=(term.preference,)), path="preference")
        except InvalidSelector:
            continue  # an unreadable preference does not keep a pod waiting
        terms.append((term.weight, nodes))
    return terms

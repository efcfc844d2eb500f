"""Scores beyond one node: soft topology spreading, and preferred affinity between pods.

They are added to those of `scoring` for the feasible nodes. Pods of a controller without spread constraints are spread
over hosts and zones as kube-scheduler's default constraints do. Nothing here rejects a node, and unreadable terms are
skipped.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.local.scheduler.scoring.scoring import BEST
from plimsoll.scheduling.affinity_terms import AffinityTerm
from plimsoll.scheduling.selectors import parse_label_selector, with_label_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.local.scheduler.scoring.scoring import NodeEvaluation
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
_WEIGHT: Final = 2
_SOFT: Final = "ScheduleAnyway"


def choose_best_node(pod: Pod, fitting: Sequence[NodeEvaluation], view: ClusterView) -> str:
    """The node with the highest score; among equals the first by name."""
    scores = [judgement.score for judgement in fitting]
    _add(scores, _compute_spread_scores(pod, fitting, view))
    terms = _list_preferred_terms(pod)
    if terms:
        _add(scores, _compute_pod_affinity_scores(terms, fitting, view))
    highest = max(scores)
    return min(judgement.place.name for judgement, score in zip(fitting, scores, strict=True) if score == highest)


def is_spread_by_default(pod: Pod) -> bool:
    """Whether kube-scheduler's default constraints spread the pod."""
    return not pod.spec.topology_spread_constraints and any(owner.controller for owner in pod.metadata.owner_references)


def has_pod_preferences(pod: Pod) -> bool:
    """Whether the pod has spread constraints or pod affinity of its own."""
    affinity = pod.spec.affinity
    return bool(pod.spec.topology_spread_constraints) or (
        affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    )


def compute_spread_score(crowding: int, most: int) -> int:
    """What a node's crowding adds to its score, where the most crowded one has `most`."""
    return _WEIGHT * ((most - crowding) * BEST // most) if most else 0


def _add(scores: list[int], more: Sequence[int]) -> None:
    for index, score in enumerate(more):
        scores[index] += score


# ---- spreading


def _compute_spread_scores(pod: Pod, fitting: Sequence[NodeEvaluation], view: ClusterView) -> Sequence[int]:
    constraints = [
        spread_constraint
        for spread_constraint in pod.spec.topology_spread_constraints
        if spread_constraint.when_unsatisfiable == _SOFT
    ]
    crowding = [0] * len(fitting)
    for constraint in constraints:
        try:
            selector = parse_label_selector(constraint.label_selector)
        except InvalidSelector:
            continue
        selector = with_label_keys(selector, pod.metadata.labels, match=constraint.match_label_keys)
        counts = _count_matching(selector, pod.metadata.namespace, constraint.topology_key, view)
        _add_crowding(crowding, fitting, constraint.topology_key, counts)
    if is_spread_by_default(pod):
        for key in (HOSTNAME, ZONE):
            siblings: Counter[str | None] = Counter()
            for judged in fitting:
                siblings[judged.place.labels.get(key)] += judged.siblings
            _add_crowding(crowding, fitting, key, siblings)
    most = max(crowding, default=0)
    return [compute_spread_score(item, most) for item in crowding]


def _count_matching(selector: LabelSelector, namespace: str, key: str, view: ClusterView) -> Counter[str]:
    counts: Counter[str] = Counter()
    for place in view.nodes.values():
        if key in place.labels:
            counts[place.labels[key]] += sum(
                placed.namespace == namespace and not placed.leaving and selector.matches(placed.labels)
                for placed in place.pods.values()
            )
    return counts


def _add_crowding(crowding: list[int], fitting: Sequence[NodeEvaluation], key: str, counts: Mapping[Any, int]) -> None:
    """A node without the key is the last choice."""
    most = max(counts.values(), default=0) + 1
    for index, judgement in enumerate(fitting):
        domain = judgement.place.labels.get(key)
        crowding[index] += most if domain is None else counts.get(domain, 0)


# ---- inter-pod affinity


def _list_preferred_terms(pod: Pod) -> list[tuple[int, AffinityTerm]]:
    affinity = pod.spec.affinity
    if affinity is None:
        return []
    wanted = affinity.pod_affinity
    unwanted = affinity.pod_anti_affinity
    weighted = [
        *(
            (affinity_term.weight, affinity_term)
            for affinity_term in (wanted.preferred_during_scheduling_ignored_during_execution if wanted else ())
        ),
        *(
            (-affinity_term.weight, affinity_term)
            for affinity_term in (unwanted.preferred_during_scheduling_ignored_during_execution if unwanted else ())
        ),
    ]
    terms = []
    for weight, term in weighted:
        try:
            terms.append((weight, AffinityTerm(term.pod_affinity_term, pod, path="podAffinityTerm")))
        except InvalidSelector:
            continue
    return terms


def _compute_pod_affinity_scores(
    terms: Iterable[tuple[int, AffinityTerm]], fitting: Sequence[NodeEvaluation], view: ClusterView
) -> Sequence[int]:
    liking = [0] * len(fitting)
    for weight, term in terms:
        counts: Counter[str] = Counter()
        for place in view.nodes.values():
            if term.topology_key in place.labels:
                counts[place.labels[term.topology_key]] += sum(
                    term.selects(placed.namespace, placed.labels, view.namespaces.get(placed.namespace, {}))
                    for placed in place.pods.values()
                )
        for index, judgement in enumerate(fitting):
            liking[index] += weight * counts.get(judgement.place.labels.get(term.topology_key, ""), 0)
    least, most = min(liking, default=0), max(liking, default=0)
    return [_WEIGHT * ((item - least) * BEST // (most - least)) for item in liking] if most > least else ()

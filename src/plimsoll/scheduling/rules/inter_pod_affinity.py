"""Required affinity and anti-affinity between pods (kube-scheduler's InterPodAffinity).

Three checks, in this order: the pod's affinity terms match a pod in the domain; its anti-affinity terms match none; no
existing pod has an anti-affinity term that matches it. The last check binds pods without terms (anti-affinity is
symmetric), so the view knows which nodes hold such pods, and counts nothing if there are none.

A pod whose affinity no pod satisfies yet may be the first of its group: it fits wherever the topology label exists, if
it matches its own terms.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.scheduling.affinity_terms import AffinityTerm, parse_affinity_terms, parse_anti_affinity_terms
from plimsoll.scheduling.verdicts import Refusal, refuse_malformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, LabelsKey, NodeState, PlacedPod

INTER_POD_AFFINITY: Final = "InterPodAffinity"

_AFFINITY_NOT_MET: Final = Refusal(plugin=INTER_POD_AFFINITY, messages=("node(s) didn't match pod affinity rules",))
_AVOIDS: Final = Refusal(
    plugin=INTER_POD_AFFINITY, messages=("node(s) didn't match pod anti-affinity rules",), resolvable=True
)
_AVOIDED: Final = Refusal(
    plugin=INTER_POD_AFFINITY,
    messages=("node(s) didn't satisfy existing pods anti-affinity rules",),
    resolvable=True,
)

# A topology key with its value: a zone, a host.
_Domain = tuple[str, str]
_Met = tuple[bool, "list[AffinityTerm]"]


class InterPod:
    """Counts, for each domain, of the pods that matter to one incoming pod."""

    def __init__(self, pod: Pod, view: ClusterView) -> None:
        self._wanted = parse_affinity_terms(pod)
        self._unwanted = parse_anti_affinity_terms(pod)
        self._matching: Counter[_Domain] = Counter()
        self._avoids: Counter[_Domain] = Counter()
        self._avoided: Counter[_Domain] = Counter()
        self._pod = pod
        self._namespaces = view.namespaces
        self._met: dict[LabelsKey, _Met] = {}
        self._matches_itself = all(
            term.selects(pod.metadata.namespace, pod.metadata.labels, self._own) for term in self._wanted
        )
        if self._wanted or self._unwanted:
            for place in view.nodes.values():
                for placed in place.pods.values():
                    self._count_met(placed, place)
        for place in view.anti_affine_nodes:
            for placed in place.pods.values():
                # Checked here too: most pods have no terms, and a call for each of them takes longer than the rest.
                if placed.anti_affinity:
                    self._count_avoiding(placed, place)

    @property
    def _own(self) -> Mapping[str, str]:
        """The labels of the pod's namespace."""
        return self._namespaces.get(self._pod.metadata.namespace, {})

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the pod, by which others may avoid it."""
        return self._pod.metadata.labels

    @property
    def selectors(self) -> tuple[LabelSelector, ...]:
        """The selectors of pods that the pod wants or avoids."""
        return tuple(term.selector for term in (*self._wanted, *self._unwanted))

    def concerns(self, placed: PlacedPod) -> bool:
        """Whether a pod matches the affinity, is avoided, or avoids this pod."""
        is_match, unwanted = self._match(placed) if self._wanted or self._unwanted else (False, [])
        return is_match or bool(unwanted) or bool(self._find_terms_against(placed))

    def note(self, placed: PlacedPod, place: NodeState) -> None:
        """A pod was placed after these counts were taken (`replays`)."""
        if self._wanted or self._unwanted:
            self._count_met(placed, place)
        self._count_avoiding(placed, place)

    def _count_met(self, placed: PlacedPod, place: NodeState) -> None:
        is_match, unwanted = self._match(placed)
        if is_match:
            self._matching.update(_list_domains(self._wanted, place))
        if unwanted:
            self._avoids.update(_list_domains(unwanted, place))

    def _match(self, placed: PlacedPod) -> _Met:
        found = self._met.get(placed.labels_key)
        if found is None:
            found = self._met[placed.labels_key] = self._meet(placed, self._namespaces.get(placed.namespace, {}))
        return found

    def _meet(self, placed: PlacedPod, namespace_labels: Mapping[str, str]) -> _Met:
        """Whether a pod matches all affinity terms at once, and the anti-affinity terms that it matches."""
        known = (placed.namespace, placed.labels, namespace_labels)
        is_match = bool(self._wanted) and all(term.selects(*known) for term in self._wanted)
        return is_match, [term for term in self._unwanted if term.selects(*known)]

    def _count_avoiding(self, placed: PlacedPod, place: NodeState) -> None:
        if meaning_it := self._find_terms_against(placed):
            self._avoided.update(_list_domains(meaning_it, place))

    def _find_terms_against(self, placed: PlacedPod) -> list[AffinityTerm]:
        """By which a placed pod keeps this one away."""
        if not placed.anti_affinity:
            return []
        known = (self._pod.metadata.namespace, self._pod.metadata.labels, self._own)
        return [term for term in placed.anti_affinity if term.selects(*known)]

    def refuse(self, place: NodeState) -> Refusal | None:
        labels = place.labels
        if self._wanted and not self._has_affinity_match(labels):
            return _AFFINITY_NOT_MET
        if self._avoids and any(
            (term.topology_key, labels.get(term.topology_key)) in self._avoids for term in self._unwanted
        ):
            return _AVOIDS
        if self._avoided and any(item in self._avoided for item in labels.items()):
            return _AVOIDED
        return None

    def _has_affinity_match(self, labels: Mapping[str, str]) -> bool:
        if any(term.topology_key not in labels for term in self._wanted):
            return False
        if all((term.topology_key, labels[term.topology_key]) in self._matching for term in self._wanted):
            return True
        return not self._matching and self._matches_itself


def _list_domains(terms: Iterable[AffinityTerm], place: NodeState) -> list[_Domain]:
    return [(term.topology_key, place.labels[term.topology_key]) for term in terms if term.topology_key in place.labels]


def prepare_inter_pod(pod: Pod, view: ClusterView, *, always: bool = False) -> InterPod | Refusal | None:
    """`always`: prepare the rule even if no pod has terms yet, for counts that are updated later."""
    affinity = pod.spec.affinity
    has_terms = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    if not has_terms and not view.has_anti_affinity and not always:
        return None
    try:
        return InterPod(pod, view)
    except InvalidSelector as error:
        return refuse_malformed(INTER_POD_AFFINITY, str(error))

"""Compiled pod affinity and anti-affinity terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidSelector
from plimsoll.scheduling.selectors import parse_label_selector, with_label_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.objects.api.affinity import PodAffinityTerm
    from plimsoll.objects.api.pods import Pod


class AffinityTerm:
    """A compiled term of a pod: which pods it selects, and over which topology."""

    __slots__ = ("_namespace_selector", "_namespaces", "selector", "topology_key")

    def __init__(self, term: PodAffinityTerm, owner: Pod, *, path: str) -> None:
        self.topology_key = term.topology_key
        selector = parse_label_selector(term.label_selector, path=f"{path}.labelSelector")
        self.selector = with_label_keys(
            selector,
            owner.metadata.labels,
            match=term.match_label_keys,
            mismatch=term.mismatch_label_keys,
        )
        self._namespace_selector: LabelSelector = parse_label_selector(
            term.namespace_selector, path=f"{path}.namespaceSelector"
        )
        own = not term.namespaces and term.namespace_selector is None
        self._namespaces = frozenset({owner.metadata.namespace} if own else term.namespaces)

    def selects(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether the term selects a pod of this namespace with these labels."""
        if not self.selector.matches(labels):
            return False
        return namespace in self._namespaces or self._namespace_selector.matches(namespace_labels)


def parse_affinity_terms(pod: Pod) -> tuple[AffinityTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_affinity is None:
        return ()
    return _compile(affinity.pod_affinity.required_during_scheduling_ignored_during_execution, pod, "podAffinity")


def parse_anti_affinity_terms(pod: Pod) -> tuple[AffinityTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    terms = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    return _compile(terms, pod, "podAntiAffinity")


def parse_existing_anti_affinity(pod: Pod) -> tuple[AffinityTerm, ...]:
    """Anti-affinity terms of a running pod; terms that cannot be parsed are ignored."""
    try:
        return parse_anti_affinity_terms(pod)
    except InvalidSelector:
        return ()


def _compile(terms: Iterable[PodAffinityTerm], pod: Pod, name: str) -> tuple[AffinityTerm, ...]:
    path = f"spec.affinity.{name}.requiredDuringSchedulingIgnoredDuringExecution"
    return tuple(AffinityTerm(term, pod, path=f"{path}[{index}]") for index, term in enumerate(terms))

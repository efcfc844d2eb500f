"""Which labels, and whether namespaces, can make a difference between two pods that wait.

A label nobody selects by tells nobody apart: pods of two Deployments merge into one class unless some term can see
`app`. In play are the terms and constraints of the pods that wait (each may come to meet the others) and the required
anti-affinity of pods that run (it binds newcomers without terms, too). A term sees the keys its selector names,
whatever the operator, and the keys of matchLabelKeys and mismatchLabelKeys, nothing else; so classes are split by the
values of just these keys. Used by `classes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.scheduling_keys import term_label_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.planning.scheduling_keys import SpecForm
    from plimsoll.objects.pods import Pod
    from plimsoll.scheduling.view import ClusterView


@dataclass(frozen=True, slots=True)
class SelectorsInPlay:
    """`namespaces` is false where no term is in play at all: every term means pods of some namespaces only."""

    label_keys: frozenset[str] = frozenset()
    namespaces: bool = False

    @classmethod
    def of_forms(cls, forms: Iterable[SpecForm]) -> SelectorsInPlay:
        meeting = [one for one in forms if one.meets_others]
        return cls(frozenset().union(*(one.label_keys for one in meeting)), bool(meeting))

    @classmethod
    def of_view(cls, view: ClusterView) -> SelectorsInPlay:
        """Of the pods that run. `Neighbours` knows the same without looking at every pod again."""
        return cls.of_avoiding(
            placed.pod for place in view.anti_affine_nodes for placed in place.pods.values() if placed.anti_affinity
        )

    @classmethod
    def of_avoiding(cls, pods: Iterable[Pod]) -> SelectorsInPlay:
        """Of pods that run and have required anti-affinity."""
        keys: set[str] = set()
        seen = False
        for pod in pods:
            affinity = pod.spec.affinity
            if affinity is not None and affinity.pod_anti_affinity is not None:
                for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution:
                    keys |= term_label_keys(term)
                    seen = True
        return cls(frozenset(keys), seen)

    def __or__(self, other: SelectorsInPlay) -> SelectorsInPlay:
        return SelectorsInPlay(self.label_keys | other.label_keys, self.namespaces or other.namespaces)

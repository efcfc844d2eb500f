"""Inter-pod affinity and anti-affinity of a class as counts per topology domain.

`AffinityCounts` holds, for one class, where the targets of its affinity run, where pods run that it avoids, and where
pods run that avoid it (which also binds classes without terms). The rule itself is
`plimsoll.scheduling.rules.inter_pod_affinity`; this module only counts the pods that its compiled terms match.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.scheduling.affinity_terms import parse_affinity_terms, parse_anti_affinity_terms
from plimsoll.scheduling.rules.inter_pod_affinity import INTER_POD_AFFINITY
from plimsoll.scheduling.verdicts import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.equivalence.pod_classes import PodClass
    from plimsoll.nodes.planning.state.node_arrays import NodeArrays
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.affinity_terms import AffinityTerm
    from plimsoll.solver.problem import Flags, Ints

AFFINITY_UNMET: Final = Refusal(plugin=INTER_POD_AFFINITY, messages=("node(s) didn't match pod affinity rules",))
ANTI_AFFINITY_UNMET: Final = Refusal(
    plugin=INTER_POD_AFFINITY, messages=("node(s) didn't match pod anti-affinity rules",)
)
EXISTING_ANTI_AFFINITY_UNMET: Final = Refusal(
    plugin=INTER_POD_AFFINITY, messages=("node(s) didn't satisfy existing pods anti-affinity rules",)
)


@dataclass(frozen=True, slots=True, eq=False)
class AffinityTerms:
    """Compiled terms of a class; `anti` binds both ways."""

    pod: Pod
    affinity: tuple[AffinityTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]

    @classmethod
    def from_pods(cls, pods: PodClass) -> AffinityTerms:
        """The terms of a class. A class with unreadable terms has a `problem` and is placed nowhere, so it has none."""
        if pods.problem is not None:
            return cls(pods.pod, (), ())
        return cls(pods.pod, parse_affinity_terms(pods.pod), parse_anti_affinity_terms(pods.pod))

    def is_affinity_target(self, other: Pod, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether `other` is an affinity target: it matches all terms."""
        return bool(self.affinity) and all(matches_term(term, other, namespaces) for term in self.affinity)

    def collect_anti_affinity_keys(self, other: Pod, namespaces: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
        """Topology keys over which it must be apart from `other`."""
        return tuple(term.topology_key for term in self.anti_affinity if matches_term(term, other, namespaces))


def find_matching_rows(term: AffinityTerm, arrays: NodeArrays, namespaces: Mapping[str, Mapping[str, str]]) -> Ints:
    """Rows with a running pod that matches the term."""
    running_pods = arrays.running_pods
    selected = running_pods.build_empty_selection()
    selected[running_pods.label_groups.find_selected(term, namespaces)] = True
    return np.flatnonzero(running_pods.count_selected(selected, skip_terminating=False))


def matches_term(term: AffinityTerm, pod: Pod, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    meta = pod.metadata
    return term.selects(meta.namespace, meta.labels, namespaces.get(meta.namespace, {}))


class AffinityCounts:
    """The affinity targets and anti-affinity conflicts of a class among running pods. Rows are those of `arrays`."""

    def __init__(self, terms: AffinityTerms, arrays: NodeArrays, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self.terms = terms
        self._arrays = arrays
        self.matches_itself = all(matches_term(term, terms.pod, namespaces) for term in terms.affinity)
        self.affinity_keys = tuple(dict.fromkeys(term.topology_key for term in terms.affinity))
        self.targets: Ints = self._count_targets(namespaces)
        """[N]: affinity targets on each row."""
        self.anti_affinity_domains: dict[str, Flags] = {}
        """By topology key [D]: domains with a pod that this class avoids. `repelling_domains`: with one that avoids it.
        """
        self.repelling_domains: dict[str, Flags] = {}
        for term in terms.anti_affinity:
            rows = find_matching_rows(term, arrays, namespaces)
            _set_flag(self.anti_affinity_domains, term.topology_key, rows, arrays)
        for number, rows in arrays.running_pods.anti_affinity_rows.items():
            for term in arrays.running_pods.label_groups.anti_affinity_groups[number].terms:
                if matches_term(term, terms.pod, namespaces):
                    _set_flag(self.repelling_domains, term.topology_key, rows, arrays)

    def _count_targets(self, namespaces: Mapping[str, Mapping[str, str]]) -> Ints:
        running_pods = self._arrays.running_pods
        selected = running_pods.build_empty_selection()
        if self.terms.affinity:
            for number, label_group in enumerate(running_pods.label_groups.label_groups):
                own = namespaces.get(label_group.namespace, {})
                selected[number] = all(
                    term.selects(label_group.namespace, label_group.labels, own) for term in self.terms.affinity
                )
        return running_pods.count_selected(selected, skip_terminating=False)

    def find_unmet_affinity(self, more: Iterable[Ints] = ()) -> Flags:
        """[N]: rows where required affinity is not met; `more` are [N] targets that a trial has placed."""
        if not self.affinity_keys:
            return np.zeros(len(self._arrays), dtype=np.bool_)
        targets = self.targets + sum(more, start=np.zeros_like(self.targets))
        met: Flags = np.ones(len(self._arrays), dtype=np.bool_)
        labelled: Flags = np.ones(len(self._arrays), dtype=np.bool_)
        any_target = False
        for key in self.affinity_keys:
            domains = self._arrays.get_label_ids(key)
            has_label = domains >= 0
            labelled &= has_label
            with_targets = np.zeros(len(self._arrays.get_label_values(key)) + 1, dtype=np.bool_)
            with_targets[domains[has_label & (targets > 0)]] = True
            any_target = any_target or bool(with_targets[:-1].any())
            met &= with_targets[domains] & has_label
        if not any_target and self.matches_itself:
            return ~labelled
        return ~(met & labelled)

    def find_conflicts(self, base: Mapping[str, Flags], more: Sequence[tuple[str, Ints]] = ()) -> Flags:
        """[N]: rows in a domain that is flagged, or that holds one of `more` (topology key, rows [N] of pods)."""
        found: Flags = np.zeros(len(self._arrays), dtype=np.bool_)
        flagged = {key: flags.copy() for key, flags in base.items()}
        for key, placed in more:
            _set_flag(flagged, key, np.flatnonzero(placed), self._arrays)
        for key, flags in flagged.items():
            domains = self._arrays.get_label_ids(key)
            found |= (domains >= 0) & flags[domains]
        return found


def _set_flag(flagged: dict[str, Flags], key: str, rows: Ints, arrays: NodeArrays) -> None:
    """The last entry stands for "no label" and stays false."""
    domains = arrays.get_label_ids(key)[rows]
    domains = domains[domains >= 0]
    if len(domains):
        flags = flagged.setdefault(key, np.zeros(len(arrays.get_label_values(key)) + 1, dtype=np.bool_))
        flags[domains] = True

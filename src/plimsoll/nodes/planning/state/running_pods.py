"""The running pods of a cluster, counted by label group and row.

A label group is the set of pods that no selector can distinguish: same namespace, same labels. A selector is evaluated
once per label group, and counting its matches over nodes is arithmetic on flat arrays, sorted by label group: it costs
by the pods that are counted. Nodes on which nothing changed keep their `NodeContents`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from plimsoll.nodes.planning.equivalence.pod_classes import VisibleLabels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.affinity_terms import AffinityTerm
    from plimsoll.scheduling.cluster_view import LabelsKey, NodeState, PlacedPod
    from plimsoll.scheduling.host_ports import HostPort
    from plimsoll.solver.problem import Flags, Ints


_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True)
class LabelGroup:
    """Pods with the same namespace and labels, as a selector sees them."""

    namespace: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AntiAffinityGroup:
    """Running pods of one label group with the same required anti-affinity."""

    pod: Pod
    terms: tuple[AffinityTerm, ...]


class LabelGroups:
    """Numbers of label groups, assigned once: arrays of several loop iterations share them."""

    def __init__(self) -> None:
        self.label_groups: list[LabelGroup] = []
        self._by_namespace: dict[str, list[int]] = {}
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self.anti_affinity_groups: list[AntiAffinityGroup] = []
        self.numbers: dict[LabelsKey, int] = {}
        self._anti_affinity_numbers: dict[tuple[int, bytes], int] = {}

    def assign_number(self, placed: PlacedPod) -> int:
        number = self.numbers.get(placed.labels_key)
        if number is None:
            number = self.numbers[placed.labels_key] = len(self.label_groups)
            self.label_groups.append(LabelGroup(placed.namespace, placed.labels))
            self._by_namespace.setdefault(placed.namespace, []).append(number)
            for item in placed.labels.items():
                self._by_label.setdefault(item, []).append(number)
        return number

    def find_candidates(self, selector: LabelSelector, namespace: str | None = None) -> Iterable[int]:
        """Kinds that the selector might mean, all that it does mean among them: the shortest list there is."""
        lists: list[Sequence[int]] = [range(len(self.label_groups))]
        if namespace is not None:
            lists.append(self._by_namespace.get(namespace, ()))
        for requirement in selector.requirements:
            value = selector.get_exact_value(requirement.key)
            if value is not None:
                lists.append(self._by_label.get((requirement.key, value), ()))
        return min(lists, key=len)

    def find_selected(self, term: AffinityTerm, namespaces: Mapping[str, Mapping[str, str]]) -> list[int]:
        """The label groups that a term selects."""
        groups = self.label_groups
        return [
            number
            for number in self.find_candidates(term.selector)
            if term.selects(
                groups[number].namespace, groups[number].labels, namespaces.get(groups[number].namespace, {})
            )
        ]

    def find_counted(self, selector: LabelSelector, namespace: str) -> list[int]:
        """The label groups of a namespace that a spread constraint counts. An empty selector counts no pods."""
        if selector.is_empty:
            return []
        groups = self.label_groups
        return [
            number
            for number in self.find_candidates(selector, namespace)
            if groups[number].namespace == namespace and selector.matches(groups[number].labels)
        ]

    def assign_anti_affinity_number(self, placed: PlacedPod) -> int:
        affinity = placed.pod.spec.affinity
        written = _ENCODER.encode(None if affinity is None else affinity.pod_anti_affinity)
        key = (self.assign_number(placed), written)
        number = self._anti_affinity_numbers.get(key)
        if number is None:
            number = self._anti_affinity_numbers[key] = len(self.anti_affinity_groups)
            self.anti_affinity_groups.append(AntiAffinityGroup(placed.pod, placed.anti_affinity))
        return number


class NodeContents:
    """The pods of one node. Label groups are counted when they are first needed."""

    __slots__ = ("_label_counts", "_place", "anti_affinity_groups", "claims", "ports")

    def __init__(self, place: NodeState, kinds: LabelGroups) -> None:
        self._place = place
        self._label_counts: LabelCounts | None = None
        special = [
            placed_pod
            for placed_pod in place.pods.values()
            if placed_pod.anti_affinity or placed_pod.ports or placed_pod.claims
        ]
        avoiding = dict.fromkeys(
            kinds.assign_anti_affinity_number(placed_pod) for placed_pod in special if placed_pod.anti_affinity
        )
        self.anti_affinity_groups: tuple[int, ...] = tuple(avoiding)
        self.ports: frozenset[HostPort] = frozenset(port for placed_pod in special for port in placed_pod.ports)
        self.claims: tuple[tuple[str, tuple[str, ...]], ...] = tuple(
            (placed_pod.namespace, placed_pod.claims) for placed_pod in special if placed_pod.claims
        )
        """Namespace and claim names, of each pod that has claims."""

    def count_labels(self, kinds: LabelGroups) -> LabelCounts:
        if self._label_counts is None:
            self._label_counts = _count_labels(self._place.pods.values(), kinds)
        return self._label_counts


class LabelCounts(NamedTuple):
    """The label groups on one node, with the number of pods of each."""

    groups: Ints
    total: Ints
    not_terminating: Ints
    """Without terminating pods."""


def _count_labels(pods: Iterable[PlacedPod], kinds: LabelGroups) -> LabelCounts:
    total: dict[int, int] = {}
    leaving: dict[int, int] = {}
    known = kinds.numbers
    for placed in pods:
        number = known.get(placed.labels_key, -1)
        if number < 0:
            number = kinds.assign_number(placed)
        total[number] = total.get(number, 0) + placed.count
        if placed.leaving:
            leaving[number] = leaving.get(number, 0) + placed.count
    counts = np.array([*total.values()], dtype=np.int64)
    gone = np.array([leaving.get(number, 0) for number in total], dtype=np.int64) if leaving else 0
    return LabelCounts(np.array([*total], dtype=np.int64), counts, counts - gone)


class PodEntries(NamedTuple):
    """Pods of a label group on a row, one entry each, sorted by label group and then by row."""

    row: Ints
    label_group: Ints
    total: Ints
    not_terminating: Ints


class RunningPods:
    """The running pods of all rows; flat arrays over them are built when first needed."""

    def __init__(self, kinds: LabelGroups, nodes: Sequence[NodeContents]) -> None:
        self.label_groups = kinds
        self.nodes = tuple(nodes)
        self._flat: PodEntries | None = None
        self._starts: Ints | None = None
        """[label groups + 1]: where the entries of each label group begin."""
        self._anti_affinity_rows: dict[int, Ints] | None = None

    def count_selected(self, selected: Flags, *, skip_terminating: bool) -> Ints:
        """[N]: pods on each row whose label group is selected."""
        entries = self.find_entries(np.flatnonzero(selected).tolist())
        weights = entries.not_terminating if skip_terminating else entries.total
        return np.bincount(entries.row, weights=weights, minlength=len(self.nodes)).astype(np.int64)

    def find_entries(self, numbers: Iterable[int]) -> PodEntries:
        """The entries of some label groups: it costs by what they hold, not by all pods."""
        flat = self._build_entries()
        if self._starts is None or len(self._starts) <= len(self.label_groups.label_groups):
            groups = np.arange(len(self.label_groups.label_groups) + 1, dtype=np.int64)
            self._starts = np.searchsorted(flat.label_group, groups).astype(np.int64)
        starts = self._starts
        parts = [slice(starts[number], starts[number + 1]) for number in numbers]
        if len(parts) == 1:
            return PodEntries(*(column[parts[0]] for column in flat))
        empty = [np.zeros(0, dtype=np.int64)]
        return PodEntries(*(np.concatenate(empty + [column[part] for part in parts]) for column in flat))

    @property
    def anti_affinity_rows(self) -> dict[int, Ints]:
        """Rows that hold pods of each kind with anti-affinity."""
        if self._anti_affinity_rows is None:
            rows: dict[int, list[int]] = {}
            for row, contents in enumerate(self.nodes):
                for number in contents.anti_affinity_groups:
                    rows.setdefault(number, []).append(row)
            self._anti_affinity_rows = {number: np.array(rows[number], dtype=np.int64) for number in sorted(rows)}
        return self._anti_affinity_rows

    def collect_visible_labels(self) -> VisibleLabels:
        """What the anti-affinity of running pods can see."""
        return VisibleLabels.from_anti_affinity(
            self.label_groups.anti_affinity_groups[number].pod for number in self.anti_affinity_rows
        )

    def build_empty_selection(self) -> Flags:
        """[label groups]: none selected. Numbers all label groups on the rows first."""
        self._build_entries()
        return np.zeros(len(self.label_groups.label_groups), dtype=np.bool_)

    def _build_entries(self) -> PodEntries:
        if self._flat is None:
            found = [contents.count_labels(self.label_groups) for contents in self.nodes]
            sizes = np.array([len(counts.groups) for counts in found], dtype=np.int64)
            empty = [np.zeros(0, dtype=np.int64)]
            groups = np.concatenate(empty + [counts.groups for counts in found])
            order = np.argsort(groups, kind="stable")
            self._flat = PodEntries(
                np.repeat(np.arange(len(found), dtype=np.int64), sizes)[order],
                groups[order],
                np.concatenate(empty + [counts.total for counts in found])[order],
                np.concatenate(empty + [counts.not_terminating for counts in found])[order],
            )
        return self._flat

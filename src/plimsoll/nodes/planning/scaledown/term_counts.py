"""Rules of running pods about each other as counts per (term, domain): what a simulation of removals starts from.

A counter counts some label groups (or the owners of some anti-affinity terms) over the domains of one topology key.
Classes whose terms select the same pods share a counter, whatever their sizes. `TermCounts` belongs to one state of the
cluster; it is kept from one loop iteration to the next while no pod and no node has changed, and a counter costs by the
pods it counts. The rules themselves are `plimsoll.scheduling.rules`; tests compare every verdict with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.planning.predicates.affinity_counts import matches_term
from plimsoll.scheduling.cluster_view import PlacedPod

if TYPE_CHECKING:
    from plimsoll.nodes.planning.equivalence.pod_classes import ClassTable
    from plimsoll.nodes.planning.predicates.predicates import Predicates
    from plimsoll.nodes.planning.predicates.spread_counts import SpreadCount
    from plimsoll.nodes.planning.state.node_arrays import NodeArrays
    from plimsoll.nodes.planning.state.running_pods import LabelGroups
    from plimsoll.solver.problem import Flags, Ints


Namespaces = Mapping[str, Mapping[str, str]]

_NONE: Final = np.zeros(0, dtype=np.int64)


class Counted(Enum):
    """What a counter counts."""

    PODS = "pods"
    STAYING_PODS = "pods that are not terminating"
    OWNERS = "owners of anti-affinity terms"


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterKey:
    """Counters with equal keys are one."""

    counted: Counted
    numbers: frozenset[int]
    """Label groups, or kinds of anti-affinity."""
    topology_key: str
    eligible: bytes = b""
    """The rows whose pods count, as flags; empty: all rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Topology:
    """The domains of a topology key."""

    ids: Ints
    """[N]: the domain of each row, -1 without the label."""
    domains: list[int]
    """The same as a list."""
    count: int
    is_per_node: bool
    """Whether no two rows share a domain."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EligibleDomains:
    """The domains that spread constraints compare: those with an eligible row."""

    topology: Topology
    eligible: list[bool]
    nodes: list[int]
    """Eligible rows by domain."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counter:
    """Pods or owners by domain while nothing has moved."""

    key: CounterKey
    topology: Topology
    eligible: list[bool] | None
    rows: Ints
    """Rows with something counted; `amounts`: how much."""
    amounts: Ints
    base: list[int]
    """By domain."""
    levels: dict[int, int]
    """How many domains have each count; without empty domains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRule:
    """A hard spread constraint of a class."""

    counter: int
    domains: int
    """The number of its `EligibleDomains`."""
    max_skew: int
    min_domains: int
    counts_itself: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassRules:
    """What a class requires of the counters, by their numbers, and how it is counted itself."""

    label_group: int
    owner: int
    """The number of its own anti-affinity; -1 if it has none."""
    spreads: tuple[SpreadRule, ...] = ()
    avoided: tuple[int, ...] = ()
    """Counters that must be 0 in the domain."""
    wanted: tuple[int, ...] = ()
    """Counters that must not be 0 in the domain."""
    matches_itself: bool = False
    labelled: Flags | None = None
    """[N]: rows with every label that spread and affinity need; None: nothing is needed."""

    @property
    def counters(self) -> tuple[int, ...]:
        return (*(rule.counter for rule in self.spreads), *self.avoided, *self.wanted)


class TermCountsCache:
    """The counts of the latest state, as long as it stays the same."""

    def __init__(self) -> None:
        self._latest: TermCounts | None = None
        self._identities: ClassIdentities | None = None
        self._owners: OwnerIndex | None = None

    def update(self, table: ClassTable, arrays: NodeArrays, namespaces: Namespaces) -> TermCounts:
        latest = self._latest
        if (
            latest is None
            or latest.table is not table
            or latest.arrays is not arrays
            or latest.namespaces != namespaces
        ):
            identities = self._identify_classes(table, arrays)
            if self._owners is None or not self._owners.is_about(identities, arrays, namespaces):
                self._owners = OwnerIndex(identities, arrays, namespaces)
            self._latest = latest = TermCounts(table, arrays, namespaces, self._owners)
        return latest

    def _identify_classes(self, table: ClassTable, arrays: NodeArrays) -> ClassIdentities:
        groups = arrays.running_pods.label_groups
        known = self._identities
        if known is None or known.table is not table or known.groups is not groups:
            known = self._identities = ClassIdentities(table, groups)
        return known


class ClassIdentities:
    """How the pods of each class are counted: a label group, and a kind of anti-affinity or -1.

    The pod that represents a class may be gone; both are numbered even if no running pod has them.
    """

    def __init__(self, table: ClassTable, groups: LabelGroups) -> None:
        self.table = table
        self.groups = groups
        self.label_groups: list[int] = []
        self.owners: list[int] = []
        for pods in table.classes:
            meta = pods.pod.metadata
            number = groups.numbers.get((meta.namespace, frozenset(meta.labels.items())), -1)
            placed = PlacedPod(pods.pod) if number < 0 or pods.has_anti_affinity else None
            self.label_groups.append(number if placed is None else groups.assign_number(placed))
            is_owner = placed is not None and bool(placed.anti_affinity)
            self.owners.append(groups.assign_anti_affinity_number(placed) if placed and is_owner else -1)


class OwnerIndex:
    """Which anti-affinity terms, of running pods and of classes, select which label groups."""

    def __init__(self, identities: ClassIdentities, arrays: NodeArrays, namespaces: Namespaces) -> None:
        running_pods = arrays.running_pods
        running_pods.build_empty_selection()
        groups = running_pods.label_groups
        self.identities = identities
        self._inputs = _read_inputs(arrays)
        self._namespaces = dict(namespaces)
        self._by_group: dict[int, list[tuple[int, str]]] = {}
        owners = (owner for owner in identities.owners if owner >= 0)
        for number in dict.fromkeys((*running_pods.anti_affinity_rows, *owners)):
            for term in groups.anti_affinity_groups[number].terms:
                for label_group in groups.find_selected(term, namespaces):
                    self._by_group.setdefault(label_group, []).append((number, term.topology_key))

    def is_about(self, identities: ClassIdentities, arrays: NodeArrays, namespaces: Namespaces) -> bool:
        return self.identities is identities and self._inputs == _read_inputs(arrays) and self._namespaces == namespaces

    def list_owners(self, label_group: int) -> dict[str, set[int]]:
        """By topology key: the kinds of anti-affinity that keep the label group away."""
        found: dict[str, set[int]] = {}
        for number, key in self._by_group.get(label_group, ()):
            found.setdefault(key, set()).add(number)
        return found


def _read_inputs(arrays: NodeArrays) -> tuple[int, tuple[int, ...]]:
    arrays.running_pods.build_empty_selection()
    return len(arrays.running_pods.label_groups.label_groups), tuple(arrays.running_pods.anti_affinity_rows)


class TermCounts:
    """The counters of one state of a cluster, and what each class requires of them; built when first needed."""

    def __init__(
        self,
        table: ClassTable,
        arrays: NodeArrays,
        namespaces: Namespaces,
        owners: OwnerIndex,
    ) -> None:
        self.table = table
        self.arrays = arrays
        self.namespaces = dict(namespaces)
        self.counters: list[Counter] = []
        self.domains: list[EligibleDomains] = []
        self._owners = owners
        self._counter_numbers: dict[CounterKey, int] = {}
        self._domain_numbers: dict[tuple[str, bytes], int] = {}
        self._topologies: dict[str, Topology] = {}
        self._rules: dict[int, ClassRules] = {}

    def get_rules(self, predicates: Predicates, number: int) -> ClassRules:
        found = self._rules.get(number)
        if found is None:
            found = self._rules[number] = self._build_rules(predicates, number)
        return found

    def get_topology(self, key: str) -> Topology:
        found = self._topologies.get(key)
        if found is None:
            ids = self.arrays.get_label_ids(key)
            count = len(self.arrays.get_label_values(key))
            found = self._topologies[key] = Topology(
                ids=ids, domains=ids.tolist(), count=count, is_per_node=count == int((ids >= 0).sum())
            )
        return found

    def split_by_domains(self, rules: ClassRules) -> tuple[ClassRules, ClassRules]:
        """The rules over domains of several nodes, and those over domains of one node each."""
        per_node = {number for number in rules.counters if self.counters[number].topology.is_per_node}
        wanted = {number for number in rules.wanted if number in per_node}
        # Affinity is met by all of its domains together or by none yet, so it is not divided.
        return _select_rules(rules, per_node, has_wanted=not wanted, inside=False), _select_rules(
            rules, per_node, has_wanted=bool(wanted), inside=True
        )

    def list_topologies(self, rules: ClassRules) -> list[Topology]:
        keys = {self.counters[number].key.topology_key: None for number in rules.counters}
        return [self._topologies[key] for key in keys]

    def _build_rules(self, predicates: Predicates, number: int) -> ClassRules:
        pods = self.table.classes[number]
        label_group = self._owners.identities.label_groups[number]
        terms = predicates.get_affinity_terms(number)
        wanted_keys = tuple(dict.fromkeys(term.topology_key for term in terms.affinity))
        spreads = predicates.get_spreads(number)
        return ClassRules(
            label_group=label_group,
            owner=self._owners.identities.owners[number],
            spreads=tuple(self._build_spread_rule(spread) for spread in spreads),
            avoided=(*self._count_avoided(predicates, number), *self._count_owners(label_group)),
            wanted=self._count_wanted(predicates, number, wanted_keys),
            matches_itself=all(matches_term(term, pods.pod, self.namespaces) for term in terms.affinity),
            labelled=self._find_labelled((*wanted_keys, *(spread.key for spread in spreads))),
        )

    def _find_labelled(self, keys: tuple[str, ...]) -> Flags | None:
        labelled: Flags | None = None
        for key in dict.fromkeys(keys):
            has_label = self.get_topology(key).ids >= 0
            labelled = has_label if labelled is None else labelled & has_label
        return labelled

    def _build_spread_rule(self, spread: SpreadCount) -> SpreadRule:
        groups = self.arrays.running_pods.label_groups
        eligible = spread.eligible.tobytes()
        numbers = frozenset(groups.find_counted(spread.selector, spread.namespace))
        key = CounterKey(counted=Counted.STAYING_PODS, numbers=numbers, topology_key=spread.key, eligible=eligible)
        return SpreadRule(
            counter=self._get_counter(key),
            domains=self._get_domains(spread.key, spread.eligible),
            max_skew=spread.max_skew,
            min_domains=spread.min_domains,
            counts_itself=spread.counts_itself,
        )

    def _count_avoided(self, predicates: Predicates, number: int) -> list[int]:
        """Pods that the terms of the class select: one counter per topology key."""
        groups = self.arrays.running_pods.label_groups
        selected: dict[str, set[int]] = {}
        for term in predicates.get_affinity_terms(number).anti_affinity:
            selected.setdefault(term.topology_key, set()).update(groups.find_selected(term, self.namespaces))
        return [
            self._get_counter(CounterKey(counted=Counted.PODS, numbers=frozenset(numbers), topology_key=key))
            for key, numbers in selected.items()
        ]

    def _count_owners(self, label_group: int) -> list[int]:
        """Owners of terms that select the class: one counter per topology key."""
        return [
            self._get_counter(CounterKey(counted=Counted.OWNERS, numbers=frozenset(numbers), topology_key=key))
            for key, numbers in self._owners.list_owners(label_group).items()
        ]

    def _count_wanted(self, predicates: Predicates, number: int, keys: tuple[str, ...]) -> tuple[int, ...]:
        """Pods that all affinity terms of the class select: one counter per topology key."""
        if not keys:
            return ()
        groups = self.arrays.running_pods.label_groups
        terms = predicates.get_affinity_terms(number).affinity
        selected = [set(groups.find_selected(term, self.namespaces)) for term in terms]
        numbers = frozenset(set.intersection(*selected))
        return tuple(
            self._get_counter(CounterKey(counted=Counted.PODS, numbers=numbers, topology_key=key)) for key in keys
        )

    def _get_domains(self, key: str, eligible: Flags) -> int:
        known = (key, eligible.tobytes())
        if known not in self._domain_numbers:
            topology = self.get_topology(key)
            nodes = np.bincount(topology.ids[eligible], minlength=topology.count)
            self._domain_numbers[known] = len(self.domains)
            self.domains.append(EligibleDomains(topology=topology, eligible=eligible.tolist(), nodes=nodes.tolist()))
        return self._domain_numbers[known]

    def _get_counter(self, key: CounterKey) -> int:
        number = self._counter_numbers.get(key)
        if number is None:
            number = self._counter_numbers[key] = len(self.counters)
            self.counters.append(self._build_counter(key))
        return number

    def _build_counter(self, key: CounterKey) -> Counter:
        topology = self.get_topology(key.topology_key)
        eligible = np.frombuffer(key.eligible, dtype=np.bool_) if key.eligible else None
        rows, amounts = self._list_counted(key)
        domains = topology.ids[rows]
        counts = domains >= 0 if eligible is None else eligible[rows]
        base = np.bincount(domains[counts], weights=amounts[counts], minlength=topology.count).astype(np.int64)
        levels, many = np.unique(base[base > 0], return_counts=True)
        return Counter(
            key=key,
            topology=topology,
            eligible=None if eligible is None else eligible.tolist(),
            rows=rows,
            amounts=amounts,
            base=base.tolist(),
            levels=dict(zip(levels.tolist(), many.tolist(), strict=True)),
        )

    def _list_counted(self, key: CounterKey) -> tuple[Ints, Ints]:
        """Rows and amounts; a row may be listed several times."""
        running_pods = self.arrays.running_pods
        numbers = sorted(key.numbers)
        if key.counted is Counted.OWNERS:
            known = running_pods.anti_affinity_rows
            listed = np.concatenate([_NONE, *(known.get(number, _NONE) for number in numbers)])
            return listed, np.ones(len(listed), dtype=np.int64)
        entries = running_pods.find_entries(numbers)
        return entries.row, entries.total if key.counted is Counted.PODS else entries.not_terminating


def _select_rules(rules: ClassRules, per_node: set[int], *, has_wanted: bool, inside: bool) -> ClassRules:
    return replace(
        rules,
        spreads=tuple(rule for rule in rules.spreads if (rule.counter in per_node) is inside),
        avoided=tuple(number for number in rules.avoided if (number in per_node) is inside),
        wanted=rules.wanted if has_wanted else (),
        labelled=None,
    )

"""First fit over classes with all rules between pods: the floor that no other plan may fall below.

As Karpenter does it: the largest pods first, on any node that takes them, else on a new node, whose machine type stays
open among all that still hold its pods. At the end each new node becomes the cheapest of these. The counts of
`NodeCounts` are kept for every pod, so that each pod holds in the order in which it was placed.

`fill_existing` places on existing nodes alone, what they take.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement, merge_pods
from plimsoll.nodes.planning.topology.groups import TopologyGroups
from plimsoll.nodes.planning.topology.node_counts import NodeCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Flags, Floats, Ints


class GreedyOrder(StrEnum):
    """Which pods come first; of equal ones the largest."""

    LARGEST = "largest"
    AFFINITY = "affinity"
    """Pods that require others."""
    DOMAINS = "domains"
    """Pods that are spread over zones."""
    SMALLEST = "smallest"


@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyStrategy:
    """How nodes are opened, and for which pods first."""

    height: int = 1
    """Pods spread over nodes get so many times fewer nodes, which they fill evenly."""
    order: GreedyOrder = GreedyOrder.LARGEST


def place_greedily(
    problem: ScaleUpProblem,
    relations: PodRelations,
    demand: Mapping[int, int],
    usable: Flags,
    strategy: GreedyStrategy | None = None,
) -> Placement | None:
    """A placement on existing and new nodes; None if the rules are of other kinds, or limits do not suffice."""
    counts = count_nodes(problem, relations, demand, usable)
    if counts is None:
        return None
    families = _find_families(problem, counts, usable)
    chosen = strategy or GreedyStrategy()
    _Greedy(problem=problem, counts=counts, families=families, strategy=chosen).place(demand)
    return _build_placement(problem, counts, families)


def fill_existing(
    problem: ScaleUpProblem, relations: PodRelations, demand: Mapping[int, int], usable: Flags
) -> Placement | None:
    """What existing nodes take; None if the rules are of other kinds."""
    counts = count_nodes(problem, relations, demand, usable)
    if counts is None:
        return None
    for number in _sort_largest_first(problem, demand) if len(problem.arrays) else ():
        must_join = bool(problem.rules.get_affinity_counts(number).targets.any())
        if must_join or not problem.table.classes[number].has_affinity:
            counts.take(number, demand[number])
    return _build_placement(problem, counts, ())


def count_nodes(
    problem: ScaleUpProblem, relations: PodRelations, demand: Mapping[int, int], usable: Flags
) -> NodeCounts | None:
    """The counts before anything is placed; None if the classes have rules that are not counted."""
    groups = TopologyGroups.build(problem, relations, list(demand))
    keys = sorted({spread.key for spread in groups.spreads} - {HOSTNAME})
    if len(keys) > 1 or not all(_is_counted(problem, relations, number) for number in demand):
        return None
    key = keys[0] if keys else ""
    ids = problem.option_arrays.get_label_ids(key) if key else np.zeros(0, dtype=np.int64)
    values = problem.option_arrays.get_label_values(key) if key else ()
    openable = {values[index] for index in ids[usable].tolist() if index >= 0} if key else set()
    domains = tuple(sorted({*openable, *(problem.arrays.get_label_values(key) if key else ())}))
    counts = NodeCounts(problem=problem, relations=relations, groups=groups, domains=domains, domain_key=key)
    counts.expect_domains(np.array([name in openable for name in domains], dtype=np.bool_))
    return counts


def _is_counted(problem: ScaleUpProblem, relations: PodRelations, number: int) -> bool:
    pod_class = problem.table.classes[number]
    if pod_class.scheduling_key.ports or pod_class.has_volumes:
        return False
    avoided = relations.avoided[relations.label_group_of[number]]
    keys = {key for keys in avoided.values() for key in keys}
    keys |= {term.topology_key for term in problem.rules.get_affinity_terms(number).affinity}
    return keys <= {HOSTNAME}


def _sort_largest_first(problem: ScaleUpProblem, demand: Mapping[int, int]) -> list[int]:
    largest = np.maximum(problem.capacity.max(axis=0, initial=1), 1)
    sizes = np.round((problem.requests / largest).max(axis=1, initial=0), 9)
    return sorted(demand, key=lambda number: (-problem.table.classes[number].priority, -sizes[number], number))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Family:
    """Options in one domain that take the same classes: a node may become any of them."""

    options: Ints
    domain: int
    """-1: in none."""
    largest: int
    """The option with the most room."""


def _find_families(problem: ScaleUpProblem, counts: NodeCounts, usable: Flags) -> list[_Family]:
    arrays = problem.option_arrays
    ids = arrays.get_label_ids(counts.domain_key) if counts.domain_key else np.full(len(usable), -1)
    values = arrays.get_label_values(counts.domain_key) if counts.domain_key else ()
    found: dict[tuple[int, bytes], list[int]] = {}
    for option in np.flatnonzero(usable & (problem.available > 0)).tolist():
        found.setdefault((int(ids[option]), problem.allowed[option].tobytes()), []).append(option)
    unit = np.maximum(problem.capacity.max(axis=0, initial=1), 1)
    families: list[_Family] = []
    for (domain, _), options in found.items():
        room = np.round((problem.capacity[options] / unit).sum(axis=1), 9)
        families.append(
            _Family(
                options=np.array(options, dtype=np.int64),
                domain=counts.domains.index(values[domain]) if domain >= 0 else -1,
                largest=options[int(np.argmax(room))],
            )
        )
    return families


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Greedy:
    problem: ScaleUpProblem
    counts: NodeCounts
    families: Sequence[_Family]
    strategy: GreedyStrategy

    def place(self, demand: Mapping[int, int]) -> None:
        """Pods whose affinity targets come later are tried again."""
        left = {number: demand[number] for number in self._sort(demand)}
        progress = True
        while left and progress:
            taken = {number: self._take(number, pods) for number, pods in left.items()}
            progress = any(taken.values())
            left = {number: pods - taken[number] for number, pods in left.items() if pods > taken[number]}

    def _sort(self, demand: Mapping[int, int]) -> list[int]:
        numbers = _sort_largest_first(self.problem, demand)
        if self.strategy.order is GreedyOrder.AFFINITY:
            numbers.sort(key=lambda number: not self.problem.table.classes[number].has_affinity)
        elif self.strategy.order is GreedyOrder.DOMAINS:
            spreads = [spread for spread in self.counts.groups.spreads if not spread.is_over_nodes]
            owners = {owner for spread in spreads for owner in spread.owners}
            numbers.sort(key=lambda number: number not in owners)
        elif self.strategy.order is GreedyOrder.SMALLEST:
            numbers.reverse()
        return numbers

    def _take(self, number: int, pods: int) -> int:
        taken = self.counts.take(number, pods)
        while taken < pods and self.counts.may_begin(number):
            family = self._choose_family(number)
            if family is None:
                break
            most = self.counts.count_on_empty_node(number)
            domain_bound = bool(self.counts.find_open_domains(number).all())
            nodes = -(-(pods - taken) // (most * self.strategy.height)) if domain_bound else 1
            self.counts.open_nodes(family.largest, nodes, self.problem.capacity[family.largest])
            more = self.counts.take(number, pods - taken)
            if not more:
                break
            taken += more
        return taken

    def _choose_family(self, number: int) -> _Family | None:
        """The family in which the pod's share of a node costs least, in a domain that is open to it."""
        open_domains = self.counts.find_open_domains(number)
        best: tuple[float, int] | None = None
        request = self.problem.requests[number]
        for index, family in enumerate(self.families):
            fits = (
                self.problem.allowed[family.largest, number]
                and (request <= self.problem.capacity[family.largest]).all()
            )
            if not fits or not open_domains[family.domain]:
                continue
            cost = (self._compute_prices(family) * self._compute_shares(family, request)).min()
            candidate = (round(float(cost), 9), index)
            best = candidate if best is None else min(best, candidate)
        return None if best is None else self.families[best[1]]

    def _compute_prices(self, family: _Family) -> Floats:
        return self.problem.planning_prices[family.options]

    def _compute_shares(self, family: _Family, request: Ints) -> Floats:
        shares: Floats = (request / np.maximum(self.problem.capacity[family.options], 1)).max(axis=1)
        return shares


def _build_placement(problem: ScaleUpProblem, counts: NodeCounts, families: Sequence[_Family]) -> Placement | None:
    rows = len(problem.arrays)
    options_of = {family.largest: family.options for family in families}
    contents: dict[int, Counter[int]] = {}
    for node, number, pods in counts.placed:
        contents.setdefault(node, Counter())[number] += pods
    existing = {row: merge_pods(contents[row], {}) for row in sorted(contents) if row < rows}
    batches: Counter[tuple[int, tuple[tuple[int, int], ...]]] = Counter()
    for node in sorted(contents):
        if node >= rows:
            content = merge_pods(contents[node], {})
            option = _choose_option(problem, options_of[int(counts.options[node])], content)
            batches[option, tuple(content.items())] += 1
    placement = Placement(
        existing=existing,
        batches=tuple(
            NodeBatch(option=option, nodes=nodes, content=dict(content)) for (option, content), nodes in batches.items()
        ),
    )
    nodes = placement.count_new_nodes(len(problem.options))
    within = (nodes <= problem.available).all() and (nodes @ problem.limits.use <= problem.limits.room).all()
    return placement if within else None


def _choose_option(problem: ScaleUpProblem, options: Ints, content: Mapping[int, int]) -> int:
    """The cheapest of these options that holds the pods."""
    numbers = list(content)
    total = np.array(list(content.values()), dtype=np.int64) @ problem.requests[numbers]
    able = options[(problem.capacity[options] >= total).all(axis=1)]
    return int(able[np.lexsort((able, problem.planning_prices[able]))[0]])

"""Balances a scale-up over similar groups, the smallest first (`--balance-similar-node-groups`).

Similar groups are interchangeable for the pods; mostly there is one per zone. Both planners balance after they have
chosen how many nodes to add (docs/design/nodes.md 6.6).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.resources import CPU, MEMORY, PODS, ResourceVector
from plimsoll.nodes.model.node_labels import HOSTNAME, NODE_GROUP_KEYS
from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Flags, Ints


def balance(
    problem: ScaleUpProblem,
    placement: Placement,
    relations: PodRelations,
    families: Sequence[Sequence[int]] | None = None,
) -> Placement:
    """The same nodes, moved between similar groups until these are as equal as their limits allow."""
    for siblings in find_similar_options(problem) if families is None else families:
        placement = _split_batches(problem, placement, siblings, relations)
    return placement


def find_similar_options(problem: ScaleUpProblem) -> list[list[int]]:
    """Sets of similar options to balance; empty unless the policy enables it."""
    if not problem.policy.balancing.enabled:
        return []
    likeness = _read_similarity_rules(problem)
    found: list[list[int]] = []
    for index, option in enumerate(problem.options):
        similar = next((group for group in found if likeness.holds(problem.options[group[0]], option)), None)
        if similar is None:
            found.append([index])
        elif option.exists and problem.options[similar[0]].exists and not option.zero_or_max:
            similar.append(index)
    return [group for group in found if len(group) > 1]


def _read_similarity_rules(problem: ScaleUpProblem) -> SimilarityRules:
    rules = problem.policy.balancing
    return SimilarityRules(
        memory_ratio=rules.memory_ratio,
        allocatable_ratio=rules.allocatable_ratio,
        free_ratio=rules.free_ratio,
        ignored_labels=frozenset(rules.ignored_labels),
        only_labels=rules.labels,
    )


def find_zone_counterparts(problem: ScaleUpProblem, option: int, left: Ints) -> Flags:
    """[T]: the option, and for pods spread over zones its counterparts in the other zones.

    Per zone these are the options similar to it, else all options there that take the pods. `left` [C]: pods that need
    a new node. Whether similar groups are balanced in general does not matter: these pods ask for all zones.
    """
    found: Flags = np.arange(len(problem.options)) == option
    likeness = _read_similarity_rules(problem)
    for number in np.flatnonzero((left > 0) & problem.allowed[option]).tolist():
        for key in {spread.key for spread in problem.rules.get_spreads(number)} - {HOSTNAME}:
            ids = problem.option_arrays.get_label_ids(key)
            for zone in sorted({*ids[problem.allowed[:, number]].tolist()} - {-1, int(ids[option])}):
                there = np.flatnonzero(problem.allowed[:, number] & (ids == zone)).tolist()
                similar = [other for other in there if likeness.holds(problem.options[option], problem.options[other])]
                found[similar or there] = True
    return found


def _split_batches(
    problem: ScaleUpProblem, placement: Placement, siblings: Sequence[int], relations: PodRelations
) -> Placement:
    movable = [
        batch
        for batch in placement.batches
        if batch.option in siblings and _is_free(problem, batch, siblings, relations)
    ]
    nodes = sum(batch.nodes for batch in movable)
    if not nodes:
        return placement
    fixed = [batch for batch in placement.batches if batch not in movable]
    held = Placement(batches=tuple(fixed)).count_new_nodes(len(problem.options))
    sizes = [problem.options[sibling].size + int(held[sibling]) for sibling in siblings]
    rooms = [int(problem.available[sibling] - held[sibling]) for sibling in siblings]
    given = split_nodes(nodes, sizes, rooms)
    if sum(given) < nodes:
        return placement
    even = replace(placement, batches=(*fixed, *_distribute(movable, dict(zip(siblings, given, strict=True)))))
    # Similar is not equal: slightly larger nodes may exceed a limit of the cluster.
    within = (even.count_new_nodes(len(problem.options)) @ problem.limits.use <= problem.limits.room).all()
    return even if within else placement


def _distribute(batches: Sequence[NodeBatch], wanted: dict[int, int]) -> list[NodeBatch]:
    found: list[NodeBatch] = []
    for batch in batches:
        left = batch.nodes
        for option, more in wanted.items():
            step = min(left, more)
            if step:
                found.append(replace(batch, option=option, nodes=step))
                wanted[option] -= step
                left -= step
    return found


def _is_free(problem: ScaleUpProblem, batch: NodeBatch, siblings: Sequence[int], relations: PodRelations) -> bool:
    """Whether its pods fit in any of the groups and have no inter-pod rules beyond their node."""
    requested = sum(problem.requests[number] * pods for number, pods in batch.content.items())
    if not batch.content or (problem.capacity[list(siblings)] < requested).any():
        return False
    return all(
        problem.allowed[list(siblings), number].all() and not _depends_on_others(problem, number, relations)
        for number in batch.content
    )


def _depends_on_others(problem: ScaleUpProblem, number: int, relations: PodRelations) -> bool:
    """Whether it depends on pods on other nodes, or pending pods depend on it."""
    pod_class, label_group = problem.table.classes[number], relations.label_group_of[number]
    if any(spread.key != HOSTNAME for spread in problem.rules.get_spreads(number)) or pod_class.has_affinity:
        return True
    avoided = [key for keys in relations.avoided[label_group].values() for key in keys]
    if pod_class.has_anti_affinity or problem.arrays.running_pods.anti_affinity_rows:
        known = problem.rules.get_affinity_counts(number)
        avoided += [*known.anti_affinity_domains, *known.repelling_domains]
    return (
        any(key != HOSTNAME for key in avoided)
        or any(label_group in wanted for wanted in relations.affinity_targets)
        or any(label_group in counted for other, counted in enumerate(relations.counted) if other != label_group)
    )


IGNORED_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/fluentd-ds-ready",
        *NODE_GROUP_KEYS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityRules:
    """When groups count as similar. `only_labels`, if set, decides alone."""

    memory_ratio: float = 0.015
    allocatable_ratio: float = 0.05
    free_ratio: float = 0.05
    ignored_labels: frozenset[str] = frozenset()
    only_labels: tuple[str, ...] = ()

    def holds(self, first: ScaleUpOption, other: ScaleUpOption) -> bool:
        if self.only_labels:
            return all(_get_label(first, key) == _get_label(other, key) for key in self.only_labels)
        return (
            self._is_capacity_similar(first.capacity, other.capacity)
            and _is_within_ratio(_read_allocatable(first), _read_allocatable(other), self.allocatable_ratio)
            and _is_within_ratio(first.free, other.free, self.free_ratio)
            and self._list_compared_labels(first) == self._list_compared_labels(other)
        )

    def _is_capacity_similar(self, first: ResourceVector, other: ResourceVector) -> bool:
        if set(first) != set(other):
            return False
        exact = [name for name in first if name in {CPU, PODS} or name.endswith("/gpu")]
        return all(first[name] == other[name] for name in exact) and _is_close(
            first[MEMORY], other[MEMORY], self.memory_ratio
        )

    def _list_compared_labels(self, option: ScaleUpOption) -> dict[str, str]:
        left_out = IGNORED_LABELS | self.ignored_labels
        return {key: value for key, value in option.node.metadata.labels.items() if key not in left_out}


def split_nodes(nodes: int, sizes: Sequence[int], rooms: Sequence[int]) -> list[int]:
    """Give nodes one by one to the smallest group that has room; nodes left over go to no group.

    Ties go to the earlier group. Returns the nodes per group.
    """
    given = [0] * len(sizes)
    waiting = [(size, index) for index, size in enumerate(sizes) if rooms[index] > 0]
    heapq.heapify(waiting)
    while nodes and waiting:
        size, index = heapq.heappop(waiting)
        # As many nodes at once as keep it the smallest, so that a thousand nodes do not take a thousand rounds.
        until = waiting[0][0] if waiting else size + nodes
        step = min(nodes, rooms[index] - given[index], max(1, until - size))
        given[index] += step
        nodes -= step
        if given[index] < rooms[index]:
            heapq.heappush(waiting, (size + step, index))
    return given


def _get_label(option: ScaleUpOption, key: str) -> str | None:
    return option.node.metadata.labels.get(key)


def _read_allocatable(option: ScaleUpOption) -> ResourceVector:
    return ResourceVector.from_quantities(option.node.status.allocatable)


def _is_within_ratio(first: Mapping[str, int], other: Mapping[str, int], ratio: float) -> bool:
    return all(_is_close(first[name], other[name], ratio) for name in {*first, *other})


def _is_close(first: int, other: int, ratio: float) -> bool:
    return abs(first - other) <= ratio * max(first, other)

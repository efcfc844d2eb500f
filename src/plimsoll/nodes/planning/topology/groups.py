"""Topology groups: each rule between pods, once, with the classes that carry it and the classes that it counts.

Pods of different sizes carry the same rule, and one rule counts pods of many sizes: `TopologyGroups.build` finds each
distinct rule of a table once. A class is `counted` by a group if placing one of its pods changes the group's counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from plimsoll.nodes.model.node_labels import HOSTNAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.nodes.planning.equivalence.pod_classes import PodClass
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.predicates.spread_counts import SpreadCount
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem


class Rule(StrEnum):
    """What a rule between pods asks for."""

    SPREAD = "spread"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpreadGroup:
    """One hard topology spread constraint."""

    key: str
    max_skew: int
    min_domains: int
    owners: tuple[int, ...]
    """Classes that carry the constraint."""
    counted: frozenset[int]
    sample: SpreadCount
    """The counts of running pods, of one of the owners."""

    @property
    def is_over_nodes(self) -> bool:
        return self.key == HOSTNAME


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopologyGroups:
    """The groups of some classes."""

    spreads: tuple[SpreadGroup, ...]
    with_affinity: frozenset[int]
    with_anti_affinity: frozenset[int]
    """Classes that avoid pods, or that are avoided."""

    @classmethod
    def build(cls, problem: ScaleUpProblem, relations: PodRelations, numbers: Sequence[int]) -> TopologyGroups:
        classes = problem.table.classes
        wanted = frozenset(numbers)
        return cls(
            spreads=tuple(_find_spreads(problem, relations, wanted)),
            with_affinity=frozenset(number for number in numbers if classes[number].has_affinity),
            with_anti_affinity=frozenset(
                number for number in numbers if relations.avoided[relations.label_group_of[number]]
            ),
        )

    @property
    def is_independent(self) -> bool:
        """Whether each rule spreads the pods of one class over domains larger than a node, and counts only these."""
        if self.with_affinity or self.with_anti_affinity:
            return False
        return all(
            not spread.is_over_nodes and len(spread.counted.union(spread.owners)) == 1 for spread in self.spreads
        )


def _find_spreads(problem: ScaleUpProblem, relations: PodRelations, wanted: frozenset[int]) -> Iterable[SpreadGroup]:
    """Classes of one label group with the same node constraints share their constraints."""
    members_by_form: dict[tuple[Any, ...], list[int]] = {}
    for number in sorted(wanted):
        pod_class = problem.table.classes[number]
        if pod_class.has_spread:
            form = pod_class.scheduling_key
            key = (relations.label_group_of[number], form.node_constraints, form.tolerations)
            members_by_form.setdefault(key, []).append(number)
    found: dict[tuple[Any, ...], tuple[SpreadCount, list[int]]] = {}
    for (_, *nodes), members in members_by_form.items():
        for spread in problem.rules.get_spreads(members[0]):
            key = (spread.key, spread.namespace, spread.selector, spread.max_skew, spread.min_domains, *nodes)
            found.setdefault(key, (spread, []))[1].extend(members)
    for spread, owners in found.values():
        yield SpreadGroup(
            key=spread.key,
            max_skew=spread.max_skew,
            min_domains=spread.min_domains,
            owners=tuple(owners),
            counted=relations.find_counted_classes(spread) & wanted,
            sample=spread,
        )


def find_unreachable(problem: ScaleUpProblem, relations: PodRelations) -> frozenset[int]:
    """Classes whose required affinity no order of scheduling can meet: no pod that they need can come before them.

    A pod that matches its own terms may be the first; any other needs a target that runs or that can be placed.
    """
    reachable: set[int] = set()
    waiting: list[int] = []
    for label_group in relations.label_groups:
        sample = relations.sample(label_group)
        matches_itself = label_group in relations.affinity_targets[label_group]
        if not sample.has_affinity or matches_itself or _has_running_target(problem, sample):
            reachable.add(label_group)
        else:
            waiting.append(label_group)
    progress = True
    while progress:
        ready = [
            label_group
            for label_group in waiting
            if any(target in reachable for target in relations.affinity_targets[label_group])
        ]
        reachable.update(ready)
        waiting = [label_group for label_group in waiting if label_group not in reachable]
        progress = bool(ready)
    return frozenset(number for label_group in waiting for number in relations.members[label_group])


def _has_running_target(problem: ScaleUpProblem, pods: PodClass) -> bool:
    return pods.problem is None and bool(problem.rules.get_affinity_counts(pods.index).targets.any())

"""Pods that require each other on one node, merged: what a node must hold together becomes one item for the packing.

Classes that are linked by affinity over nodes form a company. If all of it fits on one node, it is one item. Otherwise
nodes are begun by pods that match their own terms, each while no other target exists, and filled with the others, the
largest first, wherever a target is present. Every order of scheduling is allowed, as long as one exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Flags, Ints

_FILLED: Final = 0.9
"""The share of the largest node that a split company plans to fill."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Company:
    """Pods by class that go to one node together."""

    content: Mapping[int, int]
    options: Flags
    """[T]: options that take all of them."""


def merge_companies(
    problem: ScaleUpProblem,
    relations: PodRelations,
    demand: Mapping[int, int],
    usable: Flags,
    *,
    planned: Collection[int],
) -> list[Company] | None:
    """The companies of classes with affinity; None if they are not that regular.

    `demand`: pods by class with required affinity, all of which can be reached; `planned`: all classes to place.
    Regular: all terms are over nodes, and all targets that are planned have affinity themselves.
    """
    for number in demand:
        if any(term.topology_key != HOSTNAME for term in problem.rules.get_affinity_terms(number).affinity):
            return None
    others = frozenset(planned)
    groups = dict.fromkeys(relations.label_group_of[number] for number in demand)
    if any(
        target not in groups and not others.isdisjoint(relations.members[target])
        for group in groups
        for target in relations.affinity_targets[group]
    ):
        return None
    found: list[Company] = []
    for members in _find_components(relations, list(groups)):
        numbers = [number for number in demand if relations.label_group_of[number] in members]
        found += _merge(problem, relations, {number: demand[number] for number in numbers}, usable)
    return found


def _find_components(relations: PodRelations, groups: Sequence[int]) -> list[set[int]]:
    found: list[set[int]] = []
    for group in groups:
        linked = {group, *(target for target in relations.affinity_targets[group] if target in groups)}
        joined = [component for component in found if component & linked]
        found = [component for component in found if not component & linked]
        found.append(linked.union(*joined))
    return found


def _merge(problem: ScaleUpProblem, relations: PodRelations, demand: Mapping[int, int], usable: Flags) -> list[Company]:
    numbers = list(demand)
    options = usable & problem.allowed[:, numbers].all(axis=1)
    total = np.array([demand[number] for number in numbers], dtype=np.int64) @ problem.requests[numbers]
    whole = options & (problem.capacity >= total).all(axis=1)
    if whole.any():
        return [Company(content=dict(demand), options=whole)]
    if not options.any():
        return []
    return _Split.begin(problem, relations, demand, options, total).fill()


@dataclass(slots=True, kw_only=True)
class _Host:
    """A node that is being filled."""

    free: Ints
    groups: set[int] = field(default_factory=set)
    content: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Split:
    """A company that needs several nodes."""

    problem: ScaleUpProblem
    relations: PodRelations
    options: Flags
    left: dict[int, int]
    hosts: list[_Host]

    @classmethod
    def begin(
        cls,
        problem: ScaleUpProblem,
        relations: PodRelations,
        demand: Mapping[int, int],
        options: Flags,
        total: Ints,
    ) -> _Split:
        """Begin as many nodes as the company fills, as far as there are pods to begin them."""
        capacity = problem.capacity[options]
        wanted = total > 0
        fill = (total[wanted] / np.maximum(capacity[:, wanted], 1)).max(axis=1)
        largest = capacity[int(np.argmin(np.round(fill, 9)))]
        nodes = int(np.ceil(fill.min() / _FILLED))
        split = cls(problem=problem, relations=relations, options=options, left=dict(demand), hosts=[])
        present: set[int] = set()
        for number in split._sort_by_size():
            group = relations.label_group_of[number]
            targets = relations.affinity_targets[group]
            if len(split.hosts) < nodes and group in targets and present.isdisjoint(targets):
                split.hosts.append(_Host(free=largest.copy()))
                split._put(number, 1, split.hosts[-1])
                present.add(group)
        return split

    def fill(self) -> list[Company]:
        """Each pod goes to the emptiest node with a target; further targets open further nodes to it."""
        progress = True
        while progress and self.left:
            progress = False
            for number in self._sort_by_size():
                progress |= self._place(number)
        return [
            Company(content=dict(sorted(host.content.items())), options=self._find_options(host)) for host in self.hosts
        ]

    def _place(self, number: int) -> bool:
        """Place pods of the class, evenly over the nodes; returns whether any was placed."""
        targets = set(self.relations.affinity_targets[self.relations.label_group_of[number]])
        request = self.problem.requests[number]
        placed = False
        while number in self.left:
            open_ = [host for host in self.hosts if host.groups & targets and (host.free >= request).all()]
            if not open_:
                break
            wanted = request > 0
            emptiest = max(open_, key=lambda host: int((host.free[wanted] // request[wanted]).min()))
            share = max(1, self.left[number] // len(open_))
            self._put(number, min(share, int((emptiest.free[wanted] // request[wanted]).min())), emptiest)
            placed = True
        return placed

    def _put(self, number: int, pods: int, host: _Host) -> None:
        host.free -= self.problem.requests[number] * pods
        host.groups.add(self.relations.label_group_of[number])
        host.content[number] = host.content.get(number, 0) + pods
        self.left[number] -= pods
        if not self.left[number]:
            del self.left[number]

    def _sort_by_size(self) -> list[int]:
        largest = np.maximum(self.problem.capacity[self.options].max(axis=0), 1)
        sizes = {number: float((self.problem.requests[number] / largest).max()) for number in self.left}
        return sorted(self.left, key=lambda number: (-round(sizes[number], 9), number))

    def _find_options(self, host: _Host) -> Flags:
        numbers = list(host.content)
        total = np.array(list(host.content.values()), dtype=np.int64) @ self.problem.requests[numbers]
        found: Flags = self.options & (self.problem.capacity >= total).all(axis=1)
        return found

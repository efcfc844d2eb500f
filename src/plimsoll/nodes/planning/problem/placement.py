"""A plan in progress: which pods go to existing nodes, which new nodes there are, and which pods were rejected and why.

A placement is a value: placing pods gives a new one, so an attempt can be dropped at no cost. New nodes are kept in
batches of nodes filled alike; a batch is split when later pods go to some of its nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBatch:
    """New nodes of one option that hold the same: pods by class, on each of them."""

    option: int
    nodes: int
    content: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Counts by class throughout."""

    existing: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """Row to pods by class."""
    batches: tuple[NodeBatch, ...] = ()
    refused: Mapping[int, tuple[Reason, ...]] = field(default_factory=dict)
    """Class to why some of its pods have no place, where that is more than "no room"."""
    worths: Mapping[int, float] = field(default_factory=dict, compare=False)
    """What a pod of each class on new nodes was worth when they were chosen: `cost_bounds` makes a bound of it."""
    _counted: dict[int, tuple[int, ...]] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What `placed` has counted: a placement does not change, and is asked many times."""

    @property
    def is_empty(self) -> bool:
        return not self.existing and not self.batches

    def count_placed(self, classes: int) -> Ints:
        """[C]: pods that have a place."""
        if classes not in self._counted:
            found = [0] * classes
            for content in self.existing.values():
                for number, pods in content.items():
                    found[number] += pods
            for batch in self.batches:
                for number, pods in batch.content.items():
                    found[number] += pods * batch.nodes
            self._counted[classes] = tuple(found)
        return np.array(self._counted[classes], dtype=np.int64)

    def count_on_new_nodes(self, classes: int) -> Ints:
        """[C]."""
        return replace(self, existing={}).count_placed(classes)

    def count_new_nodes(self, options: int) -> Ints:
        """[T]: new nodes of each option."""
        found = np.zeros(options, dtype=np.int64)
        for batch in self.batches:
            found[batch.option] += batch.nodes
        return found

    def index_by_class(self, rows: int) -> dict[int, Ints]:
        """Pods placed on existing nodes, by class [N]: as the rules take them."""
        found: dict[int, Ints] = {}
        for row, content in sorted(self.existing.items()):
            for number, pods in content.items():
                found.setdefault(number, np.zeros(rows, dtype=np.int64))[row] += pods
        return found

    def free_rows(self, problem: ScaleUpProblem) -> Ints:
        """[N, R]: what is left on existing nodes."""
        free = problem.free.copy()
        for row, content in self.existing.items():
            for number, pods in content.items():
                free[row] -= problem.requests[number] * pods
        return free

    def free_batches(self, problem: ScaleUpProblem) -> Ints:
        """[B, R]: what is left on each node of a batch."""
        free = np.zeros((len(self.batches), len(problem.names)), dtype=np.int64)
        for index, batch in enumerate(self.batches):
            free[index] = problem.capacity[batch.option]
            for number, pods in batch.content.items():
                free[index] -= problem.requests[number] * pods
        return free

    def compute_room_left(self, problem: ScaleUpProblem) -> Ints:
        """[L]: of each limit of the cluster."""
        return np.maximum(problem.limits.room - self.count_new_nodes(len(problem.options)) @ problem.limits.use, 0)

    def compute_cost(self, problem: ScaleUpProblem) -> float:
        return float(self.count_new_nodes(len(problem.options)) @ problem.prices)

    def add_rejection(self, number: int, reason: Reason) -> Placement:
        known = self.refused.get(number, ())
        return self if reason in known else replace(self, refused={**self.refused, number: (*known, reason)})


def merge_pods(content: Mapping[int, int], more: Mapping[int, int]) -> dict[int, int]:
    """Pods by class of both, in the order of classes."""
    total = dict(content)
    for number, pods in more.items():
        total[number] = total.get(number, 0) + pods
    return {number: total[number] for number in sorted(total) if total[number]}

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
    """New nodes of one option with equal pods; `content`: pods by class on each node."""

    option: int
    nodes: int
    content: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Pods per class on existing nodes and on batches of new nodes."""

    existing: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """Row to pods by class."""
    batches: tuple[NodeBatch, ...] = ()
    refused: Mapping[int, tuple[Reason, ...]] = field(default_factory=dict)
    """Class to why some of its pods are unschedulable, if the cause is not lack of room."""
    item_values: Mapping[int, float] = field(default_factory=dict, compare=False)
    """The dual value of a pod per class on new nodes, for the lower bound of the cost."""
    _counted: dict[int, tuple[int, ...]] = field(default_factory=dict, init=False, compare=False, repr=False)
    """The cached result of `count_placed`: a placement does not change."""

    @property
    def is_empty(self) -> bool:
        return not self.existing and not self.batches

    def count_placed(self, classes: int) -> Ints:
        """[C]: placed pods."""
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
        """[C]: pods placed on new nodes."""
        return replace(self, existing={}).count_placed(classes)

    def count_new_nodes(self, options: int) -> Ints:
        """[T]: new nodes of each option."""
        found = np.zeros(options, dtype=np.int64)
        for batch in self.batches:
            found[batch.option] += batch.nodes
        return found

    def index_by_class(self, rows: int) -> dict[int, Ints]:
        """Pods placed on existing nodes, by class [N]: the form that predicates take."""
        found: dict[int, Ints] = {}
        for row, content in sorted(self.existing.items()):
            for number, pods in content.items():
                found.setdefault(number, np.zeros(rows, dtype=np.int64))[row] += pods
        return found

    def compute_free_rows(self, problem: ScaleUpProblem) -> Ints:
        """[N, R]: free resources of existing nodes."""
        free = problem.free.copy()
        for row, content in self.existing.items():
            for number, pods in content.items():
                free[row] -= problem.requests[number] * pods
        return free

    def compute_free_batches(self, problem: ScaleUpProblem) -> Ints:
        """[B, R]: free resources of each node of a batch."""
        free = np.zeros((len(self.batches), len(problem.names)), dtype=np.int64)
        for index, batch in enumerate(self.batches):
            free[index] = problem.capacity[batch.option]
            for number, pods in batch.content.items():
                free[index] -= problem.requests[number] * pods
        return free

    def compute_room_left(self, problem: ScaleUpProblem) -> Ints:
        """[L]: the room that is left of each limit of the cluster."""
        return np.maximum(problem.limits.room - self.count_new_nodes(len(problem.options)) @ problem.limits.use, 0)

    def compute_cost(self, problem: ScaleUpProblem) -> float:
        return float(self.count_new_nodes(len(problem.options)) @ problem.prices)

    def add_rejection(self, number: int, reason: Reason) -> Placement:
        known = self.refused.get(number, ())
        return self if reason in known else replace(self, refused={**self.refused, number: (*known, reason)})


def merge_pods(content: Mapping[int, int], more: Mapping[int, int]) -> dict[int, int]:
    """The sum of both, in class order."""
    total = dict(content)
    for number, pods in more.items():
        total[number] = total.get(number, 0) + pods
    return {number: total[number] for number in sorted(total) if total[number]}

"""An exact search where a placement leaves few pods over (docs/design/nodes.md 7.6).

If a placement leaves few pods unschedulable for lack of limits or room on existing nodes, an integer program places all
pods without relations to others again; the others stay. A bundle is rejected only after that. If all pods are placed
and few of them need new nodes, the same search checks whether existing nodes can take them after all, because free
capacity comes first (docs/design/nodes.md 8.2). The number of searches per plan is limited.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.planning.packing.placement_view import PlacementView
from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement, merge_pods
from plimsoll.solver.exact.assignment_milp import (
    Impossible,
    NewNodes,
    Placed,
    Proof,
    is_worth_searching,
    place_or_prove,
)
from plimsoll.solver.filling.fill import ExistingNodes, FillDemand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plimsoll.nodes.planning.packing.binpacking import PackingOptions
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.filling.fill import FillResult
    from plimsoll.solver.problem import Flags, Ints

SEARCHES: Final = 4
"""The number of searches per plan: each may take as long as the rest of the plan."""
SAVINGS: Final = 4
"""The number of searches per plan for a placement without new nodes."""
_SAVING_BRANCHES: Final = 500
"""The limit of branches of such a search, which only saves money."""
_MOST_PAIRS: Final = 200_000
"""The limit of pairs of class and node in one search."""


class ExactFallback:
    """The exact fallback of one plan; it counts its searches."""

    def __init__(self, problem: ScaleUpProblem, relations: PodRelations) -> None:
        self._problem = problem
        self._relations = relations
        self._left = SEARCHES
        self._savings = SAVINGS

    def improve(self, placement: Placement, wanted: Ints, packing: PackingOptions) -> Placement:
        """The placement, or one that places all movable pods of `wanted` [C]."""
        problem = self._problem
        missing = np.maximum(wanted - placement.count_placed(len(wanted)), 0)
        if not missing.any():
            return self._improve_on_existing_nodes(placement, wanted, packing)
        if not self._left:
            return placement
        movable = self._find_movable(packing)
        numbers = np.flatnonzero(movable & (wanted > 0))
        view = PlacementView(problem, _remove_movable(problem, placement, movable), self._relations)
        lost = [number for number in numbers.tolist() if missing[number] and not view.open_places(number).any]
        numbers = np.setdiff1d(numbers, lost)
        size = len(numbers) * (len(problem.arrays) + len(view.placement.batches) + len(problem.options))
        if not is_worth_searching(wanted[numbers], missing[numbers]) or size > _MOST_PAIRS:
            return placement
        question = _ExactProblem.build(view, numbers, wanted, packing)
        found = place_or_prove(question.demand, question.standing, packing.effort, question.opening)
        self._left -= not (isinstance(found, Impossible) and found.proof is Proof.SUMS)
        if not isinstance(found, Placed):
            return placement
        place_pending = question.build_placement(found.filled)
        return place_pending if _is_within(problem, place_pending) else placement

    def _improve_on_existing_nodes(self, placement: Placement, wanted: Ints, packing: PackingOptions) -> Placement:
        """The placement, or a cheaper one in which existing nodes take as many pods as they can."""
        problem = self._problem
        new = placement.count_on_new_nodes(len(wanted))
        if not self._savings or not len(problem.arrays) or not is_worth_searching(wanted, new):
            return placement
        movable = self._find_movable(packing)
        view = PlacementView(problem, _remove_movable(problem, placement, movable), self._relations)
        for number in np.flatnonzero(movable & (new > 0)).tolist():
            movable[number] = view.open_places(number).rows.any()
        new = new * movable
        free = np.maximum(placement.compute_free_rows(problem), 0).sum(axis=0)
        numbers = np.flatnonzero(movable & (wanted > 0))
        size = len(numbers) * (len(problem.arrays) + len(placement.batches))
        if not new.any() or (new @ problem.requests > free).any() or size > _MOST_PAIRS:
            return placement
        view = PlacementView(problem, _remove_movable(problem, placement, movable), self._relations)
        closed = replace(packing, usable=np.zeros_like(packing.usable))
        question = _ExactProblem.build(view, numbers, wanted, closed)
        effort = replace(packing.effort, branch_nodes=min(packing.effort.branch_nodes, _SAVING_BRANCHES))
        found = place_or_prove(question.demand, question.standing, effort)
        self._savings -= not (isinstance(found, Impossible) and found.proof is Proof.SUMS)
        if not isinstance(found, Placed):
            return placement
        place_pending = question.build_placement(found.filled)
        return place_pending if place_pending.compute_cost(problem) < placement.compute_cost(problem) else placement

    def _find_movable(self, packing: PackingOptions) -> Flags:
        """[C]: classes that depend on no other pods, and on which no other pods depend."""
        problem, relations = self._problem, self._relations
        alone = ~problem.rules.interacts
        for number, pod_class in enumerate(problem.table):
            alone[number] &= (
                pod_class.problem is None and number not in packing.failed.pod_by_pod | packing.failed.given_up
            )
        looked_at = {
            other for label_groups in (*relations.affinity_targets, *relations.counted) for other in label_groups
        }
        looked_at |= {label_group for label_group, avoided in enumerate(relations.avoided) if avoided}
        return alone & np.array(
            [label_group not in looked_at for label_group in relations.label_group_of], dtype=np.bool_
        )


def _remove_movable(problem: ScaleUpProblem, placement: Placement, movable: Flags) -> Placement:
    """The placement without movable pods and without nodes that only they need; atomic groups stay whole."""
    existing = {
        row: kept for row, content in placement.existing.items() if (kept := _filter_unmovable(content, movable))
    }
    batches = [
        replace(batch, content=kept)
        for batch in placement.batches
        if (kept := _filter_unmovable(batch.content, movable)) or problem.options[batch.option].zero_or_max
    ]
    return replace(placement, existing=existing, batches=tuple(batches))


def _filter_unmovable(content: Mapping[int, int], movable: Flags) -> dict[int, int]:
    return {number: pods for number, pods in content.items() if not movable[number]}


def _is_within(problem: ScaleUpProblem, placement: Placement) -> bool:
    """Whether the limits hold. For rows that stand for many nodes, the search checks only sums."""
    nodes = placement.count_new_nodes(len(problem.options))
    return bool((nodes <= problem.available).all() and (nodes @ problem.limits.use <= problem.limits.room).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExactProblem:
    """Rows are existing nodes, batches of planned nodes, and options; rows equal for all classes are merged."""

    problem: ScaleUpProblem
    base: Placement
    numbers: Ints
    """Classes that are placed again."""
    options: Ints
    """Options that may be used."""
    demand: FillDemand
    standing: ExistingNodes
    members: list[Ints]
    """Per row: the nodes, batches or options that it stands for, numbered consecutively."""
    opening: NewNodes

    @classmethod
    def build(cls, view: PlacementView, numbers: Ints, wanted: Ints, packing: PackingOptions) -> _ExactProblem:
        problem, base = view.problem, view.placement
        places = [view.open_places(number) for number in numbers.tolist()]
        growing = packing.usable & view.find_options_in_existing_domains() & ~_find_atomic_options(problem)
        rooms = np.minimum(problem.available - base.count_new_nodes(len(problem.options)), int(wanted[numbers].sum()))
        options = np.flatnonzero(growing & (rooms > 0))
        allowed = np.stack(
            [np.concatenate((place.rows, place.batches, place.options[options])) for place in places], axis=1
        )
        free = np.concatenate(
            (base.compute_free_rows(problem), base.compute_free_batches(problem), problem.capacity[options])
        )
        standing = len(problem.arrays) + len(base.batches)
        sizes = [*[1] * len(problem.arrays), *(batch.nodes for batch in base.batches), *rooms[options].tolist()]
        # Options stay apart: each has its own price.
        apart = np.concatenate((np.zeros(standing, dtype=np.int64), 1 + np.arange(len(options))))
        members = _group_equal_rows(np.column_stack((apart, free, allowed)))
        first = np.array([member[0] for member in members], dtype=np.int64)
        return cls(
            problem=problem,
            base=base,
            numbers=numbers,
            options=options,
            demand=FillDemand(requests=problem.requests[numbers], counts=wanted[numbers], allowed=allowed[first]),
            standing=ExistingNodes(
                free=np.maximum(free[first], 0),
                kind=np.arange(len(first), dtype=np.int64),
                multiplicity=np.array([sum(sizes[member] for member in equal) for equal in members], dtype=np.int64),
            ),
            members=members,
            opening=NewNodes(
                first=len(first) - len(options),
                price=problem.planning_prices[options],
                use=problem.limits.use[options],
                room=base.compute_room_left(problem),
            ),
        )

    def build_placement(self, filled: FillResult) -> Placement:
        """The result as a placement: rows are assigned to the nodes, batches and options that they stand for."""
        added: dict[int, dict[int, int]] = {}
        for part, index, pods in filled.placements.tolist():
            added.setdefault(part, {})[int(self.numbers[index])] = pods
        existing = dict(self.base.existing)
        batches: list[NodeBatch] = []
        rows, planned = len(self.problem.arrays), len(self.base.batches)
        for at, nodes, part in self._assign_rows(filled):
            more = added.get(part, {})
            if at < rows:
                existing[at] = merge_pods(existing.get(at, {}), more)
            elif at < rows + planned:
                batch = self.base.batches[at - rows]
                batches.append(replace(batch, nodes=nodes, content=merge_pods(batch.content, more)))
            elif more:
                batches.append(NodeBatch(option=self._get_option(at), nodes=nodes, content=merge_pods(more, {})))
        kept = {row: existing[row] for row in sorted(existing) if existing[row]}
        return replace(self.base, existing=kept, batches=tuple(batches))

    def _assign_rows(self, filled: FillResult) -> Iterator[tuple[int, int, int]]:
        """(node, batch or option; number of its nodes; part of the result that fills them)."""
        rows, planned = len(self.problem.arrays), len(self.base.batches)
        waiting = {row: [[int(at), 0] for at in equal] for row, equal in enumerate(self.members)}
        for row, equal in waiting.items():
            for member in equal:
                batch = member[0] - rows
                member[1] = (
                    1 if batch < 0 else self.base.batches[batch].nodes if batch < planned else self._get_row_size(row)
                )
        for part, row in enumerate(filled.origin.tolist()):
            nodes = int(filled.multiplicity[part])
            while nodes:
                head = waiting[row][0]
                step = min(nodes, head[1])
                yield head[0], step, part
                nodes -= step
                head[1] -= step
                if not head[1]:
                    waiting[row].pop(0)

    def _get_row_size(self, row: int) -> int:
        return int(self.standing.multiplicity[row]) if self.standing.multiplicity is not None else 1

    def _get_option(self, at: int) -> int:
        return int(self.options[at - len(self.problem.arrays) - len(self.base.batches)])


def _find_atomic_options(problem: ScaleUpProblem) -> Flags:
    return np.array([option.zero_or_max for option in problem.options], dtype=np.bool_)


def _group_equal_rows(table: Ints) -> list[Ints]:
    """Groups of equal rows, ordered by their first row."""
    _, kind = np.unique(table, axis=0, return_inverse=True)
    found: dict[int, list[int]] = {}
    for row, kind_id in enumerate(kind.reshape(-1).tolist()):
        found.setdefault(kind_id, []).append(row)
    return [np.array(rows, dtype=np.int64) for rows in found.values()]

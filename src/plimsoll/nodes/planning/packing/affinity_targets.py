"""Keeps room on nodes beside pods that other pods require by affinity.

Affinity targets are placed before the pods that need them, and are packed tightly, so that often no room is left beside
them. If that leaves pods unscheduled, `place_with_affinity_targets` plans again: as many targets as needed, each with
room for its share of the dependent pods; then the dependent pods; then all others. Pods placed before stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.packing.place import place
from plimsoll.nodes.planning.packing.pod_by_pod import PlacementRequest, improve_placement, score
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class _TargetPlan:
    """A number of affinity targets of one class, each with room for pods of other classes."""

    target: int
    targets: int
    beside: Mapping[int, int]
    """Dependent pods by class beside each target."""


def place_with_affinity_targets(request: PlacementRequest, placement: Placement) -> Placement:
    """The placement, or one that schedules more pods."""
    problem, demand, onto = request.problem, request.demand, request.onto
    before = np.zeros_like(demand) if onto is None else onto.count_placed(len(demand))
    missing = demand + before - placement.count_placed(len(demand))
    best = placement
    for plan in _iterate_target_plans(problem, request.relations, demand, missing):
        tried = _place(request, plan)
        if score(problem, tried) > score(problem, best):
            best = tried
    return improve_placement(request, best)


def _iterate_target_plans(
    problem: ScaleUpProblem, relations: PodRelations, demand: Ints, missing: Ints
) -> Iterator[_TargetPlan]:
    """For targets whose dependents are left over: the fewest targets that leave room for all of them, and the most."""
    dependents = [number for number in np.flatnonzero(demand > 0).tolist() if _is_dependent(problem, number)]
    for target in np.flatnonzero(demand > 0).tolist() if missing[dependents].any() else ():
        group = relations.label_group_of[target]
        ours = [
            number
            for number in dependents
            if group in relations.affinity_targets[relations.label_group_of[number]] and number != target
        ]
        if not missing[ours].any() or group in {relations.label_group_of[number] for number in ours}:
            continue
        spaces = _compute_spaces(problem, target, ours)
        most = int(demand[target])
        few, many = 1, most
        while few < many:
            middle = (few + many) // 2
            few, many = (
                (few, middle) if _fits(problem, spaces, _compute_shares(demand, ours, middle)) else (middle + 1, many)
            )
        for targets in sorted({few, most}):
            beside = _compute_shares(demand, ours, targets)
            if _fits(problem, spaces, beside):
                yield _TargetPlan(target=target, targets=targets, beside=beside)
        if len(ours) == 1 and (fitting := _count_beside(problem, spaces, ours[0])):
            targets = min(most, -(-int(demand[ours[0]]) // fitting))
            yield _TargetPlan(target=target, targets=targets, beside={ours[0]: fitting})


def _is_dependent(problem: ScaleUpProblem, number: int) -> bool:
    pods = problem.table.classes[number]
    return (
        pods.problem is None
        and pods.has_affinity
        and HOSTNAME in problem.rules.get_affinity_counts(number).affinity_keys
    )


def _compute_shares(demand: Ints, dependents: Sequence[int], targets: int) -> dict[int, int]:
    return {dependent: -(-int(demand[dependent]) // targets) for dependent in dependents}


def _compute_spaces(problem: ScaleUpProblem, target: int, dependents: Sequence[int]) -> Ints:
    """[S, R]: what existing and new nodes that accept all these classes have left beside one target."""
    classes = [target, *dependents]
    rows = np.logical_and.reduce(
        [problem.rules.node_predicates.find_fitting(pod_class, problem.arrays.free, {}) for pod_class in classes]
    )
    options = problem.allowed[:, classes].all(axis=1)
    found: Ints = np.concatenate((problem.capacity[options], problem.free[rows])) - problem.requests[target]
    return found


def _fits(problem: ScaleUpProblem, spaces: Ints, beside: Mapping[int, int]) -> bool:
    requested = sum(
        (problem.requests[dependent] * pods for dependent, pods in beside.items()), start=np.zeros(1, dtype=np.int64)
    )
    return bool((spaces >= requested).all(axis=1).any())


def _count_beside(problem: ScaleUpProblem, spaces: Ints, dependent: int) -> int:
    """How many dependent pods the largest node has room for."""
    requested = problem.requests[dependent] > 0
    beside = (spaces[:, requested] // problem.requests[dependent][requested]).min(axis=1, initial=UNBOUNDED)
    return min(max(int(beside.max(initial=0)), 0), UNBOUNDED)


def _place(request: PlacementRequest, plan: _TargetPlan) -> Placement:
    problem, relations, demand, packing = request.problem, request.relations, request.demand, request.packing
    requests = problem.requests.copy()
    targets, dependents = np.zeros_like(demand), np.zeros_like(demand)
    targets[plan.target] = plan.targets
    for dependent, pods in plan.beside.items():
        requests[plan.target] += problem.requests[dependent] * pods
        dependents[dependent] = demand[dependent]
    placement = place(replace(problem, requests=requests), relations, targets, packing, request.onto)
    placement = place(problem, relations, dependents, packing, placement)
    rest = demand - targets - dependents
    return place(problem, relations, rest, packing, placement) if rest.any() else placement

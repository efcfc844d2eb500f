"""Which pods are scheduled if not all fit: in queue order, bundles as a whole (docs/design/nodes.md 8.2).

Cost comes second: one large old pod is not dropped for three small young ones. As long as all pods fit,
order does not matter and all are placed together. Otherwise the longest prefix of the queue that fits is placed
together, and the rest one unit after the other on top of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.planning.problem.placement import Placement
from plimsoll.nodes.planning.problem.scheduled_pods import (
    PartialPlacement,
    QueueUnit,
    ScheduledPods,
    assign_places_to_units,
    count_demand,
    list_queue_units,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Ints

    Place = Callable[[Ints, Placement | None], Placement]
    """Places pods by class [C] on top of a placement; None: on nothing, and no pods are placed afterwards."""


def schedule_by_priority(
    problem: ScaleUpProblem, place: Place, *, unreachable: frozenset[int] = frozenset()
) -> ScheduledPods:
    """Place all pods together if they all fit; otherwise in queue order. `unreachable` classes fit in no order."""
    queue = list_queue_units(problem)
    together = place(count_demand(problem, queue), None)
    if not _may_schedule_more(problem, queue, together, unreachable):
        return assign_places_to_units(problem, queue, together)
    placement = Placement()
    first = _find_longest_prefix(problem, queue, place)
    accepted = list(queue[:first])
    tries: dict[int, PartialPlacement] = {}
    if accepted:
        placement = place(count_demand(problem, accepted), placement)
    for unit in queue[first:]:
        tried = place(count_demand(problem, [unit]), placement)
        if not unit.is_whole or _is_scheduled(problem, unit, placement, tried):
            placement = tried
            accepted.append(unit)
        else:
            tries |= dict.fromkeys(unit.entries, _build_partial_placement(problem, unit, placement, tried))
    placement = _retry_affinity(problem, accepted, placement, place)
    in_order = replace(assign_places_to_units(problem, accepted, placement), tries=tries)
    # Pods whose affinity target is further back in the queue are helped only together with it.
    at_once = assign_places_to_units(problem, queue, together)
    return (
        at_once
        if _count_scheduled(queue, at_once) > _count_scheduled(queue, in_order) and _is_whole(problem, queue, at_once)
        else in_order
    )


def _retry_affinity(
    problem: ScaleUpProblem, accepted: Sequence[QueueUnit], placement: Placement, place: Place
) -> Placement:
    """Place pods again whose affinity target came after them in the queue."""
    left = count_demand(problem, accepted) - placement.count_placed(len(problem.table))
    left[[not pod_class.has_affinity for pod_class in problem.table]] = 0
    return place(left, placement) if left.any() else placement


def _count_scheduled(queue: Sequence[QueueUnit], scheduled: ScheduledPods) -> list[int]:
    """Pods scheduled per unit, in queue order: more for one unit counts more than anything for units behind it."""
    return [sum(scheduled.pods[index] for index in unit.entries) for unit in queue]


def _is_whole(problem: ScaleUpProblem, queue: Sequence[QueueUnit], scheduled: ScheduledPods) -> bool:
    """Whether no bundle is scheduled in part."""
    pending = problem.table.pending
    counts = [
        [(scheduled.pods[index], pending[index].count) for index in unit.entries] for unit in queue if unit.is_whole
    ]
    return all(all(got == wanted for got, wanted in unit) or not any(got for got, _ in unit) for unit in counts)


def _build_partial_placement(
    problem: ScaleUpProblem, unit: QueueUnit, before: Placement, tried: Placement
) -> PartialPlacement:
    classes = len(problem.table)
    demand = count_demand(problem, [unit])
    placed = np.minimum(tried.count_placed(classes) - before.count_placed(classes), demand)
    short = tuple(np.flatnonzero(placed < demand).tolist())
    return PartialPlacement(placement=tried, placed=int(placed.sum()), pods=int(demand.sum()), short=short)


def _is_complete(problem: ScaleUpProblem, units: Sequence[QueueUnit], placement: Placement) -> bool:
    return bool((placement.count_placed(len(problem.table)) >= count_demand(problem, units)).all())


def _is_scheduled(problem: ScaleUpProblem, unit: QueueUnit, before: Placement, tried: Placement) -> bool:
    """Whether the whole unit was placed; earlier units may have got less than they asked for."""
    classes = len(problem.table)
    return bool((tried.count_placed(classes) - before.count_placed(classes) >= count_demand(problem, [unit])).all())


def _may_schedule_more(
    problem: ScaleUpProblem, queue: Sequence[QueueUnit], placement: Placement, unreachable: frozenset[int]
) -> bool:
    """Whether another order may schedule more: a bundle is placed in part, or some node would take a left pod."""
    left = count_demand(problem, queue) - placement.count_placed(len(problem.table))
    if not left.any():
        return False
    short = np.flatnonzero(left)
    in_bundles = {int(problem.table.class_of[index]) for unit in queue if unit.is_whole for index in unit.entries}
    if in_bundles & set(short.tolist()):
        return True
    return len(queue) > 1 and any(
        number not in unreachable and _fits_somewhere(problem, number) for number in short.tolist()
    )


def _fits_somewhere(problem: ScaleUpProblem, number: int) -> bool:
    """Whether some node, existing or new, would take such a pod if no other pods came."""
    if problem.allowed[:, number].any():
        return True
    return bool(problem.rules.node_predicates.find_fitting(number, problem.arrays.free, {}).any())


def _find_longest_prefix(problem: ScaleUpProblem, queue: Sequence[QueueUnit], place: Place) -> int:
    """The length of the longest prefix of the queue that can be scheduled together, by binary search."""
    low, high = 0, len(queue)
    while low < high:
        middle = (low + high + 1) // 2
        if _is_complete(problem, queue[:middle], place(count_demand(problem, queue[:middle]), Placement())):
            low = middle
        else:
            high = middle - 1
    return low

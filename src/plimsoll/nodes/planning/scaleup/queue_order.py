"""Which pods are served when not all can be: in queue order, bundles as a whole (docs/design/nodes.md 8.2).

Cost comes second: one large old pod is not dropped to serve three small young ones. As long as all pods get a place,
order does not matter and all are placed together. Otherwise the longest prefix of the queue that fits is placed
together, and the rest one unit after the other on top of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.planning.problem.placement import Placement
from plimsoll.nodes.planning.problem.served import ServedPlacement, Try, Unit, demand_of, queue_units, serve_units

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Ints

    Place = Callable[[Ints, Placement | None], Placement]
    """Places pods by class [C] on top of a placement; None: on nothing, and no pods are placed afterwards."""


def serve_by_priority(problem: ScaleUpProblem, place: Place) -> ServedPlacement:
    """Place all pods together if they all fit; otherwise in queue order."""
    queue = queue_units(problem)
    together = place(demand_of(problem, queue), None)
    if not _may_serve_more(problem, queue, together):
        return serve_units(problem, queue, together)
    placement = Placement()
    first = _find_longest_prefix(problem, queue, place)
    accepted = list(queue[:first])
    tries: dict[int, Try] = {}
    if accepted:
        placement = place(demand_of(problem, accepted), placement)
    for unit in queue[first:]:
        tried = place(demand_of(problem, [unit]), placement)
        if not unit.is_whole or _is_served(problem, unit, placement, tried):
            placement = tried
            accepted.append(unit)
        else:
            tries |= dict.fromkeys(unit.entries, _find_nearest_try(problem, unit, placement, tried))
    placement = _retry_affinity(problem, accepted, placement, place)
    in_order = replace(serve_units(problem, accepted, placement), tries=tries)
    # Pods whose affinity target is further back in the queue are helped only together with it.
    at_once = serve_units(problem, queue, together)
    return (
        at_once
        if _count_served(queue, at_once) > _count_served(queue, in_order) and _is_whole(problem, queue, at_once)
        else in_order
    )


def _retry_affinity(problem: ScaleUpProblem, accepted: Sequence[Unit], placement: Placement, place: Place) -> Placement:
    """Place pods again whose affinity target came after them in the queue."""
    left = demand_of(problem, accepted) - placement.placed(len(problem.table))
    left[[not pod_class.has_affinity for pod_class in problem.table]] = 0
    return place(left, placement) if left.any() else placement


def _count_served(queue: Sequence[Unit], served: ServedPlacement) -> list[int]:
    """Pods served per unit, in queue order: more for one unit counts more than anything for units behind it."""
    return [sum(served.pods[index] for index in unit.entries) for unit in queue]


def _is_whole(problem: ScaleUpProblem, queue: Sequence[Unit], served: ServedPlacement) -> bool:
    """Whether no bundle is served in part."""
    pending = problem.table.pending
    counts = [[(served.pods[index], pending[index].count) for index in unit.entries] for unit in queue if unit.is_whole]
    return all(all(got == wanted for got, wanted in unit) or not any(got for got, _ in unit) for unit in counts)


def _find_nearest_try(problem: ScaleUpProblem, unit: Unit, before: Placement, tried: Placement) -> Try:
    classes = len(problem.table)
    demand = demand_of(problem, [unit])
    placed = np.minimum(tried.placed(classes) - before.placed(classes), demand)
    short = tuple(np.flatnonzero(placed < demand).tolist())
    return Try(placement=tried, placed=int(placed.sum()), pods=int(demand.sum()), short=short)


def _is_complete(problem: ScaleUpProblem, units: Sequence[Unit], placement: Placement) -> bool:
    return bool((placement.placed(len(problem.table)) >= demand_of(problem, units)).all())


def _is_served(problem: ScaleUpProblem, unit: Unit, before: Placement, tried: Placement) -> bool:
    """Whether the whole unit was placed; earlier units may have got less than they asked for."""
    classes = len(problem.table)
    return bool((tried.placed(classes) - before.placed(classes) >= demand_of(problem, [unit])).all())


def _may_serve_more(problem: ScaleUpProblem, queue: Sequence[Unit], placement: Placement) -> bool:
    """Whether pods without a place may fit otherwise: a bundle placed in part, or pods that some node would take."""
    left = demand_of(problem, queue) - placement.placed(len(problem.table))
    if not left.any():
        return False
    short = np.flatnonzero(left)
    in_bundles = {int(problem.table.class_of[index]) for unit in queue if unit.is_whole for index in unit.entries}
    if in_bundles & set(short.tolist()):
        return True
    return len(queue) > 1 and any(_fits_somewhere(problem, int(number)) for number in short)


def _fits_somewhere(problem: ScaleUpProblem, number: int) -> bool:
    """Whether some node, existing or new, would take such a pod if no other pods came."""
    if problem.allowed[:, number].any():
        return True
    return bool(problem.rules.node_predicates.fits(number, problem.arrays.free, {}).any())


def _find_longest_prefix(problem: ScaleUpProblem, queue: Sequence[Unit], place: Place) -> int:
    """The length of the longest prefix of the queue that can be served together, by binary search."""
    low, high = 0, len(queue)
    while low < high:
        middle = (low + high + 1) // 2
        if _is_complete(problem, queue[:middle], place(demand_of(problem, queue[:middle]), Placement())):
            low = middle
        else:
            high = middle - 1
    return low

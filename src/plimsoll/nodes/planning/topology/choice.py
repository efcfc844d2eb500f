"""Many classes with rules about each other: planned jointly and greedily, and the better plan is taken.

`place_many` is for problems that are too large to be planned class by class. The greedy plan is its floor: it never
places fewer pods, nor as many for more money. `improve_greedily` tries several greedy plans for small problems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.planning.packing.pod_by_pod import holds, is_worth_improving, score
from plimsoll.nodes.planning.topology.greedy import GreedyOrder, GreedyStrategy, place_greedily
from plimsoll.nodes.planning.topology.groups import TopologyGroups
from plimsoll.nodes.planning.topology.joint import is_worthwhile, place_jointly

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.nodes.planning.packing.pod_by_pod import PlacementRequest
    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem


_STRATEGIES: Final = tuple(GreedyStrategy(height=height, order=order) for order in GreedyOrder for height in (1, 2, 4))


def place_many(request: PlacementRequest, unreachable: Collection[int]) -> Placement | None:
    """The better placement; None if the problem is small, has other kinds of rules, or is planned onto earlier pods.

    None, too, if no class has a rule that another class takes part in: these are planned faster class by class.

    After a plan was refuted only the greedy one is tried: it holds in the order in which it was made.
    """
    failed = request.packing.failed
    demand = {
        number: pods
        for number, pods in request.wanted.items()
        if number not in unreachable and number not in failed.given_up
    }
    is_first = request.onto is None or request.onto.is_empty
    if not is_first or not is_worthwhile(request.problem, demand, request.packing.usable):
        return None
    if TopologyGroups.build(request.problem, request.relations, list(demand)).is_independent:
        return None
    tried: list[Placement | None] = []
    if not failed.pod_by_pod:
        tried.append(place_jointly(request.problem, request.relations, demand, request.packing))
    tried.append(place_greedily(request.problem, request.relations, demand, request.packing.usable))
    found = [placement for placement in tried if placement is not None]
    return min(found, key=lambda placement: _compute_rank(request.problem, placement), default=None)


def improve_greedily(request: PlacementRequest, placement: Placement, unreachable: Collection[int]) -> Placement:
    """The placement of a small problem, or a greedy one that schedules more pods, or as many for less money."""
    if not is_worth_improving(request, placement) or not (request.onto is None or request.onto.is_empty):
        return placement
    demand = {number: pods for number, pods in request.wanted.items() if number not in unreachable}
    best = placement
    for strategy in _STRATEGIES:
        tried = place_greedily(request.problem, request.relations, demand, request.packing.usable, strategy)
        if tried is None:
            break
        # A zone without nodes counts as empty in it, so a plan in fewer zones is as even as it must be.
        if score(request.problem, tried) > score(request.problem, best) and holds(request, tried):
            best = tried
    return best


def _compute_rank(problem: ScaleUpProblem, placement: Placement) -> tuple[int, float]:
    """Unplaced pods, then money; less is better."""
    prices = problem.planning_prices
    cost = float(placement.count_new_nodes(len(problem.options)) @ prices) if len(prices) else 0.0
    return -int(placement.count_placed(len(problem.table)).sum()), round(cost, 9)

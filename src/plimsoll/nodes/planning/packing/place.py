"""Places pods onto existing nodes, then onto planned ones, then onto new ones, one layer of classes after the other.

`place(problem, relations, demand, packing)` returns a placement on top of another one; pods that do not fit are not
placed. `scaleup.queue_order` decides which pods come first when not all fit.

A layer is lowered to demand slices (`constraints`) and packed (`binpacking`). Quotas and caps are guesses made before
the packing; each attempt shows what really fits, and the next one uses that feedback. Attempts are counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.packing.binpacking import FailedClasses, PackingOptions, pack_slices
from plimsoll.nodes.planning.packing.constraints import lower_constraints
from plimsoll.nodes.planning.packing.demand_slices import Feedback
from plimsoll.nodes.planning.packing.node_caps import count_on_largest_node, is_level
from plimsoll.nodes.planning.packing.placement_view import PlacementView
from plimsoll.nodes.planning.packing.pod_by_pod import place_pod_by_pod
from plimsoll.nodes.planning.packing.pod_relations import PodRelations, sort_into_layers, split_layer
from plimsoll.nodes.planning.problem.placement import Placement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.packing.demand_slices import DemandSlice, LoweredConstraints
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Ints


_DOMAINS_TRIED: Final = 16
"""The number of domains tried for pods that must share one."""
_WORK: Final = 4_000
"""The limit of classes times options over all attempts at a layer. Beyond it the best guess is taken untried."""
_TRIES: Final = 8
"""The number of attempts at a layer in which a domain took less than its quota."""


def place_layer(
    problem: ScaleUpProblem,
    relations: PodRelations,
    demand: Mapping[int, int],
    packing: PackingOptions,
    placement: Placement,
) -> tuple[Placement, tuple[int, ...]]:
    """The best placement of a layer; pods that must share a domain may have several to choose from."""
    view = PlacementView(problem, placement, relations)
    best, lowered = _pack_with_feedback(view, demand, packing, Feedback())
    work = len(demand) * max(int(packing.usable.sum()), 1)
    evenly = False
    if lowered.shifted and work <= _WORK:
        tried, other = _pack_with_feedback(view, demand, packing, Feedback(evenly=True))
        if evenly := _compute_penalty(problem, demand, tried) <= _compute_penalty(problem, demand, best):
            best, lowered = tried, other
    shared_domains: dict[tuple[int, ...], str] = {}
    tries = _WORK // (work * max(len(lowered.shared_domains), 1))
    for mutual_group, names in lowered.shared_domains.items():
        shared_domains[mutual_group] = names[0]
        for name in names[1 : min(_DOMAINS_TRIED, 1 + tries)]:
            tried, other = _pack_with_feedback(
                view, demand, packing, Feedback(shared_domains={**shared_domains, mutual_group: name}, evenly=evenly)
            )
            if _compute_penalty(problem, demand, tried) < _compute_penalty(problem, demand, best):
                best, lowered, shared_domains[mutual_group] = tried, other, name
    return best, tuple(lowered.complex)


def _compute_penalty(problem: ScaleUpProblem, demand: Mapping[int, int], placement: Placement) -> tuple[int, float]:
    """Unschedulable pods, then cost; less is better."""
    placed = placement.count_placed(len(problem.table))
    prices = problem.planning_prices
    money = float(placement.count_new_nodes(len(problem.options)) @ prices) if len(prices) else 0.0
    return sum(demand.values()) - sum(int(placed[number]) for number in demand), round(money, 9)


def _pack_with_feedback(
    view: PlacementView, demand: Mapping[int, int], packing: PackingOptions, feedback: Feedback
) -> tuple[Placement, LoweredConstraints]:
    """Distribute the demand over domains, and try again with feedback while a domain takes less than its quota."""
    # Nodes opened for other pods, now or later, limit classes that are spread over nodes.
    feedback.held_down = not packing.is_last or len(demand) > 1
    for _ in range(_TRIES):
        lowered = lower_constraints(view, demand, feedback)
        tried, left = pack_slices(view, lowered.slices, packing)
        after = PlacementView(view.problem, tried, view.relations)
        news = _update_feedback(feedback, after, lowered.slices, left)
        if not _update_domains(feedback, view, after, lowered.slices, left) and not news:
            break
    for number, reasons in lowered.refused.items():
        for reason in reasons:
            tried = tried.add_rejection(number, reason)
    return tried, lowered


def _update_feedback(feedback: Feedback, after: PlacementView, slices: Sequence[DemandSlice], left: Ints) -> bool:
    """Whether an attempt has shown something new."""
    news = False
    by_class: dict[int, list[int]] = {}
    for index, demand_slice in enumerate(slices):
        by_class.setdefault(demand_slice.number, []).append(index)
        if (
            demand_slice.domain
            and left[index]
            and feedback.most.get((demand_slice.number, demand_slice.domain)) != demand_slice.pods - left[index]
        ):
            feedback.most[demand_slice.number, demand_slice.domain] = demand_slice.pods - int(left[index])
            news = True
    for number, indices in by_class.items():
        if any(slices[index].rises for index in indices) and not is_level(after, number):
            feedback.uneven.add(number)
            news = True
        if not any(slices[index].even for index in indices):
            continue
        of_class = [(slices[index], int(left[index])) for index in indices]
        higher = _find_height(after, of_class)
        if higher > feedback.heights.get(number, 0):
            feedback.heights[number] = higher
            news = True
        elif not is_level(after, number) or _has_lost_room(of_class):
            feedback.uneven.add(number)
            news = True
    return news


def _has_lost_room(slices: Sequence[tuple[DemandSlice, int]]) -> bool:
    """Whether pods planned for existing nodes found them full and cannot go elsewhere."""
    return any(left for _, left in slices) and not any(demand_slice.places.options.any() for demand_slice, _ in slices)


def _update_domains(
    feedback: Feedback, before: PlacementView, after: PlacementView, slices: Sequence[DemandSlice], left: Ints
) -> bool:
    """Whether other pods opened domains that lower the spread minimum of a class without pods there."""
    used: dict[int, set[str]] = {}
    for index, demand_slice in enumerate(slices):
        if demand_slice.domain:
            reached = {demand_slice.domain} if demand_slice.pods > left[index] else set()
            used[demand_slice.number] = used.get(demand_slice.number, set()) | reached
    news = False
    for number, names in used.items():
        known = names | feedback.present.get(number, set())
        for spread_count in after.problem.rules.get_spreads(number):
            if (
                spread_count.key == HOSTNAME
                or not after.find_planned_domains(spread_count.key)
                - before.find_existing_domains(spread_count.key)
                - known
            ):
                continue
            empty = {name for name, pods in after.count_spread_levels(number, spread_count).items() if not pods}
            if appeared := empty - before.count_spread_levels(number, spread_count).keys() - known:
                feedback.present.setdefault(number, set()).update(appeared)
                news = True
    return news


def _find_height(view: PlacementView, slices: Sequence[tuple[DemandSlice, int]]) -> int:
    """The pods per new node needed if no more nodes can be added; 0 if that does not help."""
    new = [(demand_slice, left) for demand_slice, left in slices if demand_slice.places.options.any()]
    nodes = sum((demand_slice.pods - left) // demand_slice.pods_per_item for demand_slice, left in new)
    if not nodes or not any(left for _, left in new):
        return 0
    height = -(-sum(demand_slice.pods for demand_slice, _ in new) // nodes)
    return height if height <= max(count_on_largest_node(view, demand_slice) for demand_slice, _ in new) else 0


__all__ = ["FailedClasses", "PackingOptions", "place", "reject_given_up"]

_WOULD_UNBALANCE: Final = Reason(
    code="WouldUnbalance",
    message="its nodes would open a zone that pods served before it are not spread over; it waits until those run",
)
_GIVEN_UP: Final = Reason(
    code="VerificationFailed", message="every plan for these pods failed when it was checked pod by pod"
)


def place(
    problem: ScaleUpProblem,
    relations: PodRelations,
    demand: Ints,
    packing: PackingOptions,
    onto: Placement | None = None,
) -> Placement:
    """`demand` [C]: pods of each class that need a place, in addition to what the placement has placed.

    Later pods must not open a zone that would break the spread of pods placed before: they do without that zone, or
    wait until those pods run.
    """
    placement = _place_onto(problem, relations, demand, packing, onto)
    if onto is None or onto.is_empty:
        return placement
    before, after = PlacementView(problem, onto, relations), PlacementView(problem, placement, relations)
    if not _opens_domains(before, after) or spread_holds(after, onto):
        return placement
    narrower = replace(packing, usable=packing.usable & before.find_options_in_existing_domains())
    placement = _place_onto(problem, relations, demand, narrower, onto)
    short = demand - (placement.count_placed(len(demand)) - onto.count_placed(len(demand)))
    for number in np.flatnonzero(short > 0).tolist():
        placement = placement.add_rejection(number, _WOULD_UNBALANCE)
    return placement


def _place_onto(
    problem: ScaleUpProblem, relations: PodRelations, demand: Ints, packing: PackingOptions, onto: Placement | None
) -> Placement:
    """Place classes in queue order, as a scheduler would.

    If pods are unschedulable, the classes that fit on no new node go first, if that places more pods.
    """
    numbers = [number for number in np.flatnonzero(demand).tolist() if problem.table.classes[number].problem is None]
    in_queue_order = sorted(numbers, key=problem.class_order.__getitem__)
    placement = _place_in_order(in_queue_order, problem, relations, demand, packing, onto)
    confined = sorted(numbers, key=lambda number: (bool(problem.allowed[:, number].any()), number))
    missing = demand - placement.count_placed(len(demand)) + (onto or Placement()).count_placed(len(demand))
    if (
        confined == in_queue_order
        or not missing[numbers].any()
        or not any(_has_pod_constraints(problem, number) for number in numbers)
    ):
        return placement
    other = _place_in_order(confined, problem, relations, demand, packing, onto)
    return other if other.count_placed(len(demand)).sum() > placement.count_placed(len(demand)).sum() else placement


def _has_pod_constraints(problem: ScaleUpProblem, number: int) -> bool:
    """Whether the class depends on other pods, so that the order of placing matters."""
    return problem.table.classes[number].scheduling_key.has_pod_constraints


def _place_in_order(
    numbers: Sequence[int],
    problem: ScaleUpProblem,
    relations: PodRelations,
    demand: Ints,
    packing: PackingOptions,
    onto: Placement | None,
) -> Placement:
    placement = onto or Placement()
    failed = packing.failed
    placement = reject_given_up(placement, failed, numbers)
    found, later = sort_into_layers(
        [class_number for class_number in numbers if class_number not in failed.pod_by_pod], relations
    )
    later += [class_number for class_number in numbers if class_number in failed.pod_by_pod - failed.given_up]
    parts = [part for layer in found for part in split_layer(problem, relations, layer)]
    for number, part in enumerate(parts, start=1):
        now = replace(packing, is_last=onto is None and number == len(parts) and not later)
        placement, complex_ = place_layer(
            problem, relations, {class_number: int(demand[class_number]) for class_number in part}, now, placement
        )
        if complex_:
            # They are placed now, not last, because other pods are planned around them.
            placement = place_pod_by_pod(
                problem,
                {class_number: int(demand[class_number]) for class_number in complex_},
                placement,
                usable=packing.usable,
            )
        later += complex_
    placed = placement.count_placed(len(demand)) - (onto or Placement()).count_placed(len(demand))
    if wanted := {
        class_number: left
        for class_number in sorted(later)
        if (left := int(demand[class_number] - placed[class_number]))
    }:
        placement = place_pod_by_pod(problem, wanted, placement, usable=packing.usable)
    return placement


def reject_given_up(placement: Placement, failed: FailedClasses, numbers: Iterable[int] | None = None) -> Placement:
    """The placement with the reason of classes that are not planned at all; of these, or of all."""
    for number in sorted(failed.given_up if numbers is None else failed.given_up.intersection(numbers)):
        placement = placement.add_rejection(number, _GIVEN_UP)
    return placement


def _opens_domains(before: PlacementView, after: PlacementView) -> bool:
    """Whether the placement opens domains, of any key that a pending class is spread over."""
    problem = before.problem
    spreads = (
        spread_count
        for pods in problem.table
        if pods.has_spread
        for spread_count in problem.rules.get_spreads(pods.index)
    )
    keys = {spread_count.key for spread_count in spreads} - {HOSTNAME}
    return any(after.find_existing_domains(key) - before.find_existing_domains(key) for key in keys)


def spread_holds(view: PlacementView, of: Placement) -> bool:
    """Whether spread over zones still holds for the pods of an earlier placement."""
    for number in np.flatnonzero(of.count_placed(len(view.problem.table))).tolist():
        for spread_count in view.problem.rules.get_spreads(number):
            if spread_count.key == HOSTNAME or not spread_count.counts_itself:
                continue
            levels = view.count_spread_levels(number, spread_count)
            lowest = min(levels.values(), default=0) if len(levels) >= spread_count.min_domains else 0
            if any(
                levels.get(name, 0) > lowest + spread_count.max_skew
                for name in view.find_domains_with(number, spread_count.key)
            ):
                return False
    return True

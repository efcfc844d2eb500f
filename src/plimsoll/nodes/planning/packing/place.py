"""One layer of classes shared out over homes, domains and nodes, tried and learned from until it comes out even.

`placed_layer(board, meetings, demand, means, draft)`, for `placing`. Quotas and caps are made before anybody knows what
finds room (`folding`); a try shows it (`packing`), and the next one knows better. Tries are counted.

Pods onto existing nodes, then onto nodes already planned, then onto new ones: one layer of classes after the other.

`place(board, meetings, demand, ...)` gives a draft on top of another one. What does not fit stays without a place; who
is served first when not all can be is decided by `tiers`, outside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.packing.binpacking import FailedClasses, PackingOptions, packed
from plimsoll.nodes.planning.packing.constraints import lower_constraints
from plimsoll.nodes.planning.packing.demand_slices import Feedback
from plimsoll.nodes.planning.packing.node_caps import is_level, tallest
from plimsoll.nodes.planning.packing.placement_view import PlacementView
from plimsoll.nodes.planning.packing.pod_by_pod import place_one_by_one
from plimsoll.nodes.planning.packing.pod_relations import PodRelations, in_turn, layers
from plimsoll.nodes.planning.problem.placement import Placement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.packing.demand_slices import DemandSlice, Folded
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Ints


_HOMES: Final = 16
"""So many homes are tried for pods that want to be together in one domain."""
_WORK: Final = 4_000
"""Each try plans a layer anew: classes times offers, over all tries. Beyond it what seems best is taken untried."""
_TRIES: Final = 8
"""So often a layer is shared out anew because a domain took less than its quota."""


def placed_layer(
    board: ScaleUpProblem, meetings: PodRelations, demand: Mapping[int, int], means: PackingOptions, draft: Placement
) -> tuple[Placement, tuple[int, ...]]:
    """The best of what can be done; who wants to be together may have more than one home to choose from."""
    scene = PlacementView(board, draft, meetings)
    best, folded = _levelled(scene, demand, means, Feedback())
    work = len(demand) * max(int(means.usable.sum()), 1)
    evenly = False
    if folded.shifted and work <= _WORK:
        tried, other = _levelled(scene, demand, means, Feedback(evenly=True))
        if evenly := _merit(board, demand, tried) <= _merit(board, demand, best):
            best, folded = tried, other
    homes: dict[tuple[int, ...], str] = {}
    tries = _WORK // (work * max(len(folded.homes), 1))
    for family, names in folded.homes.items():
        homes[family] = names[0]
        for name in names[1 : min(_HOMES, 1 + tries)]:
            tried, other = _levelled(scene, demand, means, Feedback(homes={**homes, family: name}, evenly=evenly))
            if _merit(board, demand, tried) < _merit(board, demand, best):
                best, folded, homes[family] = tried, other, name
    return best, tuple(folded.complex)


def _merit(board: ScaleUpProblem, demand: Mapping[int, int], draft: Placement) -> tuple[int, float]:
    """Less is better: pods without a place, then money."""
    placed = draft.placed(len(board.table))
    prices = board.planning_prices
    money = float(draft.nodes_of(len(board.offers)) @ prices) if len(prices) else 0.0
    return sum(demand.values()) - sum(int(placed[number]) for number in demand), round(money, 9)


def _levelled(
    scene: PlacementView, demand: Mapping[int, int], means: PackingOptions, learned: Feedback
) -> tuple[Placement, Folded]:
    """Shared out over domains; where one takes less than its quota, the others are told, and all is tried again."""
    # Whoever else opens nodes, now or later, holds those down that are spread over nodes.
    learned.held_down = not means.is_last or len(demand) > 1
    for _ in range(_TRIES):
        folded = lower_constraints(scene, demand, learned)
        tried, left = packed(scene, folded.shares, means)
        after = PlacementView(scene.board, tried, scene.meetings)
        news = _learns(learned, after, folded.shares, left)
        if not _learns_domains(learned, scene, after, folded.shares, left) and not news:
            break
    for number, reasons in folded.refused.items():
        for reason in reasons:
            tried = tried.with_refusal(number, reason)
    return tried, folded


def _learns(learned: Feedback, after: PlacementView, shares: Sequence[DemandSlice], left: Ints) -> bool:
    """Whether a try has shown something new."""
    news = False
    by_class: dict[int, list[int]] = {}
    for index, share in enumerate(shares):
        by_class.setdefault(share.number, []).append(index)
        if share.domain and left[index] and learned.most.get((share.number, share.domain)) != share.pods - left[index]:
            learned.most[share.number, share.domain] = share.pods - int(left[index])
            news = True
    for number, indices in by_class.items():
        if any(shares[index].rises for index in indices) and not is_level(after, number):
            learned.uneven.add(number)
            news = True
        if not any(shares[index].even for index in indices):
            continue
        of_class = [(shares[index], int(left[index])) for index in indices]
        higher = _higher(after, of_class)
        if higher > learned.heights.get(number, 0):
            learned.heights[number] = higher
            news = True
        elif not is_level(after, number) or _lost_its_room(of_class):
            learned.uneven.add(number)
            news = True
    return news


def _lost_its_room(shares: Sequence[tuple[DemandSlice, int]]) -> bool:
    """Whether pods that were to stay on existing nodes found others there, and may go nowhere else."""
    return any(left for _, left in shares) and not any(share.places.offers.any() for share, _ in shares)


def _learns_domains(
    learned: Feedback, before: PlacementView, after: PlacementView, shares: Sequence[DemandSlice], left: Ints
) -> bool:
    """Whether others brought domains into being that now hold down the minimum of a class that has no pods there."""
    used: dict[int, set[str]] = {}
    for index, share in enumerate(shares):
        if share.domain:
            reached = {share.domain} if share.pods > left[index] else set()
            used[share.number] = used.get(share.number, set()) | reached
    news = False
    for number, names in used.items():
        known = names | learned.present.get(number, set())
        for spread_count in after.board.rules.spreads(number):
            if (
                spread_count.key == HOSTNAME
                or not after.planned_domains(spread_count.key) - before.existing_domains(spread_count.key) - known
            ):
                continue
            empty = {name for name, pods in after.spread_levels(number, spread_count).items() if not pods}
            if appeared := empty - before.spread_levels(number, spread_count).keys() - known:
                learned.present.setdefault(number, set()).update(appeared)
                news = True
    return news


def _higher(scene: PlacementView, shares: Sequence[tuple[DemandSlice, int]]) -> int:
    """How high new nodes would have to be filled, as no more of them are to be had; 0: that is of no use."""
    new = [(share, left) for share, left in shares if share.places.offers.any()]
    nodes = sum((share.pods - left) // share.glued for share, left in new)
    if not nodes or not any(left for _, left in new):
        return 0
    height = -(-sum(share.pods for share, _ in new) // nodes)
    return height if height <= max(tallest(scene, share) for share, _ in new) else 0


__all__ = ["FailedClasses", "PackingOptions", "place"]

_WOULD_UNBALANCE: Final = Reason(
    code="WouldUnbalance",
    message="its nodes would open a zone that pods served before it are not spread over; it waits until those run",
)
_GIVEN_UP: Final = Reason(
    code="VerificationFailed", message="every plan for these pods failed when it was checked pod by pod"
)


def place(
    board: ScaleUpProblem, meetings: PodRelations, demand: Ints, means: PackingOptions, onto: Placement | None = None
) -> Placement:
    """`demand` [C]: pods of each class that need a place, on top of what the draft has placed.

    Who comes later may not open a zone that pods placed before would have to be spread over: then it does without that
    zone, or waits until those run.
    """
    draft = _placed_onto(board, meetings, demand, means, onto)
    if onto is None or onto.is_empty:
        return draft
    before, after = PlacementView(board, onto, meetings), PlacementView(board, draft, meetings)
    if not _opens_domains(before, after) or spread_holds(after, onto):
        return draft
    narrower = replace(means, usable=means.usable & before.in_existing_domains())
    draft = _placed_onto(board, meetings, demand, narrower, onto)
    short = demand - (draft.placed(len(demand)) - onto.placed(len(demand)))
    for number in np.flatnonzero(short > 0).tolist():
        draft = draft.with_refusal(number, _WOULD_UNBALANCE)
    return draft


def _placed_onto(
    board: ScaleUpProblem, meetings: PodRelations, demand: Ints, means: PackingOptions, onto: Placement | None
) -> Placement:
    """Where nothing else says who comes first, the line does: a scheduler will take them so.

    If that leaves somebody, those who can be on no new node go first, where this helps more.
    """
    numbers = [number for number in np.flatnonzero(demand).tolist() if board.table.classes[number].problem is None]
    in_line = sorted(numbers, key=board.turns.__getitem__)
    draft = _placed_in_order(in_line, (board, meetings), demand, means, onto)
    confined = sorted(numbers, key=lambda number: (bool(board.allowed[:, number].any()), number))
    missing = demand - draft.placed(len(demand)) + (onto or Placement()).placed(len(demand))
    if confined == in_line or not missing[numbers].any() or not any(_meets(board, number) for number in numbers):
        return draft
    other = _placed_in_order(confined, (board, meetings), demand, means, onto)
    return other if other.placed(len(demand)).sum() > draft.placed(len(demand)).sum() else draft


def _meets(board: ScaleUpProblem, number: int) -> bool:
    """Whether it looks at other pods: then it matters who is placed first."""
    return board.table.classes[number].scheduling_key.has_pod_constraints


def _placed_in_order(
    numbers: Sequence[int],
    on: tuple[ScaleUpProblem, PodRelations],
    demand: Ints,
    means: PackingOptions,
    onto: Placement | None,
) -> Placement:
    board, meetings = on
    draft = onto or Placement()
    doubts = means.doubts
    for number in doubts.given_up.intersection(numbers):
        draft = draft.with_refusal(number, _GIVEN_UP)
    found, later = layers([one for one in numbers if one not in doubts.one_by_one], meetings)
    later += [one for one in numbers if one in doubts.one_by_one - doubts.given_up]
    parts = [part for layer in found for part in in_turn(board, meetings, layer)]
    for number, part in enumerate(parts, start=1):
        now = replace(means, is_last=onto is None and number == len(parts) and not later)
        draft, complex_ = placed_layer(board, meetings, {one: int(demand[one]) for one in part}, now, draft)
        if complex_:
            # Now, not in the end: others are planned around them.
            draft = place_one_by_one(board, {one: int(demand[one]) for one in complex_}, draft, usable=means.usable)
        later += complex_
    placed = draft.placed(len(demand)) - (onto or Placement()).placed(len(demand))
    if wanted := {one: left for one in sorted(later) if (left := int(demand[one] - placed[one]))}:
        draft = place_one_by_one(board, wanted, draft, usable=means.usable)
    return draft


def _opens_domains(before: PlacementView, after: PlacementView) -> bool:
    """Whether there are zones, of any key that a waiting class is spread over, where no node was."""
    board = before.board
    spreads = (
        spread_count for pods in board.table if pods.has_spread for spread_count in board.rules.spreads(pods.index)
    )
    keys = {spread_count.key for spread_count in spreads} - {HOSTNAME}
    return any(after.existing_domains(key) - before.existing_domains(key) for key in keys)


def spread_holds(scene: PlacementView, of: Placement) -> bool:
    """Whether spread over zones still holds for pods that a draft had placed, with everything that came since."""
    for number in np.flatnonzero(of.placed(len(scene.board.table))).tolist():
        for spread_count in scene.board.rules.spreads(number):
            if spread_count.key == HOSTNAME or not spread_count.counts_itself:
                continue
            levels = scene.spread_levels(number, spread_count)
            lowest = min(levels.values(), default=0) if len(levels) >= spread_count.min_domains else 0
            if any(
                levels.get(name, 0) > lowest + spread_count.max_skew
                for name in scene.domains_with(number, spread_count.key)
            ):
                return False
    return True

"""Pods onto existing nodes, then onto nodes already planned, then onto new ones: one layer of classes after the other.

`place(board, meetings, demand, ...)` gives a draft on top of another one. What does not fit stays without a place; who
is served first when not all can be is decided by `tiers`, outside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.planning.drafts import Draft
from plimsoll.nodes.planning.levelling import placed_layer
from plimsoll.nodes.planning.meetings import Meetings, layers
from plimsoll.nodes.planning.one_by_one import place_one_by_one
from plimsoll.nodes.planning.packing import Doubts, Means
from plimsoll.nodes.planning.profiles import HOSTNAME
from plimsoll.nodes.planning.scenes import Scene
from plimsoll.nodes.planning.turns import in_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.solver.problems import Ints

__all__ = ["Doubts", "Means", "place"]

_WOULD_UNBALANCE: Final = Reason(
    code="WouldUnbalance",
    message="its nodes would open a zone that pods served before it are not spread over; it waits until those run",
)
_GIVEN_UP: Final = Reason(
    code="VerificationFailed", message="every plan for these pods failed when it was checked pod by pod"
)


def place(board: Board, meetings: Meetings, demand: Ints, means: Means, onto: Draft | None = None) -> Draft:
    """`demand` [C]: pods of each class that need a place, on top of what the draft has placed.

    Who comes later may not open a zone that pods placed before would have to be spread over: then it does without that
    zone, or waits until those run.
    """
    draft = _placed_onto(board, meetings, demand, means, onto)
    if onto is None or onto.is_empty:
        return draft
    before, after = Scene(board, onto, meetings), Scene(board, draft, meetings)
    if not _opens_domains(before, after) or spread_holds(after, onto):
        return draft
    narrower = replace(means, usable=means.usable & before.in_existing_domains())
    draft = _placed_onto(board, meetings, demand, narrower, onto)
    short = demand - (draft.placed(len(demand)) - onto.placed(len(demand)))
    for number in np.flatnonzero(short > 0).tolist():
        draft = draft.with_refusal(number, _WOULD_UNBALANCE)
    return draft


def _placed_onto(board: Board, meetings: Meetings, demand: Ints, means: Means, onto: Draft | None) -> Draft:
    """Where nothing else says who comes first, the line does: a scheduler will take them so.

    If that leaves somebody, those who can be on no new node go first, where this helps more.
    """
    numbers = [number for number in np.flatnonzero(demand).tolist() if board.table.classes[number].problem is None]
    in_line = sorted(numbers, key=board.turns.__getitem__)
    draft = _placed_in_order(in_line, (board, meetings), demand, means, onto)
    confined = sorted(numbers, key=lambda number: (bool(board.allowed[:, number].any()), number))
    missing = demand - draft.placed(len(demand)) + (onto or Draft()).placed(len(demand))
    if confined == in_line or not missing[numbers].any() or not any(_meets(board, number) for number in numbers):
        return draft
    other = _placed_in_order(confined, (board, meetings), demand, means, onto)
    return other if other.placed(len(demand)).sum() > draft.placed(len(demand)).sum() else draft


def _meets(board: Board, number: int) -> bool:
    """Whether it looks at other pods: then it matters who is placed first."""
    return board.table.classes[number].form.meets_others


def _placed_in_order(
    numbers: Sequence[int], on: tuple[Board, Meetings], demand: Ints, means: Means, onto: Draft | None
) -> Draft:
    board, meetings = on
    draft = onto or Draft()
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
    placed = draft.placed(len(demand)) - (onto or Draft()).placed(len(demand))
    if wanted := {one: left for one in sorted(later) if (left := int(demand[one] - placed[one]))}:
        draft = place_one_by_one(board, wanted, draft, usable=means.usable)
    return draft


def _opens_domains(before: Scene, after: Scene) -> bool:
    """Whether there are zones, of any key that a waiting class is spread over, where no node was."""
    board = before.board
    spreads = (one for pods in board.table if pods.has_spread for one in board.rules.spreads(pods.index))
    keys = {one.key for one in spreads} - {HOSTNAME}
    return any(after.existing_domains(key) - before.existing_domains(key) for key in keys)


def spread_holds(scene: Scene, of: Draft) -> bool:
    """Whether spread over zones still holds for pods that a draft had placed, with everything that came since."""
    for number in np.flatnonzero(of.placed(len(scene.board.table))).tolist():
        for one in scene.board.rules.spreads(number):
            if one.key == HOSTNAME or not one.counts_itself:
                continue
            levels = scene.spread_levels(number, one)
            lowest = min(levels.values(), default=0) if len(levels) >= one.min_domains else 0
            if any(levels.get(name, 0) > lowest + one.max_skew for name in scene.domains_with(number, one.key)):
                return False
    return True

"""Small plans whose pods look at each other are drafted in other ways, too, and the best that holds is taken.

Pods in bulk are spread and gathered by rules of thumb; for a few pods it costs little to ask how else it could be: pod
by pod, with the plain rules, in several manners. `bettered` follows `hosting`. Never larger problems, never a draft
that the verifier would refuse, and never one that does without a zone that the first one spreads pods over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.planning.assembling import assembled
from plimsoll.nodes.planning.drafts import Draft
from plimsoll.nodes.planning.fewer_zones import keeps_zones
from plimsoll.nodes.planning.one_by_one import Manner, place_one_by_one
from plimsoll.nodes.planning.scenes import Scene
from plimsoll.nodes.planning.tiers import served_at_once
from plimsoll.nodes.planning.verifying import verify

if TYPE_CHECKING:
    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.meetings import Meetings
    from plimsoll.nodes.planning.packing import Means
    from plimsoll.solver.problems import Ints

_FEW_PODS: Final = 100
_FEW_NODES: Final = 50
_FEW_CLASSES: Final = 20
_FEW_OFFERS: Final = 50
_MANNERS: Final = tuple(
    Manner(careful=careful, youngest_first=youngest, smallest_price=smallest)
    for youngest, smallest in ((False, False), (True, False), (False, True))
    for careful in (True, False)
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """What a draft is to answer: pods by class [C], on top of what, by which means."""

    board: Board
    meetings: Meetings
    demand: Ints
    onto: Draft | None
    means: Means

    @property
    def wanted(self) -> dict[int, int]:
        classes = self.board.table.classes
        return {
            number: int(self.demand[number])
            for number in np.flatnonzero(self.demand).tolist()
            if classes[number].problem is None
        }


def bettered(asked: Asked, draft: Draft) -> Draft:
    """The draft, or one that helps more pods, or as many for less money."""
    if not _is_worth_it(asked, draft):
        return draft
    board = asked.board
    best = draft
    for manner in _MANNERS:
        tried = place_one_by_one(board, asked.wanted, asked.onto or Draft(), usable=asked.means.usable, manner=manner)
        if merit(board, tried) > merit(board, best) and _keeps_zones(asked, draft, tried) and _holds(asked, tried):
            best = tried
    return best


def merit(board: Board, draft: Draft) -> tuple[int, float]:
    """More pods, then less money."""
    return int(draft.placed(len(board.table)).sum()), -round(draft.cost(board), 9)


def _is_worth_it(asked: Asked, draft: Draft) -> bool:
    """Whether it is a small question, somebody looks at others, and there is something to gain."""
    board, doubts = asked.board, asked.means.doubts
    placed = draft.placed(len(board.table))
    if doubts.one_by_one or doubts.given_up or len({one.tier for one in board.offers}) > 1:
        return False
    small = (
        max(int(board.table.counts.sum()), int(placed.sum())) <= _FEW_PODS
        and len(board.arrays) <= _FEW_NODES
        and len(board.table) <= _FEW_CLASSES
        and len(board.offers) <= _FEW_OFFERS
    )
    if not small or not any(board.table.classes[number].form.meets_others for number in asked.wanted):
        return False
    before = 0 if asked.onto is None else asked.onto.placed(len(board.table))
    paid = 0.0 if asked.onto is None else asked.onto.cost(board)
    return bool((asked.demand + before > placed).any()) or draft.cost(board) > paid


def _keeps_zones(asked: Asked, draft: Draft, tried: Draft) -> bool:
    """Fewer zones would be cheaper, but less of a spread. Where they help more, `fewer_zones` says so."""
    first, second = (Scene(asked.board, one, asked.meetings) for one in (draft, tried))
    return keeps_zones(first, second, asked.wanted)


def _holds(asked: Asked, draft: Draft) -> bool:
    board = asked.board
    plan = assembled(board, served_at_once(board, draft), usable=asked.means.usable, effort=asked.means.effort)
    return not verify(board.snapshot, plan)

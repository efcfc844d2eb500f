"""Which zones to leave closed when opening them leaves pods without a place, and which never. For `scale_up`.

A zone is one only once a node is there; from then on it counts for everybody who is spread over zones, and a zone that
soon takes no more (a group at its maximum, a limit, small machines) holds all others to its level. Zones that can be
opened are used evenly first. Only where that leaves pods that are spread, the zone that took fewest of them is left
closed and all is planned again; and again, until nobody is left or no zone could be spared; then with one new zone at
a time, for pods that also want to be together. The answer is taken if more pods have a place in it. Never one that has
as many, however cheap: a spread over more zones is what was asked for (docs/decisions/0003). Tries are counted, over
the whole plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.planning.profiles import HOSTNAME
from plimsoll.nodes.planning.scenes import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.drafts import Draft
    from plimsoll.nodes.planning.meetings import Meetings
    from plimsoll.nodes.planning.packing import Means
    from plimsoll.nodes.planning.spread_counts import SpreadCount
    from plimsoll.solver.problems import Flags, Ints

_WORK: Final = 200_000
"""Classes times offers over all tries of a plan: each plans anew."""
_TRIES: Final = 64


def keeps_zones(first: Scene, second: Scene, numbers: Iterable[int]) -> bool:
    """Whether there are nodes wherever the first scene has some, as far as any of these classes is spread over it."""
    keys = {one.key for number in numbers for one in first.board.rules.spreads(number)} - {HOSTNAME}
    return all(first.existing_domains(key) <= second.existing_domains(key) for key in keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A draft that may be bettered: what it is to place [C], on top of what, by which means, and who drafts."""

    wanted: Ints
    onto: Draft
    means: Means
    drafted: Callable[[Means], Draft]


class FewerZones:
    """Of one plan. Counts its tries; everything else it is told."""

    def __init__(self, board: Board, meetings: Meetings) -> None:
        self._board = board
        self._meetings = meetings
        self._left = min(_TRIES, _WORK // max(len(board.table) * len(board.offers), 1))

    def instead_of(self, draft: Draft, asked: Question) -> Draft:
        """The draft, or one that opens fewer zones and so places more."""
        best = tried = draft
        usable = asked.means.usable
        while self._left and (closed := self._next_to_close(asked, tried)) is not None:
            usable = usable & ~closed
            tried = self._tried(asked, usable)
            best = self._better(best, tried)
        for kept in self._one_each(asked, best):
            if self._left and self._short(best, asked):
                best = self._better(best, self._tried(asked, asked.means.usable & kept))
        return best

    def _tried(self, asked: Question, usable: Flags) -> Draft:
        self._left -= 1
        return asked.drafted(replace(asked.means, usable=usable))

    def _better(self, draft: Draft, tried: Draft) -> Draft:
        classes = len(self._board.table)
        return tried if tried.placed(classes).sum() > draft.placed(classes).sum() else draft

    def _next_to_close(self, asked: Question, draft: Draft) -> Flags | None:
        """[T]: offers in the opened zone with fewest pods of those that are short; None when there is none to spare."""
        before, after = (Scene(self._board, one, self._meetings) for one in (asked.onto, draft))
        opened: dict[tuple[str, str], int] = {}
        for number, one in self._short(draft, asked):
            there, new = before.existing_domains(one.key), after.planned_domains(one.key)
            if len(there | new) > 1:
                levels = after.spread_levels(number, one)
                for name in new - there:
                    opened[one.key, name] = opened.get((one.key, name), 0) + levels.get(name, 0)
        if not opened:
            return None
        key, name = min(opened, key=lambda zone: (opened[zone], zone))
        return after.inside(key, {name}).offers

    def _one_each(self, asked: Question, draft: Draft) -> Iterator[Flags]:
        """[T] each: offers of one zone that could be opened, and of those that are; pods may all want to be in one."""
        before = Scene(self._board, asked.onto, self._meetings)
        for key in sorted({one.key for _, one in self._short(draft, asked)}):
            there = before.existing_domains(key)
            outside = before.outside(key).offers
            new = [name for name in before.domains(key) if name not in there]
            for name in new if len(new) + len(there) > 1 else ():
                yield before.inside(key, {*there, name}).offers | outside

    def _short(self, draft: Draft, asked: Question) -> list[tuple[int, SpreadCount]]:
        """Classes that lack places, with the rules by which they are spread over zones."""
        classes = self._board.table.classes
        missing = np.flatnonzero(asked.wanted > draft.placed(len(asked.wanted))).tolist()
        return [
            (number, one)
            for number in missing
            if classes[number].has_spread and classes[number].problem is None
            for one in self._board.rules.spreads(number)
            if one.key != HOSTNAME
        ]

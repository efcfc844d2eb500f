"""Which zones to leave closed when opening them leaves pods without a place, and which never. For `scale_up`.

A zone is one only once a node is there; from then on it counts for everybody who is spread over zones, and a zone that
soon takes no more (a group at its maximum, a limit, small machines) holds all others to its level. Zones that can be
opened are used evenly first. Only where that leaves pods that are spread, the zone that took fewest of them is left
closed and all is planned again; and again, until nobody is left or no zone could be spared. The answer is taken if more
pods have a place in it. Never one that has as many, however cheap: a spread over more zones is what was asked for.
(docs/decisions/0003.) Tries are counted, over the whole plan.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.planning.profiles import HOSTNAME
from plimsoll.nodes.planning.scenes import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.drafts import Draft
    from plimsoll.nodes.planning.meetings import Meetings
    from plimsoll.nodes.planning.packing import Means
    from plimsoll.solver.problems import Flags, Ints

_WORK: Final = 200_000
"""Classes times offers over all tries of a plan: each plans anew."""
_TRIES: Final = 64


def keeps_zones(first: Scene, second: Scene, numbers: Iterable[int]) -> bool:
    """Whether there are nodes wherever the first scene has some, as far as any of these classes is spread over it."""
    keys = {one.key for number in numbers for one in first.board.rules.spreads(number)} - {HOSTNAME}
    return all(first.existing_domains(key) <= second.existing_domains(key) for key in keys)


class FewerZones:
    """Of one plan. Counts its tries; everything else it is told."""

    def __init__(self, board: Board, meetings: Meetings) -> None:
        self._board = board
        self._meetings = meetings
        self._left = min(_TRIES, _WORK // max(len(board.table) * len(board.offers), 1))

    def instead_of(
        self, draft: Draft, wanted: Ints, *, onto: Draft, means: Means, drafted: Callable[[Means], Draft]
    ) -> Draft:
        """The draft, or one that opens fewer zones and so places more of `wanted` [C]; `drafted` makes one."""
        before = Scene(self._board, onto, self._meetings)
        best = tried = draft
        usable = means.usable
        while self._left:
            closed = self._next_to_close(before, tried, wanted, usable)
            if closed is None:
                break
            self._left -= 1
            usable = usable & ~closed
            tried = drafted(replace(means, usable=usable))
            if self._pods(tried) > self._pods(best):
                best = tried
        return best

    def _pods(self, draft: Draft) -> int:
        return int(draft.placed(len(self._board.table)).sum())

    def _next_to_close(self, before: Scene, draft: Draft, wanted: Ints, usable: Flags) -> Flags | None:
        """[T]: offers in zones that nobody uses; else in the one with fewest pods of those that are short; or None."""
        after = Scene(self._board, draft, self._meetings)
        unused = np.zeros_like(usable)
        opened: dict[tuple[str, str], int] = {}
        for number in self._short(draft, wanted):
            for one in self._board.rules.spreads(number):
                if one.key == HOSTNAME:
                    continue
                there, new = before.existing_domains(one.key), after.planned_domains(one.key)
                unused |= after.inside(one.key, {*after.domains(one.key)} - there - new).offers & usable
                if len(there | new) > 1:
                    levels = after.spread_levels(number, one)
                    for name in new - there:
                        opened[one.key, name] = opened.get((one.key, name), 0) + levels.get(name, 0)
        if unused.any():
            # A share of the pods may have been meant for them.
            return unused
        if not opened:
            return None
        key, name = min(opened, key=lambda zone: (opened[zone], zone))
        return after.inside(key, {name}).offers

    def _short(self, draft: Draft, wanted: Ints) -> Sequence[int]:
        """Classes spread over zones that lack places, though some node would take such a pod."""
        classes = self._board.table.classes
        missing = np.flatnonzero(wanted > draft.placed(len(wanted))).tolist()
        return [one for one in missing if classes[one].has_spread and classes[one].problem is None]

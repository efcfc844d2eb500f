"""How much room is left on existing nodes while one asker after the other takes some: for pods that look at nobody.

Whether pods of one such class all fit is a sum, and where they go a sort, so a thousand of them are answered without a
thousand packings. `Draft`s of everybody are made when somebody needs one. Part of `lines_of_checks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.planning.drafts import Draft, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.solver.problems import Flags, Ints


class RoomLeft:
    """Of the rows of a board, over the draft so far."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._existing: dict[int, dict[int, int]] = {}
        self._draft: Draft | None = Draft()
        self._open: dict[int, Flags] = {}
        interacts = board.rules.interacts
        self._is_simple = [one.problem is None and not interacts[one.index] and not one.volumes for one in board.table]
        self.free: Ints = board.arrays.free.copy()
        """[N, columns of the arrays]: what the draft leaves."""
        self.changes = 0
        """So often somebody took something: what was found out before may be wrong since."""

    @property
    def draft(self) -> Draft:
        if self._draft is None:
            self._draft = Draft(existing={row: self._existing[row] for row in sorted(self._existing)})
        return self._draft

    def become(self, draft: Draft) -> None:
        """With all that another draft has."""
        self._draft = draft
        self._existing = {row: dict(content) for row, content in draft.existing.items()}
        self.free = self.after(draft)
        self.changes += 1

    def after(self, draft: Draft) -> Ints:
        """[N, columns]: what any draft on this board leaves."""
        free = self._board.arrays.free.copy()
        for row, content in draft.existing.items():
            for number, pods in content.items():
                free[row] -= self._board.rules.requests[number] * pods
        return free

    def is_simple(self, number: int) -> bool:
        """How many pods of the class fit is a matter of what is free."""
        return self._is_simple[number]

    def room(self, number: int, most: int) -> Ints:
        """[N]: pods of a simple class that each row takes; more than `most` is not asked for."""
        request = self._board.rules.requests[number]
        asked = np.flatnonzero(request > 0)
        if number not in self._open:
            self._open[number] = self._board.rules.fits(number)
        room = np.minimum((self.free[:, asked] // request[asked]).min(axis=1, initial=most), most)
        return np.where(self._open[number], np.maximum(room, 0), 0)

    def places(self, room: Ints, pods: int) -> dict[int, int]:
        """Row to pods: those that fill a row before those that leave more of it free."""
        found: dict[int, int] = {}
        for row in np.argsort(np.where(room > 0, room, pods + 1), kind="stable").tolist():
            if not pods or not room[row]:
                break
            found[row] = min(pods, int(room[row]))
            pods -= found[row]
        return found

    def take(self, number: int, places: Mapping[int, int]) -> None:
        request = self._board.rules.requests[number]
        for row, pods in places.items():
            self._existing[row] = joined(self._existing.get(row, {}), {number: pods})
            self.free[row] -= request * pods
        self._draft = None
        self.changes += 1

"""Pods placed for the sake of argument: free space and counts as they would be, taken back at no cost.

A `Trial` starts from the arrays of a `Predicates` and copies only what it changes. Everything in it follows from its
log of placements, so taking back is placing the opposite: `mark()` before trying, `revert(mark)` to undo. Not shared
between threads; never touches the arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.planning.predicates.predicates import Predicates
    from plimsoll.solver.problem import Flags, Ints

Placement = tuple[int, int, int]
"""Class, row, pods."""


class Trial:
    """Placements on top of a cluster; the questions of `Predicates`, as if these pods ran."""

    def __init__(self, predicates: Predicates, placements: Iterable[Placement] = ()) -> None:
        self.predicates = predicates
        self.free: Ints = predicates.arrays.free.copy()
        self._placed: dict[int, Ints] = {}
        self._log: list[Placement] = []
        for number, row, pods in placements:
            self.place(number, row, pods)

    def place(self, number: int, row: int, pods: int = 1) -> None:
        """Whether they fit is the caller's to ask."""
        self._apply(number, row, pods)
        self._log.append((number, row, pods))

    def mark(self) -> int:
        return len(self._log)

    def revert(self, mark: int = 0) -> None:
        """Take back everything placed since the mark."""
        while len(self._log) > mark:
            number, row, pods = self._log.pop()
            self._apply(number, row, -pods)

    def fork(self) -> Trial:
        """A trial of its own with the same placements."""
        return Trial(self.predicates, self._log)

    @property
    def placements(self) -> tuple[Placement, ...]:
        return tuple(self._log)

    def pods_on(self, row: int) -> dict[int, int]:
        """Pods of each class that were placed on a row."""
        return {number: int(rows[row]) for number, rows in sorted(self._placed.items()) if rows[row]}

    def codes(self, number: int) -> Ints:
        return self.predicates.find_codes(number, free=self.free, placed=self.present)

    def fits(self, number: int) -> Flags:
        return np.equal(self.codes(number), 0)

    def room(self, number: int) -> Ints:
        return self.predicates.count_room(number, free=self.free, placed=self.present)

    @property
    def present(self) -> dict[int, Ints]:
        """Pods of each class by row ([N]), for classes that have any."""
        return {number: rows for number, rows in sorted(self._placed.items()) if rows.any()}

    def _apply(self, number: int, row: int, pods: int) -> None:
        self.free[row] -= self.predicates.requests[number] * pods
        rows = self._placed.get(number)
        if rows is None:
            rows = self._placed[number] = np.zeros(len(self.predicates.arrays), dtype=np.int64)
        rows[row] += pods

"""The master program of column generation: how often to use each known pattern, so that all items have a bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.linear_program import INFINITE, LinearProgram, Sparse
from plimsoll.solver.packing.greedy_kernel import count_openable, take

if TYPE_CHECKING:
    from plimsoll.solver.layout import Demand, Layout
    from plimsoll.solver.problem import Floats, Ints

WHOLE: Final = 1e-6
"""An amount this close below a whole number counts as whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterSolution:
    """A solution of the master program."""

    cost: float
    amounts: Floats
    """The fractional number of bins per column."""
    item_values: Floats
    """[C]: the dual value of an item: the cost of one more."""
    price: Floats
    """[T]: the price of a bin, including the value of the limits that it uses."""


class MasterProgram:
    """Rows are classes, then types of which bins are short, then limits; columns are fillings of one bin."""

    def __init__(self, layout: Layout, *, iterations: int) -> None:
        self._laid = layout
        self._program = LinearProgram(iterations=iterations)
        self._short = np.flatnonzero(layout.demand.available < layout.demand.left.sum())
        self._program.add_rows(*self._build_sides(layout.demand))
        self._known: set[tuple[int, bytes]] = set()
        self._types = np.zeros(0, dtype=np.int64)
        self._contents = np.zeros((0, len(layout.classes)), dtype=np.int64)

    def add(self, types: Ints, contents: Ints) -> bool:
        """Add new columns; returns whether there were any."""
        new = []
        for at, type_ in enumerate(types.tolist()):
            key = type_, contents[at].tobytes()
            if key not in self._known:
                self._known.add(key)
                new.append(at)
        types, contents = types[new], contents[new]
        instance = self._laid.instance
        short = types[:, None] == self._short[None, :]
        entries = Sparse.from_dense(np.concatenate([contents, short, instance.use[types]], axis=1).astype(np.float64))
        self._program.add_columns(instance.price[types], entries=entries)
        self._program.prefer("primal")
        self._types = np.concatenate([self._types, types])
        self._contents = np.concatenate([self._contents, contents])
        return bool(new)

    def solve(self, demand: Demand) -> MasterSolution | None:
        """The solution; None if the known patterns are infeasible or the effort is used up."""
        self._program.change_rows(*self._build_sides(demand))
        solved = self._program.solve()
        if solved is None:
            return None
        classes, short = len(self._laid.classes), len(self._short)
        price = self._laid.instance.price.copy()
        price[self._short] -= np.minimum(solved.dual[classes : classes + short], 0)
        price -= self._laid.instance.use @ np.minimum(solved.dual[classes + short :], 0)
        item_values = np.maximum(solved.dual[:classes], 0)
        return MasterSolution(cost=solved.objective, amounts=solved.primal, item_values=item_values, price=price)

    def take_whole(self, amounts: Floats, demand: Demand, threshold: float) -> list[tuple[int, int, Ints]]:
        """(type, bins, content) of fillings by their whole amounts, fractions from the threshold on rounded up.

        The largest fraction is rounded up in any case, or a dive would never end. Counts `demand` down.
        """
        whole = np.floor(amounts + WHOLE)
        fraction = np.round(amounts - whole, 9)
        used = np.flatnonzero(amounts > WHOLE)
        used = used[np.lexsort((used, -fraction[used]))]
        up = fraction >= threshold
        up[used[:1]] = True
        taken = []
        used = used[(whole[used] > 0) | up[used]]
        for column in used.tolist():
            type_, content = int(self._types[column]), self._contents[column]
            inside = np.flatnonzero(content)
            most = min(
                int((demand.left[inside] // content[inside]).min()), count_openable(self._laid.instance, demand, type_)
            )
            bins = min(int(whole[column]) + int(up[column]), most)
            if bins > 0:
                take(self._laid.instance, demand, type_, bins, content)
                taken.append((type_, bins, content))
        self._program.prefer("dual")
        return taken

    def _build_sides(self, demand: Demand) -> tuple[Floats, Floats]:
        classes = len(demand.left)
        limits = np.concatenate([demand.available[self._short], demand.room]).astype(np.float64)
        lower = np.concatenate([demand.left.astype(np.float64), np.full(len(limits), -INFINITE)])
        return lower, np.concatenate([np.full(classes, INFINITE), limits])

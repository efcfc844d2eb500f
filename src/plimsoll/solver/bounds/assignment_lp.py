"""The assignment program of docs/design/nodes.md 8.3.1, extended type by type and row by row: it proposes dual values.

Variables are the share of each class that goes to each type, and fractional bins per type. Most types never matter and
most classes never reach their limit in a bin, so both are added only when the last solution requires them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.linear_program import INFINITE, LinearProgram, Method, Solved, Sparse

if TYPE_CHECKING:
    from plimsoll.solver.bounds.relaxation import Relaxation
    from plimsoll.solver.problem import Effort, Floats, Ints

TOLERANCE: Final = 1e-4
ROWS_AT_ONCE: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Dual values of items and resources, for the types in the program."""

    types: tuple[int, ...]
    """The types in the program."""
    item_values: Floats
    """[C]: the value of one item."""
    resource: Floats
    """[types in the program, R]: the value of a unit of a resource in a bin of that type."""

    def compute_total(self, relaxation: Relaxation) -> float:
        """The value of all items."""
        return float(relaxation.counts @ self.item_values)


@dataclass(slots=True)
class _Shares:
    """Columns and rows by their meaning, in the order in which they were added."""

    types: list[int] = field(default_factory=list)
    bins: list[int] = field(default_factory=list)
    """Column of the bins of `types[i]`."""
    capacity: list[int] = field(default_factory=list)
    """First of the R rows of `types[i]`."""
    first: list[int] = field(default_factory=list)
    """Column of the first share in `types[i]`."""
    classes: list[Ints] = field(default_factory=list)
    """Classes of the shares in `types[i]`."""
    capped: list[set[int]] = field(default_factory=list)
    """The classes that have a cap row."""


class AssignmentProgram:
    """One growing program. `add_types`, then `propose`, and again."""

    def __init__(self, relaxation: Relaxation, effort: Effort) -> None:
        self._market = relaxation
        self._scale = max(float((relaxation.counts @ relaxation.sizes).max()), 1.0)
        self._program = LinearProgram(iterations=effort.simplex_iterations)
        self._shares = _Shares()
        self._columns = 0
        self._method: Method = "dual"
        classes = len(relaxation.counts)
        self._rows = classes
        self._program.add_rows(np.ones(classes), np.full(classes, INFINITE))

    def add_types(self, types: Ints) -> None:
        """Bins, capacity rows and shares of types that are not in the program yet."""
        relaxation, resources = self._market, self._market.sizes.shape[1]
        for type_ in types.tolist():
            shares = self._shares
            classes = np.flatnonzero(relaxation.fit[type_] > 0)
            shares.types.append(type_)
            shares.bins.append(self._columns)
            shares.first.append(self._columns + 1)
            shares.capacity.append(self._rows)
            shares.classes.append(classes)
            shares.capped.append(set())
            self._program.add_rows(np.full(resources, -INFINITE), np.zeros(resources))
            cost = np.zeros(1 + len(classes))
            cost[0] = relaxation.price[type_]
            self._program.add_columns(cost, entries=self._build_entries(type_, classes))
            self._rows += resources
            self._columns += 1 + len(classes)
        self._program.prefer(self._method)
        self._method = "primal"

    def propose(self, rounds: int) -> Proposal | None:
        """Solve, and cap shares that exceed what whole items allow; None if the effort is used up."""
        solved = self._program.solve()
        for _ in range(rounds):
            if solved is None or not self._cap(solved):
                break
            solved = self._program.solve()
        return None if solved is None else self._read_proposal(solved)

    def _build_entries(self, type_: int, classes: Ints) -> Sparse:
        """Columns: the bins of a type give capacity, each share meets its class's demand and takes capacity."""
        relaxation, resources = self._market, self._market.sizes.shape[1]
        volume = relaxation.sizes[classes] * relaxation.counts[classes, None] / self._scale
        rows = self._rows + np.arange(resources)
        share_rows = np.concatenate([classes[:, None], np.broadcast_to(rows, volume.shape)], axis=1)
        share_values = np.concatenate([np.ones((len(classes), 1)), volume], axis=1)
        starts = np.concatenate([[0], resources + (resources + 1) * np.arange(len(classes))])
        return Sparse(
            starts=starts.astype(np.int64),
            indices=np.concatenate([rows, share_rows.ravel()]),
            values=np.concatenate([-relaxation.capacity[type_], share_values.ravel()]),
        )

    def _cap(self, solved: Solved) -> bool:
        """Add rows for shares that need more bins than there are; returns whether any was added."""
        relaxation, shares = self._market, self._shares
        found: list[tuple[float, int, int]] = []
        for index, type_ in enumerate(shares.types):
            classes = shares.classes[index]
            first = shares.first[index]
            needs = solved.primal[first : first + len(classes)] * relaxation.counts[classes]
            needs /= relaxation.fit[type_, classes] * self._scale
            excess = needs - solved.primal[shares.bins[index]]
            for at in np.flatnonzero(excess > TOLERANCE * np.maximum(needs, 1e-3)).tolist():
                if at not in shares.capped[index]:
                    heapq.heappush(found, (-float(excess[at]), index, at))
        self._add_caps([(index, at) for _, index, at in heapq.nsmallest(ROWS_AT_ONCE, found)])
        return bool(found)

    def _add_caps(self, found: list[tuple[int, int]]) -> None:
        if not found:
            return
        relaxation, shares = self._market, self._shares
        indices, values = [], []
        for index, at in found:
            class_ = shares.classes[index][at]
            shares.capped[index].add(at)
            indices += [shares.bins[index], shares.first[index] + at]
            values += [
                -1.0,
                float(relaxation.counts[class_] / (relaxation.fit[shares.types[index], class_] * self._scale)),
            ]
        entries = Sparse(
            starts=2 * np.arange(len(found)), indices=np.array(indices, dtype=np.int64), values=np.array(values)
        )
        self._program.add_rows(np.full(len(found), -INFINITE), np.zeros(len(found)), entries)
        self._rows += len(found)
        self._program.prefer("dual")

    def _read_proposal(self, solved: Solved) -> Proposal:
        relaxation, resources = self._market, self._market.sizes.shape[1]
        rows = np.array(self._shares.capacity)[:, None] + np.arange(resources)[None, :]
        return Proposal(
            types=tuple(self._shares.types),
            item_values=np.maximum(solved.dual[: len(relaxation.counts)], 0) * self._scale / relaxation.counts,
            resource=np.maximum(-solved.dual[rows], 0),
        )

"""An incremental linear program: the only interface to HiGHS for bounds and column generation.

Deterministic: one thread, a fixed seed, a limit on iterations, never on seconds. Its results are hints: bounds are
certified and patterns validated by the callers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import highspy
import numpy as np

from plimsoll.solver.highs import build_solver, run_solver

if TYPE_CHECKING:
    from plimsoll.solver.problem import Floats, Ints

INFINITE: Final = float(highspy.kHighsInf)

Method = Literal["primal", "dual"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """An optimal basic solution."""

    objective: float
    primal: Floats
    """The primal value per column."""
    dual: Floats
    """The dual value per row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """Rows of a matrix, or columns: entries `starts[i]` up to `starts[i + 1]` are those of the i-th."""

    starts: Ints
    indices: Ints
    values: Floats

    @classmethod
    def from_dense(cls, matrix: Floats) -> Sparse:
        rows, columns = np.nonzero(matrix)
        ends = np.cumsum(np.bincount(rows, minlength=len(matrix)))
        return cls(
            starts=np.concatenate([[0], ends[:-1]]).astype(np.int64), indices=columns, values=matrix[rows, columns]
        )


class LinearProgram:
    """Minimise cost times x; rows and columns may be added between solutions, which then start from the last basis."""

    def __init__(self, *, iterations: int) -> None:
        self._highs = build_solver({"simplex_iteration_limit": iterations})

    def prefer(self, method: Method) -> None:
        """Primal after columns were added to a solution, dual after rows were: then the last basis is a start."""
        self._highs.setOptionValue("simplex_strategy", 4 if method == "primal" else 1)

    def add_columns(self, cost: Floats, *, upper: Floats | None = None, entries: Sparse | None = None) -> None:
        """Add columns with lower bound 0."""
        count = len(cost)
        starts, indices, values = _build_arrays(entries, count)
        top = np.full(count, INFINITE) if upper is None else upper
        self._highs.addCols(count, cost, np.zeros(count), top, len(indices), starts, indices, values)

    def add_rows(self, lower: Floats, upper: Floats, entries: Sparse | None = None) -> None:
        count = len(lower)
        starts, indices, values = _build_arrays(entries, count)
        self._highs.addRows(count, lower, upper, len(indices), starts, indices, values)

    def change_rows(self, lower: Floats, upper: Floats) -> None:
        """Replace the bounds of all rows."""
        self._highs.changeRowsBounds(len(lower), np.arange(len(lower), dtype=np.int32), lower, upper)

    def solve(self) -> Solved | None:
        """The solution; None if there is none, the limit of iterations was reached or HiGHS failed."""
        if not run_solver(self._highs):
            return None
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._highs.getSolution()
        return Solved(
            objective=float(self._highs.getObjectiveValue()),
            primal=np.array(solution.col_value, dtype=np.float64),
            dual=np.array(solution.row_dual, dtype=np.float64),
        )


def _build_arrays(entries: Sparse | None, count: int) -> tuple[Any, Any, Floats]:
    if entries is None:
        return np.zeros(count, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0)
    return entries.starts.astype(np.int32), entries.indices.astype(np.int32), entries.values

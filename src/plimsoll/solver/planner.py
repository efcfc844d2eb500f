"""One question, one answer: which method packs it, and how good the answer is. The entry that planning uses.

Few classes are packed mixed, thousands in cells. A mixed packing that is further from its bound than `Effort.gap` is
tried in cells and given to column generation, until it is near enough. All effort is counted, so the same question gets
the same answer on any machine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.answers import Answer
from plimsoll.solver.bounds import bounded
from plimsoll.solver.cells import CLASSES as FEW_CLASSES
from plimsoll.solver.cells import pack_in_cells
from plimsoll.solver.columns import improve
from plimsoll.solver.mixed import pack_mixed

if TYPE_CHECKING:
    from plimsoll.solver.bounds import Bound
    from plimsoll.solver.problems import Effort, Packed, Packing

MIXED_CLASSES: Final = 500
"""More are packed in cells."""
COLUMN_CLASSES: Final = 500
"""More are too many rows for a master program."""


FEW_ITEMS: Final = 50_000
"""More fill so many bins that column generation loses little by rounding, while cells fill them one by one."""
CELL_ITEMS: Final = 200_000


def pack(problem: Packing, effort: Effort) -> Answer:
    """All that can be placed, at little cost; the bound is of what is placed, and never above the cost."""
    classes = int(np.count_nonzero(problem.counts))
    packed = pack_mixed(problem, effort) if classes <= MIXED_CLASSES else pack_in_cells(problem, effort)
    bound = _bound(problem, packed, effort)
    if effort.rounds and classes <= COLUMN_CLASSES:
        few = problem.counts.sum() <= FEW_ITEMS
        for tried in (_in_cells, _by_columns) if few else (_by_columns, _in_cells):
            if packed.cost > bound.cost * (1 + effort.gap):
                packed, bound = tried(problem, packed, bound, effort)
    return Answer(packed=packed, bound=min(bound.cost, packed.cost))


def _in_cells(problem: Packing, packed: Packed, bound: Bound, effort: Effort) -> tuple[Packed, Bound]:
    """If that leaves no more, and costs less."""
    if np.count_nonzero(problem.counts) <= FEW_CLASSES or problem.counts.sum() > CELL_ITEMS:
        return packed, bound
    found = pack_in_cells(problem, effort)
    if (int(found.left.sum()), found.cost) >= (int(packed.left.sum()), packed.cost):
        return packed, bound
    same = bool((found.left == packed.left).all())
    return found, bound if same else _bound(problem, found, effort)


def _by_columns(problem: Packing, packed: Packed, bound: Bound, effort: Effort) -> tuple[Packed, Bound]:
    return improve(problem, packed, effort, bound=bound), bound


def _bound(problem: Packing, packed: Packed, effort: Effort) -> Bound:
    served = replace(problem, counts=problem.counts - packed.left)
    # Where nothing is improved, any bound will do: the quickest.
    return bounded(served, effort=effort, enough=packed.cost / (1 + effort.gap) if effort.rounds else 0.0)

"""One question, one answer: which method packs it, and how good the answer is. The entry that planning uses.

Few classes are packed mixed, thousands in cells; a packing that is further from its bound than `Effort.gap` is given
to column generation, if there are few enough classes for that. All effort is counted, so the same question gets the
same answer on any machine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.answers import Answer
from plimsoll.solver.bounds import lower_bound
from plimsoll.solver.cells import pack_in_cells
from plimsoll.solver.columns import improve
from plimsoll.solver.mixed import pack_mixed

if TYPE_CHECKING:
    from plimsoll.solver.problems import Effort, Packing

MIXED_CLASSES: Final = 500
"""More are packed in cells."""
COLUMN_CLASSES: Final = 500
"""More are too many rows for a master program."""


def pack(problem: Packing, effort: Effort) -> Answer:
    """All that can be placed, at little cost; the bound is of what is placed, and never above the cost."""
    classes = int(np.count_nonzero(problem.counts))
    packed = pack_mixed(problem, effort) if classes <= MIXED_CLASSES else pack_in_cells(problem, effort)
    served = replace(problem, counts=problem.counts - packed.left)
    good_enough = packed.cost / (1 + effort.gap)
    # Where nothing is improved, any bound will do: the quickest.
    bound = lower_bound(served, effort=effort, enough=good_enough if effort.rounds else 0.0)
    if effort.rounds and bound < good_enough and classes <= COLUMN_CLASSES:
        packed = improve(problem, packed, effort, bound=bound)
    return Answer(packed=packed, bound=min(bound, packed.cost))

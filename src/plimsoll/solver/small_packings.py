"""Small packings at the least cost there is: an integer program over all contents that a bin can have.

For `planner`, where a handful of items is further from its bound than is good enough: there a bin more or less is a
third of the money, and rounding finds out by luck. Contents are counted while they are listed, and a question that has
too many of them gets no answer here. HiGHS only proposes: what it says is filled in and checked in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import highspy
import numpy as np

from plimsoll.solver.answers import is_packing, joined
from plimsoll.solver.problems import Filling
from plimsoll.solver.relaxations import undominated
from plimsoll.solver.shelves import most_in_one

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.solver.problems import Effort, Ints, Packed, Packing

ITEMS: Final = 40
CLASSES: Final = 12
CONTENTS: Final = 1_000
"""More are too many columns."""
BRANCHES: Final = 100
"""This part of the effort's branches is for the program: one over it."""
STEPS: Final = 20_000
"""Contents, whole or in part, that are looked at."""


def is_small(problem: Packing) -> bool:
    wanted = problem.counts[problem.counts > 0]
    return len(wanted) <= CLASSES and int(wanted.sum()) <= ITEMS


def pack_cheapest(problem: Packing, incumbent: Packed, effort: Effort) -> Packed | None:
    """What the incumbent places, for the least money: another packing, or the incumbent if nothing is cheaper.

    None when nobody knows: too many contents, or the counted effort ended first.
    """
    served = replace(problem, counts=problem.counts - incumbent.left)
    listed = _Contents(served).listed()
    if listed is None:
        return None
    types, contents = listed
    times = _times(served, types, contents, effort)
    if times is None:
        return None
    found = joined(served, _filled(served.counts, types, contents, times))
    if found.cost >= incumbent.cost or found.left.any() or not is_packing(served, found):
        return incumbent
    return replace(found, left=incumbent.left)


@dataclass(slots=True)
class _Steps:
    left: int = STEPS


class _Contents:
    """All contents of bins that leave no room for another item; the larger classes are tried first."""

    def __init__(self, problem: Packing) -> None:
        self._problem = problem
        self._fit = most_in_one(problem)
        volume = (problem.requests / np.maximum(problem.capacity.max(axis=0, initial=1), 1)).max(axis=1, initial=0)
        wanted = np.flatnonzero(problem.counts > 0)
        self._order: list[int] = wanted[np.argsort(-volume[wanted], kind="stable")].tolist()
        self._requests: list[list[int]] = problem.requests.tolist()
        self._keys: list[frozenset[int]] = [frozenset(np.flatnonzero(row).tolist()) for row in problem.exclusive]

    def listed(self) -> tuple[Ints, Ints] | None:
        """[N] types and [N, C] contents; None when there are too many."""
        problem, steps = self._problem, _Steps()
        types: list[int] = []
        contents: list[list[int]] = []
        for type_ in self._types():
            most = self._fit[type_].tolist()
            for content in self._of_a_bin(most, problem.capacity[type_].tolist(), steps):
                types.append(type_)
                contents.append(content)
            if steps.left <= 0 or len(contents) > CONTENTS:
                return None
        if not contents:
            return None
        return np.array(types, dtype=np.int64), np.array(contents, dtype=np.int64)

    def _types(self) -> list[int]:
        """Those that are not beaten by others of which there is no end."""
        problem = self._problem
        endless = problem.available >= problem.counts.sum()
        if not endless.all() or problem.room.size:
            return np.flatnonzero(self._fit.any(axis=1)).tolist()
        return undominated(problem.capacity, problem.price, self._fit > 0).tolist()

    def _of_a_bin(self, most: list[int], free: list[int], steps: _Steps) -> Iterator[list[int]]:
        content = [0] * len(most)
        yield from self._deeper(0, content, most, (free, frozenset()), steps)

    def _deeper(
        self, depth: int, content: list[int], most: list[int], room: tuple[list[int], frozenset[int]], steps: _Steps
    ) -> Iterator[list[int]]:
        steps.left -= 1
        if steps.left <= 0:
            return
        free, taken = room
        if depth == len(self._order):
            if not any(content[one] < most[one] and self._one_more(one, room) for one in self._order):
                yield content.copy()
            return
        one = self._order[depth]
        takes = self._requests[one]
        top = min((have // each for have, each in zip(free, takes, strict=True) if each > 0), default=most[one])
        for items in range(0 if taken & self._keys[one] else min(top, most[one]), -1, -1):
            content[one] = items
            rest = [have - items * each for have, each in zip(free, takes, strict=True)]
            yield from self._deeper(
                depth + 1, content, most, (rest, taken | self._keys[one] if items else taken), steps
            )

    def _one_more(self, one: int, room: tuple[list[int], frozenset[int]]) -> bool:
        free, taken = room
        return not taken & self._keys[one] and all(
            each <= have for have, each in zip(free, self._requests[one], strict=True)
        )


def _times(problem: Packing, types: Ints, contents: Ints, effort: Effort) -> Ints | None:
    """[N]: how often to use each content, so that all items have a bin at the least cost; None when that is not known."""
    short = np.flatnonzero(problem.available < problem.counts.sum())
    matrix = np.concatenate([contents, types[:, None] == short[None, :], problem.use[types]], axis=1).astype(np.float64)
    limits = np.concatenate([problem.available[short], problem.room]).astype(np.float64)
    lower = np.concatenate([problem.counts, np.full(len(limits), -np.inf)]).astype(np.float64)
    upper = np.concatenate([np.full(len(problem.counts), np.inf), limits])
    highs = _solver(effort)
    none = np.zeros(0, dtype=np.int32)
    highs.addRows(len(lower), lower, upper, 0, none, none, np.zeros(0))
    columns, rows = np.nonzero(matrix)
    starts = np.searchsorted(columns, np.arange(len(types))).astype(np.int32)
    nothing, most = np.zeros(len(types)), np.full(len(types), float(problem.counts.sum()))
    values = matrix[columns, rows]
    highs.addCols(
        len(types), problem.price[types], nothing, most, len(values), starts, rows.astype(np.int32), values
    )
    whole = np.full(len(types), int(highspy.HighsVarType.kInteger), dtype=np.uint8)
    highs.changeColsIntegrality(len(types), np.arange(len(types), dtype=np.int32), whole)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.round(np.array(highs.getSolution().col_value)).astype(np.int64)


def _solver(effort: Effort) -> Any:
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy ships no types
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", 0),
        ("mip_max_nodes", effort.branch_nodes // BRANCHES),
        ("mip_max_stall_nodes", effort.branch_nodes // BRANCHES),
        ("mip_rel_gap", 0.0),
    ):
        highs.setOptionValue(option, value)
    return highs


def _filled(counts: Ints, types: Ints, contents: Ints, times: Ints) -> list[Filling]:
    """Bin by bin, as many items as there are: contents together may have room for more."""
    left = counts.copy()
    found = []
    for at in np.flatnonzero(times > 0).tolist():
        for _ in range(int(times[at])):
            items = np.minimum(contents[at], left)
            left -= items
            inside = np.flatnonzero(items)
            if len(inside):
                found.append(
                    Filling(
                        type=int(types[at]), bins=1, classes=tuple(inside.tolist()), items=tuple(items[inside].tolist())
                    )
                )
    return found

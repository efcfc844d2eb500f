"""Column generation: a packing made cheaper by looking at all its bins at once (performance.md, section 3.5).

Used by `planner` when a packing is further from its bound than is good enough. The master program chooses how often to
use each known filling; what its classes are then worth asks `knapsacks` for better fillings; and again. A dive turns
fractions into whole bins: take what is whole, round up what is nearly so, solve for the rest. `mixed` packs the last.

Never returns anything dearer than it got, nor anything unchecked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.answers import is_packing, joined
from plimsoll.solver.bounds import lower_bound
from plimsoll.solver.masters import Master
from plimsoll.solver.mixed import pack_mixed
from plimsoll.solver.openings import Needs
from plimsoll.solver.pricing import best_contents
from plimsoll.solver.problems import Filling, Packed
from plimsoll.solver.shelves import Laid, lay_out
from plimsoll.solver.values import least_cost, worth_from

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.solver.masters import Usage
    from plimsoll.solver.problems import Effort, Floats, Ints, Packing

THRESHOLDS: Final = (0.95, 0.8, 0.6)
"""A dive rounds up fractions from here on."""
DIVES: Final = 40
"""Solutions a dive takes at most."""
BETTER: Final = 1e-6
"""Relative: a filling worth so much more than its price is worth a column."""
CENTRE: Final = 0.5
"""Weight of the worths that looked best so far: a master's own swing about and ask for useless fillings."""
HASTY: Final = 1.0
"""A gap that any packing of a rest meets: it is polished only with `PROVING` rounds or more."""
PROVING: Final = 100
ALL_ASKED: Final = 5
"""Every so many rounds all types are asked for a filling, between them only those that looked most promising then."""
PROMISING: Final = 20
CLOSE: Final = 0.25
"""So much of the gap a master may leave lying."""


def improve(problem: Packing, incumbent: Packed, effort: Effort, *, bound: float | None = None) -> Packed:
    """Whatever the incumbent places, at a lower cost if one is found; else the incumbent itself."""
    served = replace(problem, counts=problem.counts - incumbent.left)
    if effort.rounds < 1 or not incumbent.fillings:
        return incumbent
    if bound is None:
        bound = lower_bound(served, effort=effort, enough=incumbent.cost)
    generator = _Generator(served, effort)
    generator.learn(incumbent.fillings)
    worth = generator.grow(good_enough=bound * (1 + CLOSE * effort.gap))
    best = incumbent
    if worth is None:
        return best
    for threshold in THRESHOLDS:
        if best.cost <= bound * (1 + effort.gap):
            break
        found = joined(served, generator.dive(threshold, worth))
        if found.cost < best.cost * (1 - BETTER) and not found.left.any() and is_packing(served, found):
            best = replace(found, left=incumbent.left)
    return best


class _Generator:
    """A master program, and the knapsacks that feed it. Classes and types are numbered as they are laid out."""

    def __init__(self, problem: Packing, effort: Effort) -> None:
        self._problem, self._effort = problem, effort
        self._laid: Laid = lay_out(problem)
        self._least = least_cost(self._laid.shelf, self._laid.needs.left)
        self._all_types = np.arange(len(self._laid.types))
        self._master = Master(self._laid, iterations=effort.simplex_iterations)

    def learn(self, fillings: Iterable[Filling]) -> None:
        """Columns that are known before any is asked for."""
        shelf = self._laid.shelf
        class_at = np.full(len(self._problem.counts), -1)
        class_at[self._laid.classes] = np.arange(len(self._laid.classes))
        type_at = np.full(len(self._problem.price), -1)
        type_at[self._laid.types] = np.arange(len(self._laid.types))
        known = list(fillings)
        contents = np.zeros((len(known), shelf.fit.shape[1]), dtype=np.int64)
        for row, each in zip(contents, known, strict=True):
            row[class_at[list(each.classes)]] = each.items
        self._master.add(type_at[[each.type for each in known]], contents)

    def grow(self, *, good_enough: float) -> Floats | None:
        """Until the master is good enough, no filling beats those known, or the rounds are spent; the last worths."""
        centre: Floats | None = None
        highest = -np.inf
        worth: Floats | None = None
        promising = self._all_types
        for turn in range(self._effort.rounds):
            usage = self._master.solve(self._laid.needs)
            if usage is None:
                break
            worth = usage.worth
            if usage.cost <= max(good_enough, highest * (1 + CLOSE * self._effort.gap)):
                break
            asked = worth if centre is None else CENTRE * centre + (1 - CENTRE) * worth
            if turn % ALL_ASKED and self._ask(asked, usage, promising)[0]:
                continue
            added, dearness = self._ask(asked, usage, self._all_types)
            if not added and centre is not None:
                asked = worth
                added, dearness = self._ask(asked, usage, self._all_types)
            farley = float(self._laid.needs.left @ asked) / max(float(dearness.max()), 1e-300)
            if farley > highest:
                centre, highest = asked, farley
            if not added:
                break
            promising = np.sort(np.argsort(-dearness, kind="stable")[:PROMISING])
        return worth

    def dive(self, threshold: float, worth: Floats) -> list[Filling]:
        """Whole bins of known fillings, then the rest as `mixed` packs it, with the master's worths or its own."""
        needs = Needs(*(part.copy() for part in self._laid.needs))
        fillings: list[Filling] = []
        for _ in range(DIVES):
            usage = self._master.solve(needs)
            taken = [] if usage is None else self._master.take_whole(usage.amounts, needs, threshold)
            fillings += (self._named(*each) for each in taken)
            if not taken or not needs.left.any():
                break
        if needs.left.any():
            fillings += self._rest(needs, worth)
        return fillings

    def _ask(self, asked: Floats, usage: Usage, types: Ints) -> tuple[bool, Floats]:
        """New columns from the knapsacks; whether there were any, and what bins could hold at most over their price."""
        shelf = self._laid.shelf
        contents = np.zeros((len(types), shelf.fit.shape[1]), dtype=np.int64)
        ceilings = best_contents(shelf, worth_from(asked, self._least), self._laid.needs.left, types, contents)
        better = np.flatnonzero(contents @ usage.worth > usage.price[types] * (1 + BETTER))
        added = self._master.add(types[better], contents[better])
        return added, ceilings * asked.max() / usage.price[types]

    def _rest(self, needs: Needs, worth: Floats) -> tuple[Filling, ...]:
        counts, values = np.zeros_like(self._problem.counts), np.zeros(len(self._problem.counts))
        counts[self._laid.classes], values[self._laid.classes] = needs.left, worth
        available = np.zeros_like(self._problem.available)
        available[self._laid.types] = needs.available
        rest = replace(self._problem, counts=counts, available=available, room=needs.room)
        effort = self._effort if self._effort.rounds >= PROVING else replace(self._effort, gap=HASTY)
        packed = [pack_mixed(rest, effort), pack_mixed(rest, effort, values=values)]
        return min(packed, key=lambda each: (int(each.left.sum()), each.cost)).fillings

    def _named(self, type_: int, bins: int, content: Ints) -> Filling:
        """In the numbers of the question."""
        classes = self._laid.classes
        order = np.flatnonzero(content)
        order = order[np.argsort(classes[order])]
        return Filling(
            type=int(self._laid.types[type_]),
            bins=bins,
            classes=tuple(classes[order].tolist()),
            items=tuple(content[order].tolist()),
        )

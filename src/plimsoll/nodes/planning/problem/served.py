"""Which pending entries have a place in a placement: bundles whole or not at all, others in the order of the queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Pending entries that are served together: a bundle as a whole or not at all, others as far as possible."""

    entries: tuple[int, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A placement in which a bundle fits only in part; it shows what is missing."""

    draft: Placement
    placed: int
    pods: int
    short: tuple[int, ...]
    """Classes of the bundle that lack places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A placement, and how many pods of each pending entry have a place in it."""

    draft: Placement
    pods: tuple[int, ...]
    tries: Mapping[int, Try] = field(default_factory=dict)
    """Pending entry of a rejected bundle to the closest attempt."""
    waits: Mapping[int, Reason] = field(default_factory=dict)
    """Class to why its pods without a place wait for a later loop instead of being rejected."""


def served_at_once(board: ScaleUpProblem, draft: Placement) -> Served:
    """All pods that have a place in the placement, whatever their position in the queue."""
    return serve_units(board, queue_units(board), draft)


def queue_units(board: ScaleUpProblem) -> list[Unit]:
    """Each bundle and each class of other pods, at the queue position of its first entry."""
    bundles: dict[str, list[int]] = {}
    single: dict[int, list[int]] = {}
    for index, pending in enumerate(board.table.pending):
        if pending.bundle:
            bundles.setdefault(pending.bundle, []).append(index)
        else:
            single.setdefault(int(board.table.class_of[index]), []).append(index)
    units = [Unit(entries=tuple(entries), is_whole=True) for entries in bundles.values()]
    units += [Unit(entries=tuple(entries), is_whole=False) for entries in single.values()]
    return sorted(units, key=lambda unit: min(board.line[index] for index in unit.entries))


def demand_of(board: ScaleUpProblem, units: Sequence[Unit]) -> Ints:
    demand = np.zeros(len(board.table), dtype=np.int64)
    for unit in units:
        for index in unit.entries:
            demand[int(board.table.class_of[index])] += board.table.pending[index].count
    return demand


def serve_units(board: ScaleUpProblem, units: Sequence[Unit], draft: Placement) -> Served:
    """Places of a class go to its entries in queue order; an accepted bundle gets all of its places."""
    left = draft.placed(len(board.table))
    pods = [0] * len(board.table.pending)
    for unit in sorted(units, key=lambda one: not one.is_whole):
        for index in unit.entries:
            number = int(board.table.class_of[index])
            pods[index] = min(int(left[number]), board.table.pending[index].count)
            left[number] -= pods[index]
    return Served(draft=draft, pods=tuple(pods))

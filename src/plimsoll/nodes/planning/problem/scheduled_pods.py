"""The pods that a placement schedules, per pending entry: bundles whole or not at all, others in queue order."""

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
class QueueUnit:
    """Pending entries that are scheduled together: a bundle as a whole or not at all, others as far as possible."""

    entries: tuple[int, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialPlacement:
    """A placement in which a bundle fits only in part; it shows what is missing."""

    placement: Placement
    placed: int
    pods: int
    short: tuple[int, ...]
    """Classes of the bundle with unschedulable pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledPods:
    """A placement, and the number of pods of each pending entry that it schedules."""

    placement: Placement
    pods: tuple[int, ...]
    tries: Mapping[int, PartialPlacement] = field(default_factory=dict)
    """Pending entry of a rejected bundle to the closest attempt."""
    waits: Mapping[int, Reason] = field(default_factory=dict)
    """Class to why its unschedulable pods wait for a later loop iteration instead of being rejected."""


def assign_places(problem: ScaleUpProblem, placement: Placement) -> ScheduledPods:
    """The pods that the placement schedules, regardless of their position in the queue."""
    return assign_places_to_units(problem, list_queue_units(problem), placement)


def list_queue_units(problem: ScaleUpProblem) -> list[QueueUnit]:
    """Each bundle and each class of other pods, at the queue position of its first entry."""
    bundles: dict[str, list[int]] = {}
    single: dict[int, list[int]] = {}
    for index, pending in enumerate(problem.table.pending):
        if pending.bundle:
            bundles.setdefault(pending.bundle, []).append(index)
        else:
            single.setdefault(int(problem.table.class_of[index]), []).append(index)
    units = [QueueUnit(entries=tuple(entries), is_whole=True) for entries in bundles.values()]
    units += [QueueUnit(entries=tuple(entries), is_whole=False) for entries in single.values()]
    return sorted(units, key=lambda unit: min(problem.queue[index] for index in unit.entries))


def count_demand(problem: ScaleUpProblem, units: Sequence[QueueUnit]) -> Ints:
    demand = np.zeros(len(problem.table), dtype=np.int64)
    for unit in units:
        for index in unit.entries:
            demand[int(problem.table.class_of[index])] += problem.table.pending[index].count
    return demand


def assign_places_to_units(problem: ScaleUpProblem, units: Sequence[QueueUnit], placement: Placement) -> ScheduledPods:
    """Places of a class go to its entries in queue order; an accepted bundle gets all of its places."""
    left = placement.count_placed(len(problem.table))
    pods = [0] * len(problem.table.pending)
    for unit in sorted(units, key=lambda candidate: not candidate.is_whole):
        for index in unit.entries:
            number = int(problem.table.class_of[index])
            pods[index] = min(int(left[number]), problem.table.pending[index].count)
            left[number] -= pods[index]
    return ScheduledPods(placement=placement, pods=tuple(pods))

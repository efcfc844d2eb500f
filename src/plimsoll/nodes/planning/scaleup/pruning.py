"""Which new groups and which new zones a plan does without.

Groups: a plan may need more new groups than may be created. The groups that contribute least are dropped first, as long
as all pods keep an option; pods spread over zones keep one in each zone of the plan. The rest is planned again.

Zones: a zone counts for topology spread once it has a node. A zone that fills up early (a group at its maximum, a
limit, small machines) then limits all others through maxSkew. All zones are used evenly first. If that leaves spread
pods unschedulable, the zone that took the fewest is left without nodes and everything is planned again, until no pod
is left or no zone can be spared; then one new zone at a time is tried, for pods with affinity to each other. The result
is used only if it schedules more pods, never because it is cheaper: spread over more zones is what was requested
(docs/decisions/0003). Attempts are counted over the whole plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.packing.placement_view import PlacementView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plimsoll.nodes.planning.packing.binpacking import PackingOptions
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.predicates.spread_counts import SpreadCount
    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Flags, Ints


_WAYS: Final = 8
"""The number of groups that are tried as the first one to remove."""


def find_used_new_groups(problem: ScaleUpProblem, placement: Placement) -> list[int]:
    """Options of new groups that the placement uses, those with the most nodes last."""
    nodes = placement.count_new_nodes(len(problem.options))
    used = [index for index in np.flatnonzero(nodes).tolist() if not problem.options[index].exists]
    return sorted(used, key=lambda index: (int(nodes[index]), index))


def list_smaller_option_sets(problem: ScaleUpProblem, placement: Placement, usable: Flags) -> tuple[Flags, ...]:
    """Sets of usable options with no more new groups than allowed, the safest first; empty if no groups must go.

    The safest set keeps every zone in use; the other sets may give zones up. The cost of a group in the placement says
    little about the cost of doing without it, so each of the cheapest groups is removed first in one of the sets.
    """
    made = find_used_new_groups(problem, placement)
    too_many = len(made) - problem.option_set.new_groups_left
    if too_many <= 0:
        return ()
    # Only groups of this plan may be created from here on, so that no attempt has too many of them.
    kept = usable & np.array(
        [option.exists or index in made for index, option in enumerate(problem.options)], dtype=np.bool_
    )
    nodes = placement.count_new_nodes(len(problem.options))
    worth = {index: round(float(nodes[index] * problem.options[index].price_per_hour), 9) for index in made}
    order = sorted(made, key=lambda index: (worth[index], index))
    safest = _remove_options(order, too_many, kept, list(_iterate_candidate_sets(problem, placement, by_domain=True)))
    candidate_sets = list(_iterate_candidate_sets(problem, placement, by_domain=False))
    others = [_remove_options([index, *order], too_many, kept, candidate_sets) for index in order[:_WAYS]]
    return tuple({way.tobytes(): way for way in (safest, *others)}.values())


def _remove_options(order: Sequence[int], too_many: int, kept: Flags, candidate_sets: Sequence[Flags]) -> Flags:
    """Remove `too_many` options in this order: those that can be spared first, then others if needed."""
    left = kept.copy()
    for spares in (True, False):
        for index in order:
            if too_many and left[index] and (not spares or _can_spare(index, left, candidate_sets)):
                left[index] = False
                too_many -= 1
    return left


def _can_spare(index: int, left: Flags, candidate_sets: Sequence[Flags]) -> bool:
    """Whether every class that may use the option may use another one, too."""
    return all(not candidates[index] or int((candidates & left).sum()) > 1 for candidates in candidate_sets)


def _iterate_candidate_sets(problem: ScaleUpProblem, placement: Placement, *, by_domain: bool) -> Iterator[Flags]:
    """[T] each: sets of options of which one must be left, per class, or per domain that the class is spread over."""
    known: set[bytes] = set()
    batch_options = np.array([batch.option for batch in placement.batches], dtype=np.int64)
    for pod_class in problem.table:
        with_it = batch_options[[pod_class.index in batch.content for batch in placement.batches]]
        if not len(with_it):
            continue
        for inside in _iterate_domains(problem, pod_class.index, with_it.tolist() if by_domain else ()):
            candidates = problem.allowed[:, pod_class.index] & inside
            if (key := candidates.tobytes()) not in known:
                known.add(key)
                yield candidates


def _iterate_domains(problem: ScaleUpProblem, number: int, options: Sequence[int]) -> Iterator[Flags]:
    """[T] each: the domains of these options if the class is spread over domains; otherwise all options."""
    keys = (
        sorted({spread_count.key for spread_count in problem.rules.get_spreads(number)} - {HOSTNAME}) if options else []
    )
    if not keys:
        yield np.ones(len(problem.options), dtype=np.bool_)
    for key in keys:
        ids = problem.option_arrays.get_label_ids(key)
        for domain in sorted({int(ids[option]) for option in options}):
            yield ids == domain


_WORK: Final = 200_000
"""The limit of classes times options over all attempts of a plan; each attempt plans again."""
_TRIES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PruningContext:
    """A placement that may be improved: the demand [C], the placement below it, and how to place."""

    wanted: Ints
    onto: Placement
    packing: PackingOptions
    place: Callable[[PackingOptions], Placement]


class ZonePruning:
    """The zone pruning of one plan; it counts its attempts."""

    def __init__(self, problem: ScaleUpProblem, relations: PodRelations) -> None:
        self._problem = problem
        self._relations = relations
        self._left = min(_TRIES, _WORK // max(len(problem.table) * len(problem.options), 1))

    def prune(self, placement: Placement, context: PruningContext) -> Placement:
        """The placement, or one that opens fewer zones and places more pods."""
        best = tried = placement
        usable = context.packing.usable
        while self._left and (closed := self._choose_zone_to_close(context, tried)) is not None:
            usable = usable & ~closed
            tried = self._try_without(context, usable)
            best = self._choose_better(best, tried)
        for kept in self._iterate_zone_swaps(context, best):
            if self._left and self._find_short_classes(best, context):
                best = self._choose_better(best, self._try_without(context, context.packing.usable & kept))
        return best

    def _try_without(self, context: PruningContext, usable: Flags) -> Placement:
        self._left -= 1
        return context.place(replace(context.packing, usable=usable))

    def _choose_better(self, placement: Placement, tried: Placement) -> Placement:
        classes = len(self._problem.table)
        return tried if tried.count_placed(classes).sum() > placement.count_placed(classes).sum() else placement

    def _choose_zone_to_close(self, context: PruningContext, placement: Placement) -> Flags | None:
        """[T]: options in the opened zone with the fewest pods of short classes; None if no zone can be spared."""
        before, after = (PlacementView(self._problem, pods, self._relations) for pods in (context.onto, placement))
        opened: dict[tuple[str, str], int] = {}
        for number, spread_count in self._find_short_classes(placement, context):
            there, new = before.find_existing_domains(spread_count.key), after.find_planned_domains(spread_count.key)
            if len(there | new) > 1:
                levels = after.count_spread_levels(number, spread_count)
                for name in new - there:
                    opened[spread_count.key, name] = opened.get((spread_count.key, name), 0) + levels.get(name, 0)
        if not opened:
            return None
        key, name = min(opened, key=lambda zone: (opened[zone], zone))
        return after.select_domains(key, {name}).options

    def _iterate_zone_swaps(self, context: PruningContext, placement: Placement) -> Iterator[Flags]:
        """[T] each: options of one further zone together with the open ones, for pods that must share a zone."""
        before = PlacementView(self._problem, context.onto, self._relations)
        for key in sorted({spread_count.key for _, spread_count in self._find_short_classes(placement, context)}):
            there = before.find_existing_domains(key)
            outside = before.select_unlabelled(key).options
            new = [name for name in before.list_domains(key) if name not in there]
            for name in new if len(new) + len(there) > 1 else ():
                yield before.select_domains(key, {*there, name}).options | outside

    def _find_short_classes(self, placement: Placement, context: PruningContext) -> list[tuple[int, SpreadCount]]:
        """Classes with unschedulable pods, with their spread constraints over zones."""
        classes = self._problem.table.classes
        missing = np.flatnonzero(context.wanted > placement.count_placed(len(context.wanted))).tolist()
        return [
            (number, spread_count)
            for number in missing
            if classes[number].has_spread and classes[number].problem is None
            for spread_count in self._problem.rules.get_spreads(number)
            if spread_count.key != HOSTNAME
        ]

"""The scale-up planner: `plan_scale_up(snapshot, policy) -> ScaleUpPlan`, at the least cost, with reasons. Pure.

The main flow: build the problem; place all pods at once, or by priority where limits bind; build the plan with names,
reasons, cost and bound; verify it by a replay with the plain rules. Classes that fail the verification are placed pod
by pod instead, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.config.policy import Planner
from plimsoll.nodes.model.scale_up_plan import Result, ScaleUpPlan
from plimsoll.nodes.planning.packing.affinity_targets import place_with_affinity_targets
from plimsoll.nodes.planning.packing.binpacking import FailedClasses, PackingOptions
from plimsoll.nodes.planning.packing.exact_fallback import ExactFallback
from plimsoll.nodes.planning.packing.place import place, reject_given_up
from plimsoll.nodes.planning.packing.placement_view import PlacementView
from plimsoll.nodes.planning.packing.pod_by_pod import PlacementRequest
from plimsoll.nodes.planning.packing.pod_relations import PodRelations
from plimsoll.nodes.planning.problem.placement import Placement
from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
from plimsoll.nodes.planning.problem.verifier import verify
from plimsoll.nodes.planning.scaleup.balancing import balance
from plimsoll.nodes.planning.scaleup.nominations import merge_places, place_nominated
from plimsoll.nodes.planning.scaleup.pruning import (
    PruningContext,
    ZonePruning,
    find_used_new_groups,
    list_smaller_option_sets,
)
from plimsoll.nodes.planning.scaleup.queue_order import schedule_by_priority
from plimsoll.nodes.planning.scaleup.result_builder import build_plan
from plimsoll.nodes.planning.scaleup.single_group import plan_single_group
from plimsoll.nodes.planning.topology.choice import improve_greedily, place_many
from plimsoll.nodes.planning.topology.groups import find_unreachable
from plimsoll.solver.problem import Effort

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.planner_cache import PlannerCache
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.planning.problem.scheduled_pods import ScheduledPods
    from plimsoll.solver.problem import Flags, Ints

_REDUCED_GROUPS: Final = 6
_REDUCED_CLASSES: Final = 100
_REDUCED_NODES: Final = 30
_SAME_MONEY: Final = 1e-9
_PRESELECTION_WORK: Final = 20_000
"""From this number of classes times new groups on, a quick plan first selects the groups to use."""
_FEW: Final = 1_000
"""Up to this number of classes times options, several sets of fewer groups are tried."""
_ROUNDS: Final = 4
"""The number of rounds in which refuted classes are placed pod by pod; later ones are left out of the plan."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proposal:
    """A plan that is not verified yet, and the input to repair it."""

    problem: ScaleUpProblem
    effort: Effort
    plan: ScaleUpPlan
    failed: FailedClasses = field(default_factory=FailedClasses)


def plan_scale_up(
    snapshot: Snapshot, policy: Policy, *, effort: Effort | None = None, cache: PlannerCache | None = None
) -> ScaleUpPlan:
    return verify_proposal(propose(snapshot, policy, effort=effort, cache=cache))


def propose(
    snapshot: Snapshot, policy: Policy, *, effort: Effort | None = None, cache: PlannerCache | None = None
) -> Proposal:
    """Plan without verification. Nominated pods are already on their nodes."""
    chosen = effort or Effort(gap=policy.planning.plan_gap)
    problem = ScaleUpProblem.from_snapshot(place_nominated(snapshot), policy, cache)
    return _propose(problem, chosen, FailedClasses())


def verify_proposal(proposal: Proposal) -> ScaleUpPlan:
    """The plan that the verifier accepts; classes that it refuses are placed again, pod by pod, and counted."""
    failures, rounds = 0, 0
    while refuted := verify(proposal.problem.snapshot, proposal.plan):
        rounds += 1
        known = proposal.failed
        classes = _find_classes(proposal.problem, {refutation.key for refutation in refuted})
        failures += len(classes - known.pod_by_pod)
        # A class that fails again is not planned at all, so the loop ends.
        abandoned = classes if rounds > _ROUNDS else classes & known.pod_by_pod
        failed = FailedClasses(pod_by_pod=known.pod_by_pod | classes, given_up=known.given_up | abandoned)
        proposal = _propose(proposal.problem, proposal.effort, failed)
    return _add_nominations(
        replace(proposal.plan, verification_failures=failures), proposal.problem.snapshot.nominations
    )


def _add_nominations(plan: ScaleUpPlan, nominations: Mapping[str, Mapping[str, int]]) -> ScaleUpPlan:
    if not nominations:
        return plan
    pods = sum(sum(counts.values()) for counts in nominations.values())
    return replace(plan, existing=merge_places(nominations, plan.existing), scheduled=plan.scheduled + pods)


def _propose(problem: ScaleUpProblem, effort: Effort, failed: FailedClasses) -> Proposal:
    if not problem.table.pending:
        return Proposal(problem=problem, effort=effort, plan=ScaleUpPlan(result=Result.NOT_NEEDED))
    if problem.planner is Planner.COMPATIBLE:
        plan = plan_single_group(problem, PodRelations(problem.table, problem.rules, problem.snapshot.view), failed)
    else:
        plan = _plan_optimal(problem, effort, failed)
    return Proposal(problem=problem, effort=effort, plan=plan, failed=failed)


def _plan_optimal(problem: ScaleUpProblem, effort: Effort, failed: FailedClasses) -> ScaleUpPlan:
    """Plan all groups and machine types at once. If that needs too many new groups, the least useful are left out."""
    relations = PodRelations(problem.table, problem.rules, problem.snapshot.view)
    placer = _Placer(
        problem=problem,
        relations=relations,
        zone_pruning=ZonePruning(problem, relations),
        exact_fallback=ExactFallback(problem, relations),
        unreachable=find_unreachable(problem, relations),
    )
    everything = PackingOptions(effort=effort, usable=np.ones(len(problem.options), dtype=np.bool_), failed=failed)
    scheduled, usable = _place_within_group_limit(placer, _preselect_options(placer, everything), everything)
    scheduled = _reduce_groups(placer, scheduled, PackingOptions(effort=effort, usable=usable, failed=failed))
    even = replace(scheduled, placement=balance(problem, scheduled.placement, relations))
    return build_plan(problem, even, usable=usable, effort=effort)


def _preselect_options(placer: _Placer, packing: PackingOptions) -> Flags:
    """[T]: options to plan with. If a plan would create too many groups, a quick plan selects the options."""
    problem = placer.problem
    new = sum(not option.exists for option in problem.options)
    if new <= problem.option_set.new_groups_left or new * len(problem.table) < _PRESELECTION_WORK:
        return packing.usable
    quick = replace(packing, effort=replace(packing.effort, rounds=0, value_vectors=1))
    placement = placer.place_together(problem.table.counts, packing) or place(
        problem, placer.relations, problem.table.counts, quick
    )
    return next(iter(list_smaller_option_sets(problem, placement, packing.usable)), packing.usable)


def _place_within_group_limit(placer: _Placer, usable: Flags, packing: PackingOptions) -> tuple[ScheduledPods, Flags]:
    """Scheduled pods with no more new groups than allowed, and the options that were used."""
    problem = placer.problem
    scheduled = placer.schedule(replace(packing, usable=usable))
    ways = list_smaller_option_sets(problem, scheduled.placement, usable)
    if not ways:
        return scheduled, usable
    few = ways if int(ways[0].sum()) * len(problem.table) <= _FEW else ways[:1]
    tried = [(placer.schedule(replace(packing, usable=usable)), usable) for usable in few]
    return min(tried, key=lambda attempt: (-sum(attempt[0].pods), round(attempt[0].placement.compute_cost(problem), 9)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Placer:
    """Places the queue, then tries fewer zones and the exact fallback for unschedulable pods."""

    problem: ScaleUpProblem
    relations: PodRelations
    zone_pruning: ZonePruning
    exact_fallback: ExactFallback

    unreachable: frozenset[int]
    """Classes that no order of scheduling can place."""
    _together: dict[tuple[bytes, bytes], Placement | None] = field(default_factory=dict)
    """What `place_together` found, by demand and usable options: the same is often planned again."""

    def schedule(self, packing: PackingOptions) -> ScheduledPods:
        return schedule_by_priority(
            self.problem,
            lambda demand, onto: self._place_all(demand, onto, packing),
            unreachable=self.unreachable,
        )

    def _place_all(self, demand: Ints, onto: Placement | None, packing: PackingOptions) -> Placement:
        wanted = demand + (0 if onto is None else onto.count_placed(len(demand)))
        placement = self._place(demand, onto, packing)
        pruning_context = PruningContext(
            wanted=wanted,
            onto=onto or Placement(),
            packing=packing,
            place=lambda some: self._place(demand, onto, some),
        )
        placement = self.zone_pruning.prune(placement, pruning_context)
        return self.exact_fallback.improve(placement, wanted, packing)

    def _place(self, demand: Ints, onto: Placement | None, packing: PackingOptions) -> Placement:
        request = PlacementRequest(
            problem=self.problem, relations=self.relations, demand=demand, onto=onto, packing=packing
        )
        is_first = onto is None or onto.is_empty
        together = self.place_together(demand, packing) if is_first else None
        if together is not None:
            return reject_given_up(together, packing.failed)
        placement = place(self.problem, self.relations, demand, packing, onto)
        return improve_greedily(request, place_with_affinity_targets(request, placement), self.unreachable)

    def place_together(self, demand: Ints, packing: PackingOptions) -> Placement | None:
        """The pods with rules about each other, planned onto nothing else; None if they are better placed in layers."""
        key = demand.tobytes(), packing.usable.tobytes()
        if key not in self._together:
            request = PlacementRequest(
                problem=self.problem, relations=self.relations, demand=demand, onto=None, packing=packing
            )
            self._together[key] = place_many(request, self.unreachable)
        return self._together[key]


def _reduce_groups(placer: _Placer, scheduled: ScheduledPods, packing: PackingOptions) -> ScheduledPods:
    """Prefer fewer groups to fewer nodes at the same cost and zones (docs/design/nodes.md 8.4), for small plans."""
    problem = placer.problem
    made = find_used_new_groups(problem, scheduled.placement)
    few = scheduled.placement.count_new_nodes(len(problem.options)).sum() <= _REDUCED_NODES
    if not few or not 1 < len(made) <= _REDUCED_GROUPS or len(problem.table) > _REDUCED_CLASSES:
        return scheduled
    left = packing.usable & np.array(
        [option.exists or index in made for index, option in enumerate(problem.options)], dtype=np.bool_
    )
    for index in made:
        without = left.copy()
        without[index] = False
        tried = placer.schedule(replace(packing, usable=without))
        as_cheap = tried.placement.compute_cost(problem) <= scheduled.placement.compute_cost(problem) * (
            1 + _SAME_MONEY
        )
        if tried.pods != scheduled.pods or not as_cheap:
            continue
        view = PlacementView(problem, scheduled.placement, placer.relations)
        if view.keeps_zones(tried.placement, range(len(problem.table))):
            scheduled, left = tried, without
    return scheduled


def _find_classes(problem: ScaleUpProblem, keys: set[str]) -> frozenset[int]:
    return frozenset(
        int(problem.table.class_of[index]) for index, pending in enumerate(problem.table.pending) if pending.key in keys
    )

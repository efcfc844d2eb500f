"""One group per loop, as Cluster Autoscaler plans: estimate every group alone, then let the expander choose option.

`--planner=compatible` (docs/design/nodes.md 6.6). Pods that fit on existing nodes go there in queue order. All others
are estimated on each group, first fit decreasing: the largest pod first, whatever its priority. Pods that depend on
other pods are placed by the same code as in the optimal planner, restricted to that group. A pod that the chosen group
does not help, but another group could, waits for a later loop and gets that as its reason.

Pods that are spread over zones need nodes in every zone that can be had, so a group is estimated together with its
counterparts in the other zones: the groups similar to it, else any group there that takes the pods.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.gpus import count_gpus
from plimsoll.nodes.model.prices import are_prices_known
from plimsoll.nodes.planning.explain.rejections import shorten_names
from plimsoll.nodes.planning.explain.unschedulable import MOST_EXPLAINED, find_rejections_on_new_nodes, may_interact
from plimsoll.nodes.planning.packing.binpacking import FailedClasses, PackingOptions
from plimsoll.nodes.planning.packing.place import place
from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement
from plimsoll.nodes.planning.problem.scheduled_pods import ScheduledPods, assign_places
from plimsoll.nodes.planning.scaleup.balancing import balance, find_similar_options, find_zone_counterparts
from plimsoll.nodes.planning.scaleup.expanders import ExpanderContext, ExpanderOption, choose
from plimsoll.nodes.planning.scaleup.pruning import PruningContext, ZonePruning
from plimsoll.nodes.planning.scaleup.queue_order import schedule_by_priority
from plimsoll.nodes.planning.scaleup.result_builder import build_plan
from plimsoll.nodes.planning.state.resource_limits import MAX_NODES_PER_SCALEUP
from plimsoll.solver.packing.first_fit import estimate
from plimsoll.solver.problem import UNBOUNDED, Effort, PackingProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.objects.api.pods import Pod
    from plimsoll.solver.problem import Flags, Ints

AWAITS_A_LATER_LOOP: Final = "AwaitsLaterLoop"
_EFFORT = Effort(value_vectors=1, rounds=0)


def plan_single_group(problem: ScaleUpProblem, relations: PodRelations, failed: FailedClasses) -> ScaleUpPlan:
    """The best single option of this loop."""
    nothing: Flags = np.zeros(len(problem.options), dtype=np.bool_)
    here = schedule_by_priority(
        problem,
        lambda demand, onto: place(problem, relations, demand, PackingOptions(usable=nothing, failed=failed), onto),
    )
    estimator = _Estimator(
        problem=problem, relations=relations, here=here, failed=failed, families=find_similar_options(problem)
    )
    tried = {option_index: estimator.estimate_group(option_index) for option_index in range(len(problem.options))}
    options = {
        option_index: _build_option(problem, scheduled, here, option_index)
        for option_index, scheduled in tried.items()
        if _count_nodes(problem, scheduled)
    }
    known = are_prices_known(problem.snapshot, problem.policy.overlay)
    chain = problem.policy.planning.choose_expanders(prices_are_known=known)
    context = ExpanderContext(
        cluster_nodes=len(problem.arrays),
        priorities=problem.policy.priorities,
        seed=problem.policy.planning.random_seed,
        answers=problem.policy.expander_answers,
    )
    best = choose(list(options.values()), chain, context)
    scheduled = next((tried[option_index] for option_index, option in options.items() if option is best), here)
    waits = {} if best is None else _explain_later_scale_up(problem, scheduled, tried)
    return build_plan(problem, replace(scheduled, waits=waits), usable=~nothing, effort=_EFFORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Estimator:
    """Places pods without a node on new nodes of one group and of groups similar to it."""

    problem: ScaleUpProblem
    relations: PodRelations
    here: ScheduledPods
    failed: FailedClasses
    families: Sequence[Sequence[int]]

    def estimate_group(self, option_index: int) -> ScheduledPods:
        problem = self.problem
        if self.failed.pod_by_pod or _has_pod_interactions(problem, option_index):
            return self._place_all(option_index)
        family = next((members for members in self.families if option_index in members), (option_index,))
        similar = [member for member in family if (problem.allowed[member] >= problem.allowed[option_index]).all()]
        # Similar groups are estimated as one, provided that the nodes can be distributed among them afterwards.
        shared = self._distribute(self._estimate(option_index, similar))
        if (shared.count_new_nodes(len(problem.options)) > problem.available).any():
            shared = self._distribute(self._estimate(option_index, [option_index]))
        return assign_places(problem, shared)

    def _distribute(self, placement: Placement) -> Placement:
        return balance(self.problem, placement, self.relations, self.families)

    def _estimate(self, option_index: int, together: Sequence[int]) -> Placement:
        """First fit decreasing; `together` are the groups whose available nodes are added up."""
        problem, before = self.problem, self.here.placement
        left = self._count_left()
        chosen = np.flatnonzero((left > 0) & problem.allowed[option_index])
        if not len(chosen):
            return before
        use = problem.limits.use[list(together)].max(axis=0)
        limited = use > 0
        limits = (problem.limits.room[limited] // use[limited]).min(initial=UNBOUNDED)
        room = min(int(problem.available[list(together)].sum()), int(limits))
        answer = estimate(_build_packing_problem(problem, left, chosen, option_index), 0, nodes=room)
        batches = [
            NodeBatch(
                option=option_index,
                nodes=pattern.bins,
                content={
                    int(chosen[index]): items for index, items in zip(pattern.classes, pattern.items, strict=True)
                },
            )
            for pattern in answer.fillings
        ]
        return replace(before, batches=(*before.batches, *batches))

    def _place_all(self, option_index: int) -> ScheduledPods:
        """Add to the pods placed already, or place all pods again if that helps more: placed pods may block others."""
        problem = self.problem
        usable = find_zone_counterparts(problem, option_index, self._count_left())
        packing = PackingOptions(effort=_EFFORT, usable=usable, failed=self.failed)
        starts: list[tuple[Ints, Placement | None]] = [(problem.table.counts, None)]
        if not self.here.placement.is_empty:
            starts.insert(0, (self._count_left(), self.here.placement))
        placements = [self._place(demand, onto, packing) for demand, onto in starts]
        return max(
            (assign_places(problem, self._distribute(placement)) for placement in placements),
            key=lambda scheduled: sum(scheduled.pods),
        )

    def _place(self, demand: Ints, onto: Placement | None, packing: PackingOptions) -> Placement:
        """A zone that fills up early and limits the others is left out if that places more pods."""
        placement = place(self.problem, self.relations, demand, packing, onto)
        if packing.usable.sum() <= 1:
            return placement
        pruning_context = PruningContext(
            wanted=demand + (0 if onto is None else onto.count_placed(len(demand))),
            onto=onto or Placement(),
            packing=packing,
            place=lambda narrower: place(self.problem, self.relations, demand, narrower, onto),
        )
        return ZonePruning(self.problem, self.relations).prune(placement, pruning_context)

    def _count_left(self) -> Ints:
        """[C]: pods that do not fit on existing nodes."""
        counts = self.problem.table.counts
        left: Ints = np.maximum(counts - self.here.placement.count_placed(len(counts)), 0)
        return left


def _has_pod_interactions(problem: ScaleUpProblem, option_index: int) -> bool:
    interacts = problem.rules.interacts
    return bool((interacts & problem.allowed[option_index]).any()) or problem.snapshot.view.has_anti_affinity


def _build_packing_problem(problem: ScaleUpProblem, left: Ints, chosen: Ints, option_index: int) -> PackingProblem:
    return PackingProblem(
        requests=problem.requests[chosen],
        counts=left[chosen],
        capacity=problem.capacity[[option_index]],
        price=problem.prices[[option_index]],
        allowed=np.ones((1, len(chosen)), dtype=np.bool_),
        per_bin=np.full(len(chosen), UNBOUNDED, dtype=np.int64),
        exclusive=np.zeros((len(chosen), 0), dtype=np.bool_),
        available=problem.available[[option_index]],
        use=np.zeros((1, 0), dtype=np.int64),
        room=np.zeros(0, dtype=np.int64),
    )


def _count_nodes(problem: ScaleUpProblem, scheduled: ScheduledPods) -> int:
    return int(scheduled.placement.count_new_nodes(len(problem.options)).sum())


def _build_option(
    problem: ScaleUpProblem, scheduled: ScheduledPods, here: ScheduledPods, option_index: int
) -> ExpanderOption:
    option = problem.options[option_index]
    pods = scheduled.placement.count_on_new_nodes(len(problem.table))
    total = pods @ problem.requests
    return ExpanderOption(
        scale_up_option=option,
        nodes=option.max_size - option.size if option.zero_or_max else _count_nodes(problem, scheduled),
        pods=sum(scheduled.pods) - sum(here.pods),
        requests=ResourceVector(dict(zip(problem.names, total.tolist(), strict=True))),
        gpus=count_gpus(option.capacity),
        scheduled_pods=() if problem.policy.expander_answers is None else _list_helped_pods(problem, pods),
    )


def _list_helped_pods(problem: ScaleUpProblem, pods: Ints) -> tuple[tuple[Pod, int], ...]:
    """The pods helped, by class; only an external expander needs them."""
    return tuple((problem.table.classes[number].pod, int(pods[number])) for number in np.flatnonzero(pods).tolist())


# ---- pods that wait for a later loop


def _explain_later_scale_up(
    problem: ScaleUpProblem, scheduled: ScheduledPods, tried: dict[int, ScheduledPods]
) -> dict[int, Reason]:
    """The reasons of classes whose pods another group, which can still be scaled up, would take in a later loop."""
    found: dict[int, Reason] = {}
    estimator = np.flatnonzero(_can_grow(problem, scheduled.placement)).tolist()
    placed = scheduled.placement.count_placed(len(problem.table))
    helped = {
        option_index: tried[option_index].placement.count_on_new_nodes(len(problem.table)) > 0
        for option_index in estimator
    }
    for number in np.flatnonzero(placed < problem.table.counts).tolist():
        # Pods that depend on other pods may be refused for reasons outside a node: only groups that helped count.
        plain = not problem.rules.interacts[number]
        groups = [group for group in estimator if problem.allowed[group, number] and (plain or helped[group][number])]
        if groups and may_interact(problem, number):
            rejections = find_rejections_on_new_nodes(problem, scheduled.placement, number, groups)
            groups = [*(group for group, refusals in rejections if not refusals), *groups[MOST_EXPLAINED:]]
        if groups:
            names = shorten_names([problem.options[group].group for group in groups])
            message = f"one group is scaled up at a time; a later loop iteration may help ({names})"
            found[number] = Reason(code=AWAITS_A_LATER_LOOP, message=message, facts={"groups": len(groups)})
    return found


def _can_grow(problem: ScaleUpProblem, placement: Placement) -> Flags:
    """[T]: whether an option has room for one more node, or for all, in the next loop. Limits per loop are ignored."""
    nodes = placement.count_new_nodes(len(problem.options))
    step = np.array(
        [option.max_size - option.size if option.zero_or_max else 1 for option in problem.options], dtype=np.int64
    )
    lasting = np.array(
        [resource_limit.code != MAX_NODES_PER_SCALEUP for resource_limit in problem.limits.resource_limits],
        dtype=np.bool_,
    )
    left = placement.compute_room_left(problem)
    within = ((problem.limits.use * step[:, None])[:, lasting] <= left[None, lasting]).all(axis=1)
    sizes = np.array([option.max_size - option.size for option in problem.options], dtype=np.int64)
    return np.asarray(within & (nodes + step <= sizes), dtype=np.bool_)

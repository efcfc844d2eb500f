"""What to add so that pods run, at the least cost, and why: `plan_scale_up(snapshot, policy) -> ScaleUp`. Pure.

The main flow: a board of everything that is looked at; a draft for all pods at once, or in line where limits bind; the
answer with names, reasons, cost and bound; the verifier, which replays it with the plain rules. Classes that fail there
are placed pod by pod instead, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.config.policy import Planner
from plimsoll.nodes.model.scale_up_plan import Result, ScaleUpPlan
from plimsoll.nodes.planning.packing.affinity_targets import hosted
from plimsoll.nodes.planning.packing.binpacking import FailedClasses, PackingOptions
from plimsoll.nodes.planning.packing.exact_fallback import ExactFallback
from plimsoll.nodes.planning.packing.place import place
from plimsoll.nodes.planning.packing.placement_view import PlacementView, keeps_zones
from plimsoll.nodes.planning.packing.pod_relations import PodRelations
from plimsoll.nodes.planning.problem.placement import Placement
from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
from plimsoll.nodes.planning.problem.verifier import verify
from plimsoll.nodes.planning.scaleup.balancing import balanced
from plimsoll.nodes.planning.scaleup.nominations import merged, with_promises_kept
from plimsoll.nodes.planning.scaleup.priorities import serve_by_priority
from plimsoll.nodes.planning.scaleup.pruning import Question, ZonePruning, made_groups, with_fewer_groups
from plimsoll.nodes.planning.scaleup.result_builder import assembled
from plimsoll.nodes.planning.scaleup.single_group import plan_compatible
from plimsoll.solver.problem import Effort

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.planner_cache import PlannerCache
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.planning.problem.served import Served
    from plimsoll.solver.problem import Flags, Ints

_TIDIED_GROUPS: Final = 6
_TIDIED_CLASSES: Final = 100
_TIDIED_NODES: Final = 30
_SAME_MONEY: Final = 1e-9
_SCOUTED: Final = 20_000
"""From so many classes times new groups on, a hasty plan first says which groups are not worth their number."""
_FEW: Final = 1_000
"""Up to so many classes times offers more than one way is tried to do with fewer groups."""
_ROUNDS: Final = 4
"""So often a refuted plan is mended pod by pod; what is refuted after that is left out of the plan."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proposal:
    """A plan that nobody has verified yet, and what is needed to mend it."""

    board: ScaleUpProblem
    effort: Effort
    plan: ScaleUpPlan
    doubts: FailedClasses = field(default_factory=FailedClasses)


def plan_scale_up(
    snapshot: Snapshot, policy: Policy, *, effort: Effort | None = None, cache: PlannerCache | None = None
) -> ScaleUpPlan:
    return verified(propose(snapshot, policy, effort=effort, cache=cache))


def propose(
    snapshot: Snapshot, policy: Policy, *, effort: Effort | None = None, cache: PlannerCache | None = None
) -> Proposal:
    """The planning step alone: from a snapshot to a finished plan, but for pods that are promised a place."""
    chosen = effort or Effort(gap=policy.planning.plan_gap)
    board = ScaleUpProblem.of(with_promises_kept(snapshot), policy, cache)
    return _proposed(board, chosen, FailedClasses())


def verified(proposal: Proposal) -> ScaleUpPlan:
    """The plan, once the plain rules agree with it; classes they refuse are placed anew, pod by pod, and counted."""
    failures, rounds = 0, 0
    while refuted := verify(proposal.board.snapshot, proposal.plan):
        rounds += 1
        known = proposal.doubts
        classes = _classes_of(proposal.board, {one.key for one in refuted})
        failures += len(classes - known.one_by_one)
        # What fails again is not planned at all: no plan is better than a wrong one. So this comes to an end.
        hopeless = classes if rounds > _ROUNDS else classes & known.one_by_one
        doubts = FailedClasses(one_by_one=known.one_by_one | classes, given_up=known.given_up | hopeless)
        proposal = _proposed(proposal.board, proposal.effort, doubts)
    return _with_promised(replace(proposal.plan, verification_failures=failures), proposal.board.snapshot.promises)


def _with_promised(plan: ScaleUpPlan, promises: Mapping[str, Mapping[str, int]]) -> ScaleUpPlan:
    if not promises:
        return plan
    pods = sum(sum(counts.values()) for counts in promises.values())
    return replace(plan, existing=merged(promises, plan.existing), scheduled=plan.scheduled + pods)


def _proposed(board: ScaleUpProblem, effort: Effort, doubts: FailedClasses) -> Proposal:
    if not board.table.pending:
        return Proposal(board=board, effort=effort, plan=ScaleUpPlan(result=Result.NOT_NEEDED))
    if board.planner is Planner.COMPATIBLE:
        plan = plan_compatible(board, PodRelations(board.table, board.rules, board.snapshot.view), doubts)
    else:
        plan = _optimal(board, effort, doubts)
    return Proposal(board=board, effort=effort, plan=plan, doubts=doubts)


def _optimal(board: ScaleUpProblem, effort: Effort, doubts: FailedClasses) -> ScaleUpPlan:
    """All groups and machine types at once. Where that would make too many groups, the least useful are left out."""
    meetings = PodRelations(board.table, board.rules, board.snapshot.view)
    placing = _Placing(
        board=board,
        meetings=meetings,
        fewer_zones=ZonePruning(board, meetings),
        last_word=ExactFallback(board, meetings),
    )
    everything = PackingOptions(effort=effort, usable=np.ones(len(board.offers), dtype=np.bool_), doubts=doubts)
    served, usable = _with_groups_allowed(placing, _scouted(board, meetings, everything), everything)
    served = _tidied(placing, served, PackingOptions(effort=effort, usable=usable, doubts=doubts))
    even = replace(served, draft=balanced(board, served.draft, meetings))
    return assembled(board, even, usable=usable, effort=effort)


def _scouted(board: ScaleUpProblem, meetings: PodRelations, means: PackingOptions) -> Flags:
    """[T]: offers to plan with. Where a plan would make too many groups, a hasty one says which to do without."""
    new = sum(not option.exists for option in board.offers)
    if new <= board.offered.new_groups_left or new * len(board.table) < _SCOUTED:
        return means.usable
    hasty = replace(means, effort=replace(means.effort, rounds=0, value_vectors=1))
    draft = place(board, meetings, board.table.counts, hasty)
    return next(iter(with_fewer_groups(board, draft, means.usable)), means.usable)


def _with_groups_allowed(placing: _Placing, usable: Flags, means: PackingOptions) -> tuple[Served, Flags]:
    """A plan that makes no more groups than may be made, and the offers it was made with."""
    board = placing.board
    served = placing.served(replace(means, usable=usable))
    ways = with_fewer_groups(board, served.draft, usable)
    if not ways:
        return served, usable
    few = ways if int(ways[0].sum()) * len(board.table) <= _FEW else ways[:1]
    tried = [(placing.served(replace(means, usable=one)), one) for one in few]
    return min(tried, key=lambda one: (-sum(one[0].pods), round(one[0].draft.cost(board), 9)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Placing:
    """Pods in line, with fewer zones where some hold pods back, and the last word on what that leaves."""

    board: ScaleUpProblem
    meetings: PodRelations
    fewer_zones: ZonePruning
    last_word: ExactFallback

    def served(self, means: PackingOptions) -> Served:
        return serve_by_priority(self.board, lambda demand, onto: self._placed(demand, onto, means))

    def keeps_zones(self, draft: Placement, other: Placement) -> bool:
        first, second = (PlacementView(self.board, placement, self.meetings) for placement in (draft, other))
        return keeps_zones(first, second, range(len(self.board.table)))

    def _placed(self, demand: Ints, onto: Placement | None, means: PackingOptions) -> Placement:
        wanted = demand + (0 if onto is None else onto.placed(len(demand)))
        draft = self._drafted(demand, onto, means)
        asked = Question(
            wanted=wanted, onto=onto or Placement(), means=means, drafted=lambda some: self._drafted(demand, onto, some)
        )
        draft = self.fewer_zones.instead_of(draft, asked)
        return self.last_word.on(draft, wanted, means)

    def _drafted(self, demand: Ints, onto: Placement | None, means: PackingOptions) -> Placement:
        draft = place(self.board, self.meetings, demand, means, onto)
        return hosted(self.board, self.meetings, (demand, onto, means), draft)


def _tidied(placing: _Placing, served: Served, means: PackingOptions) -> Served:
    """For the same money and zones rather fewer groups than fewer nodes (specs/nodes.md 8.4), where it costs little."""
    board = placing.board
    made = made_groups(board, served.draft)
    few = served.draft.nodes_of(len(board.offers)).sum() <= _TIDIED_NODES
    if not few or not 1 < len(made) <= _TIDIED_GROUPS or len(board.table) > _TIDIED_CLASSES:
        return served
    left = means.usable & np.array(
        [option.exists or index in made for index, option in enumerate(board.offers)], dtype=np.bool_
    )
    for index in made:
        without = left.copy()
        without[index] = False
        tried = placing.served(replace(means, usable=without))
        as_cheap = tried.draft.cost(board) <= served.draft.cost(board) * (1 + _SAME_MONEY)
        if tried.pods == served.pods and as_cheap and placing.keeps_zones(served.draft, tried.draft):
            served, left = tried, without
    return served


def _classes_of(board: ScaleUpProblem, keys: set[str]) -> frozenset[int]:
    return frozenset(
        int(board.table.class_of[index]) for index, pending in enumerate(board.table.pending) if pending.key in keys
    )

"""Nodes removed or replaced to save money: `consolidate(snapshot, policy, now=...) -> Consolidation`. Pure.

Beyond unneeded nodes (docs/design/nodes.md 8.6): nodes with the least capacity for their price are emptied into nodes
that stay, so that no pod moves twice; then a set of nodes may be replaced by cheaper ones. Mode `empty` takes only
nodes without pods to move, `underutilized` everything that saves money, `balanced` what saves enough for its disruption
cost. Budgets, minimum sizes and minimum resource limits are shared limits. The controller validates a proposal again
before it acts on it.

A replacement is found by removing the nodes from the snapshot, making their pods pending, and calling `plan_scale_up`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.formatting import format_money
from plimsoll.core.plans import Reason
from plimsoll.nodes.config.node_disruption_budgets import DEFAULT_BUDGETS, EMPTY, UNDERUTILIZED
from plimsoll.nodes.model.planner_cache import PlannerCache
from plimsoll.nodes.model.scale_down_plan import NodeRemoval, PodMove, UnremovableNode
from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.planning.consolidation.limits import (
    SharedLimits,
    build_shared_limits,
    compute_disruption_costs,
    compute_node_prices,
)
from plimsoll.nodes.planning.scaledown.counted_removals import CountedRemovals
from plimsoll.nodes.planning.scaledown.eligibility import (
    EligibilityChecker,
    ScaleDownState,
    add_bookings,
    find_shrinkable_groups,
)
from plimsoll.nodes.planning.scaledown.planner import (
    NOT_TRIED,
    build_drain_rules,
    build_no_place_reason,
    find_blocking_pod,
    find_receiving_nodes,
)
from plimsoll.nodes.planning.scaledown.problem import PodToMove, ScaleDownProblem
from plimsoll.nodes.planning.scaledown.selection import ATOMIC_FAILED
from plimsoll.nodes.planning.scaledown.simulator import (
    MovedPods,
    RemovalSimulator,
    Unplaceable,
    apply_moves,
    build_node_set,
    find_refused_moves,
)
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.nodes.planning.state.node_pods import remove_node_name
from plimsoll.solver.consolidation.consolidate import Limits, RemovalStatus
from plimsoll.solver.consolidation.consolidate import consolidate as choose_survivors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.config.node_disruption_budgets import DisruptionBudget
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.scheduling.cluster_view import PlacedPod, PodKey
    from plimsoll.solver.problem import Flags, Floats


OFF: Final = "off"
ONLY_EMPTY: Final = "empty"
BALANCED: Final = "balanced"

NOT_READY: Final = "NotReady"
NOT_EMPTY: Final = "NotEmpty"
NOT_WORTH_IT: Final = "NotWorthTheDisruption"
LIMITED: Final = "DisruptionLimitReached"
CHEAPEST_TO_KEEP: Final = "CheapestToKeep"
NO_EFFORT_LEFT: Final = Reason(code=NOT_TRIED, message="the effort of this turn is used up")
_SAVINGS_WEIGHT: Final = 2.0
"""A saving of a share of a group's cost justifies twice that share of its disruption cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """Nodes to remove, nodes to add instead, and the costs. Each other node stays, with a reason."""

    mode: str
    removals: tuple[NodeRemoval, ...] = ()
    replacement: Replacement | None = None
    unremovable: tuple[UnremovableNode, ...] = ()
    cost_per_hour: float = 0.0
    """The cost of all nodes now."""
    savings_per_hour: float = 0.0
    disruption: float = 0.0
    """The disruption cost: 1 per node and about 1 per pod that moves."""
    lower_bound_per_hour: float | None = None
    cache: PlannerCache = field(default_factory=PlannerCache, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationOptions:
    """Budgets of a consolidation, and whether it may replace nodes."""

    budgets: tuple[DisruptionBudget, ...] = DEFAULT_BUDGETS
    may_replace: bool = True


def consolidate(
    snapshot: Snapshot,
    policy: Policy,
    *,
    now: datetime,
    state: ScaleDownState | None = None,
    options: ConsolidationOptions | None = None,
    cache: PlannerCache | None = None,
) -> Consolidation:
    mode = policy.scale_down.consolidation
    if mode == OFF or not policy.scale_down.enabled:
        return Consolidation(mode=mode, cache=cache or PlannerCache())
    state = state or ScaleDownState()
    problem = ScaleDownProblem.from_snapshot(snapshot, build_drain_rules(snapshot, policy, state, now), cache=cache)
    state = add_bookings(state, problem.pods_by_node)
    rooms = find_shrinkable_groups(snapshot, policy, state, problem.pods_by_node)
    checker = EligibilityChecker(snapshot=snapshot, policy=policy, state=state, groups=rooms, now=now)
    consolidator = _Consolidator(problem, checker, options or ConsolidationOptions())
    consolidator.remove_in_bulk()
    consolidator.remove_unused()
    consolidator.remove_counted()
    consolidator.remove_others()
    consolidator.replace_expensive_nodes()
    return consolidator.build_result()


class _Consolidator:
    """Candidates, their limits, and the decisions so far."""

    def __init__(self, problem: ScaleDownProblem, checker: EligibilityChecker, options: ConsolidationOptions) -> None:
        self._problem = problem
        self._checker = checker
        self._options = options
        self._mode = checker.policy.scale_down.consolidation
        self._unremovable: dict[int, Reason] = {}
        self._moves: dict[int, tuple[PodMove, ...]] = {}
        """Rows to remove, in order."""
        self._moved_pods: MovedPods = {}
        self._replacement: Replacement | None = None
        self._bound: float | None = None
        self._receives = find_receiving_nodes(problem, checker.state)
        self._price: Floats = compute_node_prices(problem, checker.policy)
        self._disruption_costs: Floats = compute_disruption_costs(problem)
        self._removable = self._check_eligibility()
        self._limits: SharedLimits = build_shared_limits(problem, checker, options.budgets)
        self._worth_it = self._is_worth_it()

    def _check_eligibility(self) -> Flags:
        removable = np.zeros(len(self._problem.arrays), dtype=np.bool_)
        for row, node_pods in enumerate(self._problem.pods_by_node.nodes):
            reason = (
                self._checker.find_unremovable_reason(node_pods)
                or self._check_mode(row)
                or find_blocking_pod(self._problem, row)
            )
            if reason is None:
                removable[row] = True
            else:
                self._unremovable[row] = reason
        return removable

    def _check_mode(self, row: int) -> Reason | None:
        node_pods = self._problem.pods_by_node.nodes[row]
        group = self._checker.snapshot.group_of.get(node_pods.state.name, "")
        if not self._checker.is_ready(node_pods):
            return Reason(code=NOT_READY, message="it is not ready")
        if self._checker.groups[group].group.zero_or_max:
            return Reason(code=ATOMIC_FAILED, message=f"group {group} goes whole or not at all")
        if self._mode == ONLY_EMPTY and self._problem.moving[row]:
            return Reason(code=NOT_EMPTY, message=f"{self._problem.moving[row]} pods would have to move")
        return None

    def _is_worth_it(self) -> Flags:
        """[N]: the balanced rule for each node alone. If it holds for each node, it holds for any set of them."""
        if self._mode != BALANCED:
            return np.ones(len(self._price), dtype=np.bool_)
        paid, disturbed = self._limits.sum_by_group(self._price), self._limits.sum_by_group(self._disruption_costs)
        return np.asarray(
            np.round(self._price * _SAVINGS_WEIGHT * disturbed, 9) >= np.round(self._disruption_costs * paid, 9)
        )

    # ---- removal without replacement

    def remove_in_bulk(self) -> None:
        """Remove nodes whose pods only request resources. The nodes that stay are chosen first."""
        rows = self._removable & self._worth_it & ~self._problem.interacting
        if not rows.any():
            return
        cluster = build_node_set(self._problem, rows, receives=self._receives, price=self._price)
        found = choose_survivors(cluster, Limits(use=self._limits.use, spare=self._limits.remaining.copy()))
        self._bound = found.bound
        moved_pods, moves = apply_moves(self._problem, found.moves)
        refused = find_refused_moves(self._problem, moved_pods)
        by_node: dict[str, list[PodMove]] = {}
        for move in moves:
            by_node.setdefault(move.source, []).append(move)
        names = self._problem.arrays.names
        for row in found.removed.tolist():
            listed = tuple(by_node.get(names[row], ()))
            if any(move.pod in refused for move in listed):
                self._unremovable[row] = build_no_place_reason(next(move.pod for move in listed if move.pod in refused))
            else:
                self._take(row, listed)
        gone = {names[row] for row in self._moves}
        stays = {move.pod for move in moves if move.source not in gone}
        self._moved_pods = {
            row: kept
            for row, listed in moved_pods.items()
            if (kept := [moved for moved in listed if moved[0].key not in stays])
        }
        for row in np.flatnonzero(found.statuses == RemovalStatus.NO_ROOM).tolist():
            self._unremovable[row] = build_no_place_reason(
                self._problem.find_first_of_class(row, int(found.stuck[row]))
            )

    def remove_unused(self) -> None:
        """Remove empty nodes that were reserved for pods but got none because of a limit."""
        for row in np.flatnonzero(self._removable & self._worth_it & (self._problem.moving == 0)).tolist():
            if row not in self._moves and row not in self._moved_pods and self._limits.allows(row):
                self._take(row, ())

    def remove_counted(self) -> None:
        """Remove nodes with pods that have rules about each other, by counts per domain."""
        rows = self._removable & self._worth_it & self._problem.interacting & ~self._problem.uncounted
        if rows.any():
            self._remove_one_by_one(rows, CountedRemovals)

    def remove_others(self) -> None:
        """Remove nodes with pods that have ports or volumes, by the plain rules."""
        rows = self._removable & self._worth_it & self._problem.uncounted
        if rows.any():
            self._remove_one_by_one(rows, RemovalSimulator)

    def _remove_one_by_one(self, rows: Flags, simulate: type[CountedRemovals | RemovalSimulator]) -> None:
        """The most expensive nodes first."""
        simulator = simulate(
            self._problem,
            receives=self._receives,
            removed=self._moves,
            moved_pods=self._moved_pods,
            hints=self._checker.state.hints,
        )
        for row in self._sort_by_price(rows):
            # A node that received pods stays: no pod moves twice.
            if simulator.moved_pods.get(row) or not self._limits.allows(row):
                continue
            if simulator.effort_left < 0:
                self._unremovable[row] = NO_EFFORT_LEFT
                continue
            found = simulator.simulate_removal(row)
            if isinstance(found, Unplaceable):
                self._unremovable[row] = NO_EFFORT_LEFT if found.gave_up else build_no_place_reason(found.pod)
            else:
                self._take(row, found)
        self._moved_pods = simulator.moved_pods

    def _sort_by_price(self, rows: Flags) -> list[int]:
        names = self._problem.arrays.names
        share = np.round(self._price / self._disruption_costs, 9)
        return sorted(np.flatnonzero(rows).tolist(), key=lambda row: (-share[row], names[row]))

    def _take(self, row: int, moves: tuple[PodMove, ...]) -> None:
        self._moves[row] = moves
        self._unremovable.pop(row, None)
        self._limits.consume(row)

    # ---- replacement

    def replace_expensive_nodes(self) -> None:
        if self._mode == ONLY_EMPTY or not self._options.may_replace:
            return
        rows = self._removable & (self._problem.moving > 0)
        rows[[*self._moves, *(row for row, listed in self._moved_pods.items() if listed)]] = False
        candidates = self._filter_by_limits(self._sort_by_price(rows))
        while candidates and self._replacement is None:
            found = find_replacement(
                self._problem, self._checker.policy, candidates, gone=tuple(self._moves), moved_pods=self._moved_pods
            )
            if found is not None and self._saves_enough(found, candidates):
                self._replacement = found
                for row in candidates:
                    self._unremovable.pop(row, None)
            # Half as many nodes, the most expensive ones: a large set may fail because of one of its nodes.
            candidates = candidates[: len(candidates) // 2]

    def _filter_by_limits(self, rows: Sequence[int]) -> list[int]:
        limits = self._limits.copy()
        found: list[int] = []
        for row in rows:
            if limits.allows(row):
                limits.consume(row)
                found.append(row)
        return found

    def _saves_enough(self, found: Replacement, rows: Sequence[int]) -> bool:
        paid = float(self._price[list(rows)].sum())
        saved = paid - found.cost_per_hour
        if round(saved, 9) <= 0:
            return False
        if self._mode != BALANCED:
            return True
        share = saved / max(float(self._price.sum()), 1e-12)
        return bool(
            round(share * _SAVINGS_WEIGHT - self._sum_disruption(rows) / float(self._disruption_costs.sum()), 9) >= 0
        )

    # ---- result

    def _sum_disruption(self, rows: Sequence[int]) -> float:
        return float(self._disruption_costs[list(rows)].sum())

    def build_result(self) -> Consolidation:
        names = self._problem.arrays.names
        replaced = (
            [] if self._replacement is None else [self._problem.arrays.row_of[n] for n in self._replacement.nodes]
        )
        gone = [*self._moves, *replaced]
        for row in np.flatnonzero(self._removable).tolist():
            if row not in gone and row not in self._unremovable:
                self._unremovable[row] = self._explain_unremovable(row)
        saved = float(self._price[gone].sum())
        added = 0.0 if self._replacement is None else self._replacement.cost_per_hour
        return Consolidation(
            mode=self._mode,
            removals=tuple(self._build_removal(row) for row in sorted(self._moves)),
            replacement=self._replacement,
            unremovable=tuple(
                UnremovableNode(node=names[row], reason=reason) for row, reason in sorted(self._unremovable.items())
            ),
            cost_per_hour=float(self._price.sum()),
            savings_per_hour=round(saved - added, 9),
            disruption=round(self._sum_disruption(gone), 9),
            lower_bound_per_hour=self._bound,
            cache=self._problem.cache,
        )

    def _explain_unremovable(self, row: int) -> Reason:
        if not self._worth_it[row]:
            message = (
                f"saves {format_money(self._price[row])} per hour, too little for {self._problem.moving[row]} pods"
            )
            return Reason(code=NOT_WORTH_IT, message=message)
        if not self._limits.allows(row):
            return Reason(code=LIMITED, message=self._limits.find_exhausted_limit(row))
        return Reason(code=CHEAPEST_TO_KEEP, message="among the cheapest nodes to keep")

    def _build_removal(self, row: int) -> NodeRemoval:
        moves = self._moves[row]
        name = self._problem.arrays.names[row]
        message = f"saves {format_money(self._price[row])} per hour for {len(moves)} pods moved"
        return NodeRemoval(
            node=name,
            group=self._checker.snapshot.group_of.get(name, ""),
            is_empty=not self._problem.moving[row],
            moves=moves,
            daemons=tuple(placed.key for placed in self._problem.list_disposable_pods(row)),
            reason=Reason(code=UNDERUTILIZED if self._problem.moving[row] else EMPTY, message=message),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A scale-up, and the nodes that are removed once its nodes are ready."""

    nodes: tuple[str, ...]
    pods: tuple[PodKey, ...]
    """Pods to evict."""
    plan: ScaleUpPlan
    """The key of a pod is NAMESPACE/NAME of one pod of its class."""
    cost_per_hour: float


def find_replacement(
    problem: ScaleDownProblem,
    policy: Policy,
    rows: Sequence[int],
    *,
    gone: Sequence[int],
    moved_pods: Mapping[int, Sequence[PodToMove]],
) -> Replacement | None:
    """A replacement for these nodes; None if it does not schedule all of their pods."""
    without = _remove_nodes(problem, {*rows, *gone}, moved_pods)
    pods = [(placed, kind) for row in rows for placed, kind in _list_moving_pods(problem, row)]
    by_kind: dict[int, list[PlacedPod]] = {}
    for placed, kind in pods:
        by_kind.setdefault(kind, []).append(placed)
    pending = tuple(
        PendingPods(
            key=str(listed[0].key),
            pod=remove_node_name(listed[0].pod),
            count=len(listed),
            names=tuple(placed_pod.key.name for placed_pod in listed),
        )
        for listed in by_kind.values()
    )
    plan = plan_scale_up(replace(without, pending=pending), policy)
    if plan.unschedulable or plan.scheduled < len(pods):
        return None
    names = problem.arrays.names
    return Replacement(
        nodes=tuple(names[row] for row in rows),
        pods=tuple(placed.key for placed, _ in pods),
        plan=plan,
        cost_per_hour=plan.cost_per_hour,
    )


def _list_moving_pods(problem: ScaleDownProblem, row: int) -> list[tuple[PlacedPod, int]]:
    moving = {placed.key for placed, _ in problem.list_pods_to_move(row)}
    return [(placed, kind) for placed, kind in problem.pods_by_node.list_pods(row) if placed.key in moving]


def _remove_nodes(problem: ScaleDownProblem, rows: set[int], moved_pods: Mapping[int, Sequence[PodToMove]]) -> Snapshot:
    """The snapshot without these nodes, with moved pods on their new nodes."""
    snapshot, names = problem.snapshot, problem.arrays.names
    gone = {names[row] for row in rows}
    view = snapshot.view.without_nodes(gone)
    view = view.with_states(
        view.nodes[names[row]].with_pods(placed for placed, _ in listed)
        for row, listed in moved_pods.items()
        if row not in rows
    )
    lost = Counter(snapshot.group_of.get(name, "") for name in gone)
    return replace(
        snapshot,
        view=view,
        groups=tuple(
            replace(group, target_size=max(group.target_size - lost[group.id], 0)) for group in snapshot.groups
        ),
        group_of={name: group for name, group in snapshot.group_of.items() if name not in gone},
    )

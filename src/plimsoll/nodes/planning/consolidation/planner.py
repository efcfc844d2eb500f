"""Nodes removed for money, though they are needed: `consolidate(snapshot, policy, now=...) -> Consolidation`. Pure.

Beyond unneeded nodes (specs/nodes.md 8.6): nodes that give least for their price are emptied into those that are to
stay, so that no pod moves twice (performance.md 4); then a set of nodes may be replaced by cheaper ones.
`simulate_removal` takes only nodes without pods to move, `underutilized` everything that saves money, `balance` what
saves enough for the disturbance. Budgets, minimum sizes, the cluster's minima and disruption budgets are shared limits.
The controller plans again after 15 s and acts only on what still holds.

Cheaper nodes instead of dear ones: the growth that would hold the pods of a set of nodes, were these gone. Pure.

For `consolidation`. The set is taken out of the snapshot, its pods are put among the pending, and `plan_scale_up`,
which verifies its plans, says what to add. Nothing else that is pending is planned for here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.config.disruption_budgets import DEFAULT_BUDGETS, EMPTY, UNDERUTILIZED
from plimsoll.nodes.model.planner_cache import PlannerCache
from plimsoll.nodes.model.scale_down_plan import NodeRemoval, PodMove, UnremovableNode
from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.planning.consolidation.limits import (
    SharedLimits,
    build_shared_limits,
    disruption_costs,
    node_prices,
)
from plimsoll.nodes.planning.scaledown.eligibility import (
    EligibilityChecker,
    ScaleDownState,
    shrinkable_groups,
    with_bookings,
)
from plimsoll.nodes.planning.scaledown.planner import blocked_by_pod, drain_rules, no_place_reason, receiving_nodes
from plimsoll.nodes.planning.scaledown.problem import ScaleDownProblem
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
from plimsoll.nodes.planning.state.node_pods import without_node
from plimsoll.solver.consolidation.consolidate import Limits, RemovalStatus
from plimsoll.solver.consolidation.consolidate import consolidate as choose_survivors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.config.disruption_budgets import DisruptionBudget
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
_SAVINGS_WEIGHT: Final = 2.0
"""A share of a group's cost may be saved for twice that share of its disturbance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """What to remove, what to add instead, and what it comes to. Nodes not named stay, with a reason each."""

    mode: str
    removals: tuple[NodeRemoval, ...] = ()
    replacement: Replacement | None = None
    unremovable: tuple[UnremovableNode, ...] = ()
    cost_per_hour: float = 0.0
    """Of all nodes now."""
    savings_per_hour: float = 0.0
    disruption: float = 0.0
    """1 for each node and about 1 for each pod that moves."""
    lower_bound_per_hour: float | None = None
    cache: PlannerCache = field(default_factory=PlannerCache, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationOptions:
    """How far it may go."""

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
    occupancy = ScaleDownProblem.of(snapshot, drain_rules(snapshot, policy, state, now), cache=cache)
    state = with_bookings(state, occupancy.pods_by_node)
    rooms = shrinkable_groups(snapshot, policy, state, occupancy.pods_by_node)
    screening = EligibilityChecker(snapshot=snapshot, policy=policy, state=state, groups=rooms, now=now)
    effort = _Effort(occupancy, screening, options or ConsolidationOptions())
    effort.remove_in_bulk()
    effort.remove_unused()
    effort.remove_one_by_one()
    effort.replace_dear_ones()
    return effort.result()


class _Effort:
    """Nodes that may go, what limits them, and what was decided so far."""

    def __init__(self, occupancy: ScaleDownProblem, screening: EligibilityChecker, terms: ConsolidationOptions) -> None:
        self._occupancy = occupancy
        self._screening = screening
        self._terms = terms
        self._mode = screening.policy.scale_down.consolidation
        self._kept: dict[int, Reason] = {}
        self._moves: dict[int, tuple[PodMove, ...]] = {}
        """Rows that go, in order."""
        self._lodgers: MovedPods = {}
        self._replacement: Replacement | None = None
        self._bound: float | None = None
        self._receives = receiving_nodes(occupancy, screening.state)
        self._price: Floats = node_prices(occupancy, screening.policy)
        self._disturbance: Floats = disruption_costs(occupancy)
        self._removable = self._screened()
        self._shares: SharedLimits = build_shared_limits(occupancy, screening, terms.budgets)
        self._worth_it = self._is_worth_it()

    def _screened(self) -> Flags:
        removable = np.zeros(len(self._occupancy.arrays), dtype=np.bool_)
        for row, home in enumerate(self._occupancy.pods_by_node.nodes):
            reason = (
                self._screening.unremovable_reason(home)
                or self._untouchable(row)
                or blocked_by_pod(self._occupancy, row)
            )
            if reason is None:
                removable[row] = True
            else:
                self._kept[row] = reason
        return removable

    def _untouchable(self, row: int) -> Reason | None:
        home = self._occupancy.pods_by_node.nodes[row]
        group = self._screening.snapshot.group_of.get(home.state.name, "")
        if not self._screening.is_ready(home):
            return Reason(code=NOT_READY, message="it is not ready")
        if self._screening.groups[group].group.zero_or_max:
            return Reason(code=ATOMIC_FAILED, message=f"group {group} goes whole or not at all")
        if self._mode == ONLY_EMPTY and self._occupancy.moving[row]:
            return Reason(code=NOT_EMPTY, message=f"{self._occupancy.moving[row]} pods would have to move")
        return None

    def _is_worth_it(self) -> Flags:
        """[N]: by the balanced rule, each node by itself; what holds for each holds for any set of them."""
        if self._mode != BALANCED:
            return np.ones(len(self._price), dtype=np.bool_)
        paid, disturbed = self._shares.sum_by_group(self._price), self._shares.sum_by_group(self._disturbance)
        return np.asarray(
            np.round(self._price * _SAVINGS_WEIGHT * disturbed, 9) >= np.round(self._disturbance * paid, 9)
        )

    # ---- removing alone

    def remove_in_bulk(self) -> None:
        """Pods that ask for resources only; survivors are chosen first."""
        rows = self._removable & self._worth_it & ~self._occupancy.interacting
        if not rows.any():
            return
        cluster = build_node_set(self._occupancy, rows, receives=self._receives, price=self._price)
        found = choose_survivors(cluster, Limits(use=self._shares.use, spare=self._shares.remaining.copy()))
        self._bound = found.bound
        lodgers, moves = apply_moves(self._occupancy, found.moves)
        wrong = find_refused_moves(self._occupancy, lodgers)
        by_node: dict[str, list[PodMove]] = {}
        for move in moves:
            by_node.setdefault(move.source, []).append(move)
        names = self._occupancy.arrays.names
        for row in found.removed.tolist():
            listed = tuple(by_node.get(names[row], ()))
            if any(move.pod in wrong for move in listed):
                self._kept[row] = no_place_reason(next(move.pod for move in listed if move.pod in wrong))
            else:
                self._take(row, listed)
        gone = {names[row] for row in self._moves}
        stays = {move.pod for move in moves if move.source not in gone}
        self._lodgers = {
            row: kept for row, listed in lodgers.items() if (kept := [one for one in listed if one[0].key not in stays])
        }
        for row in np.flatnonzero(found.statuses == RemovalStatus.NO_ROOM).tolist():
            self._kept[row] = no_place_reason(self._occupancy.first_of_class(row, int(found.stuck[row])))

    def remove_unused(self) -> None:
        """Empty nodes that were to receive pods, and got none because a limit came first."""
        for row in np.flatnonzero(self._removable & self._worth_it & (self._occupancy.moving == 0)).tolist():
            if row not in self._moves and row not in self._lodgers and self._shares.allows(row):
                self._take(row, ())

    def remove_one_by_one(self) -> None:
        """Nodes with pods that look at others, or have volumes: the dearest first."""
        rows = self._removable & self._worth_it & self._occupancy.interacting
        if not rows.any():
            return
        rehousing = RemovalSimulator(
            self._occupancy,
            receives=self._receives,
            removed=self._moves,
            moved_pods=self._lodgers,
            hints=self._screening.state.hints,
        )
        for row in self._dearest_first(rows):
            # A node that took others' pods stays: no pod moves twice.
            if rehousing.checks_left < 0 or rehousing.moved_pods.get(row) or not self._shares.allows(row):
                continue
            found = rehousing.simulate_removal(row)
            if isinstance(found, Unplaceable):
                self._kept[row] = no_place_reason(found.pod)
            else:
                self._take(row, found)
        self._lodgers = rehousing.moved_pods

    def _dearest_first(self, rows: Flags) -> list[int]:
        names = self._occupancy.arrays.names
        share = np.round(self._price / self._disturbance, 9)
        return sorted(np.flatnonzero(rows).tolist(), key=lambda row: (-share[row], names[row]))

    def _take(self, row: int, moves: tuple[PodMove, ...]) -> None:
        self._moves[row] = moves
        self._kept.pop(row, None)
        self._shares.consume(row)

    # ---- replacing

    def replace_dear_ones(self) -> None:
        if self._mode == ONLY_EMPTY or not self._terms.may_replace:
            return
        rows = self._removable & (self._occupancy.moving > 0)
        rows[[*self._moves, *(row for row, listed in self._lodgers.items() if listed)]] = False
        candidates = self._within_limits(self._dearest_first(rows))
        while candidates and self._replacement is None:
            found = find_replacement(
                self._occupancy, self._screening.policy, candidates, gone=tuple(self._moves), lodgers=self._lodgers
            )
            if found is not None and self._pays(found, candidates):
                self._replacement = found
                for row in candidates:
                    self._kept.pop(row, None)
            # Half as many, the dearest of them: a large set may fail for one of its nodes.
            candidates = candidates[: len(candidates) // 2]

    def _within_limits(self, rows: Sequence[int]) -> list[int]:
        shares = self._shares.copy()
        found: list[int] = []
        for row in rows:
            if shares.allows(row):
                shares.consume(row)
                found.append(row)
        return found

    def _pays(self, found: Replacement, rows: Sequence[int]) -> bool:
        paid = float(self._price[list(rows)].sum())
        saved = paid - found.cost_per_hour
        if round(saved, 9) <= 0:
            return False
        if self._mode != BALANCED:
            return True
        share = saved / max(float(self._price.sum()), 1e-12)
        return bool(round(share * _SAVINGS_WEIGHT - self._disturbed(rows) / float(self._disturbance.sum()), 9) >= 0)

    # ---- the answer

    def _disturbed(self, rows: Sequence[int]) -> float:
        return float(self._disturbance[list(rows)].sum())

    def result(self) -> Consolidation:
        names = self._occupancy.arrays.names
        replaced = (
            [] if self._replacement is None else [self._occupancy.arrays.row_of[n] for n in self._replacement.nodes]
        )
        gone = [*self._moves, *replaced]
        for row in np.flatnonzero(self._removable).tolist():
            if row not in gone and row not in self._kept:
                self._kept[row] = self._why_kept(row)
        saved = float(self._price[gone].sum())
        added = 0.0 if self._replacement is None else self._replacement.cost_per_hour
        return Consolidation(
            mode=self._mode,
            removals=tuple(self._removal(row) for row in sorted(self._moves)),
            replacement=self._replacement,
            unremovable=tuple(
                UnremovableNode(node=names[row], reason=reason) for row, reason in sorted(self._kept.items())
            ),
            cost_per_hour=float(self._price.sum()),
            savings_per_hour=round(saved - added, 9),
            disruption=round(self._disturbed(gone), 9),
            lower_bound_per_hour=self._bound,
            cache=self._occupancy.cache,
        )

    def _why_kept(self, row: int) -> Reason:
        if not self._worth_it[row]:
            message = f"saves {self._price[row]:.4g} an hour, too little for {self._occupancy.moving[row]} pods"
            return Reason(code=NOT_WORTH_IT, message=message)
        if not self._shares.allows(row):
            return Reason(code=LIMITED, message=self._shares.exhausted_limit(row))
        return Reason(code=CHEAPEST_TO_KEEP, message="among the cheapest nodes to keep")

    def _removal(self, row: int) -> NodeRemoval:
        moves = self._moves[row]
        name = self._occupancy.arrays.names[row]
        message = f"saves {self._price[row]:.4g} an hour for {len(moves)} pods moved"
        return NodeRemoval(
            node=name,
            group=self._screening.snapshot.group_of.get(name, ""),
            is_empty=not self._occupancy.moving[row],
            moves=moves,
            daemons=tuple(placed.key for placed in self._occupancy.disposable_pods(row)),
            reason=Reason(code=UNDERUTILIZED if self._occupancy.moving[row] else EMPTY, message=message),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """First the growth, then, when it is there, the nodes that go."""

    nodes: tuple[str, ...]
    pods: tuple[PodKey, ...]
    """To evict."""
    plan: ScaleUpPlan
    """Keys of its pods are NAMESPACE/NAME of one of those that are alike."""
    cost_per_hour: float


def find_replacement(
    occupancy: ScaleDownProblem,
    policy: Policy,
    rows: Sequence[int],
    *,
    gone: Sequence[int],
    lodgers: Mapping[int, Sequence[tuple[PlacedPod, int]]],
) -> Replacement | None:
    """None when not every pod of these nodes would have a place."""
    without = _without(occupancy, {*rows, *gone}, lodgers)
    pods = [(placed, kind) for row in rows for placed, kind in _moving(occupancy, row)]
    by_kind: dict[int, list[PlacedPod]] = {}
    for placed, kind in pods:
        by_kind.setdefault(kind, []).append(placed)
    pending = tuple(
        PendingPods(
            key=str(listed[0].key),
            pod=without_node(listed[0].pod),
            count=len(listed),
            names=tuple(placed_pod.key.name for placed_pod in listed),
        )
        for listed in by_kind.values()
    )
    plan = plan_scale_up(replace(without, pending=pending), policy)
    if plan.unschedulable or plan.scheduled < len(pods):
        return None
    names = occupancy.arrays.names
    return Replacement(
        nodes=tuple(names[row] for row in rows),
        pods=tuple(placed.key for placed, _ in pods),
        plan=plan,
        cost_per_hour=plan.cost_per_hour,
    )


def _moving(occupancy: ScaleDownProblem, row: int) -> list[tuple[PlacedPod, int]]:
    moving = {placed.key for placed, _ in occupancy.pods_to_move(row)}
    return [(placed, kind) for placed, kind in occupancy.pods_by_node.pods(row) if placed.key in moving]


def _without(
    occupancy: ScaleDownProblem, rows: set[int], lodgers: Mapping[int, Sequence[tuple[PlacedPod, int]]]
) -> Snapshot:
    """The snapshot when these nodes are gone, and pods that were moved are where they went."""
    snapshot, names = occupancy.snapshot, occupancy.arrays.names
    gone = {names[row] for row in rows}
    view = snapshot.view.without_nodes(gone)
    view = view.with_states(
        view.nodes[names[row]].with_pods(placed for placed, _ in listed)
        for row, listed in lodgers.items()
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

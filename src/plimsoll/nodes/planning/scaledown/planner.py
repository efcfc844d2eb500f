"""Which nodes are unneeded, and why the others are not: `find_unneeded(snapshot, policy, state=..., now=...)`. Pure.

The removal of each candidate is simulated in turn (docs/design/nodes.md 6.8): empty nodes first, then nodes that were
unneeded before, then the least utilized. Free resources and disruption budgets that one node's pods use are gone for
the next. `selection` decides which unneeded nodes are deleted now; timers and actuation belong to the controller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.durations import add_seconds
from plimsoll.core.plans import Reason
from plimsoll.nodes.model.reasons import BLOCKED_BY_POD, WAITS_FOR_COMPLETION
from plimsoll.nodes.model.scale_down_plan import UnneededNode, UnremovableNode
from plimsoll.nodes.planning.scaledown.counted_removals import CountedRemovals
from plimsoll.nodes.planning.scaledown.drainability import NOT_ENOUGH_PDB, DrainOutcome, DrainRules
from plimsoll.nodes.planning.scaledown.eligibility import (
    BOOKED,
    UNREADABLE,
    EligibilityChecker,
    ScaleDownState,
    ShrinkableGroup,
    Utilization,
    UtilizationThresholds,
    add_bookings,
    compute_utilization,
    find_shrinkable_groups,
)
from plimsoll.nodes.planning.scaledown.pdbs import RemainingPdbs
from plimsoll.nodes.planning.scaledown.problem import ScaleDownProblem
from plimsoll.nodes.planning.scaledown.simulator import (
    MovedPods,
    RemovalSimulator,
    Unplaceable,
    apply_moves,
    remove_in_bulk,
)
from plimsoll.solver.consolidation.consolidate import Limits, RemovalStatus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy, ScaleDown
    from plimsoll.nodes.model.planner_cache import PlannerCache
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.scheduling.cluster_view import PodKey
    from plimsoll.solver.problem import Flags, Ints

NO_PLACE: Final = "NoPlaceToMovePods"
NOT_TRIED: Final = "NotTriedThisTime"
_NO_EFFORT_LEFT: Final = "the effort of this turn is used up; the next turn begins with it"
# Looking up an enum member costs more than all other work per node.
_REMOVED: Final = int(RemovalStatus.REMOVED)
_NO_ROOM: Final = int(RemovalStatus.NO_ROOM)
_LIMITED: Final = int(RemovalStatus.LIMITED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaleDownSimulation:
    """Unneeded and unremovable nodes: every node is in one of the two lists, in node order."""

    unneeded: tuple[UnneededNode, ...]
    unremovable: tuple[UnremovableNode, ...]
    problem: ScaleDownProblem
    utilization: Utilization
    groups: Mapping[str, ShrinkableGroup]
    receives: Flags
    postponed: tuple[str, ...] = ()
    """Nodes that there was no effort left for, in order: the next simulation begins with them."""
    _bulk: Ints
    _moved_pods: MovedPods = field(default_factory=dict)

    @property
    def cache(self) -> PlannerCache:
        """The cache for the next loop iteration."""
        return self.problem.cache

    def build_pod_hints(self) -> dict[PodKey, str]:
        """Where each pod would go: the next loop iteration tries there first."""
        moved_pods = self._moved_pods or apply_moves(self.problem, self._bulk)[0]
        names = self.problem.arrays.names
        return {placed.key: names[row] for row, listed in sorted(moved_pods.items()) for placed, _ in listed}


def build_drain_rules(snapshot: Snapshot, policy: Policy, state: ScaleDownState, now: datetime) -> DrainRules:
    return DrainRules(
        options=policy.scale_down, now=now, pdbs=RemainingPdbs(snapshot.budgets), controllers=state.controllers
    )


def find_unneeded(
    snapshot: Snapshot,
    policy: Policy,
    *,
    now: datetime,
    state: ScaleDownState | None = None,
    cache: PlannerCache | None = None,
) -> ScaleDownSimulation:
    state = state or ScaleDownState()
    problem = ScaleDownProblem.from_snapshot(snapshot, build_drain_rules(snapshot, policy, state, now), cache=cache)
    state = add_bookings(state, problem.pods_by_node)
    rules = UtilizationThresholds.from_options(problem.arrays, policy.scale_down, snapshot)
    utilization = compute_utilization(problem.arrays, problem.pods_by_node, rules=rules, now=now)
    rooms = find_shrinkable_groups(snapshot, policy, state, problem.pods_by_node)
    checker = EligibilityChecker(snapshot=snapshot, policy=policy, state=state, groups=rooms, now=now)
    candidates = _Candidates(problem, utilization, checker)
    candidates.try_empty()
    candidates.try_simple()
    candidates.try_counted()
    candidates.try_others()
    return candidates.build_result()


class _Candidates:
    """The candidates and their outcomes."""

    def __init__(self, problem: ScaleDownProblem, utilization: Utilization, checker: EligibilityChecker) -> None:
        self._problem = problem
        self._utilization = utilization
        self._checker = checker
        self._policy: ScaleDown = checker.policy.scale_down
        self._unremovable: dict[int, Reason] = {}
        self._retried: set[int] = set()
        self._postponed: list[str] = []
        self._gave_up: list[str] = []
        self._removed: dict[int, None] = {}
        self._risky: set[int] = set()
        self._pdbs_left: Ints = problem.rules.pdbs.allowed.copy()
        self._pdb_use = count_pdb_use(problem)
        self._receiving = find_receiving_nodes(problem, checker.state)
        self._receives = self._receiving.copy()
        self._bulk: Ints = np.zeros((0, 4), dtype=np.int64)
        self._moved_pods: MovedPods = {}
        self._empty, self._occupied = self._check_eligibility()
        self._left = self._count_useful() - len(self._empty)

    def _check_eligibility(self) -> tuple[list[int], list[int]]:
        """Rows of empty candidates and of others; everything else gets its reason."""
        empty: list[int] = []
        occupied: list[int] = []
        moving = self._problem.moving.tolist()
        is_low = self._utilization.is_low.tolist()
        kept_by = self._problem.blocking_kind
        tried = self._checker.state.unremovable_until
        pods_by_node = self._problem.pods_by_node.nodes
        for row, (node_pods, refusal) in enumerate(
            zip(pods_by_node, self._checker.find_unremovable_reasons(pods_by_node), strict=True)
        ):
            reason = refusal
            if reason is not None and reason.code == BOOKED:
                reason = self._checker.build_booked_reason(row, self._utilization)
            if reason is None and not is_low[row]:
                reason = self._checker.check_utilization(row, self._utilization)
            if reason is None and tried:
                reason = self._checker.check_recently_unremovable(node_pods.state.name)
            if reason is None and (row in kept_by or node_pods.state.unreadable_pods):
                reason = find_blocking_pod(self._problem, row)
                if reason is not None:
                    self._retried.add(row)
            if reason is not None:
                self._unremovable[row] = reason
            elif moving[row]:
                occupied.append(row)
            else:
                empty.append(row)
        return self._sort_best_first(empty), self._select_shortlist(self._sort_best_first(occupied))

    def _sort_best_first(self, rows: list[int]) -> list[int]:
        """Nodes unneeded before keep their place; then those that the last simulation did not get to."""
        known = self._checker.state.unneeded_since
        places = {name: place for place, name in enumerate(self._checker.state.postponed)}
        names = self._problem.arrays.names
        share = self._utilization.share.tolist()
        last = len(places)
        return sorted(
            rows,
            key=lambda row: (names[row] not in known, places.get(names[row], last), share[row], names[row]),
        )

    def _select_shortlist(self, rows: list[int]) -> list[int]:
        """The occupied nodes that are checked in this loop iteration; the rest is reported as not tried."""
        options = self._policy
        pool = max(int(len(self._problem.arrays) * options.candidates_ratio), options.candidates_min)
        most = options.non_empty_candidates + pool
        reason = _build_not_tried_reason(f"only {most} occupied nodes are looked at in a turn")
        self._unremovable.update(dict.fromkeys(rows[most:], reason))
        return rows[:most]

    def _count_useful(self) -> int:
        """The number of unneeded nodes beyond which more would not be removed any sooner."""
        options = self._policy
        interval = max(self._checker.policy.operation.scan_interval_s, 1.0)
        known = sum(1 for name in self._problem.arrays.names if name in self._checker.state.unneeded_since)
        most = options.parallelism * int(options.unneeded_time_s / interval) + options.parallelism
        return min(known + 2 * options.parallelism, most)

    def try_empty(self) -> None:
        """All empty nodes are unneeded."""
        self._removed.update(dict.fromkeys(self._empty))
        self._receives[self._empty] = False

    def try_simple(self) -> None:
        occupied = np.array(self._occupied, dtype=np.int64)
        looks = self._problem.interacting[occupied]
        order = occupied[~looks]
        if not len(order):
            return
        # Nodes that were unneeded before keep their place, so that their unneeded time continues.
        names, since = self._problem.arrays.names, self._checker.state.unneeded_since
        waiting = sum(1 for row in occupied[looks].tolist() if names[row] in since)
        limits = Limits(removals=max(self._left - waiting, 0), use=self._pdb_use, spare=self._pdbs_left.copy())
        found = remove_in_bulk(self._problem, order, limits, receives=self._receives)
        self._bulk = found.moves
        verdicts, stuck = found.statuses.tolist(), found.stuck.tolist()
        for row in order.tolist():
            self._note(row, verdicts[row], stuck[row])
        self._left -= len(found.removed)

    def _note(self, row: int, verdict: int, stuck: int) -> None:
        if verdict == _REMOVED:
            self._take(row)
        elif verdict == _NO_ROOM:
            self._unremovable[row] = build_no_place_reason(self._problem.find_first_of_class(row, stuck))
            self._retried.add(row)
        elif verdict == _LIMITED:
            self._unremovable[row] = self._explain_exhausted_pdbs(row)
            self._retried.add(row)
        else:
            self._unremovable[row] = _build_not_tried_reason("enough nodes were found unneeded")

    def try_counted(self) -> None:
        """Try nodes with pods that have rules about each other, one at a time, by counts per domain."""
        problem = self._problem
        order = [row for row in self._occupied if problem.interacting[row] and not problem.uncounted[row]]
        if order:
            self._moved_pods, _ = apply_moves(problem, self._bulk)
            simulator = CountedRemovals(
                problem,
                receives=self._receives,
                removed=tuple(self._removed),
                moved_pods=self._moved_pods,
                hints=self._checker.state.hints,
            )
            for row in order:
                self._try_removal(row, simulator)
            self._moved_pods = simulator.moved_pods

    def try_others(self) -> None:
        """Try nodes with pods that have ports or volumes, one at a time, by the plain rules."""
        order = [row for row in self._occupied if self._problem.uncounted[row]]
        if not order:
            return
        moved_pods = self._moved_pods or apply_moves(self._problem, self._bulk)[0]
        simulator = RemovalSimulator(
            self._problem,
            receives=self._receives,
            removed=tuple(self._removed),
            moved_pods=moved_pods,
            hints=self._checker.state.hints,
        )
        for row in order:
            self._try_removal(row, simulator)
        self._moved_pods = simulator.moved_pods

    def _try_removal(self, row: int, simulator: RemovalSimulator | CountedRemovals) -> None:
        if self._left <= 0:
            self._unremovable[row] = _build_not_tried_reason("enough nodes were found unneeded")
            return
        if simulator.effort_left < 0:
            self._postpone(row)
            return
        if (self._pdb_use[row] > self._pdbs_left).any():
            self._unremovable[row] = self._explain_exhausted_pdbs(row)
            self._retried.add(row)
            return
        found = simulator.simulate_removal(row)
        if isinstance(found, Unplaceable):
            if found.gave_up:
                self._postpone(row, gave_up=True)
            else:
                self._unremovable[row] = build_no_place_reason(found.pod)
                self._retried.add(row)
            return
        self._take(row)
        self._left -= 1

    def _postpone(self, row: int, *, gave_up: bool = False) -> None:
        """Leave a node to the next turn; one that used up the effort comes after those that were not looked at."""
        self._unremovable[row] = _build_not_tried_reason(_NO_EFFORT_LEFT)
        (self._gave_up if gave_up else self._postponed).append(self._problem.arrays.names[row])

    def _take(self, row: int) -> None:
        self._removed[row] = None
        use = self._pdb_use[row]
        if not len(use):
            return
        if ((use > 0) & (use >= self._pdbs_left)).any():
            self._risky.add(row)
        self._pdbs_left -= use

    def _explain_exhausted_pdbs(self, row: int) -> Reason:
        over = np.flatnonzero(self._pdb_use[row] > self._pdbs_left)
        name = self._problem.rules.pdbs.get_name(int(over[0])) if len(over) else ""
        detail = Reason(code=NOT_ENOUGH_PDB, message=f"disruption budget {name} is used up by other nodes")
        return Reason(code=BLOCKED_BY_POD, message="its pods cannot be evicted as well", because=(detail,))

    def build_result(self) -> ScaleDownSimulation:
        now = self._checker.now
        retry_at = add_seconds(now, self._policy.recheck_timeout_s)
        names = self._problem.arrays.names
        pods, shares = self._problem.moving.tolist(), self._utilization.share.tolist()
        return ScaleDownSimulation(
            unneeded=tuple(self._build_unneeded_node(row, pods[row], shares[row]) for row in sorted(self._removed)),
            unremovable=tuple(
                UnremovableNode(
                    node=names[row], reason=self._unremovable[row], retry_at=retry_at if row in self._retried else None
                )
                for row in sorted(self._unremovable)
            ),
            problem=self._problem,
            utilization=self._utilization,
            groups=self._checker.groups,
            receives=self._receiving,
            postponed=(*self._postponed, *self._gave_up),
            _bulk=self._bulk,
            _moved_pods=self._moved_pods,
        )

    def _build_unneeded_node(self, row: int, pods: int, share: float) -> UnneededNode:
        node_pods = self._problem.pods_by_node.nodes[row]
        return UnneededNode(
            node=node_pods.state.name,
            group=self._checker.snapshot.group_of.get(node_pods.state.name, ""),
            is_empty=not pods,
            utilization=share,
            is_ready=self._checker.is_ready(node_pods),
            pods=pods,
            is_risky=row in self._risky,
        )


def find_receiving_nodes(problem: ScaleDownProblem, known: ScaleDownState) -> Flags:
    """[N]: nodes that pods may be moved to, before predicates such as taints."""
    receives = np.array(
        [
            node_pods.flags.ready and not node_pods.flags.being_deleted and not node_pods.state.problem
            for node_pods in problem.pods_by_node.nodes
        ],
        dtype=np.bool_,
    )
    row_of = problem.arrays.row_of
    receives[[row_of[name] for name in known.being_deleted | known.unready if name in row_of]] = False
    return receives


def count_pdb_use(problem: ScaleDownProblem) -> Ints:
    """[N, B]: the disruptions that a node's pods use of each budget.

    If a node has more pods than a budget allows at once, they are evicted one after the other, and the node uses the
    whole budget.
    """
    return np.minimum(problem.pdb_use, np.maximum(problem.rules.pdbs.allowed, 1))


def find_blocking_pod(problem: ScaleDownProblem, row: int) -> Reason | None:
    """The reason of the first pod that blocks the removal of the node."""
    state = problem.arrays.states[row]
    if state.unreadable_pods:
        why = Reason(code=UNREADABLE, message="a pod on it cannot be read")
        return Reason(code=BLOCKED_BY_POD, message=str(why), because=(why,))
    keeping = problem.blocking_kind.get(row)
    if keeping is None:
        return None
    verdict = problem.statuses[keeping]
    pod = next(placed.key for placed, kind in problem.pods_by_node.list_pods(row) if kind == keeping)
    why = Reason(code=verdict.code, message=verdict.message)
    facts = {"pod": str(pod), "reason": verdict.code}
    code = WAITS_FOR_COMPLETION if verdict.outcome is DrainOutcome.WAIT else BLOCKED_BY_POD
    return Reason(code=code, message=f"pod {pod} keeps it", facts=facts, because=(why,))


def build_no_place_reason(pod: PodKey | None) -> Reason:
    who = "a pod" if pod is None else f"pod {pod}"
    facts = {} if pod is None else {"pod": str(pod)}
    return Reason(code=NO_PLACE, message=f"{who} fits on no other node", facts=facts)


def _build_not_tried_reason(why: str) -> Reason:
    return Reason(code=NOT_TRIED, message=why)

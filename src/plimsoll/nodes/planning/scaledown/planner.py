"""Which nodes are not needed, and why the others are: `find_unneeded(snapshot, policy, known=..., now=...)`. Pure.

Candidates are emptied in thought, one after the other, onto nodes that stay (specs/nodes.md 6.8): empty ones first,
then those that were unneeded before, then the least used. What one node's pods take, of room and of disruption budgets,
is gone for the next. `departures` says which of them go now; timers and acting belong to the controller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.reasons import BLOCKED_BY_POD, WAITS_FOR_COMPLETION
from plimsoll.nodes.model.scale_down_plan import UnneededNode, UnremovableNode
from plimsoll.nodes.planning.scaledown.drainability import NOT_ENOUGH_PDB, DrainOutcome, DrainRules
from plimsoll.nodes.planning.scaledown.eligibility import (
    BOOKED,
    UNREADABLE,
    EligibilityChecker,
    ScaleDownState,
    ShrinkableGroup,
    Utilization,
    UtilizationThresholds,
    compute_utilization,
    shrinkable_groups,
    with_bookings,
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
# Looking up a member of an enum costs more than everything else that is done for a node.
_REMOVED: Final = int(RemovalStatus.REMOVED)
_NO_ROOM: Final = int(RemovalStatus.NO_ROOM)
_LIMITED: Final = int(RemovalStatus.LIMITED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaleDownSimulation:
    """The answer of `find_unneeded`: every node is in one of the two lists, each in the order of nodes."""

    unneeded: tuple[UnneededNode, ...]
    unremovable: tuple[UnremovableNode, ...]
    problem: ScaleDownProblem
    utilization: Utilization
    groups: Mapping[str, ShrinkableGroup]
    receives: Flags
    _bulk: Ints
    _lodgers: MovedPods = field(default_factory=dict)

    @property
    def cache(self) -> PlannerCache:
        """For the next turn."""
        return self.problem.cache

    def pod_hints(self) -> dict[PodKey, str]:
        """Where each pod would go: next turn tries there first."""
        lodgers = self._lodgers or apply_moves(self.problem, self._bulk)[0]
        names = self.problem.arrays.names
        return {placed.key: names[row] for row, listed in sorted(lodgers.items()) for placed, _ in listed}


def drain_rules(snapshot: Snapshot, policy: Policy, state: ScaleDownState, now: datetime) -> DrainRules:
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
    occupancy = ScaleDownProblem.of(snapshot, drain_rules(snapshot, policy, state, now), cache=cache)
    state = with_bookings(state, occupancy.pods_by_node)
    rules = UtilizationThresholds.of(occupancy.arrays, policy.scale_down, snapshot)
    utilisation = compute_utilization(occupancy.arrays, occupancy.pods_by_node, rules=rules, now=now)
    rooms = shrinkable_groups(snapshot, policy, state, occupancy.pods_by_node)
    screening = EligibilityChecker(snapshot=snapshot, policy=policy, state=state, groups=rooms, now=now)
    ballot = _Candidates(occupancy, utilisation, screening)
    ballot.try_empty()
    ballot.try_simple()
    ballot.try_others()
    return ballot.result()


class _Candidates:
    """Candidates and what became of them."""

    def __init__(self, occupancy: ScaleDownProblem, utilisation: Utilization, screening: EligibilityChecker) -> None:
        self._occupancy = occupancy
        self._utilisation = utilisation
        self._screening = screening
        self._policy: ScaleDown = screening.policy.scale_down
        self._kept: dict[int, Reason] = {}
        self._retried: set[int] = set()
        self._removed: dict[int, None] = {}
        self._risky: set[int] = set()
        self._slots: Ints = occupancy.rules.pdbs.allowed.copy()
        self._slots_used = pdb_use(occupancy)
        self._standing = receiving_nodes(occupancy, screening.state)
        self._receives = self._standing.copy()
        self._bulk: Ints = np.zeros((0, 4), dtype=np.int64)
        self._lodgers: MovedPods = {}
        self._empty, self._occupied = self._screened()
        self._left = self._useful() - len(self._empty)

    def _screened(self) -> tuple[list[int], list[int]]:
        """Rows of empty candidates and of others; everything else gets its reason."""
        empty: list[int] = []
        occupied: list[int] = []
        moving = self._occupancy.moving.tolist()
        is_low = self._utilisation.is_low.tolist()
        kept_by = self._occupancy.blocking_kind
        tried = self._screening.state.unremovable_until
        homes = self._occupancy.pods_by_node.nodes
        for row, (home, refusal) in enumerate(zip(homes, self._screening.unremovable_reasons(homes), strict=True)):
            reason = refusal
            if reason is not None and reason.code == BOOKED:
                reason = self._screening.booked_reason(row, self._utilisation)
            if reason is None and not is_low[row]:
                reason = self._screening.utilization_reason(row, self._utilisation)
            if reason is None and tried:
                reason = self._screening.recently_unremovable_reason(home.state.name)
            if reason is None and (row in kept_by or home.state.unreadable_pods):
                reason = blocked_by_pod(self._occupancy, row)
                if reason is not None:
                    self._retried.add(row)
            if reason is not None:
                self._kept[row] = reason
            elif moving[row]:
                occupied.append(row)
            else:
                empty.append(row)
        return self._best_first(empty), self._shortlist(self._best_first(occupied))

    def _best_first(self, rows: list[int]) -> list[int]:
        known = self._screening.state.unneeded_since
        names = self._occupancy.arrays.names
        share = self._utilisation.share.tolist()
        return sorted(rows, key=lambda row: (names[row] not in known, share[row], names[row]))

    def _shortlist(self, rows: list[int]) -> list[int]:
        """So many occupied nodes are looked at in one turn."""
        options = self._policy
        pool = max(int(len(self._occupancy.arrays) * options.candidates_ratio), options.candidates_min)
        most = options.non_empty_candidates + pool
        reason = _not_tried(f"only {most} occupied nodes are looked at in a turn")
        self._kept.update(dict.fromkeys(rows[most:], reason))
        return rows[:most]

    def _useful(self) -> int:
        """More unneeded nodes than this would not be removed any sooner."""
        options = self._policy
        interval = max(self._screening.policy.operation.scan_interval_s, 1.0)
        known = sum(1 for name in self._occupancy.arrays.names if name in self._screening.state.unneeded_since)
        most = options.parallelism * int(options.unneeded_time_s / interval) + options.parallelism
        return min(known + 2 * options.parallelism, most)

    def try_empty(self) -> None:
        """They all are unneeded; a few of them may still be more than is useful, and say so by staying in the list."""
        self._removed.update(dict.fromkeys(self._empty))
        self._receives[self._empty] = False

    def try_simple(self) -> None:
        occupied = np.array(self._occupied, dtype=np.int64)
        looks = self._occupancy.interacting[occupied]
        order = occupied[~looks]
        if not len(order):
            return
        # Nodes that were unneeded before keep their turn, so that their time goes on.
        names, since = self._occupancy.arrays.names, self._screening.state.unneeded_since
        waiting = sum(1 for row in occupied[looks].tolist() if names[row] in since)
        limits = Limits(removals=max(self._left - waiting, 0), use=self._slots_used, spare=self._slots.copy())
        found = remove_in_bulk(self._occupancy, order, limits, receives=self._receives)
        self._bulk = found.moves
        verdicts, stuck = found.statuses.tolist(), found.stuck.tolist()
        for row in order.tolist():
            self._note(row, verdicts[row], stuck[row])
        self._left -= len(found.removed)

    def _note(self, row: int, verdict: int, stuck: int) -> None:
        if verdict == _REMOVED:
            self._take(row)
        elif verdict == _NO_ROOM:
            self._kept[row] = no_place_reason(self._occupancy.first_of_class(row, stuck))
            self._retried.add(row)
        elif verdict == _LIMITED:
            self._kept[row] = self._out_of_slots(row)
            self._retried.add(row)
        else:
            self._kept[row] = _not_tried("enough nodes were found unneeded")

    def try_others(self) -> None:
        """Nodes with pods that look at others, one at a time."""
        order = [row for row in self._occupied if self._occupancy.interacting[row]]
        if not order:
            return
        lodgers, _ = apply_moves(self._occupancy, self._bulk)
        gone = tuple(self._removed)
        rehousing = RemovalSimulator(
            self._occupancy,
            receives=self._receives,
            removed=gone,
            moved_pods=lodgers,
            hints=self._screening.state.hints,
        )
        for row in order:
            self._kept_or_gone(row, rehousing)
        self._lodgers = rehousing.moved_pods

    def _kept_or_gone(self, row: int, rehousing: RemovalSimulator) -> None:
        if self._left <= 0 or rehousing.checks_left < 0:
            self._kept[row] = _not_tried("enough nodes were looked at")
            return
        if (self._slots_used[row] > self._slots).any():
            self._kept[row] = self._out_of_slots(row)
            self._retried.add(row)
            return
        found = rehousing.simulate_removal(row)
        if isinstance(found, Unplaceable):
            if found.gave_up:
                self._kept[row] = _not_tried("enough nodes were looked at")
            else:
                self._kept[row] = no_place_reason(found.pod)
                self._retried.add(row)
            return
        self._take(row)
        self._left -= 1

    def _take(self, row: int) -> None:
        self._removed[row] = None
        use = self._slots_used[row]
        if not len(use):
            return
        if ((use > 0) & (use >= self._slots)).any():
            self._risky.add(row)
        self._slots -= use

    def _out_of_slots(self, row: int) -> Reason:
        over = np.flatnonzero(self._slots_used[row] > self._slots)
        name = self._occupancy.rules.pdbs.name(int(over[0])) if len(over) else ""
        detail = Reason(code=NOT_ENOUGH_PDB, message=f"disruption budget {name} is used up by other nodes")
        return Reason(code=BLOCKED_BY_POD, message="its pods cannot be evicted as well", because=(detail,))

    def result(self) -> ScaleDownSimulation:
        now = self._screening.now
        retry_at = now + timedelta(seconds=self._policy.recheck_timeout_s)
        names = self._occupancy.arrays.names
        pods, shares = self._occupancy.moving.tolist(), self._utilisation.share.tolist()
        return ScaleDownSimulation(
            unneeded=tuple(self._described(row, pods[row], shares[row]) for row in sorted(self._removed)),
            unremovable=tuple(
                UnremovableNode(
                    node=names[row], reason=self._kept[row], retry_at=retry_at if row in self._retried else None
                )
                for row in sorted(self._kept)
            ),
            problem=self._occupancy,
            utilization=self._utilisation,
            groups=self._screening.groups,
            receives=self._standing,
            _bulk=self._bulk,
            _lodgers=self._lodgers,
        )

    def _described(self, row: int, pods: int, share: float) -> UnneededNode:
        home = self._occupancy.pods_by_node.nodes[row]
        return UnneededNode(
            node=home.state.name,
            group=self._screening.snapshot.group_of.get(home.state.name, ""),
            is_empty=not pods,
            utilization=share,
            is_ready=self._screening.is_ready(home),
            pods=pods,
            is_risky=row in self._risky,
        )


def receiving_nodes(occupancy: ScaleDownProblem, known: ScaleDownState) -> Flags:
    """[N]: nodes that pods may be moved to; taints and the like are asked apart."""
    receives = np.array(
        [
            home.flags.ready and not home.flags.being_deleted and not home.state.problem
            for home in occupancy.pods_by_node.nodes
        ],
        dtype=np.bool_,
    )
    row_of = occupancy.arrays.row_of
    receives[[row_of[name] for name in known.being_deleted | known.unready if name in row_of]] = False
    return receives


def pdb_use(occupancy: ScaleDownProblem) -> Ints:
    """[N, B]: what a node's pods use of each disruption budget.

    Where one node has more pods than a budget ever lets go at once, they are evicted one after the other: such a node
    takes all there is.
    """
    return np.minimum(occupancy.pdb_use, np.maximum(occupancy.rules.pdbs.allowed, 1))


def blocked_by_pod(occupancy: ScaleDownProblem, row: int) -> Reason | None:
    """The first pod that keeps the node, and why it does."""
    state = occupancy.arrays.states[row]
    if state.unreadable_pods:
        why = Reason(code=UNREADABLE, message="a pod on it cannot be read")
        return Reason(code=BLOCKED_BY_POD, message=str(why), because=(why,))
    keeping = occupancy.blocking_kind.get(row)
    if keeping is None:
        return None
    verdict = occupancy.statuses[keeping]
    pod = next(placed.key for placed, kind in occupancy.pods_by_node.pods(row) if kind == keeping)
    why = Reason(code=verdict.code, message=verdict.message)
    facts = {"pod": str(pod), "reason": verdict.code}
    code = WAITS_FOR_COMPLETION if verdict.outcome is DrainOutcome.WAIT else BLOCKED_BY_POD
    return Reason(code=code, message=f"pod {pod} keeps it", facts=facts, because=(why,))


def no_place_reason(pod: PodKey | None) -> Reason:
    who = "a pod" if pod is None else f"pod {pod}"
    facts = {} if pod is None else {"pod": str(pod)}
    return Reason(code=NO_PLACE, message=f"{who} fits on no other node", facts=facts)


def _not_tried(why: str) -> Reason:
    return Reason(code=NOT_TRIED, message=why)

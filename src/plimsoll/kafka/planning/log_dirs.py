"""Replicas between the log directories of one broker: balanced (rebalance_disk), or emptied (remove-disks)."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.formatting import format_bytes, format_count
from plimsoll.core.plans import Reason
from plimsoll.kafka.model.cluster import NONE
from plimsoll.kafka.model.proposals import (
    Bounds,
    GoalResult,
    GoalStatus,
    LogDirMove,
    OptimizationResult,
    Proposal,
    Provision,
    ProvisionStatus,
    Refusal,
)
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.balancedness import score_goals
from plimsoll.kafka.planning.goal_list import INTRA_BROKER_GOALS, resolve_goals
from plimsoll.kafka.planning.goals.windows import find_margin
from plimsoll.kafka.planning.loads import build_loads
from plimsoll.kafka.planning.placement import TOLERANCE, Placement
from plimsoll.kafka.planning.search.budget import Budget
from plimsoll.kafka.planning.statistics import measure_statistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kafka.model.cluster import ClusterModel, Flags, Floats, Ints
    from plimsoll.kafka.model.requests import RebalanceRequest
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.scope import Scope

_CAPACITY, _USAGE = INTRA_BROKER_GOALS
_NAMED_AT_MOST: Final = 5


def balance_log_dirs(
    model: ClusterModel, request: RebalanceRequest, settings: AnalyzerSettings, scope: Scope
) -> OptimizationResult | Refusal:
    """Moves between log directories of brokers that are known and have more than one."""
    names = resolve_goals(request, settings) if request.rebalance_disk else INTRA_BROKER_GOALS
    assert not isinstance(names, Refusal)
    budget = Budget(settings.max_candidates_per_goal)
    may_move = ~scope.is_fixed[model.partition_of] & scope.is_known[model.broker_of]
    log_dir = model.log_dir.copy()
    disks = [
        _BrokerDisks(model, broker, settings, request, may_move)
        for broker in range(len(model.brokers))
        if scope.is_known[broker] and len(model.brokers[broker].log_dirs or ()) > 1
    ]
    before = {name: _judge(disks, name) for name in names}
    for disk in disks:
        if (refusal := disk.empty()) is not None:
            return refusal
        if request.mode is not Mode.REMOVE_DISKS:
            disk.relieve(budget)
        log_dir[disk.rows] = disk.places
    results = []
    placement = Placement(model, build_loads(model), scope)
    statistics = measure_statistics(placement)
    for name in names:
        violations = _judge(disks, name)
        if violations and name == _CAPACITY:
            return Refusal(goal=name, reason=_describe(violations))
        was_violated = bool(before[name]) or (name == names[0] and bool((log_dir != model.log_dir).any()))
        status = GoalStatus.VIOLATED if violations else GoalStatus.FIXED if was_violated else GoalStatus.NO_ACTION
        reason = _describe(violations) if violations else _find_inapplicable(disks, name)
        results.append(GoalResult(goal=name, status=status, statistics=statistics, reason=reason))
    scores = score_goals([(result.goal, result.status) for result in results], settings)
    proposals = _list_proposals(model, log_dir, names[0])
    return OptimizationResult(
        request=request,
        before=model,
        after=dataclasses.replace(model, log_dir=log_dir),
        proposals=proposals,
        goals=tuple(results),
        bounds=Bounds(moves=0, bytes=0, least_moves=0, least_bytes=0),
        balancedness_before=scores[0],
        balancedness_after=scores[1],
        provision=Provision(status=ProvisionStatus.UNDECIDED),
        excluded_topics=scope.excluded_topics,
        held=scope.held,
        budgets=(("log directories", budget.used),),
    )


@dataclass(frozen=True, slots=True)
class _Violation:
    """A log directory outside its limits."""

    broker: int
    path: str
    used: float
    bound: float
    is_above: bool


class _BrokerDisks:
    """The log directories of one broker, D in number, and the rows in them."""

    def __init__(
        self,
        model: ClusterModel,
        broker: int,
        settings: AnalyzerSettings,
        request: RebalanceRequest,
        may_move: Flags,
    ) -> None:
        self.broker = int(model.broker_ids[broker])
        dirs = model.brokers[broker].log_dirs or ()
        self.paths = [log_dir.path for log_dir in dirs]
        removed = {log_dir.path for log_dir in request.log_dirs if log_dir.broker == self.broker}
        self.is_removed = np.array([path in removed for path in self.paths], dtype=np.bool_)
        self.stays = np.array([log_dir.is_online for log_dir in dirs], dtype=np.bool_) & ~self.is_removed
        self.may_receive = self.stays & ~np.array([log_dir.is_cordoned for log_dir in dirs], dtype=np.bool_)
        self.rows: Ints = np.flatnonzero((model.broker_of == broker) & (model.log_dir != NONE))
        self.places: Ints = model.log_dir[self.rows].copy()
        self.sizes: Floats = model.size_bytes[model.partition_of[self.rows]].astype(np.float64)
        self.may_move = may_move[self.rows] & (self.stays | self.is_removed)[self.places]
        self.used: Floats = np.bincount(self.places, self.sizes, minlength=len(dirs)).astype(np.float64)
        total = np.array([log_dir.total_bytes for log_dir in dirs], dtype=np.float64)
        self.has_totals = bool((total[self.stays] > 0).all()) and bool(self.stays.any())
        share = total if self.has_totals else np.ones(len(dirs))
        self.most: Floats = np.where(self.stays & self.has_totals, total * settings.disk_capacity_threshold, np.inf)
        held = self.used[self.stays | self.is_removed].sum()
        mean = held * share / max(share[self.stays].sum(), 1.0)
        margin = find_margin(settings.disk_balance_threshold, settings)
        self.low: Floats = np.where(self.stays, mean * (1 - margin), -np.inf)
        self.high: Floats = np.where(self.stays, mean * (1 + margin), np.inf)

    def list_violations(self, goal: str) -> list[_Violation]:
        low, high = (np.full(len(self.most), -np.inf), self.most) if goal == _CAPACITY else (self.low, self.high)
        slack = TOLERANCE * np.maximum(self.used, 1.0)
        found = [(index, True, float(high[index])) for index in np.flatnonzero(self.used > high + slack).tolist()] + [
            (index, False, float(low[index])) for index in np.flatnonzero(self.used < low - slack).tolist()
        ]
        return [
            _Violation(self.broker, self.paths[index], float(self.used[index]), bound, is_above)
            for index, is_above, bound in found
        ]

    def empty(self) -> Refusal | None:
        """Move everything out of the removed log directories, the largest first, to where most room is."""
        leaving = np.flatnonzero(self.is_removed[self.places])
        if not len(leaving):
            return None
        stuck = leaving[~self.may_move[leaving]]
        if len(stuck):
            return self._refuse(f"{format_count(len(stuck), 'replica')} may not move", float(self.sizes[stuck].sum()))
        for index in leaving[np.lexsort((leaving, -self.sizes[leaving]))].tolist():
            after = self.used + self.sizes[index]
            allowed = self.may_receive & (after <= self.most)
            if not allowed.any():
                room = float(np.maximum(self.most - self.used, 0.0)[self.may_receive].sum())
                need = float(self.sizes[leaving].sum())
                return self._refuse(
                    f"the log directories left have room for {format_bytes(room)} more, not for all of "
                    f"{format_bytes(need)}",
                    need,
                )
            self._move(index, int(np.where(allowed, after / np.maximum(self.high, 1.0), np.inf).argmin()))
        return None

    def _refuse(self, problem: str, size: float) -> Refusal:
        return Refusal(
            goal=_CAPACITY,
            reason=Reason(
                code="LogDirCannotBeRemoved",
                message=f"broker {self.broker}: {problem}",
                facts={"broker": self.broker, "bytes": size},
            ),
        )

    def relieve(self, budget: Budget) -> None:
        """Move replicas from log directories above their range to those below, as long as it helps."""
        while budget.spend() and self._relieve_once():
            pass

    def _relieve_once(self) -> bool:
        excess = np.where(self.stays, self.used - np.minimum(self.high, self.most), -np.inf)
        lack = np.where(self.may_receive, self.low - self.used, -np.inf)
        source = int(excess.argmax())
        destination = int(np.where(self.may_receive, self.used / np.maximum(self.high, 1.0), np.inf).argmin())
        need = float(excess[source])
        if need <= 0:
            destination = int(lack.argmax())
            need = float(lack[destination])
            if need <= TOLERANCE * max(1.0, float(self.used[destination])):
                return False
            source = int(np.where(self.stays, self.used / np.maximum(self.high, 1.0), -np.inf).argmax())
        if source == destination or not self.may_receive[destination]:
            return False
        room = min(self.high[destination], self.most[destination]) - self.used[destination]
        give = self.used[source] - self.low[source]
        rows = np.flatnonzero((self.places == source) & self.may_move & (self.sizes > 0))
        rows = rows[self.sizes[rows] <= min(room, max(give, need))]
        if not len(rows):
            return False
        sizes = self.sizes[rows]
        enough = sizes >= need
        best = int(rows[np.lexsort((rows, np.where(enough, sizes, -sizes), ~enough))[0]])
        self._move(best, destination)
        return True

    def _move(self, index: int, destination: int) -> None:
        self.used[self.places[index]] -= self.sizes[index]
        self.used[destination] += self.sizes[index]
        self.places[index] = destination


def _judge(disks: Sequence[_BrokerDisks], goal: str) -> list[_Violation]:
    return [violation for disk in disks for violation in disk.list_violations(goal)]


def _describe(violations: list[_Violation]) -> Reason:
    worst = max(violations, key=lambda violation: abs(violation.used - violation.bound))
    word = "at most" if worst.is_above else "at least"
    return Reason(
        code="OutsideLimits",
        message=f"{format_count(len(violations), 'log directory is', 'log directories are')} outside: "
        f"{worst.path} of broker {worst.broker} holds {format_bytes(worst.used)}, "
        f"{word} {format_bytes(worst.bound)} is the limit",
        facts={
            "outside": len(violations),
            "broker": worst.broker,
            "logDir": worst.path,
            "logDirs": [f"{violation.broker}:{violation.path}" for violation in violations[:_NAMED_AT_MOST]],
            "value": worst.used,
            "bound": worst.bound,
        },
    )


def _find_inapplicable(disks: Sequence[_BrokerDisks], goal: str) -> Reason | None:
    if not disks:
        return Reason(code="NoLogDirs", message="no broker has more than one log directory")
    if goal == _CAPACITY and not any(disk.has_totals for disk in disks):
        return Reason(code="NoCapacity", message="brokers do not report the size of their volumes")
    return None


def _list_proposals(model: ClusterModel, log_dir: Ints, goal: str) -> tuple[Proposal, ...]:
    moves: dict[int, list[LogDirMove]] = defaultdict(list)
    for row in np.flatnonzero(log_dir != model.log_dir).tolist():
        broker = model.brokers[model.broker_of[row]]
        paths = [known.path for known in broker.log_dirs or ()]
        move = LogDirMove(broker=broker.id, source=paths[model.log_dir[row]], destination=paths[log_dir[row]])
        moves[int(model.partition_of[row])].append(move)
    return tuple(
        Proposal(
            topic=model.topics[model.topic_of[partition]],
            partition=int(model.numbers[partition]),
            old_leader=NONE if model.leader[partition] == NONE else int(model.broker_ids[model.leader[partition]]),
            old_replicas=model.list_replicas(partition),
            new_replicas=model.list_replicas(partition),
            size_bytes=int(model.size_bytes[partition]),
            is_size_known=bool(model.size_known[partition]),
            log_dir_moves=tuple(found),
            reason=goal,
        )
        for partition, found in sorted(moves.items())
    )

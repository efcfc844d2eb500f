"""The analyzer: proposals for a request, or a refusal with numbers.

What must leave moves first, together with the joint balance of counts and bytes. Then each goal, by priority, changes
what it needs within the limits of those before it. A hard goal that does not hold in the end refuses everything.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from plimsoll.kafka.model.proposals import GoalResult, GoalStatus, OptimizationResult, Refusal
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.balancedness import score_goals
from plimsoll.kafka.planning.bounds import find_bounds
from plimsoll.kafka.planning.demotion import demote_brokers
from plimsoll.kafka.planning.evacuation import check_brokers_left, evacuate, keep_leaders_off_excluded_brokers
from plimsoll.kafka.planning.goal_list import PREFERRED_LEADERS, resolve_goals
from plimsoll.kafka.planning.goals.distribution import LeaderReplicaDistributionGoal, TopicReplicaDistributionGoal
from plimsoll.kafka.planning.goals.obstacles import HigherGoals
from plimsoll.kafka.planning.goals.racks import RackGoal
from plimsoll.kafka.planning.goals.registry import build_goals
from plimsoll.kafka.planning.goals.windows import find_margin, find_topic_limits
from plimsoll.kafka.planning.loads import Metric, build_loads
from plimsoll.kafka.planning.log_dirs import balance_log_dirs
from plimsoll.kafka.planning.placement import Placement, RackRule
from plimsoll.kafka.planning.proposal_diff import list_proposals
from plimsoll.kafka.planning.provision import judge_provision
from plimsoll.kafka.planning.scope import BrokerRole, Scope, build_scope, explain_uncounted
from plimsoll.kafka.planning.search.budget import Budget
from plimsoll.kafka.planning.search.joint_balance import JointWindows, balance_jointly
from plimsoll.kafka.planning.search.relocation import find_crowded_partitions, repair_racks
from plimsoll.kafka.planning.search.trimming import undo_needless_moves
from plimsoll.kafka.planning.statistics import measure_statistics

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.kafka.model.cluster import ClusterModel, Ints
    from plimsoll.kafka.model.proposals import ClusterStatistics
    from plimsoll.kafka.model.requests import RebalanceRequest
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.goals.goal import Goal
    from plimsoll.kafka.planning.placement import Limits
    from plimsoll.solver.replicas.problem import Windows

_REPLICAS = "ReplicaDistributionGoal"
_DISK = "DiskUsageDistributionGoal"
_TOPICS = "TopicReplicaDistributionGoal"
_LEAST_GAIN = 0.1
"""By how much of its violation a goal must get better, if it does not hold then."""
_KEPT_BY_TRIMMING = (RackGoal, TopicReplicaDistributionGoal)
"""Goals without limits per broker that the last pass looks at itself."""
_ROUNDS = 3
"""How often goals that are still violated may try again."""


def optimize(
    model: ClusterModel, request: RebalanceRequest, settings: AnalyzerSettings
) -> OptimizationResult | Refusal:
    """Proposals that bring a cluster nearer to the goals of a request. Equal input gives equal proposals.

    A partition that is being reassigned is planned from the target: the executor moves it after that has ended.
    """
    departing = tuple(
        (broker.id, int(count)) for broker, count in zip(model.brokers, model.departing_counts, strict=True)
    )
    result = _optimize(model.complete_reassignments(), request, settings)
    return result if isinstance(result, Refusal) else dataclasses.replace(result, departing=departing)


def _optimize(
    model: ClusterModel, request: RebalanceRequest, settings: AnalyzerSettings
) -> OptimizationResult | Refusal:
    names = resolve_goals(request, settings)
    if isinstance(names, Refusal):
        return names
    scope = build_scope(model, request)
    if isinstance(scope, Refusal):
        return scope
    if request.rebalance_disk or request.mode is Mode.REMOVE_DISKS:
        return balance_log_dirs(model, request, settings, scope)
    if request.mode is Mode.DEMOTE_BROKERS:
        names = (PREFERRED_LEADERS,)
    return _Optimization(model, request, settings, scope, names).run()


class _Optimization:
    """The optimization of a request."""

    def __init__(
        self,
        model: ClusterModel,
        request: RebalanceRequest,
        settings: AnalyzerSettings,
        scope: Scope,
        names: tuple[str, ...],
    ) -> None:
        self._model = model
        self._request = request
        self._settings = settings
        self._scope = scope
        self._names = names
        self._placement = Placement(model, build_loads(model), scope)
        self._placement.rack_rule = _find_rack_rule(names)
        self._goals = build_goals(names, self._placement, settings)
        self._inapplicable = {goal.name: goal.find_inapplicable() for goal in self._goals}
        self._crowded: Ints = (
            find_crowded_partitions(self._placement, self._placement.rack_rule)
            if (self._placement.rack_rule is not RackRule.NOT_WORSE)
            else np.zeros(0, dtype=np.int64)
        )
        self._windows: Windows | None = None
        self._violated_before: set[str] = set()
        """Goals that were violated, or for which something moved."""
        self._held: tuple[Reason, ...] = scope.held
        self._measured: tuple[int, ClusterStatistics] | None = None

    def run(self) -> OptimizationResult | Refusal:
        applicable = [goal for goal in self._goals if self._inapplicable[goal.name] is None]
        for goal in applicable:
            if (refusal := goal.find_obstacle()) is not None:
                return refusal
        self._violated_before = {goal.name for goal in applicable if goal.judge() is not None}
        budget = Budget(self._settings.max_candidates_per_goal)
        if (refusal := self._prepare(applicable, budget)) is not None:
            return refusal
        results = self._optimize_goals()
        for _ in range(_ROUNDS):
            better = self._try_again(applicable, budget, results)
            if better is None:
                break
            results = better
        results = self._judge_at_the_end(applicable, self._trim(applicable, results))
        for goal in applicable:
            if goal.is_hard and (reason := goal.judge()) is not None:
                counted = self._scope.is_known | (self._scope.role == BrokerRole.LEAVING)
                higher = _list_higher(applicable, goal)
                causes = (*goal.explain(higher), *explain_uncounted(self._model, counted))
                return Refusal(goal=goal.name, reason=msgspec.structs.replace(reason, because=causes))
        budgets = (("prepare", budget.used), *((result.goal, result.candidates_tried) for result in results))
        return self._build_result(results, budgets)

    def _optimize_goals(self) -> tuple[GoalResult, ...]:
        results = []
        for index, goal in enumerate(self._goals):
            self._placement.goal = index
            results.append(self._optimize_goal(goal, Budget(self._settings.max_candidates_per_goal)))
        return tuple(results)

    def _try_again(
        self, goals: list[Goal], budget: Budget, results: tuple[GoalResult, ...]
    ) -> tuple[GoalResult, ...] | None:
        """Goals that are still violated try once more from where the others left the replicas; None: no use."""
        placement = self._placement
        violated = {result.goal for result in results if result.status is GoalStatus.VIOLATED}
        if not violated or self._scope.must_leave.any() or self._scope.mode is Mode.DEMOTE_BROKERS:
            return None
        saved = placement.save()
        before = [goal.measure_violation() for goal in goals]
        placement.accepted[:] = [limits for goal in goals if goal.is_hard and (limits := goal.limits) is not None]
        placement.topic_limits = None
        if self._is_joint_balance_needed(violated, has_leaving=False):
            placement.goal = self._names.index(_REPLICAS)
            self._balance_jointly(goals, budget, has_leaving=False)
        again = self._optimize_goals()
        if _is_better([goal.measure_violation() for goal in goals], before):
            return again
        placement.restore(saved)
        return None

    def _trim(self, goals: list[Goal], results: tuple[GoalResult, ...]) -> tuple[GoalResult, ...]:
        """Undo moves that no goal needs in the end."""
        placement = self._placement
        if not (placement.moved & ~self._scope.must_leave).any():
            return results
        limits = [limits for goal in goals if (limits := goal.limits) is not None]
        others = [goal for goal in goals if goal.limits is None and not isinstance(goal, _KEPT_BY_TRIMMING)]
        saved, before = placement.save(), [goal.measure_violation() for goal in others]
        topic_limits = next(
            (goal.topic_limits for goal in goals if isinstance(goal, TopicReplicaDistributionGoal)), None
        )
        budget = Budget(self._settings.max_candidates_per_goal)
        if not undo_needless_moves(placement, limits, topic_limits, budget):
            return results
        if _is_any_worse(others, before):
            placement.restore(saved)
            return results
        saved = placement.save()
        for goal in goals:
            if isinstance(goal, LeaderReplicaDistributionGoal):  # What is undone may open a better choice.
                goal.choose_again(budget)
        if _is_any_worse(others, before):
            placement.restore(saved)
        statistics = self._measure_statistics()
        return tuple(msgspec.structs.replace(result, statistics=statistics) for result in results)

    def _judge_at_the_end(self, goals: list[Goal], results: tuple[GoalResult, ...]) -> tuple[GoalResult, ...]:
        """Goals that were violated when it was their turn, judged by where the replicas are in the end."""
        by_name = {goal.name: goal for goal in goals}
        return tuple(
            _judge_again(by_name[result.goal], result, _list_higher(goals, by_name[result.goal]))
            if result.status is GoalStatus.VIOLATED and result.goal in by_name
            else result
            for result in results
        )

    def _prepare(self, goals: list[Goal], budget: Budget) -> Refusal | None:
        """What must leave, racks, and the joint balance of counts and bytes."""
        placement, scope, violated = self._placement, self._scope, self._violated_before
        hard = [limits for goal in goals if goal.is_hard and (limits := goal.limits) is not None]
        placement.accepted.extend(hard)
        if scope.mode is Mode.DEMOTE_BROKERS:
            self._held = (*self._held, *demote_brokers(placement, self._request, budget))
            violated.update(self._names if placement.version else ())
            return None
        if (refusal := check_brokers_left(placement, self._names[0])) is not None:
            return refusal
        if len(self._crowded):
            repair_racks(placement, placement.rack_rule, budget)
        has_leaving = bool(scope.must_leave.any())
        if self._is_joint_balance_needed(violated, has_leaving=has_leaving):
            placement.goal = self._names.index(_REPLICAS) if _REPLICAS in self._names else 0
            self._balance_jointly(goals, budget, has_leaving=has_leaving)
            placement.goal = 0
        if has_leaving and (refusal := evacuate(placement, self._names, budget)) is not None:
            return refusal
        if has_leaving:
            violated.add(self._names[0])
        return None

    def _is_joint_balance_needed(self, violated: set[str], *, has_leaving: bool) -> bool:
        if self._scope.mode is Mode.REMOVE_BROKERS:
            return has_leaving
        if self._scope.mode is Mode.FIX_OFFLINE_REPLICAS or _REPLICAS not in self._names:
            return False
        return _REPLICAS in violated or _DISK in violated

    def _balance_jointly(self, goals: list[Goal], budget: Budget, *, has_leaving: bool) -> None:
        """Balance counts and bytes; without relief if that is no better, and not at all if nothing gets better."""
        placement = self._placement
        windows = self._build_windows(goals)
        judged = [goal for goal in goals if goal.name in {_REPLICAS, _DISK}]
        saved, before = placement.save(), [goal.measure_violation() for goal in judged]
        for relief in (True, False) if self._scope.relief else (False,):
            solution = balance_jointly(placement, windows, relief=relief)
            keep_leaders_off_excluded_brokers(placement, budget)
            budget.spend(solution.candidates_tried)
            self._windows = solution.windows
            if has_leaving or _is_better([goal.measure_violation() for goal in judged], before):
                return
            placement.restore(saved)

    def _build_windows(self, goals: list[Goal]) -> JointWindows:
        settings, is_removal = self._settings, self._scope.mode is Mode.REMOVE_BROKERS
        limits = {goal.name: goal.limits for goal in goals if goal.is_hard}
        wanted = self._list_window_limits()
        has_bytes = _DISK in self._names or is_removal
        has_counts = _REPLICAS in self._names or is_removal
        counts = find_margin(settings.replica_count_balance_threshold, settings)
        disk = find_margin(settings.disk_balance_threshold, settings)
        return JointWindows(
            count=counts if has_counts else None,
            bytes=disk if has_bytes else None,
            disk=limits.get("DiskCapacityGoal"),
            replicas=limits.get("ReplicaCapacityGoal"),
            topic_caps=find_topic_limits(self._placement, settings)[1] if _TOPICS in self._names else None,
            count_limits=wanted.get(Metric.REPLICAS),
            byte_limits=wanted.get(Metric.DISK),
        )

    def _list_window_limits(self) -> dict[Metric, Limits]:
        """The limits of the goals of counts and bytes, as far as they are asked for."""
        found = {goal.name: goal.limits for goal in self._goals}
        metrics = {Metric.REPLICAS: found.get(_REPLICAS), Metric.DISK: found.get(_DISK)}
        return {metric: limits for metric, limits in metrics.items() if limits is not None}

    def _optimize_goal(self, goal: Goal, budget: Budget) -> GoalResult:
        reason = self._inapplicable[goal.name]
        if reason is not None:
            return self._build_goal_result(goal, GoalStatus.NO_ACTION, reason, budget)
        reason = goal.judge()
        version = self._placement.version
        if reason is not None:
            saved, before = self._placement.save(), goal.measure_violation()
            goal.optimize(budget)
            reason = goal.judge()
            if reason is not None and not goal.is_hard and not _is_better([goal.measure_violation()], [before]):
                # Moves that bring little cost more than they are worth, and the next request would make as many.
                self._placement.restore(saved)
                self._placement.version = version
                reason = goal.judge()
        if self._placement.version != version:
            self._violated_before.add(goal.name)
        goal.accept()
        if reason is not None:
            status = GoalStatus.VIOLATED
        else:
            status = GoalStatus.FIXED if goal.name in self._violated_before else GoalStatus.NO_ACTION
        return self._build_goal_result(goal, status, reason, budget)

    def _build_goal_result(self, goal: Goal, status: GoalStatus, reason: Reason | None, budget: Budget) -> GoalResult:
        return GoalResult(
            goal=goal.name,
            status=status,
            statistics=self._measure_statistics(),
            reason=reason,
            candidates_tried=budget.used,
        )

    def _measure_statistics(self) -> ClusterStatistics:
        version = self._placement.version
        if self._measured is None or self._measured[0] != version:
            self._measured = (version, measure_statistics(self._placement))
        return self._measured[1]

    def _build_result(self, goals: tuple[GoalResult, ...], budgets: tuple[tuple[str, int], ...]) -> OptimizationResult:
        placement = self._placement
        goes_last = None
        if self._scope.mode is Mode.DEMOTE_BROKERS:
            goes_last = np.isin(self._model.broker_ids, self._request.brokers)
        proposals, planned = list_proposals(placement, self._names, goes_last=goes_last)
        before, after = score_goals([(result.goal, result.status) for result in goals], self._settings)
        return OptimizationResult(
            request=self._request,
            before=self._model,
            after=planned,
            proposals=proposals,
            goals=goals,
            bounds=find_bounds(
                placement, proposals, self._windows, crowded=self._crowded, limits=self._list_window_limits()
            ),
            balancedness_before=before,
            balancedness_after=after,
            provision=judge_provision(placement, self._names, self._settings),
            excluded_topics=self._scope.excluded_topics,
            held=self._held,
            budgets=budgets,
        )


def _judge_again(goal: Goal, result: GoalResult, higher: HigherGoals) -> GoalResult:
    reason = goal.judge()
    if reason is None:
        return msgspec.structs.replace(result, status=GoalStatus.FIXED, reason=None)
    return msgspec.structs.replace(result, reason=msgspec.structs.replace(reason, because=goal.explain(higher)))


def _list_higher(goals: list[Goal], goal: Goal) -> HigherGoals:
    """What binds the changes for a goal: hard goals, and those before it."""
    before = goals[: goals.index(goal)]
    binding = [other for other in goals if other is not goal and (other.is_hard or other in before)]
    topics = next((other for other in before if isinstance(other, TopicReplicaDistributionGoal)), None)
    return HigherGoals(
        limits=tuple((other.name, limits) for other in binding if (limits := other.limits) is not None),
        topics=None if topics is None else (topics.name, topics.topic_limits),
    )


def _is_any_worse(goals: list[Goal], before: list[float]) -> bool:
    return any(goal.measure_violation() > violation for goal, violation in zip(goals, before, strict=True))


def _is_better(after: list[float], before: list[float]) -> bool:
    """Whether the first value that differs is clearly lower."""
    for new, old in zip(after, before, strict=True):
        if abs(new - old) > _LEAST_GAIN * max(new, old):
            return new < old
    return False


def _find_rack_rule(names: tuple[str, ...]) -> RackRule:
    if "RackAwareGoal" in names:
        return RackRule.ONE_PER_RACK
    return RackRule.EVEN if "RackAwareDistributionGoal" in names else RackRule.NOT_WORSE

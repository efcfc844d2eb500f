"""Distribution goals: every broker within a window around the mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.formatting import format_count
from plimsoll.core.plans import Reason
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.goals.goal import Goal
from plimsoll.kafka.planning.goals.obstacles import explain_topic_outside
from plimsoll.kafka.planning.goals.windows import find_topic_limits, find_window, fit_window_to_racks
from plimsoll.kafka.planning.goals.wording import (
    describe_no_rates,
    describe_outside,
    describe_rack_part,
    find_full_rack,
)
from plimsoll.kafka.planning.loads import Metric
from plimsoll.kafka.planning.placement import Limits, TopicLimits
from plimsoll.kafka.planning.search.leader_counts import LeaderCounts
from plimsoll.kafka.planning.search.metric_search import Means, MetricSearch
from plimsoll.kafka.planning.search.topic_search import balance_topics

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Flags
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.goals.obstacles import HigherGoals
    from plimsoll.kafka.planning.placement import Placement
    from plimsoll.kafka.planning.search.budget import Budget

_WITH_LEADERSHIP: Final = frozenset({Metric.NW_OUT, Metric.CPU, Metric.LEADER_NW_IN})
_NAMED_AT_MOST: Final = 5


class DistributionGoal(Goal):
    """A window around the mean of replicas, bytes on disk, traffic or processor use."""

    def __init__(
        self, name: str, placement: Placement, settings: AnalyzerSettings, *, metric: Metric, margin: float
    ) -> None:
        super().__init__(name, placement, settings)
        self._metric = metric
        self.window = find_window(placement, metric, margin, low_utilization=settings.low_utilization_threshold)
        """What the goal is judged by, around one mean."""
        self._limits = fit_window_to_racks(placement, self.window, margin)
        """What changes are bound by: brokers of racks that cannot be inside the window are even among themselves."""

    @property
    def limits(self) -> Limits | None:
        return self._limits

    def find_inapplicable(self) -> Reason | None:
        loads = self.placement.loads
        return None if loads.is_known(self._metric) else describe_no_rates(self._metric, has_rates=loads.has_rates)

    def judge(self) -> Reason | None:
        return describe_outside(self.placement, self.window)

    def explain(self, higher: HigherGoals) -> tuple[Reason, ...]:
        placement = self.placement
        if self._metric is Metric.REPLICAS and (reason := find_full_rack(placement, self.window)) is not None:
            return (reason,)
        worst = self.window.find_worst(placement.load)
        if not self._limits.measure_excess(placement.load)[worst]:
            return (find_full_rack(placement, self.window) or describe_rack_part(placement, worst),)
        return self.explain_broker(worst, higher)

    def optimize(self, budget: Budget) -> None:
        scope = self.placement.scope
        means = Means(leadership=self._metric in _WITH_LEADERSHIP, swaps=scope.mode is Mode.FULL)
        self.run_search(budget, means=means, movable=scope.is_movable)


class LeaderReplicaDistributionGoal(DistributionGoal):
    """A window around the mean of leaders: by reordering, by another choice of what moves, then by moving leaders."""

    def optimize(self, budget: Budget) -> None:
        LeaderCounts(self.placement, self._limits, budget).run()
        version = self.placement.version
        if self.judge() is not None:
            super().optimize(budget)
        if self.placement.version != version and self.judge() is not None:
            LeaderCounts(self.placement, self._limits, budget).run()

    def choose_again(self, budget: Budget) -> None:
        """Choose other replicas of those that move, if leaders are not even."""
        if self.judge() is not None:
            scope = self.placement.scope
            means = Means(leadership=True, swaps=scope.mode is Mode.FULL)
            MetricSearch(self.placement, self._limits, budget, means=means, movable=scope.is_movable).choose_again()


class LeaderBytesInDistributionGoal(DistributionGoal):
    """At most 1.10 times the mean of what leaders receive; by reordering only."""

    moves_replicas = False

    def __init__(self, name: str, placement: Placement, settings: AnalyzerSettings) -> None:
        threshold = settings.network_inbound_balance_threshold
        super().__init__(name, placement, settings, metric=Metric.LEADER_NW_IN, margin=threshold - 1.0)
        high = np.where(placement.scope.leads_balanced, self.window.high, np.inf)
        self.window = self._limits = Limits(Metric.LEADER_NW_IN, np.full(len(high), -np.inf), high)

    def optimize(self, budget: Budget) -> None:
        means = Means(leadership=True, moves=False)
        movable = self.placement.scope.is_movable
        self.run_search(budget, means=means, movable=movable)


class TopicReplicaDistributionGoal(Goal):
    """A window around the mean of replicas, per topic."""

    def __init__(self, name: str, placement: Placement, settings: AnalyzerSettings) -> None:
        super().__init__(name, placement, settings)
        low, high = find_topic_limits(placement, settings)
        self.topic_limits = TopicLimits(low, high)

    def _list_outside(self) -> Flags:
        """[T, B]."""
        counts, limits = self.placement.topic_counts, self.topic_limits
        outside = (counts > limits.high[:, None]) | (counts < limits.low[:, None])
        return outside & self.placement.scope.is_balanced

    def measure_violation(self) -> float:
        counts, limits = self.placement.topic_counts, self.topic_limits
        excess = np.maximum(counts - limits.high[:, None], limits.low[:, None] - counts)
        return float(np.maximum(excess, 0)[:, self.placement.scope.is_balanced].sum())

    def judge(self) -> Reason | None:
        placement, limits = self.placement, self.topic_limits
        counts = placement.topic_counts
        topics, brokers = np.nonzero(self._list_outside())
        if not len(topics):
            return None
        topic, broker = int(topics[0]), int(brokers[0])
        name, identifier = placement.model.topics[topic], int(placement.model.broker_ids[broker])
        count, low, high = int(counts[topic, broker]), int(limits.low[topic]), int(limits.high[topic])
        names = [placement.model.topics[index] for index in np.unique(topics)[:_NAMED_AT_MOST].tolist()]
        return Reason(
            code="OutsideLimits",
            message=f"topic {name} has {format_count(count, 'replica')} on broker {identifier}, "
            f"{low} to {high} are the limits; "
            f"{format_count(len(topics), 'pair of topic and broker is', 'pairs of topic and broker are')} outside",
            facts={
                "topics": names,
                "outside": len(topics),
                "broker": identifier,
                "value": count,
                "low": low,
                "high": high,
            },
        )

    def explain(self, higher: HigherGoals) -> tuple[Reason, ...]:
        topics, brokers = np.nonzero(self._list_outside())
        return explain_topic_outside(
            self.placement,
            self.topic_limits,
            higher,
            movable=self.placement.scope.is_movable,
            topic=int(topics[0]),
            broker=int(brokers[0]),
        )

    def optimize(self, budget: Budget) -> None:
        balance_topics(self.placement, self.topic_limits, budget)

    def accept(self) -> None:
        self.placement.topic_limits = self.topic_limits

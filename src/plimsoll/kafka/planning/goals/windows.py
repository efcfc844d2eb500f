"""Limits of metrics per broker: windows around the mean, and parts of capacities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.planning.loads import COUNTS, Metric
from plimsoll.kafka.planning.placement import Limits
from plimsoll.kafka.planning.scope import BrokerRole

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Flags, Floats, Ints
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.placement import Placement


def find_margin(threshold: float, settings: AnalyzerSettings) -> float:
    """The distance from the mean that a balance threshold allows: 1.10 means ±9 %."""
    return (threshold - 1.0) * settings.balance_margin


def find_window(placement: Placement, metric: Metric, margin: float, *, low_utilization: float = 0.0) -> Limits:
    """The window of a metric: of counts around the mean, of loads around the mean utilization.

    The total is that of the balanced brokers and of what must leave other ones. It does not change when replicas move.
    """
    scope = placement.scope
    judged = scope.leads_balanced if metric is Metric.LEADERS else scope.is_balanced
    brokers = len(judged)
    low, high = np.full(brokers, -np.inf), np.full(brokers, np.inf)
    if not judged.any():
        return Limits(metric, low, high)
    total = _sum_total(placement, metric, judged)
    if metric in COUNTS:
        mean = total / int(judged.sum())
        low[judged], high[judged] = np.floor(mean * max(0.0, 1 - margin)), np.ceil(mean * (1 + margin))
        return Limits(metric, low, high)
    capacity = list_capacity_shares(placement, metric, judged)
    utilization = total / capacity[judged].sum()
    high[judged] = utilization * (1 + margin) * capacity[judged]
    is_low = np.isfinite(placement.loads.capacity[metric][judged]).all() and utilization <= low_utilization
    low[judged] = 0.0 if is_low else utilization * max(0.0, 1 - margin) * capacity[judged]
    return Limits(metric, low, high)


def _sum_total(placement: Placement, metric: Metric, judged: Flags) -> float:
    must_leave = np.flatnonzero(placement.scope.must_leave & ~judged[placement.broker_of])
    leaving = placement.weigh(must_leave)[metric].sum() if len(must_leave) else 0.0
    return float(placement.load[metric][judged].sum() + leaving)


def list_capacity_shares(placement: Placement, metric: Metric, judged: Flags) -> Floats:
    """[B]: capacities; brokers without one have the mean of the others, and all are equal if none has one."""
    capacity = placement.loads.capacity[metric]
    known = np.isfinite(capacity) & (capacity > 0)
    mean = capacity[known & judged].mean() if (known & judged).any() else 1.0
    shares: Floats = np.where(known, capacity, mean)
    return shares


def find_capacity_limits(placement: Placement, metric: Metric, threshold: float, *, is_hard: bool) -> Limits:
    """At most a part of the capacity of each broker that is known and stays."""
    scope = placement.scope
    judged = scope.is_known & (scope.role != BrokerRole.LEAVING)
    capacity = placement.loads.capacity[metric]
    high = np.where(judged & np.isfinite(capacity), capacity * threshold, np.inf)
    return Limits(metric, np.full(len(judged), -np.inf), high, is_hard=is_hard)


def find_replica_limits(placement: Placement, most: int) -> Limits:
    """At most so many replicas per broker."""
    judged = placement.scope.is_known & (placement.scope.role != BrokerRole.LEAVING)
    high = np.where(judged, float(most), np.inf)
    return Limits(Metric.REPLICAS, np.full(len(judged), -np.inf), high, is_hard=True)


def find_topic_limits(placement: Placement, settings: AnalyzerSettings) -> tuple[Ints, Ints]:
    """[T]: the least and the most replicas of each topic per broker."""
    judged = placement.scope.is_balanced
    total = placement.topic_counts[:, judged].sum(axis=1)
    must_leave = np.flatnonzero(placement.scope.must_leave & ~judged[placement.broker_of])
    topics = placement.model.topic_of[placement.model.partition_of[must_leave]]
    total = total + np.bincount(topics, minlength=len(total))
    mean = total / max(int(judged.sum()), 1)
    margin = find_margin(settings.topic_replica_count_balance_threshold, settings)
    least, most = settings.topic_replica_count_balance_min_gap, settings.topic_replica_count_balance_max_gap
    high = np.clip(np.ceil(mean * (1 + margin)), np.ceil(mean) + least, np.ceil(mean) + most)
    low = np.clip(
        np.floor(mean * max(0.0, 1 - margin)),
        np.maximum(0, np.floor(mean) - most),
        np.maximum(0, np.floor(mean) - least),
    )
    return low.astype(np.int64), high.astype(np.int64)

"""Limits of metrics per broker: windows around the mean, and parts of capacities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.planning.loads import COUNTS, Metric
from plimsoll.kafka.planning.placement import TOLERANCE, Limits
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
    judged = _list_judged(placement, metric)
    weight = _weigh_brokers(placement, metric, judged)
    utilization = _sum_total(placement, metric, judged) / weight.sum() if judged.any() else 0.0
    is_low = (
        metric not in COUNTS
        and bool(np.isfinite(placement.loads.capacity[metric][judged]).all())
        and utilization <= low_utilization
    )
    return _build_window(metric, np.where(judged, utilization, np.nan), weight, margin, is_low=is_low)


def fit_window_to_racks(placement: Placement, window: Limits, margin: float) -> Limits:
    """The window, with a rack's own mean for brokers of racks that cannot be inside it.

    One mean over all brokers is out of reach if rack awareness leaves the brokers of a rack less than the window asks
    for, or more than it allows. Within such a rack its brokers can still be even.
    """
    metric, rack_of = window.metric, placement.model.rack_of
    judged = _list_judged(placement, metric)
    weight = _weigh_brokers(placement, metric, judged)
    share = _share_among_racks(placement, metric, judged, weight)
    if share is None:
        return window
    least = np.bincount(rack_of[judged], window.low[judged], minlength=len(share))
    most = np.bincount(rack_of[judged], window.high[judged], minlength=len(share))
    slack = TOLERANCE * np.maximum(share, 1.0)
    fits = (least <= share + slack) & (share <= most + slack)
    applies = judged & ~fits[rack_of]
    rack_weight = np.bincount(rack_of, weight, minlength=len(share))
    level = np.divide(share, rack_weight, out=np.zeros(len(share)), where=rack_weight > 0)[rack_of]
    is_low = metric not in COUNTS and not window.low[judged].any()
    own = _build_window(metric, np.where(judged, level, np.nan), weight, margin, is_low=is_low)
    return Limits(metric, np.where(applies, own.low, window.low), np.where(applies, own.high, window.high))


def _list_judged(placement: Placement, metric: Metric) -> Flags:
    return placement.scope.leads_balanced if metric is Metric.LEADERS else placement.scope.is_balanced


def _weigh_brokers(placement: Placement, metric: Metric, judged: Flags) -> Floats:
    """[B]: what the part of a broker is proportional to: 1 for counts, else its capacity; 0: it has no part."""
    weight: Floats = np.ones(len(judged)) if metric in COUNTS else list_capacity_shares(placement, metric, judged)
    return np.where(judged, weight, 0.0)


def _build_window(metric: Metric, level: Floats, weight: Floats, margin: float, *, is_low: bool) -> Limits:
    """The window around a level [B] per weight [B]; NaN: a broker without limits."""
    low, high = level * max(0.0, 1 - margin) * weight, level * (1 + margin) * weight
    if metric in COUNTS:
        low, high = np.floor(low), np.ceil(high)
    if is_low:
        low = low * 0.0
    return Limits(metric, np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def _share_among_racks(placement: Placement, metric: Metric, judged: Flags, weight: Floats) -> Floats | None:
    """[R]: what the judged brokers of each rack can have together, as even as racks allow; None: racks say nothing.

    One level is raised over all brokers. A rack has at least what partitions with a replica in every rack bring, and at
    most its part of the replicas of every partition.
    """
    model, loads = placement.model, placement.loads
    racks = len(placement.racks_left)
    if not judged.any() or racks < 2:
        return None
    factors = np.diff(model.offsets)
    least = float((factors // racks * loads.of_replica[metric]).sum())
    most = float((-(-factors // racks) * loads.of_replica[metric] + loads.of_leadership[metric]).sum())
    rows = np.flatnonzero(~judged[placement.broker_of] & ~placement.scope.must_leave)
    elsewhere = np.bincount(
        model.rack_of[placement.broker_of[rows]], placement.weigh(rows)[metric], minlength=len(model.rack_names)
    )
    rack_weight = np.bincount(model.rack_of, weight, minlength=len(model.rack_names))
    has_brokers = rack_weight > 0
    low = np.where(has_brokers, np.maximum(least - elsewhere, 0.0), 0.0)
    high = np.where(has_brokers, np.maximum(most - elsewhere, 0.0), 0.0)
    total = _sum_total(placement, metric, judged)
    if not low.sum() * (1 - TOLERANCE) <= total <= high.sum() * (1 + TOLERANCE):
        return None  # Replicas that may not move break the rule of racks.
    levels = np.sort(np.concatenate([amount[has_brokers] / rack_weight[has_brokers] for amount in (low, high)]))
    sums = np.clip(levels[:, None] * rack_weight, low, high).sum(axis=1)
    share: Floats = np.clip(float(np.interp(total, sums, levels)) * rack_weight, low, high)
    return share


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

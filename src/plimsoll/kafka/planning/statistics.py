"""Cruise Control's cluster statistics (`clusterModelStats`): the distribution of load over brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.model.cluster import MIB
from plimsoll.kafka.model.proposals import ClusterStatistics, ResourceStatistics
from plimsoll.kafka.planning.loads import KIB, Metric
from plimsoll.kafka.planning.scope import BrokerRole

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.model.cluster import Floats
    from plimsoll.kafka.planning.placement import Placement

_UNITS = {
    Metric.CPU: 1.0,
    Metric.NW_IN: float(KIB),
    Metric.NW_OUT: float(KIB),
    Metric.DISK: float(MIB),
    Metric.POTENTIAL_NW_OUT: float(KIB),
    Metric.REPLICAS: 1.0,
    Metric.LEADERS: 1.0,
}


def measure_statistics(placement: Placement) -> ClusterStatistics:
    """MiB, KiB/s and percent. Means and deviations are over brokers that stay; extremes of counts over all brokers."""
    scope, model = placement.scope, placement.model
    alive = scope.is_alive & (scope.role != BrokerRole.LEAVING)
    if not alive.any():
        alive = np.ones_like(alive)
    topics = _measure_topics(placement, alive.astype(np.float64))
    load = {metric: placement.load[metric] / unit for metric, unit in _UNITS.items()}
    of_alive = {metric: values[alive] for metric, values in load.items()}
    of_all = {
        metric: values if metric in {Metric.REPLICAS, Metric.LEADERS} else of_alive[metric]
        for metric, values in load.items()
    }
    brokers = int(alive.sum())
    # Replicas on brokers that are down count towards the mean, as in Cruise Control.
    means = {
        metric: (values.sum() if metric in {Metric.REPLICAS, Metric.LEADERS} else of_alive[metric].sum()) / brokers
        for metric, values in load.items()
    }
    deviations = {metric: float(np.sqrt(np.mean((of_alive[metric] - means[metric]) ** 2))) for metric in load}
    return ClusterStatistics(
        brokers=len(model.brokers),
        replicas=model.replica_count,
        topics=len(model.topics),
        average=_build_row(lambda metric: means[metric], topics[0]),
        standard_deviation=_build_row(lambda metric: deviations[metric], topics[1]),
        minimum=_build_row(lambda metric: of_all[metric].min(), topics[2]),
        maximum=_build_row(lambda metric: of_all[metric].max(), topics[3]),
    )


def _measure_topics(placement: Placement, alive: Floats) -> tuple[float, float, float, float]:
    """The mean over topics of the mean and of the deviation per broker; the least and the most on any broker."""
    counts = placement.topic_counts
    if not counts.size:
        return 0.0, 0.0, 0.0, 0.0
    brokers = alive.sum()
    means = counts.sum(axis=1) / brokers
    # The sum of squares over brokers that stay, without a table of differences.
    squares = np.einsum("tb,tb,b->t", counts, counts, alive)
    sums = counts @ alive
    variance = np.maximum(squares / brokers - 2 * means * sums / brokers + means**2, 0.0)
    return float(means.mean()), float(np.sqrt(variance).mean()), float(counts.min()), float(counts.max())


def _build_row(get: Callable[[Metric], float], topics: float) -> ResourceStatistics:
    return ResourceStatistics(
        cpu=float(get(Metric.CPU)),
        network_inbound=float(get(Metric.NW_IN)),
        network_outbound=float(get(Metric.NW_OUT)),
        disk=float(get(Metric.DISK)),
        potential_nw_out=float(get(Metric.POTENTIAL_NW_OUT)),
        replicas=float(get(Metric.REPLICAS)),
        leader_replicas=float(get(Metric.LEADERS)),
        topic_replicas=topics,
    )

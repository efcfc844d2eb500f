"""What a replica and its leadership weigh, and what brokers can carry. Bytes, bytes per second, percent of processors.

Two tables over metrics and partitions hold every weight: of a replica, and of the leadership on top of it. So a move
and a change of leader are a column added to one broker and taken from another, whatever the goal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.kafka.model.cluster import MIB

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import ClusterModel, Floats
    from plimsoll.kafka.model.description import BrokerDescription

KIB: Final = 1 << 10
_CPU_OF_LEADER_BYTES_IN: Final = 0.7
_CPU_OF_LEADER_BYTES_OUT: Final = 0.15
_CPU_OF_FOLLOWER_BYTES_IN: Final = 0.15


class Metric(IntEnum):
    """A number per broker that goals limit; the row of the tables."""

    REPLICAS = 0
    DISK = 1
    NW_IN = 2
    NW_OUT = 3
    CPU = 4
    POTENTIAL_NW_OUT = 5
    LEADERS = 6
    LEADER_NW_IN = 7


COUNTS: Final = frozenset({Metric.REPLICAS, Metric.LEADERS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """The weights of P partitions and the capacities of B brokers, by metric."""

    of_replica: Floats
    """[M, P]: what each replica weighs."""
    of_leadership: Floats
    """[M, P]: what the leader weighs beyond that."""
    capacity: Floats
    """[M, B]: NaN where it is not known."""
    has_rates: bool
    has_cpu: bool

    def is_known(self, metric: Metric) -> bool:
        """Whether the weights of a metric are known."""
        if metric is Metric.CPU:
            return self.has_cpu
        return self.has_rates or metric in {Metric.REPLICAS, Metric.DISK, Metric.LEADERS}


def build_loads(model: ClusterModel) -> Loads:
    partitions = model.partition_count
    of_replica = np.zeros((len(Metric), partitions))
    of_leadership = np.zeros((len(Metric), partitions))
    of_replica[Metric.REPLICAS] = 1.0
    of_replica[Metric.DISK] = model.size_bytes
    of_leadership[Metric.LEADERS] = 1.0
    has_cpu = False
    if model.bytes_in is not None and model.bytes_out is not None:
        followers = np.diff(model.offsets) - 1
        bytes_out = model.bytes_out + followers * model.bytes_in
        of_replica[Metric.NW_IN] = model.bytes_in
        of_leadership[Metric.LEADER_NW_IN] = model.bytes_in
        of_leadership[Metric.NW_OUT] = bytes_out
        of_replica[Metric.POTENTIAL_NW_OUT] = bytes_out
        has_cpu = _estimate_cpu(model, model.bytes_in, model.bytes_out, of_replica, of_leadership)
    return Loads(
        of_replica=of_replica,
        of_leadership=of_leadership,
        capacity=_list_capacities(model),
        has_rates=model.bytes_in is not None,
        has_cpu=has_cpu,
    )


def _estimate_cpu(
    model: ClusterModel, bytes_in: Floats, bytes_out: Floats, of_replica: Floats, of_leadership: Floats
) -> bool:
    """Divide the processor use of each broker among its replicas, as Cruise Control does; False: none is known."""
    use = np.array([np.nan if broker.cpu_pct is None else broker.cpu_pct for broker in model.brokers])
    known = np.isfinite(use) & (use >= 0)
    led = model.leader >= 0
    brokers = len(model.brokers)
    as_leader = _CPU_OF_LEADER_BYTES_IN * bytes_in + _CPU_OF_LEADER_BYTES_OUT * bytes_out
    as_follower = _CPU_OF_FOLLOWER_BYTES_IN * bytes_in
    work = np.bincount(model.leader[led], as_leader[led], minlength=brokers).astype(np.float64)
    follows = ~model.is_leader
    work += np.bincount(model.broker_of[follows], as_follower[model.partition_of[follows]], minlength=brokers)
    busy = known & (work > 0)
    if not busy.any():
        return False
    per_work = np.full(brokers, use[busy].sum() / work[busy].sum())
    per_work[busy] = use[busy] / work[busy]
    rate = np.where(led, per_work[model.leader], 0.0)
    of_replica[Metric.CPU] = as_follower * rate
    of_leadership[Metric.CPU] = (as_leader - as_follower) * rate
    return True


def _list_capacities(model: ClusterModel) -> Floats:
    capacity = np.full((len(Metric), len(model.brokers)), np.nan)
    for index, broker in enumerate(model.brokers):
        given = broker.capacity
        inbound = np.nan if given.nw_in_kb_s is None else given.nw_in_kb_s * KIB
        outbound = np.nan if given.nw_out_kb_s is None else given.nw_out_kb_s * KIB
        capacity[Metric.DISK, index] = measure_disk(broker)
        capacity[[Metric.NW_IN, Metric.LEADER_NW_IN], index] = inbound
        capacity[[Metric.NW_OUT, Metric.POTENTIAL_NW_OUT], index] = outbound
        capacity[Metric.CPU, index] = given.cpu_pct
    return capacity


def measure_disk(broker: BrokerDescription) -> float:
    """The bytes of a broker's disks: as given, else the total of its online volumes; NaN: not known."""
    if broker.capacity.disk_mb is not None:
        return broker.capacity.disk_mb * MIB
    online = [log_dir.total_bytes for log_dir in broker.log_dirs or () if log_dir.is_online]
    return float(sum(online)) if online and min(online) > 0 else np.nan

"""Clusters for tests of the analyzer: small ones written out, large ones generated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.model.cluster import ClusterModel, build_model
from plimsoll.kafka.model.description import (
    BrokerCapacity,
    BrokerDescription,
    ClusterDescription,
    LogDir,
    PartitionDescription,
    ReplicaDescription,
    TopicDescription,
    TopicPartition,
)
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.goal_list import DEFAULT_GOALS
from plimsoll.kafka.planning.goals.registry import build_goals
from plimsoll.kafka.planning.loads import build_loads
from plimsoll.kafka.planning.placement import Placement, RackRule
from plimsoll.kafka.planning.scope import Scope, build_scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.kafka.model.proposals import OptimizationResult
    from plimsoll.kafka.planning.goals.goal import Goal

GB = 10**9


def describe_broker(broker: int, *, rack: str = "", disk: int = -1, **fields: object) -> BrokerDescription:
    """A broker with one log directory on a volume of `disk` bytes."""
    given = {"log_dirs": (LogDir(path="/data", total_bytes=disk, usable_bytes=disk),), "host": f"h{broker}", **fields}
    return BrokerDescription(id=broker, rack=rack, **given)  # type: ignore[arg-type]


def describe_partition(
    number: int, replicas: Sequence[int], *, size: int = 0, leader: int | None = None, **fields: object
) -> PartitionDescription:
    """A partition whose replicas are all in sync and of one size."""
    return PartitionDescription(
        **{  # type: ignore[arg-type]
            "partition": number,
            "replicas": tuple(replicas),
            "leader": (replicas[0] if replicas else -1) if leader is None else leader,
            "isr": tuple(replicas),
            "logs": tuple(ReplicaDescription(broker=broker, log_dir="/data", size_bytes=size) for broker in replicas),
            **fields,
        }
    )


def describe_topic(name: str, assignment: Sequence[Sequence[int]], *, size: int = 0) -> TopicDescription:
    return TopicDescription(
        name=name,
        partitions=tuple(describe_partition(number, replicas, size=size) for number, replicas in enumerate(assignment)),
    )


def build_cluster(
    brokers: Sequence[BrokerDescription], topics: Sequence[TopicDescription], *, rate_source: str = ""
) -> ClusterModel:
    return build_model(ClusterDescription(brokers=tuple(brokers), topics=tuple(topics), rate_source=rate_source))


def generate_cluster(
    *,
    partitions: int,
    brokers: int,
    racks: int,
    seed: int,
    new: int = 0,
    rf: int = 3,
    topics: int = 0,
    is_rack_aware: bool = True,
    has_rates: bool = False,
) -> ClusterModel:
    """The generator of the design: log-normal sizes, rack-aware random placement, every capacity twice the need.

    Broker `b` is in rack `b % racks`. The last `new` brokers are empty.
    """
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(np.log(100.0), 1.5, partitions)) * 2**20
    rack_of = np.arange(brokers) % racks
    assignment = np.empty((partitions, rf), dtype=np.int64)
    if is_rack_aware:
        order = np.argsort(rng.random((partitions, racks)), axis=1)[:, :rf]
        for rack in range(racks):
            members, chosen = np.flatnonzero(rack_of == rack), order == rack
            assignment[chosen] = members[rng.integers(0, len(members), int(chosen.sum()))]
    else:
        for start in range(0, partitions, 10_000):
            stop = min(start + 10_000, partitions)
            assignment[start:stop] = np.argsort(rng.random((stop - start, brokers)), axis=1)[:, :rf]
    topics = topics or max(1, partitions // 100)
    disk_mb = float(2 * rf * size.sum() / brokers / 2**20)
    rates = np.exp(rng.normal(np.log(2e4), 1.0, partitions)) if has_rates else None
    network = 1e6 if has_rates else None
    count = brokers + new
    described = tuple(
        BrokerDescription(
            id=index,
            host=f"h{index}",
            rack=f"rack-{index % racks}",
            log_dirs=(),
            capacity=BrokerCapacity(disk_mb=disk_mb, nw_in_kb_s=network, nw_out_kb_s=network),
            cpu_pct=20.0 if has_rates and index < brokers else None,
        )
        for index in range(count)
    )
    return ClusterModel(
        brokers=described,
        topics=tuple(f"topic-{index:06d}" for index in range(topics)),
        topic_of=np.arange(partitions) * topics // partitions,
        numbers=np.arange(partitions),
        offsets=np.arange(partitions + 1) * rf,
        broker_of=assignment.ravel().copy(),
        leader=assignment[:, 0].copy(),
        in_sync=np.ones(partitions * rf, dtype=np.bool_),
        offline=np.zeros(partitions * rf, dtype=np.bool_),
        log_dir=np.full(partitions * rf, -1, dtype=np.int64),
        size_bytes=size.astype(np.int64),
        size_known=np.ones(partitions, dtype=np.bool_),
        bytes_in=rates,
        bytes_out=None if rates is None else rates * 2.0,
        min_isr=np.ones(topics, dtype=np.int64),
        reassigning=np.zeros(partitions, dtype=np.bool_),
        removing=np.zeros(partitions * rf, dtype=np.bool_),
        rate_source="prometheus" if has_rates else "",
    )


def rebuild_placement(result: OptimizationResult) -> tuple[Placement, list[Goal]]:
    """The proposed placement, and all goals over it, counted anew."""
    before = result.before
    scope = build_scope(before, result.request)
    assert isinstance(scope, Scope)
    placement = Placement(before, build_loads(before), scope)
    placement.rack_rule = RackRule.ONE_PER_RACK
    goals = build_goals(DEFAULT_GOALS, placement, AnalyzerSettings())
    index_of = {before.name_partition(index): index for index in range(before.partition_count)}
    for proposal in result.proposals:
        partition = index_of[TopicPartition(proposal.topic, proposal.partition)]
        rows = np.arange(before.offsets[partition], before.offsets[partition + 1])
        ids = before.broker_ids[before.broker_of[rows]]
        added = [broker for broker in proposal.new_replicas if broker not in ids]
        for row, broker in zip(rows.tolist(), ids.tolist(), strict=True):
            if broker not in proposal.new_replicas:
                placement.move(row, before.index_of_broker[added.pop(0)])
        leader = before.index_of_broker[proposal.new_replicas[0]]
        placement.lead(int(rows[placement.broker_of[rows] == leader][0]))
    return placement, [goal for goal in goals if goal.find_inapplicable() is None]


def apply_proposals(model: ClusterModel, result: OptimizationResult) -> ClusterModel:
    """The cluster after all proposals, read back as from its brokers: the first replica leads."""
    index_of: Mapping[int, int] = model.index_of_broker
    partition_of = {model.name_partition(index): index for index in range(model.partition_count)}
    broker_of, leader = model.broker_of.copy(), model.leader.copy()
    for proposal in result.proposals:
        partition = partition_of[proposal.topic, proposal.partition]  # type: ignore[index]
        brokers = [index_of[broker] for broker in proposal.new_replicas]
        broker_of[model.offsets[partition] : model.offsets[partition + 1]] = brokers
        leader[partition] = brokers[0]
    return model.replace_assignment(broker_of, leader)

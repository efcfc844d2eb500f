"""The JSON bodies of answers: keys and units as Cruise Control has them (MiB, KiB/s, percent)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plimsoll.kafka.model.cluster import MIB
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.loads import KIB, Metric, build_loads

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.kafka.model.cluster import ClusterModel, Flags, Floats
    from plimsoll.kafka.model.proposals import ClusterStatistics, OptimizationResult, Proposal, ResourceStatistics

VERSION: Final = 1
DEFAULT_NETWORK_KB_S: Final = 10_000.0
DEFAULT_DISK_MB: Final = 100_000.0
RESOURCES: Final = {"cpu": Metric.CPU, "nw_in": Metric.NW_IN, "nw_out": Metric.NW_OUT, "disk": Metric.DISK}


def build_optimization(result: OptimizationResult, *, verbose: bool) -> dict[str, Any]:
    """The body of rebalance, proposals, add_broker, remove_broker and their kind."""
    body: dict[str, Any] = {
        "summary": _build_summary(result),
        "goalSummary": [
            {
                "goal": goal.goal,
                "status": goal.status,
                "optimizationTimeMs": 0,
                "clusterModelStats": _build_statistics(goal.statistics),
                **({"reason": str(goal.reason)} if goal.reason is not None else {}),
            }
            for goal in result.goals
        ],
        "loadAfterOptimization": build_load(result.after, **_find_states(result)),
        "version": VERSION,
    }
    if verbose:
        body["proposals"] = [build_proposal(proposal) for proposal in result.proposals]
        body["loadBeforeOptimization"] = build_load(result.before, **_find_states(result))
    return body


def _build_summary(result: OptimizationResult) -> dict[str, Any]:
    known = result.before.size_known
    request = result.request
    leaving = request.brokers if request.mode is Mode.REMOVE_BROKERS else ()
    demoted = request.brokers if request.mode is Mode.DEMOTE_BROKERS else ()
    intra_broker = [move for proposal in result.proposals for move in proposal.log_dir_moves]
    intra_broker_mb = sum(len(proposal.log_dir_moves) * (proposal.size_bytes >> 20) for proposal in result.proposals)
    return {
        "numReplicaMovements": sum(proposal.is_replica_move for proposal in result.proposals),
        "dataToMoveMB": result.data_to_move_mb,
        "dataToMoveBytes": sum(proposal.bytes_to_move for proposal in result.proposals),
        "numIntraBrokerReplicaMovements": len(intra_broker),
        "intraBrokerDataToMoveMB": intra_broker_mb,
        "numLeaderMovements": sum(proposal.is_leader_move for proposal in result.proposals),
        "numReplicasToMove": result.bounds.moves,
        "leastReplicaMovements": result.bounds.least_moves,
        "leastBytesToMove": result.bounds.least_bytes,
        "recentWindows": 1,
        "monitoredPartitionsPercentage": 100.0 * float(known.mean()) if len(known) else 100.0,
        "excludedTopics": list(result.excluded_topics),
        "excludedBrokersForLeadership": sorted({*request.excluded_for_leadership, *demoted}),
        "excludedBrokersForReplicaMove": sorted({*request.excluded_for_replicas, *leaving}),
        "onDemandBalancednessScoreBefore": result.balancedness_before,
        "onDemandBalancednessScoreAfter": result.balancedness_after,
        "provisionStatus": result.provision.status,
        "provisionRecommendation": result.provision.recommendation,
        "held": [str(reason) for reason in result.held],
    }


def build_proposal(proposal: Proposal) -> dict[str, Any]:
    return {
        "topicPartition": {
            "topic": proposal.topic,
            "partition": proposal.partition,
            "hash": hash_partition(proposal.topic, proposal.partition),
        },
        "oldLeader": proposal.old_leader,
        "oldReplicas": list(proposal.old_replicas),
        "newReplicas": list(proposal.new_replicas),
    }


def hash_partition(topic: str, partition: int) -> int:
    """Java's hash of a TopicPartition. Clients compare it with their own."""
    hashed = 0
    for unit in np.frombuffer(topic.encode("utf-16-le"), dtype="<u2").tolist():
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    hashed = (31 * (31 + partition) + hashed) & 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >= 1 << 31 else hashed


def _build_statistics(statistics: ClusterStatistics) -> dict[str, Any]:
    return {
        "metadata": {
            "brokers": statistics.brokers,
            "replicas": statistics.replicas,
            "topics": statistics.topics,
        },
        "statistics": {
            "AVG": _build_row(statistics.average),
            "STD": _build_row(statistics.standard_deviation),
            "MIN": _build_row(statistics.minimum),
            "MAX": _build_row(statistics.maximum),
        },
    }


def _build_row(row: ResourceStatistics) -> dict[str, float]:
    return {
        "cpu": row.cpu,
        "networkInbound": row.network_inbound,
        "networkOutbound": row.network_outbound,
        "disk": row.disk,
        "potentialNwOut": row.potential_nw_out,
        "replicas": row.replicas,
        "leaderReplicas": row.leader_replicas,
        "topicReplicas": row.topic_replicas,
    }


def _find_states(result: OptimizationResult) -> dict[str, Collection[int]]:
    request = result.request
    return {
        "new": request.brokers if request.mode is Mode.ADD_BROKERS else (),
        "dead": request.brokers if request.mode is Mode.REMOVE_BROKERS else (),
        "demoted": request.brokers if request.mode is Mode.DEMOTE_BROKERS else (),
    }


def build_load(
    model: ClusterModel,
    *,
    new: Collection[int] = (),
    dead: Collection[int] = (),
    demoted: Collection[int] = (),
) -> dict[str, Any]:
    """A row per broker and per host: the body of load, and a part of other bodies."""
    sums = sum_loads(model)
    rows = []
    for index, broker in enumerate(model.brokers):
        if not broker.is_registered and not sums[Metric.REPLICAS, index]:
            continue
        state = "ALIVE"
        if broker.id in dead or not broker.is_registered or broker.is_fenced:
            state = "DEAD"
        elif broker.id in new:
            state = "NEW"
        elif broker.id in demoted:
            state = "DEMOTED"
        elif any(not log_dir.is_online for log_dir in broker.log_dirs or ()):
            state = "BAD_DISKS"
        rows.append(_build_load_row(model, sums, index, state))
    return {"hosts": _sum_hosts(rows), "brokers": rows}


def sum_loads(model: ClusterModel) -> Floats:
    """[metrics, brokers]: the load of each broker."""
    loads = build_loads(model)
    led = model.leader >= 0
    brokers = len(model.brokers)
    return np.array(
        [
            np.bincount(model.broker_of, loads.of_replica[metric][model.partition_of], minlength=brokers)
            + np.bincount(model.leader[led], loads.of_leadership[metric][led], minlength=brokers)
            for metric in Metric
        ]
    )


def _build_load_row(model: ClusterModel, sums: Floats, index: int, state: str) -> dict[str, Any]:
    broker = model.brokers[index]
    disk_mb = float(sums[Metric.DISK, index]) / MIB
    capacity_mb = find_disk_capacity_mb(model, index)
    led_in = float(sums[Metric.LEADER_NW_IN, index]) / KIB
    return {
        "Broker": broker.id,
        "Host": broker.host,
        "Rack": model.rack_names[model.rack_of[index]] if not broker.rack else broker.rack,
        "BrokerState": state,
        "Replicas": int(sums[Metric.REPLICAS, index]),
        "Leaders": int(sums[Metric.LEADERS, index]),
        "CpuPct": float(sums[Metric.CPU, index]),
        "DiskMB": disk_mb,
        "DiskPct": 100.0 * disk_mb / capacity_mb if capacity_mb > 0 else 0.0,
        "LeaderNwInRate": led_in,
        "FollowerNwInRate": float(sums[Metric.NW_IN, index]) / KIB - led_in,
        "NwOutRate": float(sums[Metric.NW_OUT, index]) / KIB,
        "PnwOutRate": float(sums[Metric.POTENTIAL_NW_OUT, index]) / KIB,
        "DiskCapacityMB": capacity_mb,
        "NetworkInCapacity": _choose(broker.capacity.nw_in_kb_s, DEFAULT_NETWORK_KB_S),
        "NetworkOutCapacity": _choose(broker.capacity.nw_out_kb_s, DEFAULT_NETWORK_KB_S),
        "NumCore": broker.capacity.num_cores,
    }


def find_disk_capacity_mb(model: ClusterModel, index: int) -> float:
    """The capacity of a broker's disks; Cruise Control's default if neither settings nor the broker say it."""
    broker = model.brokers[index]
    if broker.capacity.disk_mb is not None:
        return broker.capacity.disk_mb
    totals = [log_dir.total_bytes for log_dir in broker.log_dirs or () if log_dir.is_online]
    return sum(totals) / MIB if totals and min(totals) > 0 else DEFAULT_DISK_MB


def _choose(given: float | None, default: float) -> float:
    return default if given is None else given


def _sum_hosts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    hosts: dict[str, dict[str, Any]] = {}
    for row in rows:
        summed = {key: value for key, value in row.items() if key not in {"Broker", "BrokerState"}}
        host = hosts.setdefault(row["Host"], {**summed, **dict.fromkeys(_SUMMED, 0)})
        for key in _SUMMED:
            host[key] += row[key]
    for host in hosts.values():
        host["DiskPct"] = 100.0 * host["DiskMB"] / host["DiskCapacityMB"] if host["DiskCapacityMB"] > 0 else 0.0
    return list(hosts.values())


_SUMMED: Final = (
    "Replicas",
    "Leaders",
    "CpuPct",
    "DiskMB",
    "LeaderNwInRate",
    "FollowerNwInRate",
    "NwOutRate",
    "PnwOutRate",
    "DiskCapacityMB",
    "NetworkInCapacity",
    "NetworkOutCapacity",
    "NumCore",
)


def build_partition_load(model: ClusterModel, *, resource: Metric, entries: int, wanted: Flags) -> dict[str, Any]:
    """The body of partition_load: partitions by falling load of a resource. `wanted` [P] selects partitions."""
    loads = build_loads(model)
    of_leader = loads.of_replica + loads.of_leadership
    selected = np.flatnonzero(wanted)
    order = selected[np.lexsort((selected, -of_leader[resource][selected]))][:entries]
    records = []
    for partition in order.tolist():
        name = model.name_partition(partition)
        replicas = model.list_replicas(partition)
        leader = int(model.broker_ids[model.leader[partition]]) if model.leader[partition] >= 0 else -1
        records.append(
            {
                "topic": name.topic,
                "partition": name.partition,
                "leader": leader,
                "followers": [broker for broker in replicas if broker != leader],
                "cpu": float(of_leader[Metric.CPU, partition]),
                "disk": float(of_leader[Metric.DISK, partition]) / MIB,
                "networkInbound": float(of_leader[Metric.NW_IN, partition]) / KIB,
                "networkOutbound": float(of_leader[Metric.NW_OUT, partition]) / KIB,
                "msg_in": 0.0,
            }
        )
    return {"records": records, "version": VERSION}


def build_cluster_state(model: ClusterModel, *, wanted: Flags, verbose: bool) -> dict[str, Any]:
    """The body of kafka_cluster_state. `wanted` [P] selects the partitions of the lists."""
    return {
        "KafkaBrokerState": _build_broker_state(model),
        "KafkaPartitionState": _build_partition_state(model, wanted, verbose=verbose),
        "version": VERSION,
    }


def _build_broker_state(model: ClusterModel) -> dict[str, Any]:
    brokers = len(model.brokers)
    ids = [str(broker.id) for broker in model.brokers]
    out_of_sync = np.bincount(model.broker_of[~model.in_sync], minlength=brokers)
    offline = np.bincount(model.broker_of[model.offline], minlength=brokers)
    replicas, leaders = model.replica_counts, model.leader_counts
    online_dirs = [[log_dir.path for log_dir in broker.log_dirs or () if log_dir.is_online] for broker in model.brokers]
    offline_dirs = [
        [log_dir.path for log_dir in broker.log_dirs or () if not log_dir.is_online] for broker in model.brokers
    ]
    return {
        "LeaderCountByBrokerId": dict(zip(ids, leaders.tolist(), strict=True)),
        "ReplicaCountByBrokerId": dict(zip(ids, replicas.tolist(), strict=True)),
        "OutOfSyncCountByBrokerId": {ids[index]: int(out_of_sync[index]) for index in np.flatnonzero(out_of_sync)},
        "OfflineReplicaCountByBrokerId": {ids[index]: int(offline[index]) for index in np.flatnonzero(offline)},
        "IsController": {str(broker.id): broker.id == model.controller for broker in model.brokers},
        "OnlineLogDirsByBrokerId": dict(zip(ids, online_dirs, strict=True)),
        "OfflineLogDirsByBrokerId": dict(zip(ids, offline_dirs, strict=True)),
        "BrokerSetByBrokerId": {},
        "Summary": {
            "Brokers": brokers,
            "Topics": len(np.unique(model.topic_of)),
            "Replicas": model.replica_count,
            "Leaders": int(leaders.sum()),
            "AvgReplicationFactor": model.replica_count / max(1, model.partition_count),
            "AvgReplicasPerBroker": float(replicas.mean()) if brokers else 0.0,
            "AvgLeadersPerBroker": float(leaders.mean()) if brokers else 0.0,
            "MaxReplicasPerBroker": int(replicas.max(initial=0)),
            "MaxLeadersPerBroker": int(leaders.max(initial=0)),
            "StdReplicasPerBroker": float(replicas.std()) if brokers else 0.0,
            "StdLeadersPerBroker": float(leaders.std()) if brokers else 0.0,
        },
    }


def _build_partition_state(model: ClusterModel, wanted: Flags, *, verbose: bool) -> dict[str, Any]:
    partitions = model.partition_count
    offline = np.bincount(model.partition_of[model.offline], minlength=partitions)
    is_offline = wanted & (model.leader < 0)
    has_offline = wanted & (offline > 0)
    is_under_replicated = wanted & model.is_under_replicated
    is_under_min_isr = wanted & (model.in_sync_counts < model.min_isr[model.topic_of])
    state = {
        "offline": _list_partitions(model, is_offline),
        "with-offline-replicas": _list_partitions(model, has_offline),
        "urp": _list_partitions(model, is_under_replicated),
        "under-min-isr": _list_partitions(model, is_under_min_isr),
    }
    if verbose:
        others = wanted & ~(is_offline | has_offline | is_under_replicated | is_under_min_isr)
        state["other"] = _list_partitions(model, others)
    return state


def _list_partitions(model: ClusterModel, wanted: Flags) -> list[dict[str, Any]]:
    listed = []
    for partition in np.flatnonzero(wanted).tolist():
        rows = slice(int(model.offsets[partition]), int(model.offsets[partition + 1]))
        ids = model.broker_ids[model.broker_of[rows]]
        name = model.name_partition(partition)
        listed.append(
            {
                "topic": name.topic,
                "partition": name.partition,
                "leader": int(model.broker_ids[model.leader[partition]]) if model.leader[partition] >= 0 else -1,
                "replicas": ids.tolist(),
                "in-sync": ids[model.in_sync[rows]].tolist(),
                "out-of-sync": ids[~model.in_sync[rows]].tolist(),
                "offline": ids[model.offline[rows]].tolist(),
                "min-isr": int(model.min_isr[model.topic_of[partition]]),
            }
        )
    return listed

"""Answers as plain text, for clients that do not ask for JSON: tables and lines as Cruise Control has them.

Each function renders the JSON body of the same answer, so that both say the same.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kafka.model.cluster import MIB
from plimsoll.kafka.model.requests import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kafka.model.requests import RebalanceRequest


_RECENT: Final = (
    "recentGoalViolations",
    "recentBrokerFailures",
    "recentMetricAnomalies",
    "recentDiskFailures",
    "recentTopicAnomalies",
    "recentMaintenanceEvents",
)
_TIMED_ANOMALIES: Final = ("GOAL_VIOLATION", "BROKER_FAILURE", "METRIC_ANOMALY", "DISK_FAILURE", "TOPIC_ANOMALY")


_AFTER: Final = {
    Mode.FULL: "rebalance",
    Mode.ADD_BROKERS: "adding broker",
    Mode.REMOVE_BROKERS: "removing broker",
    Mode.DEMOTE_BROKERS: "demoting broker",
    Mode.FIX_OFFLINE_REPLICAS: "fixing offline replicas",
    Mode.REMOVE_DISKS: "removing disks",
}


def describe_load_after(request: RebalanceRequest) -> str:
    """The heading of the load after an operation."""
    brokers = f" {_list(request.brokers)}" if request.brokers else ""
    return f"Cluster load after {_AFTER[request.mode]}{brokers}:"


def render_optimization(body: dict[str, Any], *, load_after: str) -> str:
    summary = body["summary"]
    counts = body["goalSummary"][0]["clusterModelStats"]["metadata"] if body["goalSummary"] else {}
    lines = [
        "",
        "",
        (
            f"Optimization has {summary['numReplicaMovements']} inter-broker replica({summary['dataToMoveMB']} MB) "
            f"moves, {summary['numIntraBrokerReplicaMovements']} intra-broker "
            f"replica({summary['intraBrokerDataToMoveMB']} MB) moves and "
            f"{summary['numLeaderMovements']} leadership moves with a cluster model of "
            f"{summary['recentWindows']} recent windows and {summary['monitoredPartitionsPercentage']:.3f}% of the "
            "partitions covered."
        ),
        (
            f"Least possible: {summary['leastReplicaMovements']} replicas with "
            f"{_format_mb(summary['leastBytesToMove'])}; this plan moves {summary['numReplicasToMove']} with "
            f"{_format_mb(summary['dataToMoveBytes'])} (in bytes; above, partitions and their whole MB are counted)."
        ),
        f"Excluded Topics: {_list(summary['excludedTopics'])}.",
        f"Excluded Brokers For Leadership: {_list(summary['excludedBrokersForLeadership'])}.",
        f"Excluded Brokers For Replica Move: {_list(summary['excludedBrokersForReplicaMove'])}.",
        (
            f"Counts: {counts.get('brokers', 0)} brokers {counts.get('replicas', 0)} replicas "
            f"{counts.get('topics', 0)} topics."
        ),
        (
            f"On-demand Balancedness Score Before ({summary['onDemandBalancednessScoreBefore']:.3f}) "
            f"After({summary['onDemandBalancednessScoreAfter']:.3f})."
        ),
        f"Provision Status: {summary['provisionStatus']}.",
    ]
    if summary["provisionRecommendation"]:
        lines.append(f"Provision Recommendation: {summary['provisionRecommendation']}")
    lines += [f"Held: {reason}." for reason in summary["held"]]
    for goal in body["goalSummary"]:
        lines += ["", *_render_goal(goal)]
    if "loadBeforeOptimization" in body:
        lines += ["", "Current load:", render_load(body["loadBeforeOptimization"])]
    lines += ["", load_after, render_load(body["loadAfterOptimization"])]
    return "\n".join(lines)


def _format_mb(size: int) -> str:
    """Bytes in Cruise Control's unit, which is a MiB."""
    return f"{size / MIB:.1f} MB"


def _render_goal(goal: dict[str, Any]) -> list[str]:
    reason = f" {goal['reason']}" if "reason" in goal else ""
    lines = [f"[{goal['optimizationTimeMs']:6d} ms] Stats for {goal['goal']}({goal['status']}):{reason}"]
    statistics = goal["clusterModelStats"]["statistics"]
    for name in ("AVG", "MAX", "MIN", "STD"):
        row = statistics[name]
        numbers = " ".join(
            f"{key}:{row[key]:12.3f}" for key in ("cpu", "networkInbound", "networkOutbound", "disk", "potentialNwOut")
        )
        is_count = name in {"MAX", "MIN"}
        counts = " ".join(
            f"{key}:{int(row[key]) if is_count else row[key]}"
            for key in ("replicas", "leaderReplicas", "topicReplicas")
        )
        lines.append(f"{name}:{{{numbers} {counts}}}")
    return lines


def render_load(body: dict[str, Any]) -> str:
    width = max([len("HOST"), *(len(row["Host"]) for row in body["brokers"])]) + 1
    rack = max([len("RACK"), *(len(row["Rack"]) for row in body["brokers"])]) + 1
    head = (
        f"{'HOST':>{width}}{'BROKER':>15}{'RACK':>{rack + 2}}{'DISK_CAP(MB)':>21}{'DISK(MB)/_(%)_':>26}{'CORE_NUM':>20}"
        f"{'CPU(%)':>15}{'NW_IN_CAP(KB/s)':>25}{'LEADER_NW_IN(KB/s)':>25}{'FOLLOWER_NW_IN(KB/s)':>25}"
        f"{'NW_OUT_CAP(KB/s)':>25}{'NW_OUT(KB/s)':>20}{'PNW_OUT(KB/s)':>20}{'LEADERS/REPLICAS':>20}"
    )
    rows = [
        f"{row['Host'] + ',':>{width}}{row['Broker']:>14},{row['Rack'] + ',':>{rack + 2}}"
        f"{row['DiskCapacityMB']:>20.3f},"
        f"{row['DiskMB']:>19.3f}/{row['DiskPct']:05.2f},{row['NumCore']:>19g},{row['CpuPct']:>14.3f},"
        f"{row['NetworkInCapacity']:>24.3f},{row['LeaderNwInRate']:>24.3f},{row['FollowerNwInRate']:>24.3f},"
        f"{row['NetworkOutCapacity']:>24.3f},{row['NwOutRate']:>19.3f},{row['PnwOutRate']:>19.3f},"
        f"{row['Leaders']:>15}/{row['Replicas']}"
        for row in body["brokers"]
    ]
    return "\n".join(["", "", head, *rows, ""])


def render_partition_load(body: dict[str, Any]) -> str:
    head = (
        f"{'PARTITION':>47}{'LEADER':>10}{'FOLLOWERS':>30}{'CPU (%_CORES)':>20}{'DISK (MB)':>20}{'NW_IN (KB/s)':>20}"
        f"{'NW_OUT (KB/s)':>20}{'MSG_IN (#/s)':>20}"
    )
    rows = [
        f"{row['topic']}-{row['partition']}".rjust(47)
        + f"{row['leader']:>10}{row['followers']!s:>30}{row['cpu']:>20.6f}{row['disk']:>20.3f}"
        f"{row['networkInbound']:>20.3f}{row['networkOutbound']:>20.3f}{row['msg_in']:>20.3f}"
        for row in body["records"]
    ]
    return "\n".join([head, *rows, ""])


def render_cluster_state(body: dict[str, Any]) -> str:
    brokers, partitions = body["KafkaBrokerState"], body["KafkaPartitionState"]
    summary = brokers["Summary"]
    lines = [
        (
            f"Summary: The cluster has {summary['Brokers']} brokers, {summary['Replicas']} replicas, "
            f"{summary['Leaders']} leaders, and {summary['Topics']} topics with avg replication factor: "
            f"{summary['AvgReplicationFactor']:.2f}. [Leaders/Replicas per broker] avg: "
            f"{summary['AvgLeadersPerBroker']:.2f}/{summary['AvgReplicasPerBroker']:.2f} max: "
            f"{summary['MaxLeadersPerBroker']}/{summary['MaxReplicasPerBroker']} std: "
            f"{summary['StdLeadersPerBroker']:.2f}/{summary['StdReplicasPerBroker']:.2f}"
        ),
        "",
        "Brokers:",
        "".join(
            f"{name:>20}"
            for name in ("BROKER", "LEADER(S)", "REPLICAS", "OUT-OF-SYNC", "OFFLINE", "IS_CONTROLLER", "BROKER_SET")
        ),
    ]
    lines += [
        f"{broker:>20}{brokers['LeaderCountByBrokerId'][broker]:>20}{replicas:>20}"
        f"{brokers['OutOfSyncCountByBrokerId'].get(broker, 0):>20}"
        f"{brokers['OfflineReplicaCountByBrokerId'].get(broker, 0):>20}"
        f"{'true' if brokers['IsController'][broker] else 'false':>20}{'null':>20}"
        for broker, replicas in brokers["ReplicaCountByBrokerId"].items()
    ]
    lines += ["", "LogDirs of brokers with replicas:", f"{'BROKER':>20}{'ONLINE-LOGDIRS':>45}{'OFFLINE-LOGDIRS':>17}"]
    lines += [
        f"{broker:>20}{_list(online):>45}{_list(brokers['OfflineLogDirsByBrokerId'][broker]):>17}"
        for broker, online in brokers["OnlineLogDirsByBrokerId"].items()
    ]
    lines += ["", "Under Replicated, Offline, and Under MinIsr Partitions:", _render_partition_head()]
    for title, key in (
        ("Offline Partitions", "offline"),
        ("Partitions with Offline Replicas", "with-offline-replicas"),
        ("Under Replicated Partitions", "urp"),
        ("Under MinIsr Partitions", "under-min-isr"),
        ("Other Partitions", "other"),
    ):
        if key in partitions:
            lines += [f"{title}:", *(_render_partition(row) for row in partitions[key])]
    return "\n".join([*lines, ""])


def _render_partition_head() -> str:
    return (
        f"{'TOPIC':>25}{'PARTITION':>10}{'LEADER':>10}{'REPLICAS':>30}{'IN-SYNC':>30}{'OUT-OF-SYNC':>25}"
        f"{'OFFLINE':>25}{'MIN-ISR':>10}"
    )


def _render_partition(row: dict[str, Any]) -> str:
    return (
        f"{row['topic']:>25}{row['partition']:>10}{row['leader']:>10}{row['replicas']!s:>30}{row['in-sync']!s:>30}"
        f"{row['out-of-sync']!s:>25}{row['offline']!s:>25}{row['min-isr']:>10}"
    )


def render_state(body: dict[str, Any]) -> str:
    lines = []
    if monitor := body.get("MonitorState"):
        lines.append(
            f"MonitorState: {{state: {monitor['state']}({monitor['trainingPct']:.3f}% trained), NumValidWindows: "
            f"({monitor['numMonitoredWindows']}/{monitor['numMonitoredWindows']}) (100.000%), NumValidPartitions: "
            f"{monitor['numValidPartitions']}/{monitor['numTotalPartitions']} "
            f"({monitor['monitoringCoveragePct']:.3f}%), flawedPartitions: {monitor['numFlawedPartitions']}}}"
        )
    if executor := body.get("ExecutorState"):
        lines.append(f"ExecutorState: {{{_render_executor(executor)}}}")
    if analyzer := body.get("AnalyzerState"):
        ready = "true" if analyzer["isProposalReady"] else "false"
        lines.append(f"AnalyzerState: {{isProposalReady: {ready}, readyGoals: {_list(analyzer['readyGoals'])}}}")
    if anomalies := body.get("AnomalyDetectorState"):
        lines.append(f"AnomalyDetectorState: {{{_render_anomalies(anomalies)}}}")
    return "\n".join([*lines, "", ""])


def _render_anomalies(anomalies: dict[str, Any]) -> str:
    ratios = ", ".join(f"{name}={ratio}" for name, ratio in anomalies["selfHealingEnabledRatio"].items())
    metrics = anomalies["metrics"]
    between = metrics["meanTimeBetweenAnomaliesMs"]
    times = ", ".join(f"{name}:{between[name]:.2f} milliseconds" for name in _TIMED_ANOMALIES)
    return ", ".join(
        (
            f"selfHealingEnabled:{_list(anomalies['selfHealingEnabled'])}",
            f"selfHealingDisabled:{_list(anomalies['selfHealingDisabled'])}",
            f"selfHealingEnabledRatio:{{{ratios}}}",
            *(f"{name}:{_list(anomalies[name])}" for name in _RECENT),
            (
                f"metrics:{{meanTimeBetweenAnomalies:{{{times}}}, "
                f"meanTimeToStartFix:{metrics['meanTimeToStartFixMs']:.2f} milliseconds, "
                f"numSelfHealingStarted:{metrics['numSelfHealingStarted']}, "
                f"numSelfHealingFailedToStart:{metrics['numSelfHealingFailedToStart']}, "
                f"ongoingAnomalyDuration={metrics['ongoingAnomalyDurationMs']:.2f} milliseconds}}"
            ),
            "ongoingSelfHealingAnomaly:None",
            f"balancednessScore:{anomalies['balancednessScore']:.3f}",
        )
    )


def _render_executor(executor: dict[str, Any]) -> str:
    parts = [f"state: {executor['state']}"]
    if "numTotalPartitionMovements" in executor:
        total = executor["totalDataToMove"]
        finished = executor["finishedDataMovement"]
        parts += [
            (
                f"pending({executor['numPendingPartitionMovements']})/"
                f"in-progress({executor['numInProgressPartitionMovements']})/"
                f"aborting({executor['abortingPartitions']})/finished({executor['numFinishedPartitionMovements']})/"
                f"total({executor['numTotalPartitionMovements']}) inter-broker partition movements"
            ),
            f"completed({finished})/total({total}) bytes in MBs: {100.0 * finished / total if total else 100.0:.2f}%",
            (
                "max/min/avg concurrent inter-broker partition movements per-broker: "
                f"{executor['maximumConcurrentPartitionMovementsPerBroker']}/"
                f"{executor['minimumConcurrentPartitionMovementsPerBroker']}/"
                f"{executor['averageConcurrentPartitionMovementsPerBroker']:.2f}"
            ),
        ]
    if "numTotalLeadershipMovements" in executor:
        parts.append(
            f"finished({executor['numFinishedLeadershipMovements']})/"
            f"total({executor['numTotalLeadershipMovements']}) leadership movements"
        )
    parts += [f"{key}: {executor[key]}" for key in ("triggeredUserTaskId", "triggeredTaskReason") if key in executor]
    parts += [f"held: {reason}" for reason in executor.get("held", ())]
    return ", ".join(parts)


def render_user_tasks(body: dict[str, Any]) -> str:
    rows = [
        (
            task["UserTaskId"],
            task["ClientIdentity"],
            datetime.fromtimestamp(int(task["StartMs"]) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            task["Status"],
            task["RequestURL"],
        )
        for task in body["userTasks"]
    ]
    head = ("USER TASK ID", "CLIENT ADDRESS", "START TIME", "STATUS", "REQUEST URL")
    widths = [max(len(row[column]) for row in (head, *rows)) + 2 for column in range(len(head))]
    lines = ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "\n".join(["", *lines, ""])


def render_progress(body: dict[str, Any]) -> str:
    operation = body["progress"][0]
    steps = [
        f"({step['time-in-ms']} ms) {step['step']}: {step['description']}" for step in operation["operationProgress"]
    ]
    return "\n".join([f"{operation['operation']} is in progress:", *steps, ""])


def _list(names: Iterable[object]) -> str:
    return f"[{', '.join(str(name) for name in names)}]"

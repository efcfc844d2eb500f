"""The JSON bodies of state and user_tasks: executor, monitor, analyzer and anomaly detector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kafka.cruise_control.server.bodies import VERSION, build_proposal
from plimsoll.kafka.cruise_control.server.tasks import TaskStatus
from plimsoll.kafka.model.executions import ExecutorState, TaskState, TaskType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kafka.cruise_control.server.tasks import UserTask
    from plimsoll.kafka.model.cluster import ClusterModel
    from plimsoll.kafka.model.executions import ExecutionProgress, ExecutionTask

_ANOMALIES: Final = (
    "DISK_FAILURE",
    "BROKER_FAILURE",
    "GOAL_VIOLATION",
    "METRIC_ANOMALY",
    "TOPIC_ANOMALY",
    "MAINTENANCE_EVENT",
)


def build_executor_state(
    progress: ExecutionProgress, *, triggered_by: str, recently_removed: Iterable[int], verbose: bool
) -> dict[str, Any]:
    """`triggered_by` is the reason with client and date, as Cruise Control writes it."""
    state: dict[str, Any] = {"state": progress.state}
    if removed := sorted(recently_removed):
        state["recentlyRemovedBrokers"] = removed
    if progress.state is ExecutorState.NO_TASK_IN_PROGRESS:
        return state
    state |= {
        "triggeredUserTaskId": progress.execution_id,
        "triggeredSelfHealingTaskId": "",
        "triggeredTaskReason": triggered_by,
    }
    if progress.held:
        state["held"] = [str(reason) for reason in progress.held]
    state |= {"finishedDataMovement": progress.finished_bytes >> 20, "totalDataToMove": progress.total_bytes >> 20}
    match progress.state:
        case ExecutorState.INTER_BROKER_REPLICA_MOVEMENT:
            state |= _build_inter_broker(progress)
        case ExecutorState.INTRA_BROKER_REPLICA_MOVEMENT:
            state |= _build_intra_broker(progress)
        case ExecutorState.LEADER_MOVEMENT:
            state |= _build_leaders(progress)
        case ExecutorState.STOPPING_EXECUTION:
            state |= _build_stopping(progress)
        case _:
            pass
    return state | (_build_task_lists(progress) if verbose else {})


def _build_inter_broker(progress: ExecutionProgress) -> dict[str, Any]:
    counts = progress.inter_broker
    per_broker = progress.options.concurrent_partition_movements_per_broker
    return {
        "numTotalPartitionMovements": counts.total,
        "numFinishedPartitionMovements": counts.finished,
        "numInProgressPartitionMovements": counts.in_progress,
        "numPendingPartitionMovements": counts.pending,
        "abortingPartitions": counts.aborting,
        "maximumConcurrentPartitionMovementsPerBroker": per_broker,
        "minimumConcurrentPartitionMovementsPerBroker": per_broker,
        "averageConcurrentPartitionMovementsPerBroker": float(per_broker),
    }


def _build_intra_broker(progress: ExecutionProgress) -> dict[str, Any]:
    counts = progress.intra_broker
    return {
        "numTotalIntraBrokerPartitionMovements": counts.total,
        "numFinishedIntraBrokerPartitionMovements": counts.finished,
        "numInProgressIntraBrokerPartitionMovements": counts.in_progress,
        "numPendingIntraBrokerPartitionMovements": counts.pending,
        "numAbortingIntraBrokerPartitionMovements": counts.aborting,
        "maximumConcurrentIntraBrokerPartitionMovementsPerBroker": (
            progress.options.concurrent_intra_broker_partition_movements
        ),
    }


def _build_leaders(progress: ExecutionProgress) -> dict[str, Any]:
    counts, per_broker = progress.leaders, progress.options.broker_concurrent_leader_movements
    return {
        "numTotalLeadershipMovements": counts.total,
        "numFinishedLeadershipMovements": counts.finished,
        "numPendingLeadershipMovements": counts.pending,
        "clusterLeaderMovementConcurrency": progress.options.concurrent_leader_movements,
        "maximumBrokerLeaderMovementConcurrency": per_broker,
        "minimumBrokerLeaderMovementConcurrency": per_broker,
        "averageBrokerLeaderMovementConcurrency": float(per_broker),
    }


def _build_stopping(progress: ExecutionProgress) -> dict[str, Any]:
    options = progress.options
    return {
        "numCancelledPartitionMovements": progress.inter_broker.pending + progress.inter_broker.aborted,
        "numInProgressPartitionMovements": progress.inter_broker.in_progress,
        "abortingPartitions": progress.inter_broker.aborting,
        "numCancelledLeadershipMovements": progress.leaders.pending,
        "numCancelledIntraBrokerPartitionMovements": progress.intra_broker.pending + progress.intra_broker.aborted,
        "numInProgressIntraBrokerPartitionMovements": progress.intra_broker.in_progress,
        "numAbortingIntraBrokerPartitionMovements": progress.intra_broker.aborting,
        "maximumConcurrentPartitionMovementsPerBroker": options.concurrent_partition_movements_per_broker,
        "maximumConcurrentIntraBrokerPartitionMovementsPerBroker": options.concurrent_intra_broker_partition_movements,
        "clusterLeaderMovementConcurrency": options.concurrent_leader_movements,
        "maximumBrokerLeaderMovementConcurrency": options.broker_concurrent_leader_movements,
    }


_LISTS: Final = {
    "pending": TaskState.PENDING,
    "inProgress": TaskState.IN_PROGRESS,
    "aborting": TaskState.ABORTING,
    "aborted": TaskState.ABORTED,
    "dead": TaskState.DEAD,
    "completed": TaskState.COMPLETED,
}


def _build_task_lists(progress: ExecutionProgress) -> dict[str, Any]:
    wanted = {
        ExecutorState.INTER_BROKER_REPLICA_MOVEMENT: ("PartitionMovement", TaskType.INTER_BROKER_REPLICA_ACTION),
        ExecutorState.INTRA_BROKER_REPLICA_MOVEMENT: (
            "IntraBrokerPartitionMovement",
            TaskType.INTRA_BROKER_REPLICA_ACTION,
        ),
        ExecutorState.LEADER_MOVEMENT: ("LeadershipMovement", TaskType.LEADER_ACTION),
    }.get(progress.state)
    if wanted is None:
        return {}
    suffix, kind = wanted
    return {
        f"{name}{suffix}": [_build_task(task) for task in progress.tasks if task.type is kind and task.state is state]
        for name, state in _LISTS.items()
    }


def _build_task(task: ExecutionTask) -> dict[str, Any]:
    return {
        "executionId": task.id,
        "type": task.type,
        "state": task.state,
        "proposal": build_proposal(task.proposal),
    }


def build_monitor_state(
    model: ClusterModel | None, *, pause_reason: str, is_paused: bool, verbose: bool
) -> dict[str, Any]:
    """There are no sampling windows: the state of the cluster is read for every request."""
    total = model.partition_count if model is not None else 0
    valid = int(model.size_known.sum()) if model is not None else 0
    state = {
        "state": "PAUSED" if is_paused else "RUNNING",
        "trained": False,
        "trainingPct": 0.0,
        "numMonitoredWindows": 1 if model is not None else 0,
        "numValidPartitions": valid,
        "numTotalPartitions": total,
        "monitoringCoveragePct": 100.0 * valid / total if total else 0.0,
        "numFlawedPartitions": total - valid,
        "reasonOfLatestPauseOrResume": pause_reason,
    }
    return state | ({"monitoredWindows": {}} if verbose else {})


def build_analyzer_state(goals: Iterable[str], *, is_ready: bool, verbose: bool) -> dict[str, Any]:
    """`goals` are those that can be judged with the data there is."""
    ready = list(goals)
    state: dict[str, Any] = {"isProposalReady": is_ready, "readyGoals": ready}
    if verbose:
        requirement = {"includeAllTopics": True, "minMonitoredPartitionsPercentage": 0.0, "requiredNumSnapshots": 1}
        state["goalReadiness"] = [
            {"name": goal, "status": "ready", "modelCompleteRequirement": requirement} for goal in ready
        ]
    return state


def build_anomaly_state(balancedness: float) -> dict[str, Any]:
    """There is no self-healing: the operator decides."""
    zeros = dict.fromkeys(_ANOMALIES, 0.0)
    return {
        "selfHealingEnabled": [],
        "selfHealingDisabled": list(_ANOMALIES),
        "selfHealingEnabledRatio": zeros,
        "recentGoalViolations": [],
        "recentBrokerFailures": [],
        "recentDiskFailures": [],
        "recentMetricAnomalies": [],
        "recentTopicAnomalies": [],
        "recentMaintenanceEvents": [],
        "metrics": {
            "meanTimeBetweenAnomaliesMs": zeros,
            "meanTimeToStartFixMs": 0.0,
            "numSelfHealingStarted": 0,
            "numSelfHealingFailedToStart": 0,
            "ongoingAnomalyDurationMs": 0,
        },
        "balancednessScore": balancedness,
    }


def build_user_tasks(tasks: Iterable[UserTask], *, fetches_answers: bool) -> dict[str, Any]:
    listed = []
    for task in tasks:
        row = {
            "UserTaskId": task.id,
            "RequestURL": task.url,
            "ClientIdentity": task.client,
            "StartMs": str(int(task.started_at_s * 1000)),
            "Status": task.status,
        }
        if fetches_answers and task.answer is not None and task.status is not TaskStatus.ACTIVE:
            row["originalResponse"] = task.answer.body.decode()
        listed.append(row)
    return {"userTasks": listed, "version": VERSION}


def build_progress(task: UserTask, *, now_s: float) -> dict[str, Any]:
    """The body of status 202: the steps of an operation, each with its time."""
    ends = [step.at_s for step in task.steps[1:]] + [now_s]
    steps = [
        {
            "step": step.name,
            "description": step.description,
            "time-in-ms": int(1000 * (end - step.at_s)),
            "completionPercentage": 100.0 if index + 1 < len(task.steps) else 0.0,
        }
        for index, (step, end) in enumerate(zip(task.steps, ends, strict=True))
    ]
    return {"progress": [{"operation": task.endpoint.operation, "operationProgress": steps}], "version": VERSION}

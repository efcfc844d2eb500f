"""The status of a deployment: counts, availability, progress, failures. Pure.

Progress is found by comparing the new status with the stored one; times and the order of conditions are Kubernetes',
which drops a condition and appends it when it changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.durations import add_seconds
from plimsoll.local.controller_manager.workloads.deployments.replica_counts import compute_max_unavailable, get_replicas
from plimsoll.local.controller_manager.workloads.replica_sets.plan import REPLICA_FAILURE
from plimsoll.objects.api.workloads import DeploymentCondition, DeploymentStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from plimsoll.objects.api.workloads import Deployment, ReplicaSet

    Conditions = tuple[DeploymentCondition, ...]

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
NEW_SET_AVAILABLE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
_NO_DEADLINE: Final = 2**31 - 1


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in {None, _NO_DEADLINE}


def find_condition(conditions: Conditions, type_: str) -> DeploymentCondition | None:
    return next(
        (deployment_condition for deployment_condition in conditions if deployment_condition.type == type_), None
    )


def put(conditions: Conditions, new: DeploymentCondition) -> Conditions:
    """With `new` at the end; unchanged if status and reason are the same. The transition is the status's alone."""
    current = find_condition(conditions, new.type)
    if current is not None and (current.status, current.reason) == (new.status, new.reason):
        return conditions
    if current is not None and current.status == new.status:
        new = msgspec.structs.replace(new, last_transition_time=current.last_transition_time)
    return (*remove_condition(conditions, new.type), new)


def remove_condition(conditions: Conditions, type_: str) -> Conditions:
    return tuple(deployment_condition for deployment_condition in conditions if deployment_condition.type != type_)


def build_progress_condition(status: str, reason: str, message: str, now: datetime) -> DeploymentCondition:
    return _build_condition(PROGRESSING, status, reason, message, now)


def count_replicas(
    deployment: Deployment, sets: Sequence[ReplicaSet], new: ReplicaSet | None, now: datetime
) -> DeploymentStatus:
    """The counts, and whether enough pods are available."""
    available = sum(replica_set.status.available_replicas for replica_set in sets)
    wanted = sum(get_replicas(replica_set) for replica_set in sets)
    is_enough = available >= get_replicas(deployment) - compute_max_unavailable(deployment)
    present_condition = (
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        if is_enough
        else ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(replica_set.status.replicas for replica_set in sets),
        updated_replicas=0 if new is None else new.status.replicas,
        ready_replicas=sum(replica_set.status.ready_replicas for replica_set in sets),
        available_replicas=available,
        unavailable_replicas=max(0, wanted - available),
        collision_count=deployment.status.collision_count,
        conditions=put(deployment.status.conditions, _build_condition(AVAILABLE, *present_condition, now)),
    )


def compute_rollout_status(
    deployment: Deployment, sets: Sequence[ReplicaSet], new: ReplicaSet | None, now: datetime
) -> DeploymentStatus:
    """The status while a rollout goes on or is over: with progress and failures."""
    status = count_replicas(deployment, sets, new, now)
    conditions = status.conditions
    if not has_deadline(deployment):
        conditions = remove_condition(conditions, PROGRESSING)
    elif not _was_complete(deployment, status):
        conditions = _update_progressing(deployment, status, new, now)
    failure = _find_failure(sets, new)
    conditions = remove_condition(conditions, REPLICA_FAILURE) if failure is None else put(conditions, failure)
    return msgspec.structs.replace(status, conditions=conditions)


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    wanted = get_replicas(deployment)
    counts = {status.updated_replicas, status.replicas, status.available_replicas}
    return counts == {wanted} and status.observed_generation >= deployment.metadata.generation


def compute_next_check_s(deployment: Deployment, status: DeploymentStatus, now: datetime) -> float | None:
    """When a rollout without progress is to be looked at again: a second after its deadline."""
    condition = find_condition(status.conditions, PROGRESSING)
    if not has_deadline(deployment) or condition is None or condition.last_update_time is None:
        return None
    if condition.reason in {TIMED_OUT, PAUSED} or is_complete(deployment, status):
        return None
    left_s = (condition.last_update_time - now).total_seconds() + (deployment.spec.progress_deadline_seconds or 0)
    return max(left_s, 0.0) + 1.0


def _build_condition(type_: str, status: str, reason: str, message: str, now: datetime) -> DeploymentCondition:
    moment = now.replace(microsecond=0)
    return DeploymentCondition(
        type=type_,
        status=status,
        last_update_time=moment,
        last_transition_time=moment,
        reason=reason,
        message=message,
    )


def _was_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """A rollout that ended well makes no further progress, whatever becomes of its pods."""
    present_condition = find_condition(deployment.status.conditions, PROGRESSING)
    return (
        status.replicas == status.updated_replicas
        and present_condition is not None
        and present_condition.reason == NEW_SET_AVAILABLE
    )


def _update_progressing(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: datetime
) -> Conditions:
    whose = f'Deployment "{deployment.metadata.name}"' if new is None else f'ReplicaSet "{new.metadata.name}"'
    conditions = status.conditions
    if is_complete(deployment, status):
        message = f"{whose} has successfully progressed."
        return put(conditions, build_progress_condition("True", NEW_SET_AVAILABLE, message, now))
    if _is_progress(deployment.status, status):
        condition = build_progress_condition("True", "ReplicaSetUpdated", f"{whose} is progressing.", now)
        present_condition = find_condition(deployment.status.conditions, PROGRESSING)
        if present_condition is not None and present_condition.status == "True":
            condition = msgspec.structs.replace(condition, last_transition_time=present_condition.last_transition_time)
        # Taken out first: its update time is what the deadline counts from, so it is written again each time.
        return put(remove_condition(conditions, PROGRESSING), condition)
    if _is_out_of_time(deployment, status, now):
        return put(conditions, build_progress_condition("False", TIMED_OUT, f"{whose} has timed out progressing.", now))
    return conditions


def _is_progress(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def _is_out_of_time(deployment: Deployment, status: DeploymentStatus, now: datetime) -> bool:
    condition = find_condition(status.conditions, PROGRESSING)
    if condition is None or condition.reason == NEW_SET_AVAILABLE or condition.last_update_time is None:
        return False
    deadline = add_seconds(condition.last_update_time, deployment.spec.progress_deadline_seconds or 0)
    return condition.reason == TIMED_OUT or deadline < now


def _find_failure(sets: Sequence[ReplicaSet], new: ReplicaSet | None) -> DeploymentCondition | None:
    """The first failure to make or delete pods; the new set's counts before the others'."""
    ordered = [*([] if new is None else [new]), *sets]
    found = (
        set_condition
        for owner in ordered
        for set_condition in owner.status.conditions
        if set_condition.type == REPLICA_FAILURE
    )
    condition = next(found, None)
    if condition is None:
        return None
    return DeploymentCondition(
        type=REPLICA_FAILURE,
        status=condition.status,
        last_update_time=condition.last_transition_time,
        last_transition_time=condition.last_transition_time,
        reason=condition.reason,
        message=condition.message,
    )

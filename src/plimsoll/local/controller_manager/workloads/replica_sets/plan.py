"""The plan and the status of a replica set. Pure.

plan = replica_plan(replica_set, pods, now)     # a number to create, or pods to delete
status = replica_status(replica_set, pods, now, failure=…)
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.kube.controlled_objects.pod_control import BURST
from plimsoll.kube.controlled_objects.pod_readiness import (
    compute_next_availability_s,
    is_available,
    select_active_pods,
)
from plimsoll.local.controller_manager.workloads.controlled_objects.deletion_order import choose_pods_to_delete
from plimsoll.objects.api.pods import (
    Pod,
    is_pod_ready,
)
from plimsoll.objects.api.workloads import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

REPLICA_FAILURE: Final = "ReplicaFailure"


class ReplicaPlan(Value):
    """So many pods to create, or these to delete: never both. At most `BURST` of either per reconciliation."""

    create: int = 0
    delete: tuple[Pod, ...] = ()


def get_desired_replicas(replica_set: ReplicaSet) -> int:
    """Absent means one; the server sets it, files may omit it."""
    replicas = replica_set.spec.replicas
    return 1 if replicas is None else replicas


def plan_replica_set(
    replica_set: ReplicaSet, pods: Sequence[Pod], now: datetime, *, related: Sequence[Pod] | None = None
) -> ReplicaPlan:
    """`pods` are the set's own; `related` those of all sets with the same owner, which are not to crowd on one node."""
    if replica_set.metadata.deletion_timestamp is not None:
        return ReplicaPlan()
    active = select_active_pods(pods)
    missing = get_desired_replicas(replica_set) - len(active)
    if missing >= 0:
        return ReplicaPlan(create=min(missing, BURST))
    surplus = min(-missing, BURST)
    return ReplicaPlan(
        delete=choose_pods_to_delete(active, surplus, related=active if related is None else related, now=now)
    )


class Failure(Value):
    """Why the last reconciliation could not create or delete pods."""

    message: str


def compute_replica_set_status(
    replica_set: ReplicaSet, pods: Sequence[Pod], now: datetime, *, failure: Failure | None = None
) -> ReplicaSetStatus:
    """The current status of the set. A reported failure keeps its first message."""
    active = select_active_pods(pods)
    ready = [pod for pod in active if is_pod_ready(pod)]
    min_ready_s = replica_set.spec.min_ready_seconds
    available = ready
    if min_ready_s:
        available = [pod for pod in ready if is_available(pod, min_ready_s=min_ready_s, now=now)]
    return ReplicaSetStatus(
        observed_generation=replica_set.metadata.generation,
        replicas=len(active),
        fully_labeled_replicas=_count_fully_labeled(active, replica_set.spec.template.metadata.labels),
        ready_replicas=len(ready),
        available_replicas=len(available),
        conditions=_build_conditions(replica_set, len(active), failure, now),
    )


def _count_fully_labeled(pods: Sequence[Pod], labels: dict[str, str]) -> int:
    """How many pods have all labels of the template. Nearly all have these and no others."""
    count = 0
    for pod in pods:
        theirs = pod.metadata.labels
        count += theirs == labels or labels.items() <= theirs.items()
    return count


def compute_next_look_s(replica_set: ReplicaSet, pods: Sequence[Pod], now: datetime) -> float | None:
    """When the status changes by itself: a pod has been ready for long enough."""
    if not replica_set.spec.min_ready_seconds:
        return None
    return compute_next_availability_s(
        select_active_pods(pods), min_ready_s=replica_set.spec.min_ready_seconds, now=now
    )


def _build_conditions(
    replica_set: ReplicaSet, active: int, failure: Failure | None, now: datetime
) -> tuple[ReplicaSetCondition, ...]:
    present_conditions = replica_set.status.conditions
    if failure is None:
        return tuple(set_condition for set_condition in present_conditions if set_condition.type != REPLICA_FAILURE)
    if any(set_condition.type == REPLICA_FAILURE for set_condition in present_conditions):
        return present_conditions
    is_short = active < get_desired_replicas(replica_set)
    condition = ReplicaSetCondition(
        type=REPLICA_FAILURE,
        status="True",
        last_transition_time=now.replace(microsecond=0),
        reason="FailedCreate" if is_short else "FailedDelete",
        message=failure.message,
    )
    return (*present_conditions, condition)

"""The plan and the status of a deployment. Pure.

    plan = rollout_plan(deployment, owned, now, new_name="web-5bb5df796c")

A plan is complete in itself: the controller creates the new set, changes and deletes sets in the given order, and
writes the status. Reconciliations follow each other as sets change, until a plan is empty.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.values import Value
from plimsoll.local.controller_manager.workloads.deployments.conditions import (
    PAUSED,
    PROGRESSING,
    TIMED_OUT,
    build_progress_condition,
    compute_next_check_s,
    compute_rollout_status,
    count_replicas,
    find_condition,
    has_deadline,
    is_complete,
    put,
)
from plimsoll.local.controller_manager.workloads.deployments.replica_counts import get_replicas, is_rolling
from plimsoll.local.controller_manager.workloads.deployments.revisions import (
    REVISION,
    OwnedSet,
    build_new_set_annotations,
    build_size_annotations,
    compute_next_revision,
    get_revision,
    select_surplus_history,
    split_new_and_old,
)
from plimsoll.local.controller_manager.workloads.deployments.scaling import (
    compute_first_size,
    compute_proportional_sizes,
    compute_rolling_sizes,
    is_scaling,
    recreate_sizes,
)
from plimsoll.objects.api.workloads import (
    Deployment,  # noqa: TC001
    DeploymentStatus,  # noqa: TC001
    ReplicaSet,  # noqa: TC001
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# How long a set that was just made may be silent before its deployment says that it has no pods.
_SILENCE: Final = timedelta(seconds=2)
_SILENCE_CHECK_S: Final = 1.0


class NewSet(Value):
    """A replica set to make."""

    name: str
    replicas: int
    annotations: dict[str, str]


class SetChange(Value):
    """What to change of a set; None and empty: leave it."""

    replica_set: ReplicaSet
    replicas: int | None = None
    annotations: dict[str, str] = {}
    min_ready_s: int | None = None


class RolloutPlan(Value):
    """The changes of one reconciliation. `status` None: do not write it yet."""

    create: NewSet | None = None
    changes: tuple[SetChange, ...] = ()
    remove: tuple[ReplicaSet, ...] = ()
    status: DeploymentStatus | None = None
    revision: str = ""
    """What the deployment's own revision annotation should say; empty: as it is."""
    look_again_s: float | None = None


def plan_rollout(
    deployment: Deployment,
    owned: Sequence[OwnedSet],
    now: datetime,
    *,
    new_name: str = "",
    old_pods_left: bool = False,
) -> RolloutPlan:
    """`new_name` is how a new set would be called; `old_pods_left`: pods of old sets are not all gone yet."""
    if deployment.metadata.deletion_timestamp is not None:
        new, _ = split_new_and_old(owned)
        return RolloutPlan(
            status=count_replicas(deployment, _list_views(owned), None if new is None else new.view, now)
        )
    deployment = _set_pause_condition(deployment, now)
    new, old = split_new_and_old(owned)
    if deployment.spec.paused or is_scaling(deployment, owned):
        remove = select_surplus_history(deployment, old) if deployment.spec.paused else []
        return _plan(
            deployment, owned, now, sizes=compute_proportional_sizes(deployment, new, old), remove=remove, rolls=False
        )
    if is_rolling(deployment):
        sizes = {} if new is None else compute_rolling_sizes(deployment, new, old)
    else:
        sizes = recreate_sizes(old)
        if not sizes and (old_pods_left or any(owned_set.view.status.replicas for owned_set in old)):
            return _plan(deployment, owned, now, sizes={})
        if not sizes and new is not None and get_replicas(new.view) != get_replicas(deployment):
            sizes = {new.name: get_replicas(deployment)}
    if new is None and (is_rolling(deployment) or not sizes):
        return _plan_creation(deployment, old, now, new_name)
    is_over = not sizes and is_complete(deployment, deployment.status)
    return _plan(deployment, owned, now, sizes=sizes, remove=select_surplus_history(deployment, old) if is_over else [])


def build_creation_failed_status(deployment: Deployment, name: str, problem: str, now: datetime) -> DeploymentStatus:
    """The status after a set could not be made."""
    condition = build_progress_condition("False", "ReplicaSetCreateError", format_creation_problem(name, problem), now)
    conditions = put(deployment.status.conditions, condition) if has_deadline(deployment) else ()
    return msgspec.structs.replace(deployment.status, conditions=conditions or deployment.status.conditions)


def format_creation_problem(name: str, problem: str) -> str:
    return f'Failed to create new replica set "{name}": {problem}'


def _plan_creation(deployment: Deployment, old: Sequence[OwnedSet], now: datetime, name: str) -> RolloutPlan:
    conditions = deployment.status.conditions
    if has_deadline(deployment):
        condition = build_progress_condition("True", "NewReplicaSetCreated", f'Created new replica set "{name}"', now)
        conditions = put(conditions, condition)
    annotations = build_new_set_annotations(deployment, old, None)
    return RolloutPlan(
        create=NewSet(name=name, replicas=compute_first_size(deployment, old), annotations=annotations),
        status=msgspec.structs.replace(deployment.status, conditions=conditions),
        revision=str(compute_next_revision(old)),
    )


def _plan(
    deployment: Deployment,
    owned: Sequence[OwnedSet],
    now: datetime,
    *,
    sizes: Mapping[str, int],
    remove: Sequence[OwnedSet] = (),
    rolls: bool = True,
) -> RolloutPlan:
    """The sets as they will be, and their status. `rolls`: progress is reported too."""
    new, old = split_new_and_old(owned)
    changes = _changes(deployment, new, old, sizes)
    revision = ""
    if new is not None:
        revision = str(max(get_revision(new.view), compute_next_revision(old)))
        deployment = _record_new_set_found(deployment, new, now)
    views = [_resize(owned_set.view, sizes) for owned_set in (*old, *([] if new is None else [new]))]
    new_view = None if new is None else views[-1]
    build_status = compute_rollout_status if rolls else count_replicas
    status = build_status(deployment, views, new_view, now)
    if new is not None and _is_silent(new.view, now):
        # Written now, the status would say "no pods", and the first pod would look like progress.
        return RolloutPlan(changes=changes, revision=revision, look_again_s=_SILENCE_CHECK_S)
    return RolloutPlan(
        changes=changes,
        remove=tuple(owned_set.view for owned_set in remove),
        status=status,
        revision=revision if revision != deployment.metadata.annotations.get(REVISION) else "",
        look_again_s=compute_next_check_s(deployment, status, now) if rolls else None,
    )


def _changes(
    deployment: Deployment, new: OwnedSet | None, old: Sequence[OwnedSet], sizes: Mapping[str, int]
) -> tuple[SetChange, ...]:
    found = {owned.name: owned.view for owned in (*old, *([] if new is None else [new]))}
    order = [*sizes, *([new.name] if new is not None and new.name not in sizes else [])]
    changes = [
        _change(deployment, found[name], sizes, old if new is not None and name == new.name else None) for name in order
    ]
    return tuple(set_change for set_change in changes if set_change is not None)


def _change(
    deployment: Deployment, replica_set: ReplicaSet, sizes: Mapping[str, int], old: Sequence[OwnedSet] | None
) -> SetChange | None:
    """`old` is given for the new set: it carries the deployment's annotations, the revision and `minReadySeconds`."""
    annotations: dict[str, str] = {}
    min_ready_s = None
    name = replica_set.metadata.name
    if old is not None:
        annotations |= build_new_set_annotations(deployment, old, replica_set)
        if replica_set.spec.min_ready_seconds != deployment.spec.min_ready_seconds:
            min_ready_s = deployment.spec.min_ready_seconds
    replicas = None
    if name in sizes:
        present = replica_set.metadata.annotations
        annotations |= {
            key: text for key, text in build_size_annotations(deployment).items() if present.get(key) != text
        }
        replicas = sizes[name] if sizes[name] != get_replicas(replica_set) else None
    if replicas is None and not annotations and min_ready_s is None:
        return None
    return SetChange(replica_set=replica_set, replicas=replicas, annotations=annotations, min_ready_s=min_ready_s)


def _set_pause_condition(deployment: Deployment, now: datetime) -> Deployment:
    """The Progressing condition reports a pause; a missed deadline stays."""
    present_condition = find_condition(deployment.status.conditions, PROGRESSING)
    if not has_deadline(deployment) or (present_condition is not None and present_condition.reason == TIMED_OUT):
        return deployment
    is_paused_condition = present_condition is not None and present_condition.reason == PAUSED
    if deployment.spec.paused and not is_paused_condition:
        return _set_progress(deployment, "Unknown", PAUSED, "Deployment is paused", now)
    if not deployment.spec.paused and is_paused_condition:
        return _set_progress(deployment, "Unknown", "DeploymentResumed", "Deployment is resumed", now)
    return deployment


def _record_new_set_found(deployment: Deployment, new: OwnedSet, now: datetime) -> Deployment:
    if not has_deadline(deployment) or find_condition(deployment.status.conditions, PROGRESSING) is not None:
        return deployment
    return _set_progress(deployment, "True", "FoundNewReplicaSet", f'Found new replica set "{new.name}"', now)


def _set_progress(deployment: Deployment, status: str, reason: str, message: str, now: datetime) -> Deployment:
    conditions = put(deployment.status.conditions, build_progress_condition(status, reason, message, now))
    new_status = msgspec.structs.replace(deployment.status, conditions=conditions)
    return msgspec.structs.replace(deployment, status=new_status)


def _is_silent(new: ReplicaSet, now: datetime) -> bool:
    made = new.metadata.creation_timestamp
    return new.status.observed_generation == 0 and made is not None and now - made < _SILENCE


def _resize(replica_set: ReplicaSet, sizes: Mapping[str, int]) -> ReplicaSet:
    size = sizes.get(replica_set.metadata.name)
    if size is None:
        return replica_set
    return msgspec.structs.replace(replica_set, spec=msgspec.structs.replace(replica_set.spec, replicas=size))


def _list_views(owned: Sequence[OwnedSet]) -> list[ReplicaSet]:
    return [owned_set.view for owned_set in owned]

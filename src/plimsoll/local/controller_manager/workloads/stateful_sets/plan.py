"""The plan and the status of a stateful set. Pure.

An ordered set does one thing at a time: the lowest ordinal that is missing or unhealthy decides; only when all are
healthy is the highest surplus one deleted, and after that the highest one of an old revision. A parallel set does not
wait between pods when it scales, but updates in the same order.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.kube.controlled_objects.pod_readiness import is_available
from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import REVISION_LABEL
from plimsoll.local.controller_manager.workloads.stateful_sets.identity import (
    Ordinals,
    get_desired_ordinals,
    has_identity,
    parse_ordinal,
)
from plimsoll.objects.api.pods import (
    Pod,
    is_pod_ready,
)
from plimsoll.objects.api.workloads import StatefulSet, StatefulSetStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ON_DELETE: Final = "OnDelete"


class StatefulSetView(Value):
    """A stateful set and its pods at one moment, with the names of the revisions it comes from and goes to."""

    stateful_set: StatefulSet
    pods: tuple[Pod, ...]
    current: str
    update: str
    now: datetime
    collisions: int = 0

    @property
    def is_ordered(self) -> bool:
        return self.stateful_set.spec.pod_management_policy != "Parallel"


class StatefulSetPlan(Value):
    """Ordinals without a pod, pods to delete, pods to label again, pods whose claims may be missing."""

    create: tuple[int, ...] = ()
    delete: tuple[Pod, ...] = ()
    relabel: tuple[Pod, ...] = ()
    pending: tuple[int, ...] = ()


def plan_stateful_set(view: StatefulSetView) -> StatefulSetPlan:
    if view.stateful_set.metadata.deletion_timestamp is not None:
        return StatefulSetPlan()
    pods = index_pods_by_ordinal(view)
    wanted = get_desired_ordinals(view.stateful_set)
    work = _Work()
    is_settled = _plan_desired_pods(view, pods, wanted, work)
    if is_settled or not view.is_ordered:
        is_settled = _scale_down(view, pods, wanted, work) and is_settled
    if is_settled and not work.delete and not work.create:
        _plan_update(view, pods, wanted, work)
    return StatefulSetPlan(
        create=tuple(work.create),
        delete=tuple(work.delete),
        relabel=tuple(work.relabel),
        pending=tuple(work.pending),
    )


def compute_stateful_set_status(view: StatefulSetView) -> StatefulSetStatus:
    """The status of the set now."""
    stateful_set = view.stateful_set
    ready = [pod for pod in view.pods if _is_running_and_ready(pod)]
    staying = [pod for pod in view.pods if not _is_leaving(pod)]
    current, updated = _count_revision(staying, view.current), _count_revision(staying, view.update)
    revision = view.current
    is_rolling = stateful_set.spec.update_strategy.type != _ON_DELETE
    if is_rolling and updated == len(view.pods) == len(ready):
        current, revision = updated, view.update
    return StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=len(view.pods),
        ready_replicas=len(ready),
        current_replicas=current,
        updated_replicas=updated,
        available_replicas=sum(_is_available(view, pod) for pod in ready),
        current_revision=revision,
        update_revision=view.update,
        collision_count=view.collisions,
        conditions=stateful_set.status.conditions,
    )


def choose_revision(view: StatefulSetView, ordinal: int) -> str:
    """The revision of a missing pod: below the partition it is the previous one."""
    strategy = view.stateful_set.spec.update_strategy
    start = get_desired_ordinals(view.stateful_set).start
    if strategy.type == _ON_DELETE:
        return view.update
    if strategy.rolling_update is None:
        kept = view.stateful_set.status.current_replicas
    else:
        kept = strategy.rolling_update.partition
    return view.current if ordinal < start + kept else view.update


def index_pods_by_ordinal(view: StatefulSetView) -> dict[int, Pod]:
    found = ((parse_ordinal(pod, view.stateful_set.metadata), pod) for pod in view.pods)
    return {ordinal: pod for ordinal, pod in found if ordinal is not None}


class _Work:
    """The parts of a plan that is being built."""

    def __init__(self) -> None:
        self.create: list[int] = []
        self.delete: list[Pod] = []
        self.relabel: list[Pod] = []
        self.pending: list[int] = []


def _plan_desired_pods(view: StatefulSetView, pods: dict[int, Pod], wanted: Ordinals, work: _Work) -> bool:
    """Plan the desired pods; returns whether an ordered set may continue with other steps."""
    for ordinal in range(wanted.start, wanted.end):
        pod = pods.get(ordinal)
        is_well = _plan_desired_pod(view, ordinal, pod, work)
        if view.is_ordered and not is_well:
            return False
    return True


def _plan_desired_pod(view: StatefulSetView, ordinal: int, pod: Pod | None, work: _Work) -> bool:
    if pod is None:
        work.create.append(ordinal)
        return False
    if pod.status.phase in {"Failed", "Succeeded"}:
        if not _is_leaving(pod):
            work.delete.append(pod)
        return False
    if pod.status.phase in {"", "Pending"}:
        work.pending.append(ordinal)
    if _is_leaving(pod) or not _is_running_and_ready(pod) or not _is_available(view, pod):
        return False
    if not has_identity(pod, view.stateful_set.metadata, ordinal):
        work.relabel.append(pod)
    return True


def _scale_down(view: StatefulSetView, pods: dict[int, Pod], wanted: Ordinals, work: _Work) -> bool:
    """Delete surplus pods from the top; an ordered set waits for each. Returns whether nothing is left to do."""
    condemned = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in wanted]
    if not view.is_ordered:
        work.delete += [pod for pod in condemned if not _is_leaving(pod)]
        return True
    if not condemned:
        return True
    first = condemned[0]
    lowest_unhealthy = next((pod for pod in reversed(condemned) if _is_unhealthy(view, pod)), None)
    if not _is_leaving(first) and (not _is_unhealthy(view, first) or first is lowest_unhealthy):
        work.delete.append(first)
    return False


def _plan_update(view: StatefulSetView, pods: dict[int, Pod], wanted: Ordinals, work: _Work) -> None:
    """Delete the highest pod of another revision, if all pods above it are healthy."""
    strategy = view.stateful_set.spec.update_strategy
    if strategy.type == _ON_DELETE:
        return
    partition = 0 if strategy.rolling_update is None else strategy.rolling_update.partition
    for ordinal in range(wanted.end - 1, wanted.start + partition - 1, -1):
        pod = pods.get(ordinal)
        if pod is None:
            return
        if pod.metadata.labels.get(REVISION_LABEL) != view.update and not _is_leaving(pod):
            work.delete.append(pod)
            return
        if _is_unhealthy(view, pod):
            return


def _count_revision(pods: Sequence[Pod] | Iterable[Pod], revision: str) -> int:
    return sum(pod.metadata.labels.get(REVISION_LABEL) == revision for pod in pods)


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _is_running_and_ready(pod: Pod) -> bool:
    return pod.status.phase == "Running" and is_pod_ready(pod)


def _is_available(view: StatefulSetView, pod: Pod) -> bool:
    min_ready_s = view.stateful_set.spec.min_ready_seconds
    return _is_running_and_ready(pod) and is_available(pod, min_ready_s=min_ready_s, now=view.now)


def _is_unhealthy(view: StatefulSetView, pod: Pod) -> bool:
    return _is_leaving(pod) or not _is_available(view, pod)

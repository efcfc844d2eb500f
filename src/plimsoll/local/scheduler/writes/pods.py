"""The scheduler's writes: conditions, nominations, deletions of victims, bindings.

Every write names the uid it is meant for; a pod that is gone or was recreated is an outcome, not an error. Conditions
are strategic merge patches, as kube-scheduler sends them, so that those of others stay and managed fields are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import PlimsollError, Unreachable
from plimsoll.core.values import Value
from plimsoll.kube.errors import Conflict, NotFound, ServerFailed
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client

POD_SCHEDULED: Final = "PodScheduled"
SCHEDULER_ERROR: Final = "SchedulerError"
_DISRUPTION_TARGET: Final = "DisruptionTarget"
_PREEMPTION: Final = "PreemptionByScheduler"


class Bound(Value, frozen=True):
    """The pod is on its node."""


class BindRejected(Value, frozen=True):
    """The pod is gone, or already has a node."""


class BindFailed(Value, frozen=True):
    """The server did not take it; the pod is still waiting."""

    problem: str


def build_failure_patch(
    pod: Pod, *, reason: str, message: str, nomination: str | None, now: datetime
) -> dict[str, Any] | None:
    """The patch that reports a scheduling failure; None if it is up to date. `nomination` None: unchanged."""
    status: dict[str, Any] = {}
    before = next((condition for condition in pod.status.conditions if condition.type == POD_SCHEDULED), None)
    if before is None or (before.status, before.reason, before.message) != ("False", reason, message):
        since = before.last_transition_time if before is not None and before.status == "False" else None
        status["conditions"] = [
            _build_condition(pod, POD_SCHEDULED, "False", reason=reason, message=message, since=since or now)
        ]
    if nomination is not None and nomination != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nomination or None
    return {"metadata": {"uid": pod.metadata.uid}, "status": status} if status else None


def build_disruption_patch(victim: Pod, *, scheduler: str, now: datetime) -> dict[str, Any] | None:
    """The patch with the DisruptionTarget condition of a victim; None if it has it."""
    if any(
        pod_condition.type == _DISRUPTION_TARGET
        and pod_condition.status == "True"
        and pod_condition.reason == _PREEMPTION
        for pod_condition in victim.status.conditions
    ):
        return None
    message = f"{scheduler}: preempting to accommodate a higher priority pod"
    condition = _build_condition(victim, _DISRUPTION_TARGET, "True", reason=_PREEMPTION, message=message, since=now)
    return {"metadata": {"uid": victim.metadata.uid}, "status": {"conditions": [condition]}}


def _build_condition(
    pod: Pod, type_: str, status: str, *, reason: str, message: str, since: datetime
) -> dict[str, Any]:
    condition: dict[str, Any] = {
        "type": type_,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": format_time(since),
        "reason": reason,
        "message": message,
    }
    generation = pod.metadata.generation
    return {**condition, "observedGeneration": generation} if generation else condition


class PodWrites:
    """Writes in the scheduler's name."""

    def __init__(self, client: Client, *, clock: Clock, scheduler: str) -> None:
        self._client = client
        self._clock = clock
        self._scheduler = scheduler

    async def record_failure(self, pod: Pod, *, reason: str, message: str, nomination: str | None) -> None:
        now = self._clock.now()
        patch = build_failure_patch(pod, reason=reason, message=message, nomination=nomination, now=now)
        if patch is not None:
            await self._patch(pod, patch)

    async def clear_nomination(self, pod: Pod) -> None:
        await self._patch(pod, {"metadata": {"uid": pod.metadata.uid}, "status": {"nominatedNodeName": None}})

    async def delete_victim(self, victim: Pod) -> bool:
        """Mark and delete a pod; gives whether it was there."""
        if victim.metadata.deletion_timestamp is not None:
            return False
        patch = build_disruption_patch(victim, scheduler=self._scheduler, now=self._clock.now())
        if patch is not None and not await self._patch(victim, patch):
            return False
        meta = victim.metadata
        try:
            await self._client.delete(Pod, meta.name, namespace=meta.namespace, options=DeleteOptions(uid=meta.uid))
        except (NotFound, Conflict):
            return False
        return True

    async def bind(self, pod: Pod, node: str) -> Bound | BindRejected | BindFailed:
        meta = pod.metadata
        try:
            await self._client.bind(meta.name, node, namespace=meta.namespace, uid=meta.uid)
        except NotFound:
            return BindRejected()
        except (Conflict, ServerFailed, Unreachable) as error:
            # Whether it was done is only known to the server now: by us, with the response lost, or by another writer.
            return await self._check_bound(pod, node, error)
        except PlimsollError as error:
            return BindFailed(problem=str(error))
        return Bound()

    async def _check_bound(self, pod: Pod, node: str, error: PlimsollError) -> Bound | BindRejected | BindFailed:
        meta = pod.metadata
        try:
            found: Pod = await self._client.get(Pod, meta.name, namespace=meta.namespace)
        except NotFound:
            return BindRejected()
        except PlimsollError:
            return BindFailed(problem=str(error))
        if found.metadata.uid != meta.uid:
            return BindRejected()
        if not found.spec.node_name:
            return BindFailed(problem=str(error))
        return Bound() if found.spec.node_name == node else BindRejected()

    async def _patch(self, pod: Pod, patch: dict[str, Any]) -> bool:
        meta = pod.metadata
        try:
            await self._client.patch_strategic(Pod, meta.name, patch, namespace=meta.namespace, subresource="status")
        except (NotFound, Conflict):
            return False
        return True

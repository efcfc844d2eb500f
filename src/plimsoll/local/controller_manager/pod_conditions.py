"""Conditions that the controllers write on pods before they act: node not ready, disruption target.

They are strategic merge patches on the status, which touch one condition and nothing else, and carry the pod's uid: a
later pod of the same name is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.pods import PodCondition


def find_pod_condition(pod: Pod, type_: str) -> PodCondition | None:
    return next((condition for condition in pod.status.conditions if condition.type == type_), None)


def is_finished(pod: Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"}


async def mark_not_ready(client: Client, pod: Pod, now: datetime) -> bool:
    """Its node does not report. False if the pod was gone."""
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(now)}
    return await _patch_status(client, pod, {"conditions": [condition]})


async def mark_disruption_target(
    client: Client, pod: Pod, now: datetime, *, reason: str, message: str, has_failed: bool = False
) -> bool:
    """Set the DisruptionTarget condition, and with `has_failed` the phase Failed. False: the pod was gone."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "observedGeneration": pod.metadata.generation,
        "lastTransitionTime": format_time(now),
    }
    known = find_pod_condition(pod, "DisruptionTarget")
    status: dict[str, Any] = {}
    if known is None or (known.status, known.reason, known.message) != ("True", reason, message):
        # A strategic patch puts what is new first, unless it says where: a real controller writes at the end.
        types = dict.fromkeys([*(item.type for item in pod.status.conditions), condition["type"]])
        status |= {"conditions": [condition], "$setElementOrder/conditions": [{"type": type_} for type_ in types]}
    if has_failed and not is_finished(pod):
        status |= {"phase": "Failed", "observedGeneration": pod.metadata.generation}
    return await _patch_status(client, pod, status) if status else True


async def _patch_status(client: Client, pod: Pod, status: dict[str, Any]) -> bool:
    metadata = pod.metadata
    body = {"metadata": {"uid": metadata.uid}, "status": status}
    try:
        await client.patch_strategic(Pod, metadata.name, body, namespace=metadata.namespace, subresource="status")
    except NotFound:
        return False
    except Conflict:
        # Only the uid can conflict: another pod has taken the name.
        return False
    return True

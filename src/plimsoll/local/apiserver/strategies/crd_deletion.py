"""The deletion mark of a CustomResourceDefinition: a finalizer holds it until its objects are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from datetime import datetime

Json = dict[str, Any]

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
TERMINATING: Final = "Terminating"


def is_definition(obj: Json) -> bool:
    return (obj.get("apiVersion"), obj.get("kind")) == ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def mark(old: Json, *, now: datetime) -> Json:
    metadata = dict(old["metadata"])
    if metadata.get("deletionTimestamp"):
        return old
    metadata["deletionTimestamp"] = format_time(now)
    finalizers = metadata.get("finalizers") or []
    metadata["finalizers"] = finalizers if CLEANUP in finalizers else [*finalizers, CLEANUP]
    pending = {
        "type": TERMINATING,
        "status": "True",
        "lastTransitionTime": format_time(now),
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }
    return {**old, "metadata": metadata, "status": set_condition(old.get("status") or {}, pending)}


def set_condition(status: Json, condition: Json) -> Json:
    """The status with a condition set; its time stays if its status does."""
    conditions = list(status.get("conditions") or [])
    for position, item in enumerate(conditions):
        if item.get("type") == condition["type"]:
            if item.get("status") == condition["status"]:
                condition = {**condition, "lastTransitionTime": item.get("lastTransitionTime")}
            conditions[position] = condition
            return {**status, "conditions": conditions}
    return {**status, "conditions": [*conditions, condition]}

"""Conditions that the server itself sets on pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from datetime import datetime

Json = dict[str, Any]

_SECONDS: Final = "%Y-%m-%dT%H:%M:%SZ"


def set_condition(pod: Json, kind: str, *, now: datetime, **fields: str) -> None:
    """Make the condition true, in its place or at the end; its time is that of the last change of its status."""
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    condition = {
        "type": kind,
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
        **fields,
    }
    for index, present in enumerate(conditions):
        if present.get("type") == kind:
            if present.get("status") == "True":
                condition["lastTransitionTime"] = present.get("lastTransitionTime")
            conditions[index] = condition
            return
    conditions.append(condition)


def is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)

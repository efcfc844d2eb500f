"""A condition of a status as JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from plimsoll.objects.api.meta import Condition


def to_json(condition: Condition) -> dict[str, Any]:
    """The condition as the API writes it. A time that is not set and a generation of 0 are left out."""
    written: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
    if condition.last_transition_time is not None:
        written["lastTransitionTime"] = format_time(condition.last_transition_time)
    if condition.observed_generation:
        written["observedGeneration"] = condition.observed_generation
    return written

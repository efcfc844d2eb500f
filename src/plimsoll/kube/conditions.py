"""Conditions of a status: as JSON, and when each of them last changed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from plimsoll.objects.api.meta import Condition

_TIME: Final = "lastTransitionTime"


def to_json(condition: Condition, *, omits_empty: bool = False) -> dict[str, Any]:
    """The condition as the API writes it. A time that is not set and a generation of 0 are left out.

    `omits_empty`: so are an empty reason and an empty message.
    """
    texts = {"reason": condition.reason, "message": condition.message}
    written: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        **{field: text for field, text in texts.items() if text or not omits_empty},
    }
    if condition.last_transition_time is not None:
        written[_TIME] = format_time(condition.last_transition_time)
    if condition.observed_generation:
        written["observedGeneration"] = condition.observed_generation
    return written


def list_conditions(stored: Any) -> list[dict[str, Any]]:
    """The conditions of a status as it was read. Other writers may have stored anything: only objects count."""
    return [condition for condition in stored if isinstance(condition, dict)] if isinstance(stored, list) else []


def set_transition_time(
    condition: Mapping[str, Any], before: Mapping[str, Any] | None, now: datetime
) -> dict[str, Any]:
    """The condition with the time of `before`, from which it did not change, or with now."""
    since = None if before is None else before.get(_TIME)
    return {**condition, _TIME: since if isinstance(since, str) and since else format_time(now)}


def find_unchanged(known: Iterable[Mapping[str, Any]], condition: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The known condition that differs from this one in nothing but its time."""
    return next((before for before in known if {**before, _TIME: None} == {**condition, _TIME: None}), None)

"""Validation of PriorityClasses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.builtin.validation.metadata import validate_unchanged
from plimsoll.objects.builtin.validation.pods import PREEMPTION_POLICIES
from plimsoll.objects.schema import field_errors as fe

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

HIGHEST_OF_USERS: Final = 1_000_000_000
_SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def validate_priority_class(obj: Json) -> list[FieldError]:
    name, value = obj.get("metadata", {}).get("name", ""), obj.get("value", 0)
    errors: list[FieldError] = []
    if name.startswith("system-"):
        problem = _find_system_problem(obj, name=name, value=value)
        if problem:
            detail = f"priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            errors.append(fe.forbidden("metadata.name", detail))
    elif value > HIGHEST_OF_USERS:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_OF_USERS}"
        errors.append(fe.forbidden("value", detail))
    if "preemptionPolicy" in obj:
        errors += fe.validate_choice("preemptionPolicy", obj["preemptionPolicy"], PREEMPTION_POLICIES)
    return errors


def _find_system_problem(obj: Json, *, name: str, value: int) -> str | None:
    if name not in _SYSTEM:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM[name]}"
    if obj.get("globalDefault"):
        return f"globalDefault of {name} PriorityClass must be false"
    return None


def validate_priority_class_update(new: Json, old: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.get("value", 0) != old.get("value", 0):
        errors.append(fe.forbidden("value", "may not be changed in an update."))
    return [*errors, *validate_unchanged("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))]

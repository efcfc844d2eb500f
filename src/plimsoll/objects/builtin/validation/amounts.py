"""Validation of counts and percentages, as workloads and budgets write them: `3` or `25%`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.builtin.validation.syntax import find_percent_problems
from plimsoll.objects.schema import field_errors as fe

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]
IntOrPercent = int | str

NOT_NEGATIVE: Final = "must be greater than or equal to 0"


def validate_not_negative(holder: Json, path: str, *fields: str) -> list[FieldError]:
    return [
        fe.invalid(f"{path}.{field}" if path else field, holder[field], NOT_NEGATIVE)
        for field in fields
        if holder.get(field, 0) < 0
    ]


def validate_count_or_percent(value: IntOrPercent, path: str) -> list[FieldError]:
    if isinstance(value, str):
        return [fe.invalid(path, value, problem) for problem in find_percent_problems(value)]
    return [fe.invalid(path, value, NOT_NEGATIVE)] if value < 0 else []


def validate_not_over_all(value: IntOrPercent, path: str) -> list[FieldError]:
    """More than 100% of anything."""
    if isinstance(value, str) and not find_percent_problems(value) and _parse_percent(value) > 100:
        return [fe.invalid(path, value, "must not be greater than 100%")]
    return []


def is_zero(value: IntOrPercent) -> bool:
    return value == 0 or (isinstance(value, str) and not find_percent_problems(value) and _parse_percent(value) == 0)


def _parse_percent(text: str) -> int:
    # Enough digits to compare with 100; a number of megabytes is not converted.
    digits = text[:-1].lstrip("0")
    return int(digits[:6] or "0")

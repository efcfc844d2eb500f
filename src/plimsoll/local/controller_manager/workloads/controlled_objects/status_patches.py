"""Common parts of the status patches of workload controllers. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.values import Wire


def count_fields(counts: Mapping[str, int]) -> dict[str, Any]:
    """Numbers in a merge patch: Kubernetes leaves out what is 0, so such a field is taken away."""
    return {name: count or None for name, count in counts.items()}


def encode_condition(condition: Wire) -> dict[str, Any]:
    """A condition as it is written: whole seconds, nothing that is empty."""
    fields = msgspec.structs.asdict(condition)
    names = {field.name: field.encode_name for field in msgspec.structs.fields(condition)}
    return {
        names[name]: format_time(value) if name.endswith("_time") else value
        for name, value in fields.items()
        if value not in (None, "", 0)
    }

"""When a field manager last wrote a field, from `metadata.managedFields` of the API server. Pure.

A writer that changes a field takes it over from its previous manager. So the manager that holds a field made its last
change. One entry covers all fields of a manager, so its time is that of the last write to any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.objects.api.meta import Time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


def find_last_write_time(raw: bytes, path: Sequence[str], *, manager: str) -> datetime | None:
    """None if the manager does not hold the field, or the server does not say when."""
    whole = msgspec.json.decode(raw)
    metadata = whole.get("metadata") if isinstance(whole, dict) else None
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    listed = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    times = [
        _parse_time(entry.get("time")) for entry in listed if entry.get("manager") == manager and _holds(entry, path)
    ]
    return max((time for time in times if time is not None), default=None)


def _holds(entry: dict[str, Any], path: Sequence[str]) -> bool:
    found: Any = entry.get("fieldsV1")
    for step in path:
        found = found.get(f"f:{step}") if isinstance(found, dict) else None
    return found is not None


def _parse_time(written: object) -> datetime | None:
    try:
        return msgspec.convert(written, Time)
    except msgspec.ValidationError:
        return None

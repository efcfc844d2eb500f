"""When we last wrote a field of an object: from `metadata.managedFields`, which the API server keeps. Pure.

Nothing of the cluster that is scaled is ours but its replicas, so no annotation of ours can tell when we raised them.
Who changes a field takes it over from whoever wrote it before; so if it is ours, the last change of it was ours too.
One entry tells of all our fields, so its time is that of the last of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.objects.api.meta import Time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


def written_at(raw: bytes, path: Sequence[str], *, manager: str) -> datetime | None:
    """None: it is not ours, or the server does not tell."""
    whole = msgspec.json.decode(raw)
    metadata = whole.get("metadata") if isinstance(whole, dict) else None
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    listed = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    times = [_time(one.get("time")) for one in listed if one.get("manager") == manager and _has(one, path)]
    return max((time for time in times if time is not None), default=None)


def _has(entry: dict[str, Any], path: Sequence[str]) -> bool:
    found: Any = entry.get("fieldsV1")
    for step in path:
        found = found.get(f"f:{step}") if isinstance(found, dict) else None
    return found is not None


def _time(written: object) -> datetime | None:
    try:
        return msgspec.convert(written, Time)
    except msgspec.ValidationError:
        return None

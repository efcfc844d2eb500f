"""Metadata that an update cannot change, whatever a client sends."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

_ALWAYS_KEPT: Final = ("creationTimestamp", "deletionTimestamp")
_KEPT_IF_ABSENT: Final = ("uid", "deletionGracePeriodSeconds")


def keep_metadata(new: Json, old: Json) -> Json:
    """The new metadata with the old identity, as `rest.BeforeUpdate` does it."""
    result = dict(new)
    result.pop("selfLink", None)
    for name in _ALWAYS_KEPT:
        if name in old:
            result[name] = old[name]
    for name in _KEPT_IF_ABSENT:
        if not result.get(name) and name in old:
            result[name] = old[name]
    return result

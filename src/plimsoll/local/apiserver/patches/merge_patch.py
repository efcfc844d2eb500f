"""JSON merge patch (RFC 7386): maps are merged, null deletes, everything else is replaced.

Used for `application/merge-patch+json`.
"""

from __future__ import annotations

from typing import Any

from plimsoll.local.apiserver.patches.json_values import get_go_kind
from plimsoll.local.apiserver.patches.results import Patched, PatchRefused, bad_request
from plimsoll.objects.schema.json_values import is_same


def apply_merge_patch(document: dict[str, Any], patch: Any) -> Patched | PatchRefused:
    """The patched document, or the 400 for a patch that is not an object."""
    if patch is None:
        return bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        expected = "Go value of type map[string]interface {}"
        return bad_request(f"error decoding patch: json: cannot unmarshal {get_go_kind(patch)} into {expected}")
    return Patched(value=_merge(document, patch))


def _merge(target: Any, patch: dict[str, Any]) -> Any:
    """Changes nothing in place; a map in which nothing changes is returned itself."""
    result: dict[str, Any] = dict(target) if isinstance(target, dict) else {}
    changed = not isinstance(target, dict)
    for key, value in patch.items():
        if value is None:
            changed |= key in result
            result.pop(key, None)
            continue
        before = result.get(key)
        if isinstance(value, dict):
            result[key] = _merge(before, value)
        elif not is_same(value, before):
            result[key] = value
        changed |= result[key] is not before
    return result if changed else target

"""Moving from client-side to server-side apply: the annotation in which `kubectl apply` keeps what it last applied.

Only for the manager named `kubectl`: conflicts about fields that it had applied on the client's side, and that are
still as it left them, are not conflicts; and as long as the annotation is there, server-side apply keeps it up to date.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.apply.typed.compare import compare
from plimsoll.local.apiserver.apply.typed.field_sets import to_field_set
from plimsoll.objects.schema import go_text
from plimsoll.objects.schema.json_values import Refused, take_over

if TYPE_CHECKING:
    from plimsoll.local.apiserver.apply.fieldpath.sets import FieldSet
    from plimsoll.local.apiserver.apply.typed.types import Atom

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_LARGEST_ANNOTATIONS_BYTES: Final = 256 * 1024


def find_allowed_conflicts(live: dict[str, Any], *, api_version: str, atom: Atom) -> FieldSet | None:
    """The fields that client-side apply owns; None without the annotation."""
    last = _read_last_applied(live)
    if last is None or last.get("apiVersion") != api_version:
        return None
    changes = compare(last, live, atom)
    return to_field_set(last, atom) - changes.modified - changes.added - changes.removed


def update_last_applied(value: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    """The object with its annotation renewed; one that has none gets none."""
    annotations = _get_annotations(value)
    if not annotations.get(LAST_APPLIED):
        return value
    renewed = {**annotations, LAST_APPLIED: _write(applied)}
    if (
        sum(len(str(key).encode()) + len(str(text).encode()) for key, text in renewed.items())
        > _LARGEST_ANNOTATIONS_BYTES
    ):
        del renewed[LAST_APPLIED]
    return {**value, "metadata": {**value["metadata"], "annotations": renewed}}


def _write(applied: dict[str, Any]) -> str:
    annotations = {name: text for name, text in _get_annotations(applied).items() if name != LAST_APPLIED}
    metadata = {name: item for name, item in applied.get("metadata", {}).items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return go_text.as_json({**applied, "metadata": metadata}) + "\n"


def _read_last_applied(live: dict[str, Any]) -> dict[str, Any] | None:
    text = _get_annotations(live).get(LAST_APPLIED)
    if not isinstance(text, str) or not text:
        return None
    try:
        value = take_over(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not isinstance(value, Refused) else None


def _get_annotations(value: dict[str, Any]) -> dict[str, Any]:
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}

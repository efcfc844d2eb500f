"""The object that Go starts with on a create: every struct that is not behind a pointer is there, empty.

Ownership of a created object is found by comparing it with this. A field that the blank object already has is not owned
by its mere presence: `spec` and `status` of a Deployment are, `spec.strategy.rollingUpdate` is not. Custom resources
have no Go type, so theirs is empty.
"""

from __future__ import annotations

from typing import Any, Final

from plimsoll.objects.builtin.decoding.openapi import Schema, find_reference, find_schema_name, load_component

# Structs that write themselves as null when empty, in fields that are not pointers: their schemas do not say so.
_NULL_FIELDS: Final = {
    "io.k8s.api.apps.v1.ControllerRevision": ("data",),
    "io.k8s.api.core.v1.Event": ("eventTime", "firstTimestamp", "lastTimestamp"),
    "io.k8s.api.events.v1.Event": ("eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"),
}
_ZEROS: Final = {"string": "", "integer": 0, "number": 0, "boolean": False}


def build_empty_object(api_version: str, kind: str) -> dict[str, Any]:
    name = find_schema_name(api_version, kind)
    return {} if name is None else _build_blank(name)


def _build_blank(name: str) -> dict[str, Any]:
    schema = load_component(name)
    required = schema.get("required", ())
    blank: dict[str, Any] = dict.fromkeys(_NULL_FIELDS.get(name, ()))
    for field, declared in schema.get("properties", {}).items():
        below = find_reference(declared)
        if below is not None and declared.get("default") == {}:
            blank[field] = _build_blank(below)
        elif field in required:
            blank[field] = _build_zero_value(declared)
    return blank


def _build_zero_value(declared: Schema) -> Any:
    """Build the zero value of a field that is always written: lists, maps and pointers are null."""
    return _ZEROS.get(declared.get("type", "")) if find_reference(declared) is None else None

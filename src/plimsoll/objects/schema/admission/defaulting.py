"""Applies the defaults of a schema to an object in place; every default is a new copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.objects.schema.json_values import copy

if TYPE_CHECKING:
    from plimsoll.objects.schema.structural import StructuralSchema


def apply_defaults(value: Any, schema: StructuralSchema | None) -> None:
    """Absent fields get their default, and so do nulls where null is not allowed; then what is inside them."""
    if schema is None:
        return
    if isinstance(value, dict):
        _default_fields(value, schema)
    elif isinstance(value, list) and schema.items is not None:
        for position, item in enumerate(value):
            if item is None and not schema.items.nullable and schema.items.default is not None:
                value[position] = copy(schema.items.default)
            apply_defaults(value[position], schema.items)


def _default_fields(value: dict[str, Any], schema: StructuralSchema) -> None:
    for name, described in schema.properties.items():
        if described.default is None:
            continue
        if name not in value or (value[name] is None and not described.nullable):
            value[name] = copy(described.default)
    for name, field in value.items():
        known = schema.properties.get(name, schema.additional_properties)
        if known is None:
            continue
        if field is None and not known.nullable and known.default is not None:
            # Replacing a value does not change the size of the dict, so iteration may continue.
            value[name] = copy(known.default)
        apply_defaults(value[name], known)

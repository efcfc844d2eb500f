"""Removes unknown fields, and nulls without meaning, by a schema.

Both functions change the object in place. `prune` reports what it removed, in the notation of
`unknown field "spec.foo"`. The recursion follows the schema, so it is never deeper than the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.objects.schema.field_errors import child, index

if TYPE_CHECKING:
    from plimsoll.objects.schema.structural import StructuralSchema

# Every resource has these, described or not.
RESOURCE_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def prune(value: Any, schema: StructuralSchema, *, is_resource: bool) -> list[str]:
    """Remove unknown fields; their paths, sorted."""
    removed: list[str] = []
    _prune(value, schema, path="", removed=removed, is_resource=is_resource)
    return sorted(removed)


def _prune(value: Any, schema: StructuralSchema | None, *, path: str, removed: list[str], **keeping: bool) -> None:
    if isinstance(value, dict):
        _prune_object(value, schema, path=path, removed=removed, **keeping)
    elif isinstance(value, list):
        keeps = schema is not None and bool(schema.preserve_unknown_fields)
        if keeps and schema is not None and schema.items is None:
            return
        for position, item in enumerate(value):
            items = schema.items if schema else None
            _prune(item, items, path=index(path, position), removed=removed, keeps_unknown=keeps)


def _prune_object(
    value: dict[str, Any],
    schema: StructuralSchema | None,
    *,
    path: str,
    removed: list[str],
    is_resource: bool = False,
    keeps_unknown: bool = False,
) -> None:
    if schema is None:
        removed += (child(path, name) for name in value)
        value.clear()
        return
    keeps_own_fields = is_resource or schema.embedded_resource
    keeps_unknown = keeps_unknown or bool(schema.preserve_unknown_fields)
    for name in list(value):
        if keeps_own_fields and name in RESOURCE_FIELDS:
            continue
        if name in schema.properties:
            _prune(value[name], schema.properties[name], path=child(path, name), removed=removed)
        elif schema.has_additional_properties:
            _prune(value[name], schema.additional_properties, path=child(path, name), removed=removed)
        elif not keeps_unknown:
            removed.append(child(path, name))
            del value[name]


def prune_nulls(value: Any, schema: StructuralSchema | None) -> None:
    """Remove nulls from fields that are neither nullable nor have a default: null means absent there."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name in list(value):
            described = schema.properties.get(name, schema.additional_properties)
            if described is None:
                continue
            if value[name] is None and not described.nullable and described.default is None:
                del value[name]
            else:
                prune_nulls(value[name], described)
    elif isinstance(value, list):
        for item in value:
            prune_nulls(item, schema.items)

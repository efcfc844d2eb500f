"""The promises of x-kubernetes-list-type: items of a set are unique, items of a map are unique by their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.field_errors import FieldError, child, index, key
from plimsoll.objects.schema.json_values import build_identity

if TYPE_CHECKING:
    from plimsoll.objects.schema.structural import StructuralSchema


def validate_list_items(value: Any, schema: StructuralSchema | None, path: str = "") -> list[FieldError]:
    """Duplicates anywhere in a value; each is reported once, where it first repeats."""
    if schema is None:
        return []
    errors: list[FieldError] = []
    if isinstance(value, dict):
        for name, item in value.items():
            if name in schema.properties:
                errors += validate_list_items(item, schema.properties[name], child(path, name))
            elif schema.additional_properties is not None:
                errors += validate_list_items(item, schema.additional_properties, key(path, name))
    elif isinstance(value, list):
        if schema.list_type == "set":
            errors += [fields.duplicate(index(path, position), value[position]) for position in _find_repeated(value)]
        elif schema.list_type == "map":
            errors += _validate_map_keys(value, schema, path)
        if schema.items is not None:
            for position, item in enumerate(value):
                errors += validate_list_items(item, schema.items, index(path, position))
    return errors


def _validate_map_keys(items: list[Any], schema: StructuralSchema, path: str) -> list[FieldError]:
    for position, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            detail = "must be an object for an array of list-type map"
            return [fields.invalid(index(path, position), item, detail)]
    keys = [{name: item[name] for name in schema.list_map_keys if name in (item or {})} for item in items]
    return [fields.duplicate(index(path, position), keys[position]) for position in _find_repeated(keys)]


def _find_repeated(values: list[Any]) -> list[int]:
    """The position of the second occurrence of every value that occurs more than once."""
    times: dict[tuple[str, Any], int] = {}
    repeated = []
    for position, value in enumerate(values):
        marker = build_identity(value)
        times[marker] = times.get(marker, 0) + 1
        if times[marker] == 2:
            repeated.append(position)
    return repeated

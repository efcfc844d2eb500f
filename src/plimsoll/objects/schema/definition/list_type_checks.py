"""Whether x-kubernetes-list-type, -list-map-keys and -map-type of a schema node fit its type and its items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.field_errors import FieldError, child, key

if TYPE_CHECKING:
    from plimsoll.objects.schema.structural import StructuralSchema

_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")


def validate_map_type(schema: StructuralSchema, path: str) -> list[FieldError]:
    if schema.map_type is None:
        return []
    errors = _validate_type(schema, path, wanted="object", extension="x-kubernetes-map-type")
    if schema.map_type not in _MAP_TYPES:
        errors.append(fields.not_supported(child(path, "x-kubernetes-map-type"), schema.map_type, _MAP_TYPES))
    return errors


def validate_list_type(schema: StructuralSchema, path: str, *, atomic_sets: bool) -> list[FieldError]:
    errors = []
    type_path, keys_path = child(path, "x-kubernetes-list-type"), child(path, "x-kubernetes-list-map-keys")
    if schema.list_type is not None and schema.type != "array":
        errors += _validate_type(schema, path, wanted="array", extension="x-kubernetes-list-type")
    elif atomic_sets and (where := find_non_atomic_set_items(schema)):
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        value = schema.items.list_type if schema.items else None
        errors.append(fields.invalid(child(child(path, "items"), where), value, detail))
    if schema.list_type is not None and schema.list_type not in _LIST_TYPES:
        errors.append(fields.not_supported(type_path, schema.list_type, _LIST_TYPES))
    if schema.list_map_keys and schema.list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        given = schema.list_type
        errors.append(fields.required(type_path, detail) if given is None else fields.invalid(type_path, given, detail))
    if schema.list_type == "map":
        if not schema.list_map_keys:
            errors.append(fields.required(keys_path, "must not be empty if x-kubernetes-list-type is map"))
        errors += _validate_map_items(schema, path, keys_path)
    return errors


def find_non_atomic_set_items(schema: StructuralSchema) -> str | None:
    """The extension of a set's items that should be atomic and is not."""
    items = schema.items
    if schema.list_type != "set" or items is None:
        return None
    if items.type == "array" and items.list_type not in {None, "atomic"}:
        return "x-kubernetes-list-type"
    return "x-kubernetes-map-type" if items.type == "object" and items.map_type != "atomic" else None


def _validate_type(schema: StructuralSchema, path: str, *, wanted: str, extension: str) -> list[FieldError]:
    if schema.type == wanted:
        return []
    place, detail = child(path, "type"), f"must be {wanted} if {extension} is specified"
    return [fields.invalid(place, schema.type, detail) if schema.type else fields.required(place, detail)]


def _validate_map_items(schema: StructuralSchema, path: str, keys_path: str) -> list[FieldError]:
    items_path = child(path, "items")
    if schema.items is None:
        return [fields.required(items_path, "must have a schema if x-kubernetes-list-type is map")]
    if schema.items.type != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        return [fields.invalid(child(items_path, "type"), schema.items.type, detail)]
    errors = []
    keys = list(schema.list_map_keys)
    for position, name in enumerate(keys):
        described = schema.items.properties.get(name)
        if described is None:
            errors.append(fields.invalid(keys_path, keys, "entries must all be names of item properties"))
        elif described.type in {"array", "object"}:
            place = child(key(child(items_path, "properties"), name), "type")
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(fields.invalid(place, schema.items.type, detail))
        if name in keys[:position]:
            errors.append(fields.invalid(keys_path, keys, "must not contain duplicate entries"))
    return errors


def validate_list_keys(schema: StructuralSchema, path: str) -> list[FieldError]:
    """Items of sets and maps are never null, and every item of a map has all its keys."""
    items = schema.items
    if items is None or schema.list_type not in {"set", "map"}:
        return []
    errors = []
    items_path = child(path, "items")
    if items.nullable:
        detail = f"cannot be nullable when x-kubernetes-list-type is {schema.list_type}"
        errors.append(fields.forbidden(child(items_path, "nullable"), detail))
    for name in schema.list_map_keys if schema.list_type == "map" else ():
        described = items.properties.get(name)
        if described is None:
            continue
        place = key(child(items_path, "properties"), name)
        reason = "this property is in x-kubernetes-list-map-keys, so it"
        if name not in items.required and described.default is None:
            errors.append(
                fields.required(child(place, "default"), f"{reason} must have a default or be a required property")
            )
        if described.nullable:
            errors.append(fields.forbidden(child(place, "nullable"), f"{reason} cannot be nullable"))
    return errors

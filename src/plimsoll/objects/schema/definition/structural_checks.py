"""Checks that a schema is structural: the invariants of `apiextensions.k8s.io/v1`, with the server's messages.

Errors are sorted by their text, as in the real server, so the order of a schema's properties does not matter.
"""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema import regular_expressions
from plimsoll.objects.schema.field_errors import FieldError, child, index, key
from plimsoll.objects.schema.structural import StructuralSchema


class _Level(Enum):
    ROOT = auto()
    ITEM = auto()
    FIELD = auto()


_TYPE_MISSING = {
    _Level.ROOT: "must not be empty at the root",
    _Level.ITEM: "must not be empty for specified array items",
    _Level.FIELD: "must not be empty for specified object fields",
}

# The one use of `type` inside anyOf that is allowed: how tools write an int-or-string.
_INT_OR_STRING = (StructuralSchema(type="integer"), StructuralSchema(type="string"))


def validate_structural(schema: StructuralSchema, path: str) -> list[FieldError]:
    """Every reason why the schema is not structural."""
    errors = _validate_node(schema, _Level.ROOT, path) + _validate_completeness(
        schema, schema, schema_path=path, value_path=path
    )
    return sorted(errors, key=lambda error: error.text)


def _validate_node(node: StructuralSchema, level: _Level, path: str) -> list[FieldError]:
    errors = []
    if node.type == "array" and node.items is None:
        errors.append(fields.required(child(path, "items"), "must be specified"))
    if node.items is not None:
        errors += _validate_node(node.items, _Level.ITEM, child(path, "items"))
    for name, property_ in node.properties.items():
        errors += _validate_node(property_, _Level.FIELD, key(child(path, "properties"), name))
    if node.has_additional_properties and level is _Level.ROOT:
        errors.append(fields.forbidden(child(path, "additionalProperties"), "must not be used at the root"))
    if node.additional_properties is not None:
        errors += _validate_node(node.additional_properties, _Level.FIELD, child(path, "additionalProperties"))
    errors += _validate_extensions(node, path)
    errors += _check_value_validation(
        node,
        path,
        skip_any_of=node.any_of == _INT_OR_STRING,
        skip_first_all_of=bool(node.all_of) and node.all_of[0].any_of == _INT_OR_STRING,
    )
    errors += _validate_type(node, level, path)
    return errors + _validate_resource(node, level, path)


def _validate_extensions(node: StructuralSchema, path: str) -> list[FieldError]:
    if not node.int_or_string:
        return []
    detail = "must be false if x-kubernetes-int-or-string is true"
    errors = []
    if node.preserve_unknown_fields:
        errors.append(fields.invalid(child(path, "x-kubernetes-preserve-unknown-fields"), value=True, detail=detail))
    if node.embedded_resource:
        errors.append(fields.invalid(child(path, "x-kubernetes-embedded-resource"), value=True, detail=detail))
    return errors


def _validate_type(node: StructuralSchema, level: _Level, path: str) -> list[FieldError]:
    type_path = child(path, "type")
    errors = []
    if node.embedded_resource and node.type != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(fields.invalid(type_path, node.type, detail) if node.type else fields.required(type_path, detail))
    elif not node.type and not node.int_or_string and not node.preserve_unknown_fields:
        errors.append(fields.required(type_path, _TYPE_MISSING[level]))
    if node.embedded_resource and node.has_additional_properties:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(fields.forbidden(child(path, "additionalProperties"), detail))
    if level is _Level.ROOT and node.type and node.type != "object":
        errors.append(fields.invalid(type_path, node.type, "must be object at the root"))
    return errors


def _validate_resource(node: StructuralSchema, level: _Level, path: str) -> list[FieldError]:
    """A resource's own fields (apiVersion, kind, metadata) may hardly be described: they are what they are."""
    is_resource = level is _Level.ROOT or node.embedded_resource
    properties = child(path, "properties")
    errors = []
    for name in ("kind", "apiVersion"):
        described = node.properties.get(name)
        if is_resource and described is not None and described.type != "string":
            errors.append(fields.invalid(child(key(properties, name), "type"), described.type, "must be string"))
    metadata = node.properties.get("metadata")
    if metadata is not None:
        metadata_path = key(properties, "metadata")
        if is_resource and metadata.type != "object":
            errors.append(fields.invalid(child(metadata_path, "type"), metadata.type, "must be object"))
        if level is _Level.ROOT and not _restricts_only_names(metadata):
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            errors.append(fields.forbidden(metadata_path, detail))
    if node.embedded_resource and not node.preserve_unknown_fields and not node.properties:
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(fields.required(properties, detail))
    return errors


def _restricts_only_names(metadata: StructuralSchema) -> bool:
    if not set(metadata.properties) <= {"name", "generateName"}:
        return False
    rest = msgspec.structs.replace(metadata, properties={}, type="", default=None)
    return rest == StructuralSchema()


def _check_value_validation(
    node: StructuralSchema, path: str, *, skip_any_of: bool, skip_first_all_of: bool
) -> list[FieldError]:
    errors = []
    if not skip_any_of:
        for position, alternative in enumerate(node.any_of):
            errors += _check_nested(alternative, index(child(path, "anyOf"), position))
    for position, schema in enumerate(node.all_of):
        skip = skip_first_all_of and position == 0
        errors += _check_nested(schema, index(child(path, "allOf"), position), skip_any_of=skip)
    for position, structural_schema in enumerate(node.one_of):
        errors += _check_nested(structural_schema, index(child(path, "oneOf"), position))
    if node.not_ is not None:
        errors += _check_nested(node.not_, child(path, "not"))
    if node.pattern and (problem := regular_expressions.find_problem(node.pattern)):
        detail = f"must be a valid regular expression, but isn't: {problem}"
        errors.append(fields.invalid(child(path, "pattern"), node.pattern, detail))
    return errors


def _check_nested(node: StructuralSchema, path: str, *, skip_any_of: bool = False) -> list[FieldError]:
    """Below a junctor only validation of values may stand; what describes structure is forbidden."""
    errors = _check_value_validation(node, path, skip_any_of=skip_any_of, skip_first_all_of=False)
    if node.items is not None:
        errors += _check_nested(node.items, child(path, "items"))
    for name, property_ in node.properties.items():
        errors += _check_nested(property_, key(child(path, "properties"), name))
    forbidden = (
        (node.type, "type", "empty"),
        (node.has_additional_properties, "additionalProperties", "undefined"),
        (node.default is not None, "default", "undefined"),
        (node.title, "title", "empty"),
        (node.description, "description", "empty"),
        (node.nullable, "nullable", "false"),
        (node.has_external_docs, "externalDocs", "undefined"),
        (node.preserve_unknown_fields, "x-kubernetes-preserve-unknown-fields", "false"),
        (node.embedded_resource, "x-kubernetes-embedded-resource", "false"),
        (node.int_or_string, "x-kubernetes-int-or-string", "false"),
        (node.list_map_keys, "x-kubernetes-list-map-keys", "empty"),
        (node.list_type is not None, "x-kubernetes-list-type", "undefined"),
        (node.map_type is not None, "x-kubernetes-map-type", "undefined"),
        (node.rules, "x-kubernetes-validations", "empty"),
    )
    errors += [
        fields.forbidden(child(path, name), f"must be {state} to be structural")
        for present, name, state in forbidden
        if present
    ]
    if "metadata" in node.properties:
        metadata_path = key(child(path, "properties"), "metadata")
        errors.append(fields.forbidden(metadata_path, "must not be specified in a nested context"))
    return errors


def _validate_completeness(
    value: StructuralSchema, node: StructuralSchema, *, schema_path: str, value_path: str
) -> list[FieldError]:
    """Every field a junctor speaks of must be described outside of junctors too."""
    junctors = [(value.not_, child(value_path, "not"))] if value.not_ is not None else []
    for name, listed in (("allOf", value.all_of), ("anyOf", value.any_of), ("oneOf", value.one_of)):
        junctors += [
            (structural_schema, index(child(value_path, name), position))
            for position, structural_schema in enumerate(listed)
        ]
    errors = []
    for schema, path in junctors:
        assert schema is not None
        errors += _check_nested_completeness(schema, node, schema_path=schema_path, value_path=path)
    return errors


def _check_nested_completeness(
    value: StructuralSchema, node: StructuralSchema | None, *, schema_path: str, value_path: str
) -> list[FieldError]:
    if node is None:
        return [fields.required(schema_path, f"because it is defined in {value_path}")]
    errors = _validate_completeness(value, node, schema_path=schema_path, value_path=value_path)
    if value.items is not None:
        errors += _check_nested_completeness(
            value.items, node.items, schema_path=child(schema_path, "items"), value_path=child(value_path, "items")
        )
    for name, property_ in value.properties.items():
        errors += _check_nested_completeness(
            property_,
            node.properties.get(name),
            schema_path=key(child(schema_path, "properties"), name),
            value_path=key(child(value_path, "properties"), name),
        )
    return errors

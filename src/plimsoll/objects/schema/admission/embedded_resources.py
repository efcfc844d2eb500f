"""Resources inside resources (x-kubernetes-embedded-resource): they have apiVersion, kind and real metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.names import find_dns1035_label_problems, find_path_segment_problems
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.admission import metadata_checks, object_metadata
from plimsoll.objects.schema.field_errors import FieldError, child, index, key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.objects.schema.structural import StructuralSchema


def find_embedded_resources(
    value: Any, schema: StructuralSchema | None, path: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every embedded resource with its path, outer before inner."""
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.embedded_resource:
            yield path, value
        for name, item in value.items():
            if name in schema.properties:
                yield from find_embedded_resources(item, schema.properties[name], child(path, name))
            elif schema.additional_properties is not None:
                yield from find_embedded_resources(item, schema.additional_properties, key(path, name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from find_embedded_resources(item, schema.items, index(path, position))


def coerce_embedded(value: Any, schema: StructuralSchema) -> list[str]:
    """Drop what embedded metadata does not have; the paths of unknown fields."""
    unknown = []
    for path, resource in find_embedded_resources(value, schema):
        metadata = resource.get("metadata")
        if isinstance(metadata, dict) and object_metadata.decode_problem(metadata) is None:
            unknown += object_metadata.drop_unknown(metadata, child(path, "metadata"))
    return unknown


def check_embedded_resources(value: Any, schema: StructuralSchema, path: str = "") -> list[FieldError]:
    """The errors in the identity of embedded resources."""
    errors = []
    for place, resource in find_embedded_resources(value, schema, path):
        errors += validate_resource(resource, place)
    return errors


def validate_resource(resource: dict[str, Any], path: str) -> list[FieldError]:
    errors = _validate_identity(resource, "apiVersion", path) + _validate_identity(resource, "kind", path)
    if resource.get("metadata") is not None:
        metadata_path = child(path, "metadata")
        problem = object_metadata.decode_problem(resource["metadata"])
        if problem is not None:
            return [*errors, fields.invalid(metadata_path, resource["metadata"], problem)]
        # A name is not required, so a missing one is replaced.
        metadata = {**resource["metadata"], "name": resource["metadata"].get("name") or "fakename"}
        errors += metadata_checks.validate_new_metadata(
            metadata, metadata_path, namespaced=True, name_rule=find_path_segment_problems
        )
    return errors


def _validate_identity(resource: dict[str, Any], name: str, path: str) -> list[FieldError]:
    place = child(path, name)
    if name not in resource:
        return [fields.required(place)]
    text = resource[name]
    if not isinstance(text, str):
        return [fields.invalid(place, text, "must be a string")]
    if not text:
        return [fields.required(place)]
    if name == "apiVersion":
        return [] if text.count("/") < 2 else [fields.invalid(place, text, f"unexpected GroupVersion string: {text}")]
    problems = find_dns1035_label_problems(text.lower())
    detail = "may have mixed case, but should otherwise match: " + ",".join(problems)
    return [fields.invalid(place, text, detail)] if problems else []

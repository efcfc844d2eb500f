"""The CEL declarations of a schema: the types that rules are checked against, with sizes for cost estimates.

Sizes follow Kubernetes: the limits of the schema, or else what fits into the largest request (3 MiB) with the smallest
possible elements. Nodes without a type, and properties whose name cannot be escaped, have no declaration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from plimsoll.objects import cel
from plimsoll.objects.schema.structural import StructuralSchema

if TYPE_CHECKING:
    from plimsoll.objects.cel.types.types import ListKind

MAX_REQUEST_BYTES = 3 * 1024 * 1024

# The smallest JSON text of a value of each kind, quotes included.
_SMALLEST_TEXT = 2
_SMALLEST = {"boolean": 4, "number": 1, "integer": 1}
_SMALLEST_OF_FORMAT = {"duration": 3, "date": 12, "date-time": 21}

_SCALARS: dict[str, cel.CelType] = {"boolean": cel.BOOL, "number": cel.DOUBLE, "integer": cel.INT}
_OF_FORMAT: dict[str, cel.CelType] = {"duration": cel.DURATION, "date": cel.TIMESTAMP, "date-time": cel.TIMESTAMP}

_TEXT = StructuralSchema(type="string")
_METADATA = StructuralSchema(type="object", properties={"name": _TEXT, "generateName": _TEXT})


class Declared(NamedTuple):
    """A type, and the size in bytes of its smallest value in JSON."""

    type: cel.CelType
    smallest_bytes: int


def declare(schema: StructuralSchema, name: str, *, is_resource: bool) -> Declared | None:
    """The declaration of a node; `name` distinguishes object types, a path does."""
    if schema.int_or_string:
        return Declared(cel.DYN, 1)
    if is_resource:
        schema = add_resource_fields(schema)
    match schema.type:
        case "array":
            return _list(schema, name)
        case "object":
            return _map(schema, name) if schema.additional_properties else _declare_object(schema, name)
        case "string":
            return _declare_string(schema)
        case _ if schema.type in _SCALARS:
            return Declared(_SCALARS[schema.type], _SMALLEST[schema.type])
    return None


def add_resource_fields(schema: StructuralSchema) -> StructuralSchema:
    """Rules of a resource may always read its apiVersion, kind and names, whatever the schema."""
    properties = schema.properties
    metadata = properties.get("metadata", StructuralSchema())
    described = (
        properties.get("kind", metadata).type == "string"
        and properties.get("apiVersion", metadata).type == "string"
        and all(metadata.properties.get(name, metadata).type == "string" for name in ("name", "generateName"))
    )
    if described:
        return schema
    fields = {**properties, "apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}
    return msgspec.structs.replace(schema, properties=fields)


def compute_most_in_request(smallest_bytes: int) -> int:
    """How often a value can occur in one request, if no list or map around it has a limit."""
    return MAX_REQUEST_BYTES // (smallest_bytes + 1)


def _list(schema: StructuralSchema, name: str) -> Declared | None:
    if schema.items is None:
        return None
    element = declare(schema.items, f"{name}.@idx", is_resource=schema.items.embedded_resource)
    if element is None:
        return None
    if schema.max_items is not None:
        most = max(schema.max_items, 0)
    else:
        most = (MAX_REQUEST_BYTES - 2) // (element.smallest_bytes + 1)
    kind = cast("ListKind", schema.list_type if schema.list_type in {"set", "map"} else "atomic")
    return Declared(cel.ListType(element.type, max_items=most, kind=kind, map_keys=schema.list_map_keys), 2)


def _map(schema: StructuralSchema, name: str) -> Declared | None:
    assert schema.additional_properties is not None
    values = schema.additional_properties
    value = declare(values, f"{name}.@elem", is_resource=values.embedded_resource)
    if value is None:
        return None
    if schema.max_properties is not None:
        most = max(schema.max_properties, 0)
    else:
        # An entry has quotes, a colon and a comma around its key and value.
        most = (MAX_REQUEST_BYTES - 2) // (value.smallest_bytes + 6)
    return Declared(cel.MapType(cel.STRING, value.type, max_properties=most), 2)


def _declare_object(schema: StructuralSchema, name: str) -> Declared:
    fields: dict[str, cel.CelType] = {}
    smallest = 2
    for property_, described in schema.properties.items():
        declared = declare(described, f"{name}.{property_}", is_resource=described.embedded_resource)
        if declared is None:
            continue
        if cel.escape_field(property_) is not None:
            fields[property_] = declared.type
        if property_ in schema.required and described.default is None:
            smallest += len(property_.encode()) + declared.smallest_bytes + 4
    required = frozenset(schema.required) & fields.keys()
    return Declared(cel.ObjectType(name, fields, required), smallest)


def _declare_string(schema: StructuralSchema) -> Declared:
    if schema.format in _OF_FORMAT:
        return Declared(_OF_FORMAT[schema.format], _SMALLEST_OF_FORMAT[schema.format])
    if schema.format == "byte":
        most = max(schema.max_length, 0) if schema.max_length is not None else MAX_REQUEST_BYTES - 2
        return Declared(cel.BytesType(most), _SMALLEST_TEXT)
    if schema.max_length is not None:
        # maxLength counts code points, and a code point may take four bytes.
        most = max(schema.max_length, 0) * 4
    elif schema.enum:
        most = max((len(text.encode()) for text in schema.enum if isinstance(text, str)), default=0)
    else:
        most = MAX_REQUEST_BYTES - 2
    return Declared(cel.StringType(most), _SMALLEST_TEXT)

"""Types from schemas: the shipped OpenAPI components for built-in kinds, a definition's `openAPIV3Schema` for others.

The rest of the package uses `TypeSchema`. Parts without a schema are deduced from the value: maps are owned
field by field, lists as a whole.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from plimsoll.local.apiserver.apply.typed.empty_objects import build_empty_object
from plimsoll.local.apiserver.apply.typed.types import Atom, Field, ListType, MapType, Scalar
from plimsoll.objects.builtin.decoding.openapi import Schema, find_reference, find_schema_name, load_component

_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_REFERENCE: Final = "#/components/schemas/"

_OBJECT_FIELDS: Final[dict[str, Schema]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": f"{_REFERENCE}{_OBJECT_META}"},
}


class TypeSchema:
    """The schema of a kind in one version: its type, and the empty object of Go."""

    __slots__ = ("blank", "root")

    def __init__(self, root: Atom, *, blank: dict[str, Any] | None = None) -> None:
        self.root = root
        self.blank = blank or {}

    @classmethod
    def from_builtin(cls, api_version: str, kind: str) -> TypeSchema | None:
        """None for kinds without a recorded schema."""
        return _load_builtin(api_version, kind)

    @classmethod
    def from_definition(cls, schema: Schema | None) -> TypeSchema:
        """For one version of a custom resource; without a schema everything but the metadata is deduced."""
        if schema is None:
            return cls(_build_atom({"type": "object", "properties": _OBJECT_FIELDS}, preserves=True))
        return cls(_build_atom(_add_object_fields(schema), preserves=False))


@cache
def _load_builtin(api_version: str, kind: str) -> TypeSchema | None:
    name = find_schema_name(api_version, kind)
    if name is None:
        return None
    return TypeSchema(_build_component_atom(name, None), blank=build_empty_object(api_version, kind))


def _add_object_fields(schema: Schema) -> Schema:
    return {**schema, "properties": {**schema.get("properties", {}), **_OBJECT_FIELDS}}


@cache
def _build_component_atom(name: str, map_type: str | None) -> Atom:
    """`map_type` of the field that refers to the component takes precedence over the component's own."""
    if name == _QUANTITY:
        return Atom(scalar=Scalar.UNTYPED)
    if name == _RAW_EXTENSION:
        return UNTYPED
    schema = load_component(name)
    return _build_atom(schema if map_type is None else {**schema, "x-kubernetes-map-type": map_type}, preserves=False)


def _resolve_type(schema: Schema, *, preserves: bool) -> Atom:
    name = find_reference(schema)
    if name is not None:
        return _build_component_atom(name, schema.get("x-kubernetes-map-type"))
    return _build_atom(schema, preserves=preserves)


def _build_atom(schema: Schema, *, preserves: bool) -> Atom:
    preserves = preserves or schema.get("x-kubernetes-preserve-unknown-fields") is True
    if schema.get("x-kubernetes-embedded-resource") is True:
        schema = _add_object_fields(schema)
    kind = schema.get("type")
    if kind == "object":
        return Atom(map_=_map(schema, preserves=preserves))
    if kind == "array":
        return Atom(list_=_list(schema, preserves=preserves))
    if kind in _SCALARS:
        return Atom(scalar=_build_scalar(kind, schema.get("format", "")))
    return Atom(scalar=Scalar.UNTYPED, list_=_list(schema, preserves=preserves), map_=_map(schema, preserves=preserves))


_SCALARS: Final = {
    "integer": Scalar.NUMERIC,
    "number": Scalar.NUMERIC,
    "boolean": Scalar.BOOLEAN,
    "string": Scalar.STRING,
}


def _build_scalar(kind: str, written_as: str) -> Scalar:
    # Times, quantities and the like have a format: their text is not compared as text.
    if kind == "string" and written_as not in {"", "byte"}:
        return Scalar.UNTYPED
    return _SCALARS[kind]


def _map(schema: Schema, *, preserves: bool) -> MapType:
    properties: dict[str, Schema] = schema.get("properties") or {}

    def look_up(name: str) -> Field | None:
        declared = properties.get(name)
        if declared is None:
            return None
        return Field(_resolve_type(declared, preserves=preserves), declared.get("default"))

    return MapType(
        look_up,
        element=_build_map_element(schema, preserves=preserves),
        is_atomic=schema.get("x-kubernetes-map-type") == "atomic",
    )


def _build_map_element(schema: Schema, *, preserves: bool) -> Atom | None:
    """The type of fields that are not declared; none if there must not be any."""
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        return _resolve_type(additional, preserves=preserves)
    if additional is True:
        return DEDUCED
    if additional is None and (preserves or not schema.get("properties")):
        return DEDUCED
    return None


def _list(schema: Schema, *, preserves: bool) -> ListType:
    items = schema.get("items")
    known: list[Atom] = []

    def build_element() -> Atom:
        if not known:
            known.append(_resolve_type(items, preserves=preserves) if isinstance(items, dict) else UNTYPED)
        return known[0]

    list_type = schema.get("x-kubernetes-list-type")
    if list_type == "map":
        return ListType(build_element, keys=tuple(schema.get("x-kubernetes-list-map-keys", ())), is_atomic=False)
    if list_type is None and "merge" in schema.get("x-kubernetes-patch-strategy", ""):
        key = schema.get("x-kubernetes-patch-merge-key")
        return ListType(build_element, keys=(key,) if key else (), is_atomic=False)
    return ListType(build_element, is_atomic=list_type != "set")


def _find_no_field(_name: str) -> None:
    return None


def _build_schemaless(*, is_atomic: bool) -> Atom:
    atom = Atom(
        scalar=Scalar.UNTYPED,
        list_=ListType(lambda: UNTYPED, is_atomic=True),
        map_=MapType(_find_no_field, element=None, is_atomic=is_atomic),
    )
    assert atom.map is not None
    atom.map.element = atom
    return atom


UNTYPED: Final = _build_schemaless(is_atomic=True)
DEDUCED: Final = _build_schemaless(is_atomic=False)

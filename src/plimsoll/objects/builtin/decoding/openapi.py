"""The recorded OpenAPI component schemas, found by apiVersion and kind.

A file is read when its group is first requested, and cached. A `$ref` is resolved on use, because JSONSchemaProps
refers to itself.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

Schema = dict[str, Any]

_PREFIX: Final = "#/components/schemas/"
# Schemas that other groups import stand in these two.
_SHARED: Final = ("meta_v1", "core_v1")


def find_schema_name(api_version: str, kind: str) -> str | None:
    """The component that describes a kind, or None: not a built-in kind, or not one of those recorded."""
    file = _get_file_name(api_version)
    # Checked first, so that names invented by clients are not cached.
    return _index_kinds(file).get((api_version, kind)) if file in _list_files() else None


def is_known(api_version: str, kind: str) -> bool:
    return find_schema_name(api_version, kind) is not None


@cache
def list_known_kinds() -> tuple[tuple[str, str], ...]:
    """Every recorded (apiVersion, kind) that can be a manifest."""
    return tuple(kind for file in sorted(_list_files()) for kind in _index_kinds(file))


@cache
def load_component(name: str) -> Schema:
    """The schema of that name, from any group."""
    for file in _SHARED:
        if name in _load_components(file):
            return _load_components(file)[name]
    for file in sorted(_list_files() - set(_SHARED)):
        if name in _load_components(file):
            return _load_components(file)[name]
    raise LookupError(f"the recorded schemas do not define {name}")


def find_reference(schema: Schema) -> str | None:
    """The component that a schema refers to: by `$ref`, or by an `allOf` with a single `$ref`."""
    ref = schema.get("$ref")
    if ref is None and len(schema.get("allOf", ())) == 1:
        ref = schema["allOf"][0].get("$ref")
    return ref.removeprefix(_PREFIX) if isinstance(ref, str) else None


class HeldStruct(NamedTuple):
    """The component of the struct that a field holds, or of those in the list or map that it holds."""

    component: str
    is_collection: bool


@cache
def find_held_structs(name: str) -> dict[str, HeldStruct]:
    """The fields of a component that hold structs: the only ones a walk through an object has to go into."""
    found: dict[str, HeldStruct] = {}
    for field, schema in load_component(name).get("properties", {}).items():
        inner = schema.get("items") or schema.get("additionalProperties")
        if find_reference(schema) is not None:
            struct, is_collection = find_struct(schema), False
        else:
            struct, is_collection = find_struct(inner) if isinstance(inner, dict) else None, True
        if struct is not None:
            found[field] = HeldStruct(struct, is_collection)
    return found


@cache
def collect_reachable(name: str) -> frozenset[str]:
    """The component and all those of structs that can be found in its values, however deep."""
    found = {name}
    pending = [name]
    while pending:
        below = {held.component for held in find_held_structs(pending.pop()).values()} - found
        found |= below
        pending += below
    return frozenset(found)


def find_struct(schema: Schema) -> str | None:
    """The component that a schema refers to, if that has fields."""
    name = find_reference(schema)
    return name if name is not None and "properties" in load_component(name) else None


def _get_file_name(api_version: str) -> str:
    return "core_v1" if api_version == "v1" else api_version.replace("/", "_")


@cache
def _list_files() -> frozenset[str]:
    folder = resources.files("plimsoll.objects") / "openapi"
    return frozenset(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


@cache
def _load_document(file: str) -> Schema:
    text = (resources.files("plimsoll.objects") / "openapi" / f"{file}.json").read_bytes()
    document: Schema = json.loads(text)
    return document


def _load_components(file: str) -> dict[str, Schema]:
    found: dict[str, Schema] = _load_document(file).get("components", {}).get("schemas", {})
    return found


@cache
def _index_kinds(file: str) -> dict[tuple[str, str], str]:
    """Only kinds of the file's own group: lists and options are registered in every group and are not manifests."""
    listed = set(_load_document(file).get("kinds", ()))
    found: dict[tuple[str, str], str] = {}
    for name, schema in _load_components(file).items():
        for identity in schema.get("x-kubernetes-group-version-kind", ()):
            group, version, kind = identity["group"], identity["version"], identity["kind"]
            api_version = f"{group}/{version}" if group else version
            if kind in listed and _get_file_name(api_version) == file:
                found[api_version, kind] = name
    return found

"""The recorded OpenAPI component schemas, found by apiVersion and kind.

Used by `decoding`, which walks them beside an object. A file is read when its group is first asked for, and kept; a
`$ref` is followed when it is met, because JSONSchemaProps refers to itself. Nothing here judges a value.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Final

Schema = dict[str, Any]

_PREFIX: Final = "#/components/schemas/"
# Schemas that other groups import stand in these two.
_SHARED: Final = ("meta_v1", "core_v1")


def schema_name(api_version: str, kind: str) -> str | None:
    """The component that describes a kind, or None: not a built-in kind, or not one of those recorded."""
    return _kinds(_file_of(api_version)).get((api_version, kind))


def is_known(api_version: str, kind: str) -> bool:
    return schema_name(api_version, kind) is not None


@cache
def known_kinds() -> tuple[tuple[str, str], ...]:
    """Every recorded (apiVersion, kind) that can stand in a file by itself."""
    folder = resources.files("plimsoll.objects") / "openapi"
    files = sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))
    return tuple(kind for file in files for kind in _kinds(file))


@cache
def component(name: str) -> Schema:
    """The schema of that name, wherever it stands."""
    for file in _SHARED:
        if name in _components(file):
            return _components(file)[name]
    for file in _own_files():
        if name in _components(file):
            return _components(file)[name]
    raise LookupError(f"the recorded schemas do not define {name}")


def reference(schema: Schema) -> str | None:
    """The component a schema stands for: `$ref`, or the recorder's `allOf` around a single one."""
    ref = schema.get("$ref")
    if ref is None and len(schema.get("allOf", ())) == 1:
        ref = schema["allOf"][0].get("$ref")
    return ref.removeprefix(_PREFIX) if isinstance(ref, str) else None


def _file_of(api_version: str) -> str:
    return "core_v1" if api_version == "v1" else api_version.replace("/", "_")


@cache
def _own_files() -> tuple[str, ...]:
    folder = resources.files("plimsoll.objects") / "openapi"
    names = (entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))
    return tuple(sorted(set(names) - set(_SHARED)))


@cache
def _document(file: str) -> Schema:
    if file not in (*_SHARED, *_own_files()):
        return {}
    text = (resources.files("plimsoll.objects") / "openapi" / f"{file}.json").read_bytes()
    document: Schema = json.loads(text)
    return document


def _components(file: str) -> dict[str, Schema]:
    found: dict[str, Schema] = _document(file).get("components", {}).get("schemas", {})
    return found


@cache
def _kinds(file: str) -> dict[tuple[str, str], str]:
    """Only kinds the file was recorded for: lists and options are registered in every group and are no manifests."""
    asked_for = set(_document(file).get("kinds", ()))
    found: dict[tuple[str, str], str] = {}
    for name, schema in _components(file).items():
        for identity in schema.get("x-kubernetes-group-version-kind", ()):
            group, version, kind = identity["group"], identity["version"], identity["kind"]
            api_version = f"{group}/{version}" if group else version
            if kind in asked_for and _file_of(api_version) == file:
                found[api_version, kind] = name
    return found

"""Component schemas of OpenAPI v3: built-in kinds from the recorded schemas, custom ones from their definitions.

`kubectl explain` reads them. Built-in schemas carry no descriptions (they were recorded without), custom ones those
their definition has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.discovery.openapi_operations import META, DescribedResource
from plimsoll.objects.builtin.decoding import openapi

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.local.apiserver.resources.registry import ServedResource, Subresource

Json = dict[str, Any]

_REFERENCE: Final = "#/components/schemas/"
_TYPED: Final[Json] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}


def describe(resource: ServedResource) -> tuple[DescribedResource, dict[str, Json]]:
    """The names of a resource's components, and the components that no recorded file has."""
    name = openapi.find_schema_name(resource.api_version, resource.kind) if not resource.is_custom else None
    made: dict[str, Json] = {}
    if name is None:
        name = _get_component_name(resource)
        made[name] = _build_custom_schema(resource) if resource.is_custom else _build_plain_schema(resource)
    list_name = f"{name}List"
    if "list" in resource.verbs and not _is_recorded(list_name):
        made[list_name] = _build_list_schema(resource, name)
    parts = {part.name: _get_part_component(resource, part, name) for part in resource.subresources}
    return DescribedResource(resource, name, list_name, parts), made


def collect_components(documents: Json, made: dict[str, Json]) -> dict[str, Json]:
    """Every component that is referred to, directly or through others, sorted by name."""
    found: dict[str, Json] = {}
    waiting = [documents]
    while waiting:
        # A definition's default or enum may hold what looks like a reference and is none.
        fresh = {name for name in _find_references(waiting.pop()) if name in made or _is_recorded(name)} - found.keys()
        for name in fresh:
            found[name] = made[name] if name in made else openapi.load_component(name)
            waiting.append(found[name])
    return dict(sorted(found.items()))


def _find_references(value: Any) -> Iterable[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            reference = one.get("$ref")
            if isinstance(reference, str) and reference.startswith(_REFERENCE):
                yield reference.removeprefix(_REFERENCE)
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def _get_component_name(resource: ServedResource) -> str:
    """`com.example.v1.Thing` for a custom resource; the recorded pattern for a built-in one without a schema."""
    if resource.is_custom:
        return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])
    return f"io.k8s.api.{resource.group.split('.')[0] or 'core'}.{resource.version}.{resource.kind}"


def _is_recorded(name: str) -> bool:
    try:
        openapi.load_component(name)
    except LookupError:
        return False
    return True


def _get_part_component(resource: ServedResource, part: Subresource, own: str) -> str:
    if part.kind == resource.kind:
        return own
    api_version = f"{part.group}/{part.version}" if part.group else part.version or resource.api_version
    return openapi.find_schema_name(api_version, part.kind) or own


def _build_plain_schema(resource: ServedResource) -> Json:
    properties = {**_TYPED, "metadata": _refers_to(f"{META}.ObjectMeta")}
    schema = {"type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": True}
    return {**schema, **_build_identity(resource, resource.kind)}


def _build_list_schema(resource: ServedResource, item: str) -> Json:
    listed = {"type": "array", "items": {"$ref": f"{_REFERENCE}{item}"}}
    return {
        "description": f"{resource.list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {**_TYPED, "items": listed, "metadata": _refers_to(f"{META}.ListMeta")},
        **_build_identity(resource, resource.list_kind),
    }


def _build_custom_schema(resource: ServedResource) -> Json:
    assert resource.definition is not None
    versions = resource.definition["spec"]["versions"]
    version = next(item for item in versions if item["name"] == resource.version)
    written: Json = version.get("schema", {}).get("openAPIV3Schema", {})
    properties = {**_TYPED, **written.get("properties", {}), "metadata": _refers_to(f"{META}.ObjectMeta")}
    return {**written, "type": "object", "properties": properties, **_build_identity(resource, resource.kind)}


def _refers_to(component: str) -> Json:
    return {"allOf": [{"$ref": f"{_REFERENCE}{component}"}]}


def _build_identity(resource: ServedResource, kind: str) -> Json:
    identity = {"group": resource.group, "kind": kind, "version": resource.version}
    return {"x-kubernetes-group-version-kind": [identity]}

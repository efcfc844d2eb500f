"""The resources that a stored CustomResourceDefinition makes the server serve.

A definition with the plural or the kind of a built-in resource is never served, whatever its status says: a client may
write that status. Watches end with the version they were opened for. Nothing is written to the store.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from plimsoll.local.apiserver.crds.names import is_reserved
from plimsoll.local.apiserver.resources.registry import (
    ALL_VERBS,
    ResourceRegistry,
    ServedResource,
    Subresource,
    get_compiled,
)
from plimsoll.local.apiserver.storage import compute_encoded_size
from plimsoll.local.apiserver.strategies.field_labels import build_reader, list_selectable
from plimsoll.objects.schema.api import compile_definition
from plimsoll.objects.schema.definition.version_priority import compute_priority

if TYPE_CHECKING:
    from plimsoll.local.apiserver.server import Server
    from plimsoll.objects.schema.api import CompiledDefinition

Json = dict[str, Any]


def serve(server: Server, definition: Json, compiled: CompiledDefinition | None = None) -> None:
    """Put the versions of an established definition into the registry; take those of any other out.

    `compiled` is what `compile_definition` made of it, if it is at hand.
    """
    name = definition["metadata"]["name"]
    before = find_served_version(server.registry, name)
    if not _may_be_served(server.registry, definition):
        stop_serving(server, name)
        return
    if compiled is None:
        is_same = before is not None and _is_same(before, definition)
        compiled = get_compiled(before) if before is not None and is_same else compile_definition(definition)
    resources = _list_served_versions(definition, compiled)
    server.registry.serve(name, resources)
    if resources:
        fields = {path: absent for resource in resources for path, absent in list_selectable(resource).items()}
        server.store.select_fields(resources[0].stored_as, build_reader(fields.items()))
    if before is not None and before.compiled is not compiled:
        server.crd_tasks.end_watches(name)


async def compile_and_serve(server: Server, definition: Json, *, size_bytes: int) -> None:
    """`serve`, with the definition compiled away from the loop if it is large."""
    before = find_served_version(server.registry, definition["metadata"]["name"])
    is_served = before is not None and _is_same(before, definition)
    compiled = None
    if not is_served and _may_be_served(server.registry, definition):
        compiled = await server.long_work.run(size_bytes, partial(compile_definition, definition))
    serve(server, definition, compiled)


def stop_serving(server: Server, name: str) -> None:
    """Serve nothing of this definition any more."""
    if find_served_version(server.registry, name) is not None:
        server.registry.serve(name, ())
        server.crd_tasks.end_watches(name)


def find_served_version(registry: ResourceRegistry, name: str) -> ServedResource | None:
    """One of the versions that are served of a definition, if any is."""
    return next((resource for resource in registry if resource.is_custom and resource.full_name == name), None)


def list_builtin_names(registry: ResourceRegistry, group: str) -> list[Json]:
    """The names that built-in resources have in a group, in the form in which a definition has its own."""
    return [
        {
            "plural": resource.plural,
            "singular": resource.singular,
            "shortNames": list(resource.short_names),
            "kind": resource.kind,
            "listKind": resource.list_kind,
        }
        for resource in registry
        if resource.group == group and not resource.is_custom
    ]


def build_stored_resource(definition: Json) -> ServedResource:
    """The resource in the version its objects are stored in, whether or not that is served."""
    names, spec = definition["spec"]["names"], definition["spec"]
    version = next(item for item in spec["versions"] if item.get("storage"))
    return _build_resource(definition, version, compile_definition(definition), names=names)


def _may_be_served(registry: ResourceRegistry, definition: Json) -> bool:
    status = definition.get("status") or {}
    accepted = status.get("acceptedNames") or {}
    conditions = status.get("conditions") or []
    if not any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions):
        return False
    spec = definition["spec"]
    builtin = list_builtin_names(registry, spec["group"])
    # Its objects lie under the plural it is named after; another definition's are none of its business.
    is_itself = accepted.get("plural") == spec["names"]["plural"]
    return is_itself and not is_reserved(spec["names"], builtin) and not is_reserved(accepted, builtin)


def _is_same(before: ServedResource, definition: Json) -> bool:
    """Whether what was compiled is still good. Conditions and metadata make no difference to it."""
    old = before.definition
    assert old is not None
    names = old["status"].get("acceptedNames") == definition["status"].get("acceptedNames")
    return names and bool(old["spec"] == definition["spec"])


def _list_served_versions(definition: Json, compiled: CompiledDefinition) -> list[ServedResource]:
    served = [version for version in definition["spec"]["versions"] if version.get("served")]
    schema_bytes = compute_encoded_size(definition)
    served.sort(key=lambda version: compute_priority(version["name"]), reverse=True)
    names = definition["status"]["acceptedNames"]
    return [
        replace(_build_resource(definition, version, compiled, names=names), schema_bytes=schema_bytes)
        for version in served
    ]


def _build_resource(definition: Json, version: Json, compiled: CompiledDefinition, *, names: Json) -> ServedResource:
    spec = definition["spec"]
    storage = next(item["name"] for item in spec["versions"] if item.get("storage"))
    return ServedResource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular", ""),
        namespaced=spec["scope"] == "Namespaced",
        stored_as=f"{spec['group']}/{names['plural']}",
        storage_version=f"{spec['group']}/{storage}",
        list_kind=names.get("listKind") or f"{names['kind']}List",
        verbs=ALL_VERBS,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=_read_subresources(version, names["kind"]),
        definition=definition,
        compiled=compiled,
    )


def _read_subresources(version: Json, kind: str) -> tuple[Subresource, ...]:
    declared = version.get("subresources") or {}
    parts = []
    verbs = ("get", "patch", "update")
    if declared.get("status") is not None:
        parts.append(Subresource(name="status", verbs=verbs, kind=kind))
    if declared.get("scale") is not None:
        parts.append(Subresource(name="scale", verbs=verbs, kind="Scale", group="autoscaling", version="v1"))
    return tuple(parts)

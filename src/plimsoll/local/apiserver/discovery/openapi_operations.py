"""Path items of OpenAPI v3: the operations of a resource and the query parameters of each.

kubectl finds the PATCH operation of a kind by its `x-kubernetes-group-version-kind` and looks there for `dryRun` and
`fieldValidation`; the rest is for code generators and for the fuzz tests. Protobuf is not among the media types: it is
read, never written.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.apiserver.resources.registry import ServedResource, Subresource

Json = dict[str, Any]

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
# The same parameter with another description: an apply must name its manager.
_PATCH: Final = ("dryRun", "fieldManager of a patch", "fieldValidation", "force")
_DELETE: Final = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
_SELECT: Final = (
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
)
_MEDIA_TYPES: Final = ("application/json", "application/yaml")
_STREAM: Final = "application/json;stream=watch"
_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_TEXTS: Final = {"200": "OK", "201": "Created", "202": "Accepted"}


class _Verb(NamedTuple):
    """An operation: its HTTP method, Kubernetes' name for it, the start of its id, its parameters and answers."""

    method: str
    action: str
    id_start: str
    parameters: tuple[str, ...]
    codes: tuple[str, ...]


_VERBS: Final = {
    "get": _Verb("get", "get", "read", (), ("200",)),
    "list": _Verb("get", "list", "list", tuple(sorted((*_SELECT, "allowWatchBookmarks", "watch"))), ("200",)),
    "create": _Verb("post", "post", "create", _WRITE, ("200", "201", "202")),
    "update": _Verb("put", "put", "replace", _WRITE, ("200", "201")),
    "patch": _Verb("patch", "patch", "patch", _PATCH, ("200", "201")),
    "delete": _Verb("delete", "delete", "delete", _DELETE, ("200", "202")),
    "deletecollection": _Verb("delete", "deletecollection", "delete", tuple(sorted((*_SELECT, *_DELETE))), ("200",)),
}
_ON_COLLECTION: Final = ("list", "create", "deletecollection")
_ON_OBJECT: Final = ("get", "update", "delete", "patch")
_ON_PART: Final = ("get", "update", "create", "patch")


class DescribedResource(NamedTuple):
    """A resource with the names of the components that describe it, its list and the bodies of its subresources."""

    resource: ServedResource
    component: str
    list_component: str
    part_components: dict[str, str]


def build_path_items(described: DescribedResource) -> Json:
    """All paths of a resource."""
    resource = described.resource
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    base = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
    items = {
        base: _build_item(described, _ON_COLLECTION, named=False),
        f"{base}/{{name}}": _build_item(described, _ON_OBJECT, named=True),
        **{f"{base}/{{name}}/{part.name}": _build_part_item(described, part) for part in resource.subresources},
    }
    if resource.namespaced and "list" in resource.verbs:
        everywhere = _build_operation(described, "list", scope="")
        everywhere["operationId"] += "ForAllNamespaces"
        items[f"{root}/{resource.plural}"] = {"get": everywhere, "parameters": [build_parameter("pretty")]}
    return {path: item for path, item in sorted(items.items()) if item}


def build_tag(group: str, version: str) -> str:
    title = _format_title(group)
    return f"{title[:1].lower()}{title[1:]}_{version}"


def build_resources_operation(group: str, version: str) -> Json:
    """The operation that answers with the resources of a group version."""
    component = f"{META}.APIResourceList"
    return {
        "tags": [build_tag(group, version)],
        "description": "get available resources",
        "operationId": f"get{_format_title(group)}{version.capitalize()}APIResources",
        "responses": _build_responses(("200",), component),
    }


@cache
def _load_parameters() -> dict[str, Json]:
    found: dict[str, Json] = json.loads((resources.files(__package__) / "parameters.json").read_bytes())
    return found


def build_parameter(name: str) -> Json:
    return _load_parameters()[name]


def _build_item(described: DescribedResource, verbs: Sequence[str], *, named: bool) -> Json:
    resource = described.resource
    operations = {
        _VERBS[verb].method: _build_operation(described, verb, scope="Namespaced" if resource.namespaced else "")
        for verb in verbs
        if verb in resource.verbs
    }
    return (
        {**operations, "parameters": _build_path_parameters(resource, resource.kind if named else "")}
        if operations
        else {}
    )


def _build_part_item(described: DescribedResource, part: Subresource) -> Json:
    offered = [verb for verb in _ON_PART if verb in part.verbs]
    operations = {_VERBS[verb].method: _build_part_operation(described, part, verb) for verb in offered}
    return {**operations, "parameters": _build_path_parameters(described.resource, part.kind)}


def _build_path_parameters(resource: ServedResource, named_kind: str) -> list[Json]:
    name = {"name": "name", "in": "path", "description": f"name of the {named_kind}", "required": True}
    given = [{**name, "schema": {"type": "string", "uniqueItems": True}}] if named_kind else []
    return [*given, *([build_parameter("namespace")] if resource.namespaced else []), build_parameter("pretty")]


def _build_operation(described: DescribedResource, verb: str, *, scope: str) -> Json:
    resource, known = described.resource, _VERBS[verb]
    start = f"{known.id_start}{_format_title(resource.group)}{resource.version.capitalize()}"
    collection = "Collection" if verb == "deletecollection" else ""
    component = described.list_component if verb == "list" else described.component
    if known.method == "delete":
        component = f"{META}.Status"
    return {
        "tags": [build_tag(resource.group, resource.version)],
        "description": _describe(verb, resource.kind),
        "operationId": f"{start}{collection}{scope}{resource.kind}",
        **_describe_request(verb, described.component, custom=resource.is_custom),
        "responses": _build_responses(known.codes, component, streamed=verb == "list"),
        **_build_extensions(known, resource.group, resource.version, resource.kind),
    }


def _build_part_operation(described: DescribedResource, part: Subresource, verb: str) -> Json:
    resource, known = described.resource, _VERBS[verb]
    scope = "Namespaced" if resource.namespaced else ""
    start = f"{known.id_start}{_format_title(resource.group)}{resource.version.capitalize()}"
    component = described.part_components[part.name]
    group, version = (part.group, part.version) if part.version else (resource.group, resource.version)
    return {
        "tags": [build_tag(resource.group, resource.version)],
        "description": _describe_part(verb, part.name, resource.kind),
        "operationId": f"{start}{scope}{resource.kind}{part.name.capitalize()}",
        **_describe_request(verb, component, custom=resource.is_custom),
        "responses": _build_responses(known.codes, component),
        **_build_extensions(known, group, version, part.kind),
    }


def _build_extensions(verb: _Verb, group: str, version: str, kind: str) -> Json:
    identity = {"group": group, "version": version, "kind": kind}
    return {"x-kubernetes-action": verb.action, "x-kubernetes-group-version-kind": identity}


def _describe_request(verb: str, component: str, *, custom: bool) -> Json:
    """Query parameters and body of a request."""
    request: Json = (
        {"parameters": [build_parameter(name) for name in names]} if (names := _VERBS[verb].parameters) else {}
    )
    if verb in {"create", "update"}:
        request["requestBody"] = {"content": _build_content(("*/*",), component), "required": True}
    elif verb in {"delete", "deletecollection"}:
        request["requestBody"] = {"content": _build_content(("*/*",), f"{META}.DeleteOptions")}
    elif verb == "patch":
        types = _PATCHES if custom else (*_PATCHES, _STRATEGIC)
        request["requestBody"] = {"content": _build_content(types, f"{META}.Patch"), "required": True}
    return request


def _build_responses(codes: Sequence[str], component: str, *, streamed: bool = False) -> Json:
    types = sorted((*_MEDIA_TYPES, _STREAM)) if streamed else _MEDIA_TYPES
    answers: Json = {code: {"description": _TEXTS[code], "content": _build_content(types, component)} for code in codes}
    return {**answers, "401": {"description": "Unauthorized"}}


def _build_content(types: Sequence[str], component: str) -> Json:
    return {type_: {"schema": {"$ref": f"#/components/schemas/{component}"}} for type_ in types}


def _describe(verb: str, kind: str) -> str:
    article = "an" if kind[:1] in "AEIOU" else "a"
    return {
        "get": f"read the specified {kind}",
        "list": f"list or watch objects of kind {kind}",
        "create": f"create {article} {kind}",
        "update": f"replace the specified {kind}",
        "patch": f"partially update the specified {kind}",
        "delete": f"delete {article} {kind}",
        "deletecollection": f"delete collection of {kind}",
    }[verb]


def _describe_part(verb: str, part: str, kind: str) -> str:
    article = "an" if kind[:1] in "AEIOU" else "a"
    return {
        "get": f"read {part} of the specified {kind}",
        "create": f"create {part} of {article} {kind}",
        "update": f"replace {part} of the specified {kind}",
        "patch": f"partially update {part} of the specified {kind}",
    }[verb]


def _format_title(group: str) -> str:
    """`rbac.authorization.k8s.io` → `RbacAuthorization`, the core group → `Core`."""
    parts = (group or "core").removesuffix(".k8s.io").replace("-", ".").split(".")
    return "".join(part[:1].upper() + part[1:] for part in parts)

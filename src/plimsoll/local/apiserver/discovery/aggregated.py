"""Aggregated discovery: every group, version and resource in one document, v2 or v2beta1.

kubectl asks `/api` and `/apis` for it before every command. Both versions have the same content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.discovery.unaggregated import collect_names, list_parts, list_verbs

if TYPE_CHECKING:
    from plimsoll.local.apiserver.discovery.groups import Versions
    from plimsoll.local.apiserver.resources.registry import ServedResource

Json = dict[str, Any]

GROUP: Final = "apidiscovery.k8s.io"
KIND: Final = "APIGroupDiscoveryList"
VERSIONS: Final = ("v2", "v2beta1")


def build_content_type(version: str) -> str:
    """What the client sent, without parameters that do not change the content (`profile`)."""
    return f"application/json;g={GROUP};v={version};as={KIND}"


def build_discovery_list(groups: dict[str, Versions], version: str) -> Json:
    listed = [_group(name, versions) for name, versions in groups.items()]
    return {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "metadata": {}, "items": listed}


def _group(name: str, versions: Versions) -> Json:
    listed = [
        {"version": version, "resources": [_build_resource(resource) for resource in resources], "freshness": "Current"}
        for version, resources in versions.items()
    ]
    return {"metadata": {"name": name} if name else {}, "versions": listed}


def _build_resource(resource: ServedResource) -> Json:
    entry = {
        "resource": resource.plural,
        "responseKind": _build_response_kind(resource, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list_verbs(resource),
        **collect_names(resource),
    }
    parts = [
        {
            "subresource": part.name,
            "responseKind": _build_response_kind(resource, part.kind, group=part.group, version=part.version),
            "verbs": list(part.verbs),
        }
        for part in list_parts(resource)
    ]
    return {**entry, "subresources": parts} if parts else entry


def _build_response_kind(resource: ServedResource, kind: str, *, group: str = "", version: str = "") -> Json:
    """Built-in resources leave out a group and version that are their own, custom ones name them."""
    if version or not resource.is_custom:
        return {"group": group, "version": version, "kind": kind}
    return {"group": resource.group, "version": resource.version, "kind": kind}

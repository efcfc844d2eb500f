"""The unaggregated discovery documents: versions, groups and resources.

Older clients read them; kubectl and client-go prefer the aggregated form (`aggregated`). Subresources are listed after
their resource.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.discovery.groups import Versions, format_group_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.local.apiserver.resources.registry import ServedResource, Subresource

Json = dict[str, Any]

# A definition's resources list their verbs in this order, built-in ones by the alphabet.
_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def build_api_versions(server_address: str) -> Json:
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def build_group_list(groups: dict[str, Versions]) -> Json:
    listed = [_group(name, versions) for name, versions in groups.items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(name: str, versions: Versions) -> Json:
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: Versions) -> Json:
    listed = [{"groupVersion": format_group_version(name, version), "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def build_resource_list(group_name: str, version: str, resources: Iterable[ServedResource]) -> Json:
    head: Json = {"kind": "APIResourceList"}
    if group_name:
        head["apiVersion"] = "v1"
    listed = [entry for resource in resources for entry in _build_entries(resource)]
    return {**head, "groupVersion": format_group_version(group_name, version), "resources": listed}


def _build_entries(resource: ServedResource) -> Iterator[Json]:
    yield {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list_verbs(resource),
        **collect_names(resource),
        **({"storageVersionHash": stored} if (stored := compute_storage_version_hash(resource)) else {}),
    }
    for part in list_parts(resource):
        own = {"group": part.group, "version": part.version}
        yield {
            "name": f"{resource.plural}/{part.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **{key: value for key, value in own.items() if value},
            "kind": part.kind,
            "verbs": list(part.verbs),
        }


def list_verbs(resource: ServedResource) -> list[str]:
    if not resource.is_custom:
        return list(resource.verbs)
    return [verb for verb in _CUSTOM_VERBS if verb in resource.verbs]


def collect_names(resource: ServedResource) -> Json:
    """Short names and categories, left out where there are none."""
    named = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {key: value for key, value in named.items() if value}


def list_parts(resource: ServedResource) -> list[Subresource]:
    return sorted(resource.subresources, key=lambda part: part.name, reverse=resource.is_custom)


def compute_storage_version_hash(resource: ServedResource) -> str:
    """Shows clients when the stored version changes. Resources that are not stored have none."""
    if resource.storage_version_hash or "watch" not in resource.verbs:
        return resource.storage_version_hash
    stored_group, _, stored_version = resource.storage_version.rpartition("/")
    digest = hashlib.sha256(f"{stored_group}/{stored_version}/{resource.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()

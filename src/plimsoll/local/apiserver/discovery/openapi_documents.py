"""OpenAPI v3: an index with a hash for every group version, and a document for each.

A client caches a document as long as the index has the same hash, so the hash is that of the bytes themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.discovery.openapi_operations import build_path_items, build_resources_operation
from plimsoll.local.apiserver.discovery.openapi_schemas import collect_components, describe
from plimsoll.local.apiserver.discovery.server_version import GIT_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.local.apiserver.resources.registry import ServedResource

Json = dict[str, Any]


def build_address(group: str, version: str) -> str:
    """`api/v1`, `apis/apps/v1`: how the index names a group version."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def index(hashes: dict[str, str]) -> Json:
    relative = {name: f"/openapi/v3/{name}?hash={hashes[name]}" for name in sorted(hashes)}
    return {"paths": {name: {"serverRelativeURL": url} for name, url in relative.items()}}


def build_group_version_document(group: str, version: str, resources: Iterable[ServedResource]) -> Json:
    paths: Json = {f"/{build_address(group, version)}/": {"get": build_resources_operation(group, version)}}
    made: dict[str, Json] = {}
    for resource in resources:
        described, own = describe(resource)
        made |= own
        paths |= build_path_items(described)
    security = {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": paths,
        "components": {"schemas": collect_components(paths, made), "securitySchemes": {"BearerToken": security}},
    }

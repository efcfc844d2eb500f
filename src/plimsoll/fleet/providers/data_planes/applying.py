"""Applies manifests in a cluster, and finds out whether they were applied as they are now.

Each object carries the hash of its manifest as an annotation: an object with the same hash is left alone, so a
repetition writes nothing, and a manifest that changed is applied again. Fields that other writers own stay theirs.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kube.discovery import build_metadata_resource, fetch_resources
from plimsoll.kube.errors import NotFound, UnreadableAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.client import Client
    from plimsoll.kube.discovery import ServedResource
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.objects.api.resource import Resource

HASH_ANNOTATION: Final = "fleet.plimsoll.io/applied"
_HASH_CHARACTERS: Final = 16
_DEFAULT_NAMESPACE: Final = "default"


class ManifestApplier:
    """Writes to one cluster. What it serves is read once per kind."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: dict[str, tuple[ServedResource, ...]] = {}

    async def apply_all(self, manifests: Iterable[dict[str, Any]]) -> None:
        """In the given order. Raises `ServerTrouble`; what was applied before stays."""
        for manifest in manifests:
            await self.apply(manifest)

    async def apply(self, manifest: dict[str, Any]) -> None:
        if await self.is_applied(manifest):
            return
        resource = await self._find_resource(manifest)
        metadata = manifest["metadata"]
        annotations = {**(metadata.get("annotations") or {}), HASH_ANNOTATION: hash_manifest(manifest)}
        body = {**manifest, "metadata": {**metadata, "annotations": annotations}}
        namespace = _get_namespace(resource, metadata)
        await self._client.apply(resource, metadata["name"], body, namespace=namespace, force=True)

    async def are_applied(self, manifests: Iterable[dict[str, Any]]) -> bool:
        for manifest in manifests:
            if not await self.is_applied(manifest):
                return False
        return True

    async def is_applied(self, manifest: dict[str, Any]) -> bool:
        """Whether the object is there with the hash of this manifest. A kind that is not served is not there."""
        try:
            resource = await self._find_resource(manifest)
            metadata = manifest["metadata"]
            there: WireObject = await self._client.get(
                resource, metadata["name"], namespace=_get_namespace(resource, metadata)
            )
        except (NotFound, KindNotServed):
            return False
        return there.metadata.annotations.get(HASH_ANNOTATION) == hash_manifest(manifest)

    async def _find_resource(self, manifest: dict[str, Any]) -> Resource:
        """Raises `KindNotServed`."""
        api_version, kind = manifest["apiVersion"], manifest["kind"]
        served = self._served.get(api_version)
        if served is None:
            served = await fetch_resources(self._client, api_version)
            if served:
                self._served[api_version] = served
        for resource in served:
            if resource.kind == kind and "/" not in resource.name:
                return build_metadata_resource(api_version, resource)
        raise KindNotServed(f"{api_version} {kind}")


class KindNotServed(UnreadableAnswer):
    """The cluster does not serve a kind: its definition is not established yet, or missing."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"the cluster does not serve {kind} yet")


def hash_manifest(manifest: dict[str, Any]) -> str:
    encoded = msgspec.json.encode(manifest, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:_HASH_CHARACTERS]


def _get_namespace(resource: Resource, metadata: dict[str, Any]) -> str:
    return (metadata.get("namespace") or _DEFAULT_NAMESPACE) if resource.namespaced else ""

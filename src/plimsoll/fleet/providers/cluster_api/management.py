"""The management cluster: reads and writes of `Cluster` objects and of their kubeconfig Secrets.

Calls raise `ServerTrouble` and `InvalidInput`; the provider makes answers of them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.provided import NAME_PREFIX
from plimsoll.fleet.providers.cluster_api.settings import find_region
from plimsoll.fleet.providers.cluster_api.topology import MANAGED_BY, US, VERSIONS
from plimsoll.kube.configuration.inline import read_inline_access
from plimsoll.kube.discovery import fetch_resources
from plimsoll.kube.errors import NotFound, UnreadableAnswer
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.objects.api.cluster_api import CLUSTER_API_GROUP, WorkloadCluster, build_cluster_api_resource
from plimsoll.objects.api.core import Namespace, Secret

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.codec.decoding import DecodedList, RawObject

Json = dict[str, Any]
_KUBECONFIG_KEY: Final = "value"


class ClusterApiMissing(UnreadableAnswer):
    """The management cluster serves no version of `Cluster` that we write."""

    def __init__(self) -> None:
        versions = " or ".join(f"{CLUSTER_API_GROUP}/{version}" for version in VERSIONS)
        super().__init__(f"the management cluster does not serve Cluster in {versions}: is Cluster API installed?")


class LiveCluster:
    """A Cluster as it was read: decoded, and whole as JSON."""

    def __init__(self, raw: RawObject[WorkloadCluster]) -> None:
        self.view = raw.view
        self.body: Json = msgspec.json.decode(raw.raw)


class ManagementCluster:
    """One management cluster."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._resource: Resource | None = None

    async def find_version(self) -> str:
        return (await self._get_resource()).version

    async def find(self, name: str, *, namespace: str) -> LiveCluster | None:
        """None: the server says that there is no such Cluster, or no such namespace."""
        resource = await self._get_resource()
        try:
            return LiveCluster(await self._client.get_with_raw(resource, name, namespace=namespace))
        except NotFound:
            if await self._is_served(resource):
                return None
            self._resource = None  # The definition was replaced or removed: nothing is known about any cluster.
            raise ClusterApiMissing from None

    async def list_ours(self) -> list[WorkloadCluster]:
        """Clusters in namespaces of ours with names of ours. Raises if one cannot be decoded: it may be ours."""
        resource = await self._get_resource()
        listed: DecodedList[WorkloadCluster] = await self._client.list(resource)
        if listed.bad:
            raise UnreadableAnswer(f"a Cluster cannot be read: {listed.bad[0].problem}")
        return [
            cluster
            for cluster in listed.items
            if cluster.metadata.name.startswith(NAME_PREFIX) and find_region(cluster.metadata.namespace)
        ]

    async def apply(self, body: Json) -> LiveCluster:
        """Server-side apply; fields that others own are taken over."""
        resource = await self._get_resource()
        metadata = body["metadata"]
        await self._client.apply(resource, metadata["name"], body, namespace=metadata["namespace"], force=True)
        return LiveCluster(await self._client.get_with_raw(resource, metadata["name"], namespace=metadata["namespace"]))

    async def ensure_namespace(self, namespace: str) -> None:
        try:
            await self._client.get(Namespace, namespace)
        except NotFound:
            body = {"metadata": {"name": namespace, "labels": {MANAGED_BY: US}}}
            await self._client.apply(Namespace, namespace, body, force=True)

    async def delete(self, cluster: WorkloadCluster) -> None:
        """This very Cluster, not another one that has its name by now."""
        metadata = cluster.metadata
        options = DeleteOptions(uid=metadata.uid)
        resource = await self._get_resource()
        # An earlier call may have done it; the next read says so.
        with suppress(NotFound):
            await self._client.delete(resource, metadata.name, namespace=metadata.namespace, options=options)

    async def read_access(self, name: str, *, namespace: str) -> Access:
        """The API server of a cluster, and the identity in it, by its Secret. Raises `InvalidInput` for a bad one."""
        secret_name = f"{name}-kubeconfig"
        source = f"Secret {namespace}/{secret_name}"
        secret = await self._client.get(Secret, secret_name, namespace=namespace)
        data = secret.data.get(_KUBECONFIG_KEY, b"")
        if not data:
            raise InvalidInput("has no kubeconfig", path=f"{source}: data.{_KUBECONFIG_KEY}")
        return read_inline_access(data, source=source, clock=self._clock)

    async def _get_resource(self) -> Resource:
        """In the version that we prefer of those that are served. Found once."""
        if self._resource is None:
            for version in VERSIONS:
                resource = build_cluster_api_resource(WorkloadCluster, group=CLUSTER_API_GROUP, version=version)
                if await self._is_served(resource):
                    self._resource = resource
                    break
            else:
                raise ClusterApiMissing
        return self._resource

    async def _is_served(self, resource: Resource) -> bool:
        served = await fetch_resources(self._client, resource.api_version)
        return any(found.name == resource.plural for found in served)

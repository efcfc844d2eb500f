"""Changes the cluster: namespaces, ManagedKafkas with their Secrets, and objects of instances.

Every call may be repeated.

A namespace is created, never applied: one that exists without the label of the agent belongs to others.
Only a namespace with the label of the instance is ever deleted, and only the very one that was seen.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.fleet.agent.performed_actions import InstanceProblem
from plimsoll.fleet.agent.planning.reserved_objects import PRIORITY, build_priority_class
from plimsoll.fleet.agent.wire.managed_kafka_objects import build_credentials, build_managed_kafka, build_namespace
from plimsoll.fleet.agent.wire.names import NAMESPACE_LABEL, PRIORITY_CLASS
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.objects.api.core import Namespace, Secret
from plimsoll.objects.api.kafka import Kafka, KafkaNodePool
from plimsoll.objects.api.managed_kafkas import ManagedKafka
from plimsoll.objects.api.policy import PriorityClass
from plimsoll.objects.api.workloads import Deployment

if TYPE_CHECKING:
    from plimsoll.fleet.agent.model.instances import ListedKafka
    from plimsoll.fleet.agent.observer import ClusterView
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import WireObject

_KINDS: Final[dict[str, type[WireObject]]] = {"Kafka": Kafka, "KafkaNodePool": KafkaNodePool, "Deployment": Deployment}
_HASH_CHARACTERS: Final = 16


class NamespaceTaken(InstanceProblem):
    """A namespace of this name exists and is not the instance's."""

    def __init__(self, namespace: str) -> None:
        super().__init__(f"namespace {namespace} exists and is not one of the agent; nothing is made in it")


class AgentActuator:
    """Writes of the agent. Raises `ApiCallFailed`."""

    def __init__(self, client: Client, view: ClusterView) -> None:
        self._client = client
        self._view = view
        self._applied: dict[tuple[str, str, str], tuple[str, int]] = {}
        """By kind, namespace and name: the manifest that was applied last, and the generation that it gave."""
        self._has_priority_class = False

    # ---- instances

    async def create(self, item: ListedKafka) -> None:
        """Namespace, Secret and ManagedKafka. Raises `NamespaceTaken`."""
        try:
            await self._client.create(Namespace, build_namespace(item))
        except AlreadyExists:
            there = await self._client.get(Namespace, item.namespace)
            if there.metadata.labels.get(NAMESPACE_LABEL) != item.id:
                raise NamespaceTaken(item.namespace) from None
        await self.update(item)

    async def update(self, item: ListedKafka) -> None:
        if item.credentials:
            secret = build_credentials(item)
            await self._client.apply(Secret, secret["metadata"]["name"], secret, namespace=item.namespace, force=True)
        manifest = build_managed_kafka(item)
        await self._client.apply(ManagedKafka, item.name, manifest, namespace=item.namespace, force=True)

    async def mark_deleted(self, item: ListedKafka) -> None:
        """Nothing else of the object changes."""
        patch = {"spec": {"deleted": True}}
        await self._client.merge_patch(ManagedKafka, item.name, patch, namespace=item.namespace)

    async def delete_namespace(self, namespace: str, kafka_id: str) -> None:
        """With everything in it. Raises `NamespaceTaken` if it is not that of the instance."""
        try:
            there = await self._client.get(Namespace, namespace)
        except NotFound:
            return
        metadata = there.metadata
        if metadata.labels.get(NAMESPACE_LABEL) != kafka_id:
            raise NamespaceTaken(namespace)
        if metadata.deletion_timestamp is None:
            await self._client.delete(Namespace, namespace, options=DeleteOptions(uid=metadata.uid))

    async def is_gone(self, namespace: str) -> bool:
        """Whether a namespace does not exist, by a read of now: caches may be late."""
        try:
            await self._client.get(Namespace, namespace)
        except NotFound:
            return True
        return False

    async def write_status(self, managed: ManagedKafka, status: dict[str, Any]) -> None:
        metadata = managed.metadata
        patch = {"metadata": {"uid": metadata.uid}, "status": status}
        await self._client.merge_patch(
            ManagedKafka, metadata.name, patch, namespace=metadata.namespace, subresource="status"
        )

    # ---- objects of instances

    def is_applied(self, manifest: dict[str, Any]) -> bool:
        """Whether the object is as this process applied it: its spec has not changed since."""
        known = self._applied.get(_get_key(manifest))
        generation = self._view.get_generation(manifest)
        if known is None or generation is None:
            return False
        digest, applied = known
        # A cache that is late shows an earlier generation.
        return digest == _hash(manifest) and generation <= applied

    async def apply(self, manifest: dict[str, Any]) -> None:
        metadata = manifest["metadata"]
        kind = _KINDS[manifest["kind"]]
        applied = await self._client.apply(
            kind, metadata["name"], manifest, namespace=metadata["namespace"], force=True
        )
        self._applied[_get_key(manifest)] = (_hash(manifest), int(applied.metadata.generation))

    def forget(self, namespace: str) -> None:
        """The instance is gone."""
        for key in [key for key in self._applied if key[1] == namespace]:
            del self._applied[key]

    async def ensure_priority_class(self) -> str:
        """The class of reserved pods exists. Returns what is wrong with it; empty: nothing."""
        if self._has_priority_class:
            return ""
        try:
            await self._client.create(PriorityClass, build_priority_class())
        except AlreadyExists:
            there = await self._client.get(PriorityClass, PRIORITY_CLASS)
            if there.value != PRIORITY:
                return f"PriorityClass {PRIORITY_CLASS} has the value {there.value}, not {PRIORITY}"
        self._has_priority_class = True
        return ""


def _get_key(manifest: dict[str, Any]) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata["namespace"], metadata["name"]


def _hash(manifest: dict[str, Any]) -> str:
    encoded = msgspec.json.encode(manifest, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:_HASH_CHARACTERS]

"""What the agent sees of its cluster: caches of its objects, and what it reads anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.agent.model.instances import LocalInstance
from plimsoll.fleet.agent.planning.capacity import read_group_limits
from plimsoll.fleet.agent.settings import NODE_STATUS_MAP
from plimsoll.fleet.agent.wire.managed_kafka_objects import read_local_instance
from plimsoll.fleet.agent.wire.names import AGENT, DEPLOYMENT, MANAGED_BY, NAMESPACE_LABEL, RESERVED
from plimsoll.fleet.agent.wire.operator_deployments import PATH, SELECTORS, read_operator_deployments
from plimsoll.kube.errors import NotFound, ServerTrouble
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.core import ConfigMap, Namespace
from plimsoll.objects.api.kafka import Kafka, KafkaNodePool, StrimziPodSet
from plimsoll.objects.api.managed_kafkas import ManagedKafka
from plimsoll.objects.api.workloads import Deployment
from plimsoll.objects.codec.manifests import read_documents

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.fleet.agent.model.operators import OperatorDeployment
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory

_STATUS_KEY: Final = "status"


class ClusterView:
    """The caches. Made before the informers run."""

    def __init__(self, informers: SharedInformerFactory) -> None:
        ours = Selection(labels=f"{MANAGED_BY}={AGENT}")
        self._namespaces = informers.get_informer(Namespace, Selection(labels=NAMESPACE_LABEL))
        self._managed = informers.get_informer(ManagedKafka)
        self._kafkas = informers.get_informer(Kafka, ours)
        self._pools = informers.get_informer(KafkaNodePool, ours)
        self._pod_sets = informers.get_informer(StrimziPodSet)
        self._deployments = informers.get_informer(Deployment, Selection(labels=f"{DEPLOYMENT}={RESERVED}"))
        self._informers = (
            *(self._namespaces, self._managed, self._kafkas, self._pools),
            *(self._pod_sets, self._deployments),
        )

    def call_on_change(self, changed: Callable[[], None]) -> None:
        for informer in self._informers:
            informer.add_handler(lambda _change: changed(), name=AGENT)

    async def wait_until_synced(self) -> None:
        for informer in self._informers:
            await informer.wait_until_synced()

    def list_local(self) -> dict[str, LocalInstance]:
        """The instances by namespace. A namespace without the agent's label is none of them."""
        names = [namespace.metadata.name for namespace in self._namespaces.cache.list()]
        names += [name for _, name in self._namespaces.cache.bad]
        found = {name: self.get_local(name) for name in names}
        return {name: instance for name, instance in found.items() if instance is not None}

    def get_local(self, name: str) -> LocalInstance | None:
        """The instance of a namespace. One with several ManagedKafkas is not readable."""
        if ("", name) in self._namespaces.cache.bad:
            return LocalInstance(namespace=name, is_unreadable=True)
        namespace = self._namespaces.cache.get(name)
        if namespace is None:
            return None
        managed = self._managed.cache.list(name)
        is_unreadable = len(managed) > 1 or any(key[0] == name for key in self._managed.cache.bad)
        is_terminating = namespace.metadata.deletion_timestamp is not None
        if is_unreadable or not managed:
            return LocalInstance(
                namespace=name,
                id=namespace.metadata.labels.get(NAMESPACE_LABEL, ""),
                is_unreadable=is_unreadable,
                is_terminating=is_terminating,
            )
        return read_local_instance(managed[0], is_terminating=is_terminating)

    def list_managed(self) -> tuple[ManagedKafka, ...]:
        """In the order of their namespaces."""
        names = {
            (instance.namespace, instance.name) for instance in self.list_local().values() if not instance.is_unreadable
        }
        found = [
            managed
            for managed in self._managed.cache.list()
            if (managed.metadata.namespace, managed.metadata.name) in names
        ]
        return tuple(sorted(found, key=lambda managed: managed.metadata.namespace))

    def get_kafka(self, namespace: str, name: str) -> Kafka | None:
        return self._kafkas.cache.get(name, namespace)

    def get_pool(self, namespace: str, name: str) -> KafkaNodePool | None:
        return self._pools.cache.get(name, namespace)

    def get_pod_set(self, namespace: str, name: str) -> StrimziPodSet | None:
        return self._pod_sets.cache.get(name, namespace)

    def get_deployment(self, namespace: str, name: str) -> Deployment | None:
        return self._deployments.cache.get(name, namespace)

    def has_kafka(self, namespace: str) -> bool:
        """Whether a namespace has a Kafka of the agent, readable or not."""
        return bool(self._kafkas.cache.list(namespace)) or any(key[0] == namespace for key in self._kafkas.cache.bad)

    def get_generation(self, manifest: dict[str, Any]) -> int | None:
        """The generation of the object that a manifest is about; None: the cache has none."""
        metadata = manifest["metadata"]
        caches: dict[str, Any] = {
            "Kafka": self._kafkas.cache,
            "KafkaNodePool": self._pools.cache,
            "Deployment": self._deployments.cache,
        }
        found = caches[manifest["kind"]].get(metadata["name"], metadata["namespace"])
        return None if found is None else int(found.metadata.generation)


async def read_operators(client: Client) -> tuple[OperatorDeployment, ...]:
    """The Kafka operators of the cluster. Raises `ApiCallFailed`."""
    found: dict[OperatorDeployment, None] = {}
    for selector in SELECTORS:
        listed = await client.get_json(PATH, [("labelSelector", selector)])
        found |= dict.fromkeys(read_operator_deployments(listed))
    return tuple(found)


async def read_node_group_limits(client: Client, namespace: str) -> dict[str, int] | str:
    """Maximum sizes of node groups, of the node autoscaler's status; a text: why they are not known."""
    try:
        stored = await client.get(ConfigMap, NODE_STATUS_MAP, namespace=namespace)
        text = stored.data.get(_STATUS_KEY, "").encode()
        documents = [document for _, document in read_documents(text, source=NODE_STATUS_MAP)]
    except NotFound:
        return "there is no status of a node autoscaler"
    except (ServerTrouble, InvalidInput) as error:
        return f"the status of the node autoscaler cannot be read: {error}"
    limits = read_group_limits(documents[0]) if len(documents) == 1 else None
    return "the status of the node autoscaler has no node groups" if limits is None else limits

"""The Kafka and the node pools of an instance, by the table of sizes (docs/design/fleet.md 17.2). Pure.

Plimsoll's Kafka operator and Strimzi reconcile the same objects. Listeners for clients outside the cluster, with their
certificates and logins, are not part of it (section 0 of the design): the cluster has one listener inside, with TLS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.quantity import Quantity
from plimsoll.core.values import Value
from plimsoll.fleet.agent.planning.pod_placement import build_placement, build_role_labels
from plimsoll.fleet.agent.planning.sizes import compute_shape
from plimsoll.fleet.agent.wire.managed_kafka_objects import read_instance_type
from plimsoll.fleet.agent.wire.names import (
    AGENT,
    BROKER_ROLE,
    BROKERS,
    CLUSTER_LABEL,
    CONTROLLER_ROLE,
    CONTROLLERS,
    MANAGED_BY,
    NAMESPACE_LABEL,
    POOL_LABEL,
    PROFILE_TYPE,
    STRIMZI_VERSION_LABEL,
    ZONE,
)
from plimsoll.objects.api.kafka import KAFKA_GROUP, STRIMZI_VERSION

if TYPE_CHECKING:
    from plimsoll.fleet.agent.planning.sizes import InstanceShape, PodShape
    from plimsoll.objects.api.managed_kafkas import ManagedKafka

_API_VERSION: Final = f"{KAFKA_GROUP}/{STRIMZI_VERSION}"
_BROKER_IDS: Final = "[0-999]"
_CONTROLLER_IDS: Final = "[1000-1099]"
"""Ranges of their own: brokers that are added later follow those that are there."""
_LISTENER: Final = {"name": "tls", "port": 9093, "type": "internal", "tls": True}
_LONGEST_LABEL: Final = 63


class KafkaManifests(Value):
    """The objects of an instance, in the order in which they are applied."""

    kafka: dict[str, Any]
    pools: tuple[dict[str, Any], ...]

    @property
    def all(self) -> tuple[dict[str, Any], ...]:
        return (*self.pools, self.kafka)


def compute_managed_shape(managed: ManagedKafka, units: int) -> InstanceShape:
    """The shape of an instance with these units."""
    capacity = managed.spec.capacity if isinstance(managed.spec.capacity, dict) else {}
    retention = Quantity.parse(str(capacity.get("maxDataRetentionSize", "0"))).round_up()
    return compute_shape(read_instance_type(managed), units, retention_bytes=retention)


def build_kafka_manifests(managed: ManagedKafka, shape: InstanceShape) -> KafkaManifests:
    pools = [_build_pool(managed, shape, BROKERS)]
    if shape.controllers:
        pools.insert(0, _build_pool(managed, shape, CONTROLLERS))
    return KafkaManifests(kafka=_build_kafka(managed, shape), pools=tuple(pools))


def _build_kafka(managed: ManagedKafka, shape: InstanceShape) -> dict[str, Any]:
    versions = managed.spec.versions
    metadata = _build_metadata(managed, managed.metadata.name)
    metadata["annotations"] = {"strimzi.io/node-pools": "enabled", "strimzi.io/kraft": "enabled"}
    if versions.strimzi and len(versions.strimzi) <= _LONGEST_LABEL:
        metadata["labels"][STRIMZI_VERSION_LABEL] = versions.strimzi
    kafka: dict[str, Any] = {"listeners": [_LISTENER], "config": _build_config(shape)}
    if versions.kafka:
        kafka["version"] = versions.kafka
    if versions.kafka_ibp:
        kafka["metadataVersion"] = versions.kafka_ibp
    if shape.is_spread:
        kafka["rack"] = {"topologyKey": ZONE}
    rebalanced = [{"mode": "add-brokers"}, {"mode": "remove-brokers"}]
    return {
        "apiVersion": _API_VERSION,
        "kind": "Kafka",
        "metadata": metadata,
        "spec": {"kafka": kafka, "cruiseControl": {"autoRebalance": rebalanced}},
    }


def _build_config(shape: InstanceShape) -> dict[str, Any]:
    copies, in_sync = (3, 2) if shape.is_spread else (1, 1)
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
    }


def _build_pool(managed: ManagedKafka, shape: InstanceShape, name: str) -> dict[str, Any]:
    is_brokers = name == BROKERS
    role = BROKER_ROLE if is_brokers else CONTROLLER_ROLE
    roles = [BROKER_ROLE] if shape.controllers else [CONTROLLER_ROLE, BROKER_ROLE]
    pods: PodShape = shape.broker if is_brokers else shape.controller
    storage_bytes = shape.broker_storage_bytes if is_brokers else _CONTROLLER_STORAGE_BYTES
    selector = {CLUSTER_LABEL: managed.metadata.name, POOL_LABEL: name}
    metadata = _build_metadata(managed, name)
    metadata["labels"][CLUSTER_LABEL] = managed.metadata.name
    metadata["annotations"] = {"strimzi.io/next-node-ids": _BROKER_IDS if is_brokers else _CONTROLLER_IDS}
    return {
        "apiVersion": _API_VERSION,
        "kind": "KafkaNodePool",
        "metadata": metadata,
        "spec": {
            "replicas": shape.brokers if is_brokers else shape.controllers,
            "roles": roles if is_brokers else [CONTROLLER_ROLE],
            "storage": {
                "type": "jbod",
                "volumes": [{"id": 0, "type": "persistent-claim", "size": _format_bytes(storage_bytes)}],
            },
            "resources": {"requests": pods.requests, "limits": {"memory": pods.requests["memory"]}},
            "template": {
                "pod": {
                    "metadata": {"labels": build_role_labels(shape, role)},
                    **build_placement(shape, role, selector=selector),
                }
            },
        },
    }


_CONTROLLER_STORAGE_BYTES: Final = 4 * 1024**3


def _format_bytes(size: int) -> str:
    return f"{size // 1024**2}Mi"


def _build_metadata(managed: ManagedKafka, name: str) -> dict[str, Any]:
    labels = {
        MANAGED_BY: AGENT,
        NAMESPACE_LABEL: managed.metadata.annotations.get("bf2.org/id", ""),
        PROFILE_TYPE: read_instance_type(managed),
    }
    return {"name": name, "namespace": managed.metadata.namespace, "labels": labels}

"""The pods of Kafka nodes and the StrimziPodSets that list them, as JSON (docs/design/kafka.md section 2.5). Pure.

Plimsoll is not an installer of production brokers. A pod comes from `template.pod.spec` of the pool or the Kafka; where
that has no containers, it is a plain container with the resources of the pool, which the virtual kubelet runs.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kafka.wire.names import (
    BROKER_ROLE_LABEL,
    CLUSTER_LABEL,
    CONTROLLER_ROLE_LABEL,
    KIND_LABEL,
    NAME_LABEL,
    POD_NAME_LABEL,
    POOL_NAME_LABEL,
    REVISION_ANNOTATION,
    build_pod_name,
    build_pod_set_name,
)
from plimsoll.objects.api.kafka import KAFKA_GROUP, POD_SET_GROUP, STRIMZI_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.kafka import Kafka, KafkaNodePool

_CONTAINER: Final = "kafka"
_COPIED: Final = (
    *("affinity", "tolerations", "topologySpreadConstraints", "priorityClassName", "schedulerName"),
    *("terminationGracePeriodSeconds", "imagePullSecrets", "securityContext", "hostAliases", "enableServiceLinks"),
)
"""Fields of Strimzi's pod template that are fields of a pod."""


def build_pod_set(
    kafka: Kafka, pool_name: str, pods: Iterable[dict[str, Any]], *, is_broker: bool, is_controller: bool
) -> dict[str, Any]:
    """A pod set with these pods. The Kafka owns it."""
    cluster = kafka.metadata.name
    labels = _build_labels(cluster, pool_name, is_broker=is_broker, is_controller=is_controller)
    return {
        "apiVersion": f"{POD_SET_GROUP}/{STRIMZI_VERSION}",
        "kind": "StrimziPodSet",
        "metadata": {
            "namespace": kafka.metadata.namespace,
            "name": build_pod_set_name(cluster, pool_name),
            "labels": labels,
            "ownerReferences": [build_owner_reference(kafka, is_controller=True)],
        },
        "spec": {
            "selector": {"matchLabels": {CLUSTER_LABEL: cluster, POOL_NAME_LABEL: pool_name}},
            "pods": list(pods),
        },
    }


def build_owner_reference(kafka: Kafka, *, is_controller: bool) -> dict[str, Any]:
    """The Kafka as the owner of an object; its deletion does not wait for the object."""
    return {
        "apiVersion": f"{KAFKA_GROUP}/{STRIMZI_VERSION}",
        "kind": "Kafka",
        "name": kafka.metadata.name,
        "uid": kafka.metadata.uid,
        "controller": is_controller,
        "blockOwnerDeletion": False,
    }


def build_pod(
    kafka: Kafka, pool: KafkaNodePool | None, pool_name: str, node_id: int, *, is_broker: bool, is_controller: bool
) -> dict[str, Any]:
    """The pod of a node. `pool` None: the virtual pool of a Kafka without pools."""
    cluster = kafka.metadata.name
    name = build_pod_name(cluster, pool_name, node_id)
    template = _get_map(pool.spec.template.pod) if pool is not None else {}
    template = template or _get_map(kafka.spec.kafka.template.pod)
    metadata = _get_map(template.get("metadata"))
    labels = {
        **_get_texts(metadata.get("labels")),
        **_build_labels(cluster, pool_name, is_broker=is_broker, is_controller=is_controller),
        POD_NAME_LABEL: name,
    }
    spec = _build_spec(kafka, pool, template)
    written = {"labels": labels, "annotations": _get_texts(metadata.get("annotations")), "spec": spec}
    revision = hashlib.sha256(msgspec.json.encode(written, order="sorted")).hexdigest()[:8]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": kafka.metadata.namespace,
            "name": name,
            "labels": labels,
            "annotations": {**written["annotations"], REVISION_ANNOTATION: revision},
        },
        "spec": spec,
    }


def _build_spec(kafka: Kafka, pool: KafkaNodePool | None, template: dict[str, Any]) -> dict[str, Any]:
    copied = {field: template[field] for field in _COPIED if template.get(field) is not None}
    given = _get_map(template.get("spec"))
    if isinstance(given.get("containers"), list) and given["containers"]:
        return {**copied, **given}
    resources = pool.spec.resources if pool is not None and pool.spec.resources is not None else None
    resources = resources if resources is not None else kafka.spec.kafka.resources
    container: dict[str, Any] = {"name": _CONTAINER, "image": f"kafka:{kafka.spec.kafka.version or 'latest'}"}
    if isinstance(resources, dict):
        container["resources"] = resources
    return {**copied, **given, "containers": [container]}


def _build_labels(cluster: str, pool_name: str, *, is_broker: bool, is_controller: bool) -> dict[str, str]:
    return {
        CLUSTER_LABEL: cluster,
        KIND_LABEL: "Kafka",
        NAME_LABEL: f"{cluster}-kafka",
        POOL_NAME_LABEL: pool_name,
        BROKER_ROLE_LABEL: "true" if is_broker else "false",
        CONTROLLER_ROLE_LABEL: "true" if is_controller else "false",
    }


def _get_map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _get_texts(value: Any) -> dict[str, str]:
    return {key: text for key, text in _get_map(value).items() if isinstance(text, str)}

"""Names, labels, annotations and the finalizer of Strimzi's resources (docs/design/kafka.md sections 2 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.value_parsing import read_whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kafka.model.requests import Mode

# ---- labels

CLUSTER_LABEL: Final = "strimzi.io/cluster"
POOL_NAME_LABEL: Final = "strimzi.io/pool-name"
BROKER_ROLE_LABEL: Final = "strimzi.io/broker-role"
CONTROLLER_ROLE_LABEL: Final = "strimzi.io/controller-role"
KIND_LABEL: Final = "strimzi.io/kind"
NAME_LABEL: Final = "strimzi.io/name"
POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
CLUSTER_OPERATOR_KIND: Final = "cluster-operator"
"""The value of `KIND_LABEL` on Strimzi's own Deployment."""

# ---- annotations

REBALANCE_ANNOTATION: Final = "strimzi.io/rebalance"
AUTO_APPROVAL_ANNOTATION: Final = "strimzi.io/rebalance-auto-approval"
TEMPLATE_ANNOTATION: Final = "strimzi.io/rebalance-template"
PAUSE_ANNOTATION: Final = "strimzi.io/pause-reconciliation"
SKIP_SCALE_DOWN_CHECK_ANNOTATION: Final = "strimzi.io/skip-broker-scaledown-check"
NEXT_NODE_IDS_ANNOTATION: Final = "strimzi.io/next-node-ids"
REMOVE_NODE_IDS_ANNOTATION: Final = "strimzi.io/remove-node-ids"
REVISION_ANNOTATION: Final = "strimzi.io/revision"
"""A hash of a pod as its pod set lists it. A pod with another one is not current."""

AUTO_REBALANCING_FINALIZER: Final = "strimzi.io/auto-rebalancing"
"""On automatic KafkaRebalances. An object of their name without it belongs to a user."""

NODE_POOL_FINALIZER: Final = "plimsoll.io/node-pool"
"""On node pools in operator mode: a deleted pool stays until its brokers are empty and its pods are gone."""

# ---- names

BROKER_ROLE: Final = "broker"
CONTROLLER_ROLE: Final = "controller"
VIRTUAL_POOL: Final = "kafka"
"""The pool of a Kafka without node pools (`spec.kafka.replicas`)."""


def build_auto_rebalance_name(cluster: str, mode: Mode) -> str:
    """The automatic KafkaRebalance of a mode: `c-auto-rebalancing-add-brokers`."""
    return f"{cluster}-auto-rebalancing-{mode.value}"


def build_auto_rebalance_metadata(namespace: str, cluster: str, mode: Mode) -> dict[str, object]:
    """The metadata with which an automatic KafkaRebalance is created. Nothing of the settings object is copied."""
    return {
        "namespace": namespace,
        "name": build_auto_rebalance_name(cluster, mode),
        "labels": {CLUSTER_LABEL: cluster},
        "annotations": {AUTO_APPROVAL_ANNOTATION: "true"},
        "finalizers": [AUTO_REBALANCING_FINALIZER],
    }


def build_auto_rebalance_config_map_name(cluster: str) -> str:
    """The ConfigMap that holds the state of automatic rebalancing where the Kafka is never written (companion)."""
    return f"{cluster}-auto-rebalancing"


def is_annotated(annotations: Mapping[str, str], name: str) -> bool:
    """Whether an annotation is set to true."""
    return annotations.get(name, "").strip().lower() == "true"


def build_pod_set_name(cluster: str, pool: str) -> str:
    return f"{cluster}-{pool}"


def build_pod_name(cluster: str, pool: str, node_id: int) -> str:
    return f"{cluster}-{pool}-{node_id}"


def read_node_id(pod_name: str, cluster: str, pool: str) -> int | None:
    """The node id in the name of a pod; None if it is not a name of the pool's pods."""
    prefix = f"{cluster}-{pool}-"
    digits = pod_name.removeprefix(prefix)
    if digits == pod_name or not digits.isdigit():
        return None
    node_id = read_whole_number(digits)
    # `c-p-03` is not the name of a pod of node 3.
    return node_id if node_id is not None and str(node_id) == digits else None

"""KafkaNodePools as inputs of the assignment of node ids, and the virtual pool of a Kafka without pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.plans import Reason, Ref
from plimsoll.kafka.model.node_ids import NodePool
from plimsoll.kafka.wire.names import BROKER_ROLE, CLUSTER_LABEL, CONTROLLER_ROLE, VIRTUAL_POOL
from plimsoll.kafka.wire.node_id_ranges import read_next_node_ids, read_remove_node_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.kafka import Kafka, KafkaNodePool


def read_node_pool(pool: KafkaNodePool) -> tuple[NodePool, tuple[Reason, ...]]:
    """The pool, and a warning for every annotation that is ignored. Its numbers are checked by the assignment."""
    metadata = pool.metadata
    path = str(Ref(kind="kafkanodepool", namespace=metadata.namespace, name=metadata.name))
    next_node_ids, next_warnings = read_next_node_ids(metadata.annotations, path)
    remove_node_ids, remove_warnings = read_remove_node_ids(metadata.annotations, path)
    read = NodePool(
        name=metadata.name,
        path=path,
        replicas=pool.spec.replicas,
        roles=pool.spec.roles,
        node_ids=pool.status.node_ids,
        former_roles=pool.status.roles,
        next_node_ids=next_node_ids,
        remove_node_ids=remove_node_ids,
        is_deleting=metadata.deletion_timestamp is not None,
    )
    return read, (*next_warnings, *remove_warnings)


def build_virtual_pool(kafka: Kafka, node_ids: Iterable[int]) -> NodePool | None:
    """The pool `kafka` of a Kafka without node pools; None if `spec.kafka.replicas` is not given.

    No KafkaNodePool keeps its ids: `node_ids` come from its pod set.
    """
    if kafka.spec.kafka.replicas is None:
        return None
    return NodePool(
        name=VIRTUAL_POOL,
        path=str(Ref(kind="kafka", namespace=kafka.metadata.namespace, name=kafka.metadata.name)),
        replicas=kafka.spec.kafka.replicas,
        replicas_field="spec.kafka.replicas",
        roles=(BROKER_ROLE, CONTROLLER_ROLE),
        node_ids=tuple(node_ids),
    )


def explain_no_nodes(kafka: Kafka) -> Reason:
    """The problem of a Kafka without node pools and without `spec.kafka.replicas`."""
    metadata = kafka.metadata
    message = (
        f"the cluster has no nodes: create a KafkaNodePool in namespace {metadata.namespace} with the label "
        f"{CLUSTER_LABEL}: {metadata.name}, or set spec.kafka.replicas"
    )
    return Reason(code="InvalidResourceException", message=message, facts={"field": "spec.kafka.replicas"})

"""KafkaNodePools as inputs of the assignment of node ids, and the virtual pool of a Kafka without pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.core.plans import Reason, Ref
from plimsoll.kafka.model.node_ids import NodePool
from plimsoll.kafka.wire.names import (
    BROKER_ROLE,
    CLUSTER_LABEL,
    CONTROLLER_ROLE,
    NEXT_NODE_IDS_ANNOTATION,
    VIRTUAL_POOL,
)
from plimsoll.kafka.wire.node_id_ranges import read_next_node_ids, read_remove_node_ids

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kafka.model.node_ids import NodeIdRange
    from plimsoll.objects.api.kafka import Kafka, KafkaNodePool


def read_node_pool(pool: KafkaNodePool) -> tuple[NodePool, tuple[Reason, ...]]:
    """The pool, and a warning for every annotation that is wrong. Its numbers are checked by the assignment."""
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
    found = (*next_warnings, *remove_warnings)
    return read, tuple(replace(warning, facts={**warning.facts, "pool": metadata.name}) for warning in found)


def warn_of_shared_ids(pools: Iterable[NodePool]) -> tuple[Reason, ...]:
    """A warning for a pool whose next node ids are also those of a pool before it. Pools are served by name."""
    entries = [(ids_range, pool) for pool in pools for ids_range in pool.next_node_ids.ranges]
    farthest: list[tuple[NodeIdRange, NodePool]] = []
    """The ranges of two pools that reach farthest, of those that begin earlier."""
    warnings: dict[str, Reason] = {}
    for entry in sorted(entries, key=lambda entry: (entry[0].lowest, entry[1].name)):
        for other in farthest:
            if other[1].name != entry[1].name and other[0].highest >= entry[0].lowest:
                (first_range, first), (second_range, second) = sorted((other, entry), key=lambda found: found[1].name)
                warnings.setdefault(second.name, _warn_of_shared_id(second, second_range, first, first_range))
        by_pool: dict[str, tuple[NodeIdRange, NodePool]] = {}
        for found in sorted((*farthest, entry), key=lambda found: -found[0].highest):
            by_pool.setdefault(found[1].name, found)
        farthest = list(by_pool.values())[:2]
    return tuple(warnings.values())


def _warn_of_shared_id(pool: NodePool, ids_range: NodeIdRange, other: NodePool, other_range: NodeIdRange) -> Reason:
    field = f"metadata.annotations[{NEXT_NODE_IDS_ANNOTATION}]"
    overlap = f"{ids_range} overlaps {other_range} of pool {other.name}, which is served first"
    facts = {"pool": pool.name, "field": field, "other": other.name}
    return Reason(code="NodeIdRangesUnusual", message=f"{pool.path}: {field}: {overlap}", facts=facts)


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


def explain_no_kafka(pool: KafkaNodePool) -> Reason:
    """The problem of a node pool that names no Kafka, or one that does not exist."""
    metadata = pool.metadata
    cluster = metadata.labels.get(CLUSTER_LABEL, "")
    message = "is missing: the pool belongs to no Kafka until it names one"
    if cluster:
        message = f"kafka/{metadata.namespace}/{cluster} does not exist: the pool has no nodes until it does"
    field = f"metadata.labels[{CLUSTER_LABEL}]"
    return Reason(code="KafkaNotFound", message=f"{field}: {message}", facts={"field": field, "kafka": cluster})


def explain_no_nodes(kafka: Kafka) -> Reason:
    """The problem of a Kafka without node pools and without `spec.kafka.replicas`."""
    metadata = kafka.metadata
    message = (
        f"the cluster has no nodes: create a KafkaNodePool in namespace {metadata.namespace} with the label "
        f"{CLUSTER_LABEL}: {metadata.name}, or set spec.kafka.replicas"
    )
    return Reason(code="InvalidResourceException", message=message, facts={"field": "spec.kafka.replicas"})

"""What a reconcile changes in the pod sets of a cluster, as actions for the journal, Events and a dry run. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.formatting import format_count
from plimsoll.core.plans import Action, Reason, Ref
from plimsoll.kafka.wire.names import build_pod_name, build_pod_set_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from plimsoll.kafka.controllers.cluster_observer import ObservedCluster
    from plimsoll.kafka.model.node_ids import NodeIdAssignment, NodePool

ADD_PODS: Final = "add-pods"
REMOVE_PODS: Final = "remove-pods"
_NAMED_AT_MOST: Final = 5


def list_pod_set_changes(
    observed: ObservedCluster, assignment: NodeIdAssignment, blocked: Collection[int]
) -> tuple[Action, ...]:
    """The pods that leave the pod set of each pool, and those that it gets. Pods that are listed already stay."""
    pools = {pool.name: pool for pool in observed.requested}
    changes: list[Action] = []
    for ids in assignment.pools:
        if ids.problem is not None or ids.pool in observed.orphaned:
            continue
        pod_set = observed.pod_sets.get(ids.pool)
        listed = frozenset[int]() if pod_set is None else pod_set.node_ids
        kept = frozenset(ids.list_kept(blocked))
        pool = pools[ids.pool]
        changes += _build_change(observed, pool, REMOVE_PODS, listed - kept)
        changes += _build_change(observed, pool, ADD_PODS, kept - listed)
    return tuple(changes)


def _build_change(observed: ObservedCluster, pool: NodePool, verb: str, node_ids: Iterable[int]) -> list[Action]:
    ids = sorted(node_ids)
    if not ids:
        return []
    metadata = observed.kafka.metadata
    names = [build_pod_name(metadata.name, pool.name, node_id) for node_id in ids]
    pods = ", ".join(names[:_NAMED_AT_MOST])
    rest = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    cause = f"{pool.path} is being deleted" if pool.is_deleting else f"{pool.path} asks for {_count_nodes(pool)}"
    is_removal = verb == REMOVE_PODS
    why = f"{cause}, and no replica is left on what leaves" if is_removal and pool.is_broker else cause
    facts: dict[str, Any] = {"pool": pool.name, "nodeIds": ids}
    return [
        Action(
            verb=verb,
            target=Ref(
                kind="strimzipodset", namespace=metadata.namespace, name=build_pod_set_name(metadata.name, pool.name)
            ),
            reason=Reason(
                code="PodsRemoved" if is_removal else "PodsAdded",
                message=f"{pods}{rest} {_choose_verb(len(names), is_removal=is_removal)}: {why}",
                facts=facts,
            ),
            concerns=(
                Ref(kind="kafka", namespace=metadata.namespace, name=metadata.name),
                *_list_pool_refs(observed, pool),
            ),
        )
    ]


def _list_pool_refs(observed: ObservedCluster, pool: NodePool) -> tuple[Ref, ...]:
    """The KafkaNodePool; empty: the pool is that of `spec.kafka.replicas`, which is no object."""
    if pool.name not in observed.pools:
        return ()
    return (Ref(kind="kafkanodepool", namespace=observed.kafka.metadata.namespace, name=pool.name),)


def _choose_verb(count: int, *, is_removal: bool) -> str:
    if is_removal:
        return "leaves" if count == 1 else "leave"
    return "is added" if count == 1 else "are added"


def _count_nodes(pool: NodePool) -> str:
    return format_count(pool.replicas, "node")

"""Assigns node ids to the pools of a cluster (docs/design/kafka.md section 2.2).

A pool that asks for something impossible keeps the nodes that it has: a mistake never removes a node. Two pools that
claim one id are a mistake of the whole cluster, and no pool changes until it is mended.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.node_ids import (
    HIGHEST_NODE_ID,
    MOST_NODES,
    NodeIdAssignment,
    NodePool,
    PoolNodeIds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ROLES: Final = frozenset({"broker", "controller"})
_NAMED_AT_MOST: Final = 10


def assign_node_ids(pools: Sequence[NodePool], *, cluster_id: str) -> NodeIdAssignment:
    """The ids of every pool. Pools are served by name, so that equal input gives equal ids."""
    ordered = sorted(pools, key=lambda pool: pool.name)
    # Pools are created one after the other: controllers without a broker are no cluster to add brokers to.
    is_new = not cluster_id and not any(pool.node_ids for pool in ordered if pool.was_broker)
    if problem := _find_problem_of_cluster(ordered):
        kept = tuple(_keep(pool, problem) for pool in ordered)
        return NodeIdAssignment(pools=kept, is_new=is_new, problems=(problem,))
    used = {node_id for pool in ordered for node_id in pool.node_ids}
    assigned = [_assign(pool, used) for pool in ordered]
    problems = tuple(pool.problem for pool in assigned if pool.problem is not None)
    return NodeIdAssignment(pools=tuple(assigned), is_new=is_new, problems=problems)


def _assign(pool: NodePool, used: set[int]) -> PoolNodeIds:
    if problem := _find_problem(pool):
        return _keep(pool, problem)
    current = sorted(pool.node_ids)
    difference = (0 if pool.is_deleting else pool.replicas) - len(current)
    added: list[int] = []
    removed: list[int] = []
    if difference > 0:
        added = _choose_added(pool, used, difference)
    elif difference < 0:
        removed = _choose_removed(pool, current, -difference)
    leaving = frozenset(removed)
    kept = [node_id for node_id in current if node_id not in leaving]
    return PoolNodeIds(
        pool=pool.name,
        current=tuple(current),
        desired=tuple(sorted([*kept, *added])),
        added=tuple(added),
        removed=tuple(sorted(removed)),
        used_to_be_brokers=tuple(kept) if pool.was_broker and not pool.is_broker else (),
        used_to_be_controllers=tuple(kept) if pool.was_controller and not pool.is_controller else (),
        is_broker=pool.is_broker,
        was_broker=pool.was_broker or pool.has_broker_pods,
        was_controller=pool.was_controller or pool.has_controller_pods,
    )


def _keep(pool: NodePool, problem: Reason) -> PoolNodeIds:
    """The pool as it is. Ids that no node can have are left out."""
    current = tuple(sorted({node_id for node_id in pool.node_ids if _is_node_id(node_id)}))
    return PoolNodeIds(
        pool=pool.name,
        current=current,
        desired=current,
        is_broker=pool.was_broker,
        was_broker=pool.was_broker,
        problem=problem,
    )


def _choose_added(pool: NodePool, used: set[int], missing: int) -> list[int]:
    added: list[int] = []
    for node_id in _iterate_candidates(pool, used):
        if len(added) == missing:
            break
        added.append(node_id)
        used.add(node_id)
    return added


def _iterate_candidates(pool: NodePool, used: set[int]) -> Iterator[int]:
    """First the ids of next-node-ids, then the lowest ones; `used` grows while the ids are taken."""
    yield from pool.next_node_ids.iterate_unused(used)
    yield from (node_id for node_id in count() if node_id not in used)


def _choose_removed(pool: NodePool, current: list[int], surplus: int) -> list[int]:
    """First the pool's own ids among remove-node-ids, then the highest ones."""
    chosen: list[int] = []
    for node_id in pool.remove_node_ids.iterate_existing(current):
        if len(chosen) == surplus:
            break
        chosen.append(node_id)
    taken = frozenset(chosen)
    others = [node_id for node_id in reversed(current) if node_id not in taken]
    return chosen + others[: surplus - len(chosen)]


# ---- mistakes


def _find_problem_of_cluster(pools: Sequence[NodePool]) -> Reason | None:
    names = Counter(pool.name for pool in pools)
    if twice := sorted(name for name, times in names.items() if times > 1):
        return _refuse(pools[0], "metadata.name", f"there are several pools with the name {twice[0]}", pools=twice)
    owners: dict[int, NodePool] = {}
    for pool in pools:
        for node_id in dict.fromkeys(pool.node_ids):
            if node_id in owners:
                other = owners[node_id]
                return _refuse(
                    pool,
                    "status.nodeIds",
                    f"node id {node_id} belongs to pool {other.name} as well; no pool of the cluster changes until "
                    "one of the two gives it up",
                    nodeId=node_id,
                    pools=[other.name, pool.name],
                )
            owners[node_id] = pool
    return None


def _find_problem(pool: NodePool) -> Reason | None:
    if not 0 <= pool.replicas <= MOST_NODES:
        limits = f"a pool has 0 to {MOST_NODES} nodes"
        return _refuse(pool, pool.replicas_field, f"{pool.replicas} nodes are not possible; {limits}")
    if not pool.roles:
        return _refuse(pool, "spec.roles", "must name broker, controller or both")
    if unknown := sorted(set(pool.roles) - _ROLES):
        return _refuse(pool, "spec.roles", f"{unknown[0][:60]!r} is not a role; use broker or controller")
    if len(pool.node_ids) > MOST_NODES:
        return _refuse(pool, "status.nodeIds", f"{len(pool.node_ids)} ids are more than {MOST_NODES}")
    if wrong := [node_id for node_id in pool.node_ids if not _is_node_id(node_id)]:
        return _refuse(pool, "status.nodeIds", f"{wrong[0]} is not between 0 and {HIGHEST_NODE_ID}")
    if len(set(pool.node_ids)) < len(pool.node_ids):
        twice = sorted(node_id for node_id, times in Counter(pool.node_ids).items() if times > 1)
        return _refuse(pool, "status.nodeIds", f"node id {twice[0]} occurs twice", nodeIds=twice[:_NAMED_AT_MOST])
    return None


def _refuse(pool: NodePool, field: str, problem: str, **facts: Any) -> Reason:
    """`InvalidResourceException` is the reason of Strimzi's condition for a mistake in a resource."""
    return Reason(
        code="InvalidResourceException",
        message=f"{pool.path}: {field}: {problem}",
        facts={"pool": pool.name, "field": field, **facts},
    )


def _is_node_id(number: int) -> bool:
    return 0 <= number <= HIGHEST_NODE_ID

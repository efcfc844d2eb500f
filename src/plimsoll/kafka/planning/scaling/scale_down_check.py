"""The scale-down check (docs/design/kafka.md section 4.3): brokers with replicas neither leave nor lose their role.

A spec is never edited: what it asks for waits, and a warning says why. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.plans import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.kafka.model.node_ids import NodeIdAssignment, NodePool, PoolNodeIds

CHECK: Final = "ScaleDownPreventionCheck"
_MOVE: Final = "move them with a KafkaRebalance of mode remove-brokers"


def find_blocked(assignment: NodeIdAssignment, in_use: frozenset[int]) -> tuple[int, ...]:
    """All brokers that are to leave, if any of them holds a replica; else none."""
    removed = assignment.removed_brokers
    return removed if in_use.intersection(removed) else ()


def keep_roles(
    pools: Sequence[NodePool], assignment: NodeIdAssignment, in_use: frozenset[int]
) -> tuple[tuple[NodePool, ...], tuple[Reason, ...]]:
    """The pools, each with its former roles if it would take the broker role from a broker that holds replicas."""
    holding = {ids.pool: sorted(in_use.intersection(ids.used_to_be_brokers)) for ids in assignment.pools}
    kept = [replace(pool, roles=pool.former_roles) if holding.get(pool.name) else pool for pool in pools]
    warnings = [_warn_of_role(pool, holding[pool.name]) for pool in pools if holding.get(pool.name)]
    return tuple(kept), tuple(warnings)


def warn_of_blocked(
    pools: Sequence[NodePool], assignment: NodeIdAssignment, in_use: frozenset[int], blocked: Sequence[int]
) -> tuple[Reason, ...]:
    """A warning per pool that keeps brokers. Only where nothing empties them automatically."""
    deleting = {pool.name for pool in pools if pool.is_deleting}
    keeping = [ids for ids in assignment.pools if ids.was_broker and set(ids.removed) & set(blocked)]
    return tuple(_warn_of_blocked(ids, in_use, is_deleting=ids.pool in deleting) for ids in keeping)


def warn_of_last_brokers(
    assignment: NodeIdAssignment, in_use: frozenset[int], blocked: Sequence[int]
) -> tuple[Reason, ...]:
    """A warning per pool whose brokers cannot be emptied, because no broker stays that could take their replicas."""
    if not blocked or assignment.desired_brokers:
        return ()
    keeping = [ids for ids in assignment.pools if ids.was_broker and set(ids.removed) & set(blocked)]
    return tuple(_warn_of_last_brokers(ids, sorted(in_use.intersection(ids.removed))) for ids in keeping)


def _warn_of_last_brokers(ids: PoolNodeIds, holding: Sequence[int]) -> Reason:
    why = f"{_name_brokers(holding)} replicas" if holding else "brokers of other pools hold replicas"
    return Reason(
        code="LastBrokers",
        message=f"pool {ids.pool} keeps {len(ids.current)} nodes: {why}, and no other broker can take them, because "
        "all brokers of the cluster are to leave; add a pool with the role broker, or delete the topics",
        facts={"pool": ids.pool, "brokers": list(holding)},
    )


def _warn_of_blocked(ids: PoolNodeIds, in_use: frozenset[int], *, is_deleting: bool) -> Reason:
    holding = sorted(in_use.intersection(ids.removed))
    nodes = f"pool {ids.pool}{', which is being deleted,' if is_deleting else ''} keeps {len(ids.current)} nodes"
    # A pool whose brokers are all empty waits for those of the others: all leave together.
    why = f"{_name_brokers(holding)} replicas" if holding else "brokers of other pools hold replicas"
    return Reason(
        code=CHECK,
        message=f"{nodes}: {why}; {_MOVE}, or configure spec.cruiseControl.autoRebalance",
        facts={"pool": ids.pool, "replicas": len(ids.current), "brokers": holding},
    )


def _warn_of_role(pool: NodePool, holding: Sequence[int]) -> Reason:
    return Reason(
        code=CHECK,
        message=f"pool {pool.name} keeps the role broker: {_name_brokers(holding)} replicas; {_MOVE}",
        facts={"pool": pool.name, "roles": list(pool.former_roles), "brokers": list(holding)},
    )


def _name_brokers(brokers: Iterable[int]) -> str:
    """`broker 3 holds`, `brokers 3, 4 hold`."""
    named = [str(broker) for broker in brokers]
    return f"brokers {', '.join(named)} hold" if len(named) > 1 else f"broker {named[0]} holds"

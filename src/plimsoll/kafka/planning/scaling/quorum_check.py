"""The quorum check (docs/design/kafka.md section 4.3): voters of the metadata quorum neither leave nor lose their role.

Kafka goes on only while a majority of the voters runs, and a voter that is gone stays one. So a voter leaves the quorum
first, by a request to Kafka, and its pod after that. Observers may leave. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.plans import Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from plimsoll.kafka.model.node_ids import NodeIdAssignment, NodePool, PoolNodeIds

CHECK: Final = "ControllerQuorumCheck"
_REMOVE: Final = "kafka-metadata-quorum remove-controller"
_PERMIT: Final = "wait until brokers answer, and permit the operation Describe on the resource Cluster"


def keep_voters(
    pools: Sequence[NodePool],
    assignment: NodeIdAssignment,
    voters: frozenset[int] | None,
    *,
    gone: Collection[int] = (),
) -> tuple[NodeIdAssignment, tuple[Reason, ...]]:
    """The assignment in which voters stay, and a warning per pool that keeps some.

    `voters` None: they cannot be seen, and every controller may be one. `gone`: nodes whose pods have left already.
    """
    deleting = {pool.name for pool in pools if pool.is_deleting}
    kept: list[PoolNodeIds] = []
    warnings: list[Reason] = []
    for ids in assignment.pools:
        staying = _select_voters(ids, (node_id for node_id in ids.removed if node_id not in gone), voters)
        if not staying:
            kept.append(ids)
            continue
        removed = tuple(node_id for node_id in ids.removed if node_id not in staying)
        kept.append(replace(ids, desired=tuple(sorted((*ids.desired, *staying))), removed=removed))
        warnings.append(_warn_of_voters(kept[-1], staying, voters, is_deleting=ids.pool in deleting))
    return replace(assignment, pools=tuple(kept)), tuple(warnings)


def keep_controller_roles(
    pools: Sequence[NodePool], assignment: NodeIdAssignment, voters: frozenset[int] | None
) -> tuple[tuple[NodePool, ...], tuple[Reason, ...]]:
    """The pools, each with its former roles if it would take the controller role from a voter."""
    voting = {ids.pool: _select_voters(ids, ids.used_to_be_controllers, voters) for ids in assignment.pools}
    kept = [replace(pool, roles=pool.former_roles) if voting.get(pool.name) else pool for pool in pools]
    warnings = [_warn_of_role(pool, voting[pool.name], voters) for pool in pools if voting.get(pool.name)]
    return tuple(kept), tuple(warnings)


def _select_voters(ids: PoolNodeIds, nodes: Iterable[int], voters: frozenset[int] | None) -> tuple[int, ...]:
    if voters is None:
        return tuple(nodes) if ids.was_controller else ()
    return tuple(node_id for node_id in nodes if node_id in voters)


def _warn_of_voters(
    ids: PoolNodeIds, staying: Sequence[int], voters: frozenset[int] | None, *, is_deleting: bool
) -> Reason:
    pool = f"pool {ids.pool}{', which is being deleted,' if is_deleting else ''} keeps {_name_nodes(staying)}"
    restore = "" if is_deleting else f", or set its replicas to {len(ids.desired)}"
    return Reason(
        code=CHECK,
        message=f"{pool}: {_explain(staying, voters, restore)}",
        facts={"pool": ids.pool, "nodeIds": list(staying), "voters": _list_voters(voters)},
    )


def _warn_of_role(pool: NodePool, staying: Sequence[int], voters: frozenset[int] | None) -> Reason:
    message = f"pool {pool.name} keeps the role controller of {_name_nodes(staying)}"
    return Reason(
        code=CHECK,
        message=f"{message}: {_explain(staying, voters, ', or add the role again')}",
        facts={"pool": pool.name, "nodeIds": list(staying), "voters": _list_voters(voters)},
    )


def _explain(staying: Sequence[int], voters: frozenset[int] | None, restore: str) -> str:
    if voters is None:
        return f"the voters of the metadata quorum cannot be seen; {_PERMIT}{restore}"
    named = ", ".join(str(voter) for voter in sorted(voters))
    are, them = ("is a voter", "it") if len(staying) == 1 else ("are voters", "them")
    return f"{_name_nodes(staying)} {are} of the metadata quorum ({named}); remove {them} with {_REMOVE}{restore}"


def _list_voters(voters: frozenset[int] | None) -> list[int] | None:
    return None if voters is None else sorted(voters)


def _name_nodes(nodes: Sequence[int]) -> str:
    """`node 3`, `nodes 3, 4`."""
    return f"node{'s' if len(nodes) > 1 else ''} {', '.join(str(node_id) for node_id in nodes)}"

"""How many streaming units the cluster can hold (docs/design/fleet.md 17.6 and E9): fixed by the size of the pool.

A node autoscaler whose own limits are below the pool's lowers it, and nothing else does: what runs, what is pending and
what a machine costs have no influence.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import Reason
from plimsoll.fleet.agent.model.capacity import ClusterCapacity, TypeCapacity
from plimsoll.fleet.agent.model.instances import DEVELOPER, STANDARD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.fleet.agent.model.claims import ClaimsList

UNITS_PER_NODE: Final[Mapping[str, Fraction]] = {STANDARD: Fraction(1, 3), DEVELOPER: Fraction(10)}
_POOL: Final = "kafka-"


def compute_capacity(
    max_nodes: Mapping[str, int],
    claims: ClaimsList,
    *,
    group_limits: Mapping[str, int] | None,
    units_per_node: Mapping[str, Fraction] = UNITS_PER_NODE,
) -> ClusterCapacity:
    """`group_limits`: maximum sizes of node groups by name; None: they are not known, and lower nothing."""
    types: dict[str, TypeCapacity] = {}
    smaller = []
    for instance_type, nodes in sorted(max_nodes.items()):
        limit = None if group_limits is None else find_pool_limit(instance_type, group_limits)
        allowed = nodes if limit is None else min(nodes, limit)
        per_node = units_per_node.get(instance_type, Fraction(0))
        units = int(allowed * per_node)
        used = claims.count_units(instance_type)
        types[instance_type] = TypeCapacity(max_nodes=allowed, max_units=units, remaining_units=max(units - used, 0))
        if allowed < nodes:
            message = f"pool {_POOL}{instance_type} may have {nodes} nodes, the node autoscaler allows {allowed}"
            facts = {"instance_type": instance_type, "max_nodes": nodes, "allowed": allowed, "max_units": units}
            smaller.append(Reason(code="PoolSmaller", message=message, facts=facts))
    return ClusterCapacity(types=types, is_bounded=bool(max_nodes), smaller=tuple(smaller))


def find_pool_limit(instance_type: str, group_limits: Mapping[str, int]) -> int | None:
    """The nodes that all groups of a pool may have; None: the autoscaler has no such group."""
    name = f"{_POOL}{instance_type}"
    sizes = [size for group, size in group_limits.items() if group == name or group.startswith(f"{name}-")]
    return sum(sizes) if sizes else None


def read_group_limits(document: Any) -> dict[str, int] | None:
    """Maximum sizes by group, of the status document of a node autoscaler; None: it is no such document."""
    listed = document.get("nodeGroups") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return None
    limits: dict[str, int] = {}
    for group in listed:
        health = group.get("health") if isinstance(group, dict) else None
        size = health.get("maxSize") if isinstance(health, dict) else None
        if isinstance(size, int) and not isinstance(size, bool) and size >= 0 and isinstance(group.get("name"), str):
            limits[group["name"]] = size
    return limits

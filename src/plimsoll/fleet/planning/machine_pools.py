"""The machine pools of a cluster: one per instance type, with bounds as the provider gets them.

docs/design/fleet.md 8 and 11.3. A pool of a cluster in several zones is split into three parts of one size, so its
bounds are multiples of 3.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from plimsoll.fleet.model.pools import PoolBounds, name_pool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy

ZONES: Final = 3
UNITS_PER_NODE: Final = {"standard": Fraction(1, 3), "developer": Fraction(10)}
"""Streaming units that a node of the type's pool carries, as agents report them (docs/design/fleet.md 11)."""


def build_pools(
    cloud_provider: str, instance_types: Iterable[str], policy: FleetPolicy, *, multi_az: bool
) -> tuple[PoolBounds, ...]:
    """The pools of a cluster. Types without configured machines get none; the configuration refuses them."""
    machines = policy.machines.get(cloud_provider)
    configured = {} if machines is None else machines.per_type
    return tuple(
        PoolBounds(
            id=name_pool(instance_type),
            machine_type=pool.machine_type,
            min_replicas=round_replicas(pool.min_nodes, multi_az=multi_az),
            max_replicas=round_replicas(pool.max_nodes, multi_az=multi_az),
        )
        for instance_type in instance_types
        if (pool := configured.get(instance_type)) is not None
    )


def round_replicas(nodes: int, *, multi_az: bool) -> int:
    """Up to a multiple of the zones, if there are several."""
    return -(-nodes // ZONES) * ZONES if multi_az else nodes


def estimate_units(cluster: Cluster, instance_type: str, policy: FleetPolicy) -> int:
    """The streaming units that a cluster will offer when its pool has all its nodes."""
    info = cluster.dynamic_capacity_info.get(instance_type)
    nodes = 0 if info is None else info.max_nodes
    if nodes <= 0:
        pools = build_pools(cluster.cloud_provider, (instance_type,), policy, multi_az=cluster.multi_az)
        nodes = sum(pool.max_replicas for pool in pools)
    return int(nodes * UNITS_PER_NODE.get(instance_type, Fraction(0)))

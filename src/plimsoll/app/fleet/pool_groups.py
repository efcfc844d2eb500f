"""The node groups of a machine pool: one per zone, with its part of the bounds, as OpenShift has machine sets.

A group over all zones would leave pods with zone rules waiting: its next machine comes from a zone of the cloud's
choice. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from plimsoll.local.ocm.ports import PoolSpec

POOL_LABEL: Final = "cloud.plimsoll.io/machine-pool"
"""Label of node groups that were made for a pool: its id. Groups that users make have none, and are left alone."""


def build_groups(pool: PoolSpec, region: str) -> dict[str, dict[str, Any]]:
    """Specs of NodeGroups by name. The bounds of all zones together are those of the pool."""
    shares = zip(
        pool.zones,
        _share(pool.min_replicas, len(pool.zones)),
        _share(pool.max_replicas, len(pool.zones)),
        strict=True,
    )
    return {
        f"{pool.id}-{_name_zone(zone, region)}": {
            "min": least,
            "max": most,
            "machineType": pool.machine_type,
            "zones": [zone],
            "template": {
                "labels": pool.labels,
                "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in pool.taints],
            },
        }
        for zone, least, most in shares
    }


def compute_target(target: int, spec: dict[str, Any]) -> int:
    """Never below the minimum. Machines above a lowered maximum stay until the node autoscaler removes them."""
    return max(target, int(spec["min"]))


def _share(total: int, zones: int) -> list[int]:
    """As equal parts as there are; the first zones have what is left over."""
    part, left = divmod(total, zones)
    return [part + (index < left) for index in range(zones)]


def _name_zone(zone: str, region: str) -> str:
    """`us-east-1a` of `us-east-1` is `a`."""
    return zone.removeprefix(region).lstrip("-") or zone

"""Answers of the simulated OCM as documents (docs/design/fleet.md 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.formatting import format_time
from plimsoll.local.ocm.ports import DEFAULT_POOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.ocm.ports import PoolSpec
    from plimsoll.local.ocm.state import AddonInstallation, OcmCluster

BASE: Final = "/api/clusters_mgmt/v1"


def build_error(status: int, reason: str, *, operation: str) -> dict[str, Any]:
    return {
        "kind": "Error",
        "id": str(status),
        "href": f"{BASE}/errors/{status}",
        "code": f"CLUSTERS-MGMT-{status}",
        "reason": reason,
        "operation_id": operation,
    }


def build_list(kind: str, items: Sequence[dict[str, Any]], *, page: int, size: int, total: int) -> dict[str, Any]:
    return {"kind": f"{kind}List", "page": page, "size": min(size, len(items)), "total": total, "items": list(items)}


def present_cluster(cluster: OcmCluster) -> dict[str, Any]:
    spec, pool = cluster.spec, cluster.spec.default_pool
    status: dict[str, Any] = {"state": cluster.state.value}
    if cluster.details:
        status |= {"provision_error_message": cluster.details, "provision_error_code": "OCM3999"}
    return {
        "kind": "Cluster",
        "id": spec.id,
        "href": f"{BASE}/clusters/{spec.id}",
        "name": spec.name,
        "external_id": cluster.external_id,
        "creation_timestamp": format_time(cluster.created_at),
        "cloud_provider": {"kind": "CloudProviderLink", "id": spec.cloud_provider},
        "region": {"kind": "CloudRegionLink", "id": spec.region},
        "multi_az": cluster.multi_az,
        "managed": True,
        "version": {"kind": "VersionLink", "id": spec.version},
        "nodes": {
            "availability_zones": list(spec.zones),
            "compute_machine_type": {"kind": "MachineTypeLink", "id": pool.machine_type},
            "autoscale_compute": _present_autoscaling(pool),
        },
        "state": cluster.state.value,
        "status": status,
    }


def present_pool(cluster_id: str, pool: PoolSpec) -> dict[str, Any]:
    return {
        "kind": "MachinePool",
        "id": pool.id,
        "href": f"{BASE}/clusters/{cluster_id}/machine_pools/{pool.id}",
        "instance_type": pool.machine_type,
        "availability_zones": list(pool.zones),
        "autoscaling": _present_autoscaling(pool),
        "labels": pool.labels,
        "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in pool.taints],
    }


def _present_autoscaling(pool: PoolSpec) -> dict[str, Any]:
    named = {} if pool.id == DEFAULT_POOL else {"id": pool.id}
    bounds = {"min_replicas": pool.min_replicas, "max_replicas": pool.max_replicas}
    return {"kind": "MachinePoolAutoscaling", **named, **bounds}


def present_addon(cluster_id: str, addon: AddonInstallation) -> dict[str, Any]:
    return {
        "kind": "AddOnInstallation",
        "id": addon.id,
        "href": f"{BASE}/clusters/{cluster_id}/addons/{addon.id}",
        "addon": {"kind": "AddOnLink", "id": addon.id},
        "state": addon.state,
        "state_description": addon.details,
        "parameters": {
            "items": [
                {"kind": "AddOnInstallationParameter", "id": name, "value": value}
                for name, value in sorted(addon.parameters.items())
            ]
        },
    }


def present_sync_set(name: str, resources: list[Any]) -> dict[str, Any]:
    return {"kind": "Syncset", "id": name, "resources": resources}


def present_ingresses(cluster: OcmCluster) -> list[dict[str, Any]]:
    if not cluster.is_made:
        return []
    return [{"kind": "Ingress", "id": "apps", "default": True, "dns_name": cluster.spec.dns, "listening": "external"}]

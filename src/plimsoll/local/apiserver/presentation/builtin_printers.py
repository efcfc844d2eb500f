"""The printers of built-in kinds: their columns and the functions that fill their rows.

Column definitions are data (`columns.json`, recorded from a real server; the descriptions of kinds that were not
recorded are our own). A kind that is not listed has its name and creation time, as in Kubernetes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, Final

from plimsoll.local.apiserver.presentation import (
    cluster_rows,
    network_rows,
    pod_rows,
    storage_rows,
    workload_rows,
)
from plimsoll.local.apiserver.presentation.durations import ZERO, parse_timestamp
from plimsoll.local.apiserver.presentation.field_access import Json, get_text, get_value

Cells = Callable[[Json, datetime], list[Any]]

_PRINTERS: Final[dict[str, Cells]] = {
    "ConfigMap": cluster_rows.build_config_map_cells,
    "Endpoints": network_rows.build_endpoints_cells,
    "Event": cluster_rows.build_event_cells,
    "Namespace": cluster_rows.build_namespace_cells,
    "Node": cluster_rows.build_node_cells,
    "PersistentVolume": storage_rows.build_volume_cells,
    "PersistentVolumeClaim": storage_rows.build_claim_cells,
    "Pod": pod_rows.build_pod_cells,
    "PodTemplate": workload_rows.build_pod_template_cells,
    "ReplicationController": workload_rows.build_replication_controller_cells,
    "ResourceQuota": cluster_rows.build_quota_cells,
    "Secret": cluster_rows.build_secret_cells,
    "Service": network_rows.build_service_cells,
    "ServiceAccount": cluster_rows.build_service_account_cells,
    "apps/ControllerRevision": workload_rows.build_controller_revision_cells,
    "apps/DaemonSet": workload_rows.build_daemon_set_cells,
    "apps/Deployment": workload_rows.build_deployment_cells,
    "apps/ReplicaSet": workload_rows.build_replica_set_cells,
    "apps/StatefulSet": workload_rows.build_stateful_set_cells,
    "autoscaling/HorizontalPodAutoscaler": workload_rows.build_autoscaler_cells,
    "batch/CronJob": workload_rows.build_cron_job_cells,
    "batch/Job": workload_rows.build_job_cells,
    "coordination.k8s.io/Lease": cluster_rows.build_lease_cells,
    "discovery.k8s.io/EndpointSlice": network_rows.build_endpoint_slice_cells,
    "networking.k8s.io/NetworkPolicy": network_rows.build_network_policy_cells,
    "policy/PodDisruptionBudget": workload_rows.build_disruption_budget_cells,
    "rbac.authorization.k8s.io/ClusterRoleBinding": cluster_rows.build_binding_cells,
    "rbac.authorization.k8s.io/RoleBinding": cluster_rows.build_binding_cells,
    "scheduling.k8s.io/PriorityClass": cluster_rows.build_priority_class_cells,
    "storage.k8s.io/CSIDriver": storage_rows.build_csi_driver_cells,
    "storage.k8s.io/CSINode": storage_rows.build_csi_node_cells,
    "storage.k8s.io/CSIStorageCapacity": storage_rows.build_storage_capacity_cells,
    "storage.k8s.io/StorageClass": storage_rows.build_storage_class_cells,
    "storage.k8s.io/VolumeAttachment": storage_rows.build_volume_attachment_cells,
}
_SAME_COLUMNS: Final = {"events.k8s.io/Event": "Event"}
_OTHERS: Final = ""


class BuiltinPrinter:
    """Columns and rows of a built-in kind."""

    def __init__(self, group: str, kind: str) -> None:
        name = f"{group}/{kind}" if group else kind
        self._name = _SAME_COLUMNS.get(name, name)
        self._cells = _PRINTERS.get(self._name, _build_name_and_creation)
        # Go leaves out the rows of an empty list only where no printer is written for the kind.
        self.rows_when_empty: list[Any] | None = [] if self._name in _PRINTERS else None

    @property
    def columns(self) -> list[Json]:
        definitions = load_column_definitions()
        return definitions.get(self._name, definitions[_OTHERS])

    def build_cells(self, obj: Json, now: datetime) -> list[Any]:
        return self._cells(obj, now)

    def build_conditions(self, obj: Json) -> list[dict[str, str]]:
        return pod_rows.build_row_conditions(obj) if self._name == "Pod" else []


def describe_column(name: str) -> str:
    """The description of a column that every kind has: `name` or `creationTimestamp`."""
    return str(_load_data()["descriptions"][name])


@cache
def load_column_definitions() -> dict[str, list[Json]]:
    return {
        kind: [_build_definition(column) for column in columns] for kind, columns in _load_data()["columns"].items()
    }


def _build_definition(column: Json) -> Json:
    description = column["description"]
    return {**column, "description": describe_column(description[1:]) if description.startswith("@") else description}


@cache
def _load_data() -> Json:
    found: Json = json.loads((resources.files(__package__) / "columns.json").read_bytes())
    return found


def _build_name_and_creation(obj: Json, _now: datetime) -> list[Any]:
    created = parse_timestamp(get_value(obj, "metadata", "creationTimestamp")) or ZERO
    return [get_text(obj, "metadata", "name"), created.isoformat(timespec="seconds").replace("+00:00", "Z")]

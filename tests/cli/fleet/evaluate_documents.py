"""Documents for `plimsoll fleet evaluate`, with defaults."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.cli.runner import CommandResult, plimsoll

CREATED = "2025-01-01T00:00:00Z"
POOL = {
    "compute_machine_type": "r5.xlarge",
    "compute_node_autoscaling": {"min_compute_nodes": 4, "max_compute_nodes": 17},
}
STRIMZI = {
    "version": "strimzi-cluster-operator.v0.23.0-0",
    "ready": True,
    "kafkaVersions": [{"version": "2.7.0"}],
    "kafkaIBPVersions": [{"version": "2.7"}],
}


def make_document(offers: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    region = {"name": "us-east-1", "default": True, "supported_instance_type": offers or {"standard": {}}}
    return {
        "configuration": {
            "dynamic_scaling": {
                "enable_dynamic_data_plane_scale_up": True,
                "enable_dynamic_data_plane_scale_down": True,
                "compute_machine_per_cloud_provider": {
                    "aws": {
                        "cluster_wide_workload": POOL,
                        "kafka_workload_per_instance_type": {"standard": POOL, "developer": POOL},
                    }
                },
            },
            "providers": {"supported_providers": [{"name": "aws", "default": True, "regions": [region]}]},
        },
        "clusters": [],
        "kafkas": [],
    } | copy.deepcopy(changes)


def make_cluster_row(row_id: str, units: int = 10, **changes: Any) -> dict[str, Any]:
    return {
        "id": row_id,
        "cluster_id": f"cid-{row_id}",
        "created_at": CREATED,
        "cloud_provider": "aws",
        "region": "us-east-1",
        "multi_az": True,
        "status": "ready",
        "supported_instance_type": "standard",
        "dynamic_capacity_info": {"standard": {"max_nodes": 18, "max_units": units, "remaining_units": units}},
        "available_strimzi_versions": [STRIMZI],
    } | changes


def make_kafka_row(row_id: str, cluster: str = "", **changes: Any) -> dict[str, Any]:
    return {
        "id": row_id,
        "name": row_id,
        "cluster_id": f"cid-{cluster}" if cluster else "",
        "cloud_provider": "aws",
        "region": "us-east-1",
        "instance_type": "standard",
        "size_id": "x1",
        "status": "ready" if cluster else "accepted",
        "created_at": CREATED,
    } | changes


def run_evaluate(document: Any, *options: str) -> CommandResult:
    return plimsoll("fleet", "evaluate", "-f", "-", "-o", "json", *options, stdin=json.dumps(document))


def evaluate(document: dict[str, Any]) -> dict[str, Any]:
    ended = run_evaluate(document)
    assert (ended.returncode, ended.stderr) == (0, "")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found

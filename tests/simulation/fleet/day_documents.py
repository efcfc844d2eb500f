"""Days of a fleet with one region, as documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from plimsoll.simulation.fleet.document import DayInput, read_day_document

EXAMPLE = Path(__file__).parents[3] / "examples/fleet/day.yaml"


def read_example(**changes: Any) -> DayInput:
    document = yaml.safe_load(EXAMPLE.read_text())
    found = read_day_document(document | changes)
    assert isinstance(found, DayInput), found
    return found


def build_document(offer: dict[str, int] | None = None, **changes: Any) -> dict[str, Any]:
    """A day without demand in aws us-east-1, whose clusters have 6 units and take 40 minutes."""
    pool = {
        "compute_machine_type": "r5.xlarge",
        "compute_node_autoscaling": {"min_compute_nodes": 3, "max_compute_nodes": 18},
    }
    machines = {"cluster_wide_workload": pool, "kafka_workload_per_instance_type": {"standard": pool}}
    region = {"name": "us-east-1", "default": True, "supported_instance_type": {"standard": offer or {}}}
    document: dict[str, Any] = {
        "provider": {"creation": "35m", "setup": "5m", "deletion": "15m"},
        "demand": [
            {
                "cloud_provider": "aws",
                "region": "us-east-1",
                "instance_type": "standard",
                "sizes": {"x1": 1},
                "per_hour": 0,
                "lifetime": "1h",
            }
        ],
        "configuration": {
            "dynamic_scaling": {
                "enable_dynamic_data_plane_scale_up": True,
                "enable_dynamic_data_plane_scale_down": True,
                "compute_machine_per_cloud_provider": {"aws": machines},
            },
            "providers": {"supported_providers": [{"name": "aws", "default": True, "regions": [region]}]},
        },
    }
    return document | changes


def read_day(offer: dict[str, int] | None = None, **changes: Any) -> DayInput:
    found = read_day_document(build_document(offer, **changes))
    assert isinstance(found, DayInput), found
    return found

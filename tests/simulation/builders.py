"""Builders of scenarios for tests: as a file would hold them, with as little as a test needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.runner import run_scenario

if TYPE_CHECKING:
    from plimsoll.simulation.results import ScenarioResult

SMALL = {"name": "small", "cpu": 4, "memory": "16Gi", "price": 0.2}


def group(name: str = "g", **more: Any) -> dict[str, Any]:
    return {"id": name, "max": 10, "machineType": "small", **more}


def template(cpu: str = "1") -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu}}}]}}


def pod(name: str = "p", *, cpu: str = "1", node: str = "", **metadata: Any) -> dict[str, Any]:
    spec = {**template(cpu)["spec"], **({"nodeName": node} if node else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def node(name: str, **more: Any) -> dict[str, Any]:
    status = {"capacity": {"cpu": "4", "memory": "16Gi"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status, **more}


def replica_set(name: str = "web", *, replicas: int = 2, cpu: str = "1") -> dict[str, Any]:
    labels = {"app": name}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, **template(cpu)},
    }
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


def reported(*steps: dict[str, Any], **scenario: Any) -> ScenarioResult:
    """Run a scenario whose machine type is `small`."""
    whole = {"machineTypes": [SMALL], **scenario, "steps": list(steps)}
    return run_scenario(read_scenario(msgspec.json.encode(whole), source="test"))


def outcome(*steps: dict[str, Any], **scenario: Any) -> Any:
    return reported(*steps, **scenario).outcome

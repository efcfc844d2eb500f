"""Worlds with ProvisioningRequests, for tests of the running autoscaler."""

from __future__ import annotations

from typing import Any

from tests.nodes.autoscaler.loop_scenarios import FinishedScenario, containers, lived

Json = dict[str, Any]

ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CHECK = "check-capacity.autoscaling.x-k8s.io"
REQUESTED: Json = {"provreq-provisioned-when": "requested"}
"""A request is Provisioned as soon as its nodes are asked for."""
ON: Json = {"enable-provisioning-requests": True, "frequent-loops-enabled": False}


def template(name: str, *, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "template": {"spec": {**containers(cpu, memory), **spec}},
    }


def request(name: str, sets: dict[str, int], *, kind: str = ATOMIC, **parameters: str) -> Json:
    pod_sets = [{"podTemplateRef": {"name": name}, "count": count} for name, count in sets.items()]
    spec: Json = {"provisioningClassName": kind, "podSets": pod_sets}
    if parameters:
        spec["parameters"] = parameters
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def faults(*entries: Json) -> Json:
    return {
        "apply": {
            "apiVersion": "cloud.plimsoll.io/v1alpha1",
            "kind": "Cloud",
            "metadata": {"name": "cloud"},
            "spec": {"faults": list(entries)},
        }
    }


def of_request(ended: FinishedScenario, name: str = "r") -> Json:
    return ended.outcome["requests"][f"default/{name}"]


def conditions(ended: FinishedScenario, name: str = "r") -> dict[str, tuple[str, str]]:
    """By type: status and reason."""
    return {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in of_request(ended, name)["conditions"]
    }


def history(ended: FinishedScenario, name: str = "r") -> list[tuple[str, str, str]]:
    return [(change["type"], change["status"], change["reason"]) for change in of_request(ended, name)["history"]]


def targets(ended: FinishedScenario) -> dict[str, int]:
    return {name: group["target"] for name, group in ended.outcome["nodeGroups"].items()}


def served(*steps: Json, **scenario: Any) -> FinishedScenario:
    """A world in which requests are served."""
    options = {**ON, **scenario.pop("options", {})}
    return lived(*steps, options=options, **scenario)

"""Builders for scenarios that are pure planning: a cluster in a few words, `plimsoll plan` on it, and its answer."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.runner import plimsoll

Json = dict[str, Any]
NAP: Json = {"node-autoprovisioning": True}


def shape(cpu: Any, gib: float, **requests: Any) -> Json:
    """The spec of a pod "1c/1G"."""
    amounts = {"cpu": str(cpu), "memory": f"{round(gib * 1024)}Mi", **requests}
    return {"containers": [{"name": "c", "image": "x", "resources": {"requests": amounts}}]}


def pods(name: str, count: int, cpu: Any, gib: float, *, labels: Json | None = None, **spec: Any) -> Json:
    requests = spec.pop("requests", {})
    body = {**shape(cpu, gib, **requests), **spec}
    return {"name": name, "count": count, "template": {"metadata": {"labels": labels or {}}, "spec": body}}


def group(name: str, cpu: int, gib: float, **more: Any) -> Json:
    """`resources` and `taints` go to the template; everything else is of the group."""
    capacity = {"cpu": cpu, "memory": f"{round(gib * 1024)}Mi", **(more.pop("resources", {}))}
    template = {"capacity": capacity, **({"taints": more.pop("taints")} if "taints" in more else {})}
    return {"id": name, "min": 0, "max": 10, "target": 0, "template": template, **more}


def n1(*cores: int, family: str = "standard") -> list[Json]:
    ratio = {"standard": 3.75, "highmem": 6.5, "highcpu": 0.9}[family]
    return [machine(f"n1-{family}-{number}", number, number * ratio) for number in cores]


def machine(name: str, cpu: int, gib: float, *, price: float | None = None, **more: Any) -> Json:
    money = round(0.031611 * cpu + 0.004237 * gib, 6) if price is None else price
    return {"name": name, "cpu": cpu, "memory": f"{round(gib * 1024)}Mi", "price": money, **more}


def node(name: str, group_id: str, cpu: int, gib: float, **labels: str) -> Json:
    amounts = {"cpu": str(cpu), "memory": f"{round(gib * 1024)}Mi", "pods": "110"}
    known = {"cloud.plimsoll.io/node-group": group_id, **labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": known},
        "status": {"capacity": amounts},
    }


def running(name: str, on: str, cpu: Any, gib: float, **metadata: Any) -> Json:
    body = {**shape(cpu, gib), "nodeName": on}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": body,
        "status": {"phase": "Running"},
    }


def request(name: str, *sets: tuple[int, Json], **more: Any) -> list[Json]:
    """An atomic request with the templates of its pod sets: (count, pod spec)."""
    templates = [
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": f"{name}-{index}"}, "template": {"spec": spec}}
        for index, (_, spec) in enumerate(sets)
    ]
    asked = [{"count": count, "podTemplateRef": {"name": f"{name}-{index}"}} for index, (count, _) in enumerate(sets)]
    spec = {"provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io", "podSets": asked, **more}
    body = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name},
        "spec": spec,
    }
    return [*templates, body]


def planned(scenario: Json, *arguments: str) -> Json:
    """The answer of the command, as its users get it."""
    ended = plimsoll("plan", "-f", "-", "-o", "json", *arguments, stdin=json.dumps(scenario))
    assert ended.returncode == 0, ended.stderr
    answer: Json = json.loads(ended.stdout)
    return answer


def sizes(answer: Json) -> Json:
    """Group, or machine type of a group to be made, to its size."""
    entries = answer["scaleUp"]["plan"]
    return {(entry["machineType"] if entry["created"] else entry["group"]): entry["to"] for entry in entries}


def left(answer: Json) -> int:
    return sum(remaining["pods"] for remaining in answer["scaleUp"]["remaining"])


def reasons(answer: Json) -> str:
    return "; ".join(reason for remaining in answer["scaleUp"]["remaining"] for reason in remaining["reasons"])

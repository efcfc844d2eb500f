"""Objects of built-in kinds that tests make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from plimsoll.kube.client import Client


def config_map(name: str, *, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {}}, "data": data}


def pod(name: str, *, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """One that no scheduler feels responsible for, so that it stays where tests put it."""
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "schedulerName": "plimsoll-e2e-nobody",
            "containers": [{"name": "main", "image": "registry.example.com/pause:1"}],
        },
    }


async def make_maps(client: Client, namespace: str, names: list[str]) -> None:
    """Labelled `made-by: e2e`, which the ones a cluster puts into every namespace are not."""
    for name in names:
        await client.create(ConfigMap, config_map(name, labels={"made-by": "e2e"}), namespace=namespace)


async def running_pod(client: Client, namespace: str, name: str, *, labels: dict[str, str]) -> Pod:
    """A pod that a kubelet would have reported ready; here the test does."""
    await client.create(Pod, pod(name, labels=labels), namespace=namespace)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"status": {"phase": "Running", "conditions": [ready]}}
    return await client.merge_patch(Pod, name, status, namespace=namespace, subresource="status")

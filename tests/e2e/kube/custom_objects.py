"""A custom resource of a group of its own, defined for one test and removed with all its objects."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Wire
from plimsoll.kube.errors import NotFound
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.meta import Condition, WireObject
from plimsoll.objects.api.resource import Resource
from tests.e2e.kube.clusters import ENTROPY, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.kube.client import Client


class GaugeSpec(Wire):
    level: int = 0


class GaugeStatus(Wire):
    seen: str = ""
    conditions: tuple[Condition, ...] = ()


class Gauge(WireObject):
    """Stricter than its definition, which takes any `level`: so there can be gauges that we cannot read."""

    spec: GaugeSpec = GaugeSpec()
    status: GaugeStatus = GaugeStatus()


def gauge(name: str, level: Any = 1) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"level": level}}


def _schema() -> dict[str, Any]:
    text, anything = {"type": "string"}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    condition = {
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            **dict.fromkeys(("type", "status", "reason", "message"), text),
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64"},
        },
    }
    conditions = {
        "type": "array",
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    status = {"type": "object", "properties": {"seen": text, "conditions": conditions}}
    return {"type": "object", "properties": {"spec": anything, "status": status}}


def _definition(resource: Resource) -> dict[str, Any]:
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _schema()},
        "subresources": {"status": {}},
    }
    names = {"kind": resource.kind, "plural": resource.plural, "singular": resource.singular}
    spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": resource.full_name}, "spec": spec}


@asynccontextmanager
async def defined_gauges(client: Client) -> AsyncIterator[Resource]:
    """The resource, once the cluster serves it."""
    resource = Resource(
        group=f"e2e-{ENTROPY.generate_suffix()}.plimsoll.example",
        version="v1",
        kind="Gauge",
        plural="gauges",
        singular="gauge",
        namespaced=True,
        struct=Gauge,
    )
    try:
        await client.create(CustomResourceDefinition, _definition(resource))
        await until(lambda: _is_served(client, resource))
        yield resource
    finally:
        with suppress(NotFound):
            await client.delete(CustomResourceDefinition, resource.full_name)


async def _is_served(client: Client, resource: Resource) -> bool:
    """Established, and answering: a cluster of several servers takes a moment to agree."""
    found = await client.get(CustomResourceDefinition, resource.full_name)
    if not any(condition.type == "Established" and condition.status == "True" for condition in found.status.conditions):
        return False
    try:
        await client.list(resource)
    except NotFound:
        return False
    return True

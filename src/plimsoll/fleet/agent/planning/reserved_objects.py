"""Reserved instances: pods that hold room until a real instance needs it (docs/design/fleet.md 17.4). Pure.

They have the shape and the places of a real instance and the lowest priority that still adds nodes. A real pod that
needs their room pre-empts them; their Deployment makes them anew at once, and the node autoscaler buys room for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.fleet.agent.planning.pod_placement import build_placement, build_role_labels
from plimsoll.fleet.agent.wire.names import (
    AGENT,
    BROKER_ROLE,
    BROKERS,
    CONTROLLER_ROLE,
    CONTROLLERS,
    DEPLOYMENT,
    MANAGED_BY,
    NAMESPACE_LABEL,
    PRIORITY_CLASS,
    RESERVED,
    ROLE_LABEL,
)

if TYPE_CHECKING:
    from plimsoll.fleet.agent.planning.sizes import InstanceShape, PodShape
    from plimsoll.objects.api.managed_kafkas import ManagedKafka

PRIORITY: Final = -10
_IMAGE: Final = "registry.k8s.io/pause:3.10"


def build_priority_class() -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": PRIORITY_CLASS, "labels": {MANAGED_BY: AGENT}},
        "value": PRIORITY,
        "preemptionPolicy": "Never",
        "description": "Reserved room for Kafka instances: every other pod goes first.",
    }


def build_reserved_deployments(managed: ManagedKafka, shape: InstanceShape) -> tuple[dict[str, Any], ...]:
    """One per role, with as many pods as a real instance of this shape."""
    deployments = [_build_deployment(managed, shape, BROKERS, BROKER_ROLE, shape.brokers, shape.broker)]
    if shape.controllers:
        deployments.append(
            _build_deployment(managed, shape, CONTROLLERS, CONTROLLER_ROLE, shape.controllers, shape.controller)
        )
    return tuple(deployments)


def _build_deployment(
    managed: ManagedKafka, shape: InstanceShape, name: str, role: str, replicas: int, pods: PodShape
) -> dict[str, Any]:
    selector = {DEPLOYMENT: RESERVED, ROLE_LABEL: role}
    labels = {**build_role_labels(shape, role), **selector}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": managed.metadata.namespace,
            "labels": {
                MANAGED_BY: AGENT,
                DEPLOYMENT: RESERVED,
                NAMESPACE_LABEL: managed.metadata.annotations.get("bf2.org/id", ""),
            },
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            # An update must not need more room than is reserved.
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    **build_placement(shape, role, selector=selector),
                    "priorityClassName": PRIORITY_CLASS,
                    "terminationGracePeriodSeconds": 0,
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "containers": [
                        {
                            "name": "pause",
                            "image": _IMAGE,
                            "resources": {"requests": pods.requests, "limits": {"memory": pods.requests["memory"]}},
                        }
                    ],
                },
            },
        },
    }

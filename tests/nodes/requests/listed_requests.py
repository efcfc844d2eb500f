"""Builders of what a turn lists: requests in any state, templates, classes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.requests.reader import ListedRequests, read_requests
from plimsoll.objects.api.meta import Condition, ObjectMeta
from plimsoll.objects.api.provisioning_requests import (
    PodSet,
    PodTemplateReference,
    ProvisioningClass,
    ProvisioningRequest,
    ProvisioningRequestSpec,
    ProvisioningRequestStatus,
)

if TYPE_CHECKING:
    from plimsoll.nodes.requests.model import ObservedRequests, RequestView

Json = dict[str, Any]

ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CHECK = "check-capacity.autoscaling.x-k8s.io"
START = datetime(2026, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def template(name: str = "t", *, metadata: Json | None = None, container: Json | None = None, **spec: Any) -> Json:
    one = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}, **(container or {})}
    return {
        "metadata": {"name": name, "namespace": "ml"},
        "template": {"metadata": metadata or {}, "spec": {"containers": [one], **spec}},
    }


def condition(kind: str, status: str = "True", reason: str = "X", *, at: float = 0) -> Condition:
    return Condition(type=kind, status=status, reason=reason, last_transition_time=after(at))


def request(
    name: str = "r",
    kind: str = CHECK,
    *conditions: Condition,
    sets: dict[str, int] | None = None,
    details: dict[str, str] | None = None,
    meta: dict[str, Any] | None = None,
    **parameters: str,
) -> ProvisioningRequest:
    pods = {"t": 2} if sets is None else sets
    return ProvisioningRequest(
        metadata=ObjectMeta(
            name=name, namespace="ml", **{"uid": f"uid-{name}", "creation_timestamp": START, **(meta or {})}
        ),
        spec=ProvisioningRequestSpec(
            provisioning_class_name=kind,
            pod_sets=tuple(
                PodSet(count=count, pod_template_ref=PodTemplateReference(name=name)) for name, count in pods.items()
            ),
            parameters=parameters,
        ),
        status=ProvisioningRequestStatus(conditions=conditions, provisioning_class_details=details or {}),
    )


def provisioning_class(name: str, **parameters: str) -> ProvisioningClass:
    return ProvisioningClass(metadata=ObjectMeta(name=name), parameters=parameters)


def listed(*requests: ProvisioningRequest, templates: tuple[Json, ...] = (), **more: Any) -> ListedRequests:
    bodies = {f"ml/{body['metadata']['name']}": body for body in (templates or (template(),))}
    return ListedRequests(requests=requests, templates=bodies, **more)


def seen(
    *requests: ProvisioningRequest, at: float = 0, options: dict[str, Any] | None = None, **more: Any
) -> ObservedRequests:
    return read_requests(listed(*requests, **more), read_options(options or {}), after(at))


def seen_one(one: ProvisioningRequest, *, at: float = 0, **more: Any) -> RequestView:
    """The only one that there is."""
    (found,) = seen(one, at=at, **more).all
    return found

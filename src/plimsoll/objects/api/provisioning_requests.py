"""ProvisioningRequests, capacity asked for before the pods exist, and ProvisioningClasses (`autoscaling.x-k8s.io`).

`REQUEST_RESOURCES` joins them to a client's table. Files may spell fields as the first design did: whoever reads one
asks `with_shipped_names`; on a server there are only the names of today.
"""

# ruff: noqa: D101 - a struct means what the schema of the same name says; docstrings only where that surprises

from typing import Any, Final

import msgspec

from plimsoll.core.values import Wire
from plimsoll.objects.api.meta import Condition, WireObject
from plimsoll.objects.api.resource import Resource

REQUEST_GROUP: Final = "autoscaling.x-k8s.io"
ATOMIC_CLASSES: Final = (
    "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
    "best-effort-atomic-scale-up.kubernetes.io",
    "atomic-scale-up.kubernetes.io",
)
CHECK_CLASSES: Final = ("check-capacity.autoscaling.x-k8s.io", "check-capacity.kubernetes.io")
CONSUME_ANNOTATIONS: Final = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Annotations of a pod that name the request it consumes, the preferred one first."""
CLASS_NAME_ANNOTATIONS: Final = (
    "autoscaling.x-k8s.io/provisioning-class-name",
    "cluster-autoscaler.kubernetes.io/provisioning-class-name",
)
"""Annotations of a pod that name the class of the request it consumes, the preferred one first."""


class PodTemplateReference(Wire):
    name: str = ""


class PodSet(Wire):
    count: int = 0
    pod_template_ref: PodTemplateReference = PodTemplateReference()


class ProvisioningRequestSpec(Wire):
    provisioning_class_name: str = ""
    pod_sets: tuple[PodSet, ...] = ()
    parameters: dict[str, str] = {}


class ProvisioningRequestStatus(Wire):
    conditions: tuple[Condition, ...] = ()
    provisioning_class_details: dict[str, str] = {}


class ProvisioningRequest(WireObject):
    spec: ProvisioningRequestSpec = ProvisioningRequestSpec()
    status: ProvisioningRequestStatus = ProvisioningRequestStatus()


class ProvisioningClass(WireObject):
    """Its name is that of the class, as requests spell it; as long as there is one, classes without one are refused."""

    parameters: dict[str, str] = {}
    first_parameters: dict[str, str] = msgspec.field(name="Parameters", default_factory=dict)
    """The same as the first design spells it."""

    @property
    def defaults(self) -> dict[str, str]:
        """What requests of the class have where they do not say otherwise."""
        return {**self.first_parameters, **self.parameters}


REQUEST_RESOURCES: Final = (
    Resource(
        group=REQUEST_GROUP,
        version="v1",
        kind=ProvisioningRequest.kind_name(),
        plural="provisioningrequests",
        singular="provisioningrequest",
        namespaced=True,
        struct=ProvisioningRequest,
        short_names=("provreq", "provreqs"),
    ),
    Resource(
        group=REQUEST_GROUP,
        version="v1alpha1",
        kind=ProvisioningClass.kind_name(),
        plural="provisioningclasses",
        singular="provisioningclass",
        namespaced=False,
        struct=ProvisioningClass,
        short_names=("provclass", "provclasses"),
    ),
)

_OF_SPEC: Final = {"provisioningClass": "provisioningClassName", "Parameters": "parameters"}
_OF_STATUS: Final = {"statuses": "provisioningClassDetails"}


def with_shipped_names(body: dict[str, Any]) -> dict[str, Any]:
    """A request of a file with fields as they are called today; a field that is there under both names keeps today's.

    Anything else, and what is no request at all, comes back as it is.
    """
    group, _, _ = str(body.get("apiVersion") or REQUEST_GROUP).partition("/")
    if body.get("kind") != ProvisioningRequest.kind_name() or group != REQUEST_GROUP:
        return body
    parts = {
        name: _renamed(body[name], names)
        for name, names in (("spec", _OF_SPEC), ("status", _OF_STATUS))
        if name in body
    }
    return {**body, **parts}


def _renamed(part: Any, names: dict[str, str]) -> Any:
    if not isinstance(part, dict):
        return part
    return {names[key] if key in names and names[key] not in part else key: value for key, value in part.items()}

"""ProvisioningRequests, which request capacity before the pods exist, and ProvisioningClasses (`autoscaling.x-k8s.io`).

`REQUEST_RESOURCES` adds them to a client's table of kinds. Files may have the field names of the first design, which
`use_shipped_names` converts; a server has only the current names.
"""

# ruff: noqa: D101 - a struct means what the schema of the same name says; docstrings only where that surprises

from typing import Any, Final

import msgspec

from plimsoll.core.values import Int64, Wire
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
    count: Int64 = 0
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
    """The field under its name in the first design."""

    @property
    def defaults(self) -> dict[str, str]:
        """The defaults of the requests of the class."""
        return {**self.first_parameters, **self.parameters}


REQUEST_RESOURCES: Final = (
    Resource(
        group=REQUEST_GROUP,
        version="v1",
        kind=ProvisioningRequest.get_kind_name(),
        plural="provisioningrequests",
        singular="provisioningrequest",
        namespaced=True,
        struct=ProvisioningRequest,
        short_names=("provreq", "provreqs"),
    ),
    Resource(
        group=REQUEST_GROUP,
        version="v1alpha1",
        kind=ProvisioningClass.get_kind_name(),
        plural="provisioningclasses",
        singular="provisioningclass",
        namespaced=False,
        struct=ProvisioningClass,
        short_names=("provclass", "provclasses"),
    ),
)

_OF_SPEC: Final = {"provisioningClass": "provisioningClassName", "Parameters": "parameters"}
_OF_STATUS: Final = {"statuses": "provisioningClassDetails"}


def use_shipped_names(body: dict[str, Any]) -> dict[str, Any]:
    """A request of a file with the current field names; where both names are present, the current one has precedence.

    Everything else is returned unchanged.
    """
    group, _, _ = str(body.get("apiVersion") or REQUEST_GROUP).partition("/")
    if body.get("kind") != ProvisioningRequest.get_kind_name() or group != REQUEST_GROUP:
        return body
    parts = {
        name: _rename(body[name], names) for name, names in (("spec", _OF_SPEC), ("status", _OF_STATUS)) if name in body
    }
    return {**body, **parts}


def _rename(part: Any, names: dict[str, str]) -> Any:
    if not isinstance(part, dict):
        return part
    return {names[key] if key in names and names[key] not in part else key: value for key, value in part.items()}

"""ProvisioningRequests: capacity asked for before the pods exist (`autoscaling.x-k8s.io`)."""

# ruff: noqa: D101 - a struct means what the schema of the same name says; docstrings only where that surprises

from typing import Final

from plimsoll.core.values import Wire
from plimsoll.objects.meta import Condition, WireObject

REQUEST_GROUP: Final = "autoscaling.x-k8s.io"
ATOMIC_CLASSES: Final = (
    "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
    "best-effort-atomic-scale-up.kubernetes.io",
    "atomic-scale-up.kubernetes.io",
)
CHECK_CLASSES: Final = ("check-capacity.autoscaling.x-k8s.io", "check-capacity.kubernetes.io")


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

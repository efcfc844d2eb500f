"""The permissions and custom resources that the node autoscaler and ProvisioningRequests need."""

from __future__ import annotations

from typing import Final

from plimsoll.kube.diagnosis.permissions import Permission, Scope
from plimsoll.kube.diagnosis.requirements import (
    FROM_PLIMSOLL,
    READ,
    WATCH,
    CustomResource,
    Requirements,
    RivalCheck,
    event_permission,
    lease_permissions,
    permissions_of,
)
from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.nodes.rivals import AUTOSCALER_LEASE, AUTOSCALER_RIVALS, check_autoscaler_lease

LAST_PLANS_MAP: Final = "plimsoll-nodes-last-plans"
"""The ConfigMap with the last plan of each object."""
_AUTOSCALING: Final = "autoscaling.x-k8s.io"

_PROVISIONING_REQUESTS: Final = CustomResource(
    plural="provisioningrequests", group=_AUTOSCALING, versions=("v1", "v1beta1"), source=FROM_PLIMSOLL
)
_PROVISIONING_CLASSES: Final = CustomResource(
    plural="provisioningclasses",
    group=_AUTOSCALING,
    versions=("v1alpha1",),
    source=FROM_PLIMSOLL,
    is_optional=True,
)


def _map(verbs: tuple[str, ...], names: tuple[str, ...], why: str) -> Permission:
    """ConfigMaps where the node autoscaler lives."""
    return Permission(
        group="", resource="configmaps", verbs=verbs, names=names, scope=Scope.ONE, namespace=KUBE_SYSTEM, why=why
    )


NODES: Final = Requirements(
    controller="nodes",
    permissions=(
        *permissions_of(
            "",
            ("nodes", READ, "to see which machines there are and what is free on them"),
            ("nodes", ("patch",), "to taint and cordon machines that are to go"),
            ("pods", WATCH, "to see which pods wait for a machine and what the others use"),
            ("pods/eviction", ("create",), "to move pods off a machine before it goes"),
            ("namespaces", WATCH, "to follow pod affinity that selects namespaces"),
            ("replicationcontrollers", WATCH, "to know whether an evicted pod comes back"),
            ("persistentvolumeclaims", WATCH, "to know where a pod's volumes can be"),
            ("persistentvolumes", WATCH, "to know where a pod's volumes are"),
        ),
        *permissions_of(
            "apps",
            ("daemonsets", WATCH, "to reserve room on new machines for their pods"),
            ("replicasets", WATCH, "to know whether an evicted pod comes back"),
            ("statefulsets", WATCH, "to know whether an evicted pod comes back"),
        ),
        *permissions_of("batch", ("jobs", WATCH, "to know whether an evicted pod comes back")),
        *permissions_of(
            "policy", ("poddisruptionbudgets", WATCH, "to remove no machine whose pods may not be disturbed")
        ),
        *permissions_of("scheduling.k8s.io", ("priorityclasses", WATCH, "to know which pods are more important")),
        *permissions_of(
            "storage.k8s.io",
            ("storageclasses", WATCH, "to know where volumes that are not bound yet may be made"),
            ("csinodes", WATCH, "to know how many volumes a machine takes"),
        ),
        *permissions_of(
            "authentication.k8s.io", ("tokenreviews", ("create",), "to know who asks for its debugging pages")
        ),
        *permissions_of(
            "authorization.k8s.io",
            ("subjectaccessreviews", ("create",), "to show its debugging pages to those alone who may see them"),
        ),
        _map(("create",), (), "to make its status object"),
        _map(
            ("get", "patch", "delete"),
            ("cluster-autoscaler-status",),
            "to keep its status object, and take it away at the end",
        ),
        _map(
            ("get", "patch"),
            ("cluster-autoscaler-removals", LAST_PLANS_MAP),
            "to count removals of the last hour, and to tell why, also after a restart",
        ),
        _map(
            WATCH,
            ("cluster-autoscaler-priority-expander", "plimsoll"),
            "to read which node groups are preferred, changed options, and whether it is to pause",
        ),
        *lease_permissions(AUTOSCALER_LEASE, scope=Scope.ONE, namespace=KUBE_SYSTEM),
        event_permission(Scope.EVERYWHERE),
    ),
    rivals=(RivalCheck(name=AUTOSCALER_RIVALS, find=check_autoscaler_lease),),
)

REQUESTS: Final = Requirements(
    controller="requests",
    permissions=(
        *permissions_of(
            _AUTOSCALING,
            ("provisioningrequests", READ, "to see what is asked for"),
            ("provisioningrequests", ("delete",), "to clear away requests that ended a week ago"),
            ("provisioningrequests/status", ("patch",), "to answer requests"),
            ("provisioningclasses", READ, "to see which classes are allowed"),
        ),
        *permissions_of(
            "",
            ("podtemplates", READ, "to see what the pods of a request look like"),
            ("limitranges", WATCH, "to know what pods are given that do not say what they need"),
        ),
        *permissions_of("scheduling.k8s.io", ("priorityclasses", WATCH, "to serve important requests first")),
        event_permission(Scope.EVERYWHERE),
    ),
    custom_resources=(_PROVISIONING_REQUESTS, _PROVISIONING_CLASSES),
    rivals=(RivalCheck(name=AUTOSCALER_RIVALS, find=check_autoscaler_lease),),
)

"""The permissions and custom resources that the node autoscaler and ProvisioningRequests need."""

from __future__ import annotations

from typing import Final

from plimsoll.kube.diagnosis.permissions import Permission, Scope
from plimsoll.kube.diagnosis.requirements import (
    FROM_PLIMSOLL,
    LEASES,
    READ,
    WATCH,
    CustomResource,
    Requirements,
    RivalCheck,
    declare_event_permission,
    declare_lease_permissions,
    declare_permissions,
)
from plimsoll.nodes.config.policy import AUTOSCALER_LEASE
from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.nodes.observing.other_autoscalers import KARPENTER_LEASE
from plimsoll.nodes.rivals import NODE_RIVALS, check_node_rivals
from plimsoll.nodes.running_permissions import adapt_node_requirements, adapt_request_requirements
from plimsoll.nodes.zone_checks import GROUP_ZONES, check_group_zones

LAST_PLANS_MAP: Final = "plimsoll-nodes-last-plans"
"""The ConfigMap with the last plan of each object."""
_AUTOSCALING: Final = "autoscaling.x-k8s.io"
_RIVALS: Final = (RivalCheck(name=NODE_RIVALS, find=check_node_rivals),)

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
        *declare_permissions(
            "",
            ("nodes", READ, "to list nodes and their free capacity"),
            ("nodes", ("patch",), "to taint and cordon nodes before they are deleted"),
            ("pods", WATCH, "to find pending pods and what the other pods use"),
            ("pods", ("get",), "to verify a list of pods before anything is deleted because of it"),
            ("pods/eviction", ("create",), "to drain nodes before they are deleted"),
            ("namespaces", WATCH, "to evaluate pod affinity that selects namespaces"),
            ("replicationcontrollers", WATCH, "to find out whether an evicted pod is created again"),
            ("persistentvolumeclaims", WATCH, "to find out where the volumes of a pod can be"),
            ("persistentvolumes", WATCH, "to find out where the volumes of a pod are"),
        ),
        *declare_permissions(
            "apps",
            ("daemonsets", WATCH, "to reserve capacity on new nodes for their pods"),
            ("replicasets", WATCH, "to find out whether an evicted pod is created again"),
            ("statefulsets", WATCH, "to find out whether an evicted pod is created again"),
        ),
        *declare_permissions("batch", ("jobs", WATCH, "to find out whether an evicted pod is created again")),
        *declare_permissions(
            "policy", ("poddisruptionbudgets", WATCH, "to respect disruption budgets when nodes are removed")
        ),
        *declare_permissions("scheduling.k8s.io", ("priorityclasses", WATCH, "to find out the priority of pods")),
        *declare_permissions(
            "storage.k8s.io",
            ("storageclasses", WATCH, "to find out where unbound volumes can be created"),
            ("csinodes", WATCH, "to find out how many volumes a node can attach"),
        ),
        *declare_permissions(
            "authentication.k8s.io", ("tokenreviews", ("create",), "to authenticate requests for debugging pages")
        ),
        *declare_permissions(
            "authorization.k8s.io",
            (
                "subjectaccessreviews",
                ("create",),
                "to authorize requests for debugging pages, and to find out whether a pod is another autoscaler",
            ),
        ),
        _map(("create",), (), "to create its status ConfigMap"),
        _map(
            ("get", "patch", "delete"),
            ("cluster-autoscaler-status",),
            "to update its status ConfigMap, and to delete it at the end",
        ),
        _map(
            ("get", "patch"),
            ("cluster-autoscaler-removals", LAST_PLANS_MAP),
            "to keep the removals of the last hour and the last plans (plimsoll why) across restarts",
        ),
        _map(
            WATCH,
            ("cluster-autoscaler-priority-expander", "plimsoll"),
            "to read the priorities of node groups, changed options, and whether it is paused",
        ),
        *declare_lease_permissions(AUTOSCALER_LEASE, scope=Scope.ONE, namespace=KUBE_SYSTEM),
        Permission(
            group=LEASES,
            resource="leases",
            verbs=("get",),
            names=(KARPENTER_LEASE,),
            scope=Scope.ONE,
            namespace=KUBE_SYSTEM,
            why="to notice Karpenter at work, and not to act beside it",
        ),
        declare_event_permission(Scope.EVERYWHERE),
    ),
    rivals=(*_RIVALS, RivalCheck(name=GROUP_ZONES, find=check_group_zones)),
    adapt=adapt_node_requirements,
)

REQUESTS: Final = Requirements(
    controller="requests",
    permissions=(
        *declare_permissions(
            _AUTOSCALING,
            ("provisioningrequests", READ, "to read requests"),
            ("provisioningrequests", ("delete",), "to delete requests that ended a week ago"),
            ("provisioningrequests/status", ("patch",), "to answer requests"),
            ("provisioningclasses", READ, "to read which classes are allowed"),
        ),
        *declare_permissions(
            "",
            ("podtemplates", READ, "to read the pod templates of requests"),
            ("limitranges", WATCH, "to find out the default requests of pods"),
        ),
        *declare_permissions("scheduling.k8s.io", ("priorityclasses", WATCH, "to serve requests by priority")),
        declare_event_permission(Scope.EVERYWHERE),
    ),
    custom_resources=(_PROVISIONING_REQUESTS, _PROVISIONING_CLASSES),
    rivals=_RIVALS,
    adapt=adapt_request_requirements,
)

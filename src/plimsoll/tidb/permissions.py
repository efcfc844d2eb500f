"""The permissions and custom resources that the TiDB autoscaler needs."""

from __future__ import annotations

from typing import Final

from plimsoll.kube.diagnosis.permissions import Permission, Scope
from plimsoll.kube.diagnosis.requirements import (
    FROM_PLIMSOLL,
    OWN,
    READ,
    WATCH,
    CustomResource,
    Requirements,
    event_permission,
    lease_permissions,
    permissions_of,
)

LAST_PLANS_MAP: Final = "plimsoll-tidb-last-plans"
"""The ConfigMap with the last plan of each object."""
_PINGCAP: Final = "pingcap.com"
_FROM_TIDB_OPERATOR: Final = "TiDB Operator"


def _pingcap(plural: str, *, source: str) -> CustomResource:
    return CustomResource(plural=plural, group=_PINGCAP, versions=("v1alpha1",), source=source)


TIDB: Final = Requirements(
    controller="tidb",
    permissions=(
        *permissions_of(
            _PINGCAP,
            ("tidbclusterautoscalers", READ, "to see what is to be scaled and by which rules"),
            ("tidbclusterautoscalers", ("patch",), "to keep one until its stores are drained (finalizer)"),
            ("tidbclusterautoscalers/status", ("patch",), "to tell what was decided"),
            ("tidbclusterautoscalers/finalizers", ("update",), "to own the clusters it makes"),
            ("tidbclusters", OWN, "to change replicas, and to make and remove groups of instances"),
            scope=Scope.WATCHED,
        ),
        *permissions_of("", ("nodes", WATCH, "to count the machines instances can run on")),
        *permissions_of("", ("namespaces", ("get",), "to see which other namespaces it may scale from")),
        *permissions_of(
            "",
            ("pods", ("list",), "to see which instances are ready"),
            ("services", ("get",), "to know where clients of TiDB servers go"),
            ("persistentvolumeclaims", ("get", "patch"), "to mark disks of stores that have left"),
            scope=Scope.WATCHED,
        ),
        *permissions_of(
            "",
            ("secrets", ("get",), "to talk with TLS to PD, or to an external service, where a cluster asks for it"),
            scope=Scope.INHABITED,
        ),
        *permissions_of(
            "discovery.k8s.io",
            ("endpointslices", ("list", "create", "patch", "delete"), "to send clients to the instances it adds"),
            scope=Scope.WATCHED,
        ),
        Permission(
            group="",
            resource="configmaps",
            verbs=("get",),
            names=("plimsoll", "cluster-autoscaler-status"),
            scope=Scope.OWN_NAMESPACE,
            why="to read whether it is to pause, and which nodes may still be added",
        ),
        Permission(
            group="",
            resource="configmaps",
            verbs=("create",),
            scope=Scope.OWN_NAMESPACE,
            why="to make the object that tells why, at first",
        ),
        Permission(
            group="",
            resource="configmaps",
            verbs=("get", "patch"),
            names=(LAST_PLANS_MAP,),
            scope=Scope.OWN_NAMESPACE,
            why="to tell why (plimsoll why), also after a restart",
        ),
        *lease_permissions("plimsoll-tidb"),
        event_permission(Scope.WATCHED),
    ),
    custom_resources=(
        # TiDB Operator brings it no more since 1.6.2.
        _pingcap("tidbclusterautoscalers", source=FROM_PLIMSOLL),
        _pingcap("tidbclusters", source=_FROM_TIDB_OPERATOR),
    ),
)

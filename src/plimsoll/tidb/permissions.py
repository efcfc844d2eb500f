"""The permissions and custom resources that the TiDB autoscaler needs."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.kube.diagnosis.permissions import Scope
from plimsoll.kube.diagnosis.requirements import (
    FROM_PLIMSOLL,
    OWN,
    READ,
    WATCH,
    CustomResource,
    Requirements,
    declare_config_map_permissions,
    declare_event_permission,
    declare_lease_permissions,
    declare_permissions,
)

LAST_PLANS_MAP: Final = "plimsoll-tidb-last-plans"
"""The ConfigMap with the last plan of each object."""
_PINGCAP: Final = "pingcap.com"
_FROM_TIDB_OPERATOR: Final = "TiDB Operator"


def _build_pingcap_resource(plural: str, *, source: str) -> CustomResource:
    return CustomResource(plural=plural, group=_PINGCAP, versions=("v1alpha1",), source=source)


def find_secret_namespaces(found: dict[str, Any]) -> set[str]:
    """The namespaces whose Secrets a TidbCluster or an autoscaler needs: for TLS with PD or an external service."""
    namespace = str(_get_part(found, "metadata").get("namespace", ""))
    spec = _get_part(found, "spec")
    needed = {namespace} if _get_part(spec, "tlsCluster").get("enabled") is True else set()
    for component in ("tikv", "tidb"):
        secret = _get_part(_get_part(_get_part(spec, component), "external"), "endpoint").get("tlsSecret")
        if isinstance(secret, dict):
            needed.add(str(secret.get("namespace") or namespace))
    return needed


def _get_part(whole: dict[str, Any], key: str) -> dict[str, Any]:
    value = whole.get(key)
    return value if isinstance(value, dict) else {}


TIDB: Final = Requirements(
    controller="tidb",
    permissions=(
        *declare_permissions(
            _PINGCAP,
            ("tidbclusterautoscalers", READ, "to read what to scale and the rules for it"),
            ("tidbclusterautoscalers", ("patch",), "to keep an autoscaler until its stores are drained (finalizer)"),
            ("tidbclusterautoscalers/status", ("patch",), "to report decisions"),
            ("tidbclusterautoscalers/finalizers", ("update",), "to own the clusters that it creates"),
            ("tidbclusters", OWN, "to change replicas, and to create and delete groups of instances"),
            scope=Scope.WATCHED,
        ),
        *declare_permissions("", ("nodes", WATCH, "to count the nodes that can run instances")),
        *declare_permissions("", ("namespaces", ("get",), "to find out which namespaces allow references from others")),
        *declare_permissions(
            "",
            ("pods", ("list",), "to find out which instances are ready"),
            ("services", ("get",), "to find the Service that clients of TiDB use"),
            ("persistentvolumeclaims", ("get", "patch"), "to annotate the volumes of removed stores"),
            scope=Scope.WATCHED,
        ),
        *declare_permissions(
            "",
            ("secrets", ("get",), "to use TLS with PD or an external service, if a cluster requires it"),
            scope=Scope.WITH_OBJECTS,
        ),
        *declare_permissions(
            "discovery.k8s.io",
            ("endpointslices", ("list", "create", "patch", "delete"), "to route clients to added instances"),
            scope=Scope.WATCHED,
        ),
        *declare_config_map_permissions(
            LAST_PLANS_MAP,
            read=("plimsoll", "cluster-autoscaler-status"),
            why="to read whether it is paused, and which nodes may still be added",
        ),
        *declare_lease_permissions("plimsoll-tidb"),
        declare_event_permission(Scope.WATCHED),
    ),
    custom_resources=(
        # TiDB Operator brings it no more since 1.6.2.
        _build_pingcap_resource("tidbclusterautoscalers", source=FROM_PLIMSOLL),
        _build_pingcap_resource("tidbclusters", source=_FROM_TIDB_OPERATOR),
    ),
    find_secret_namespaces=find_secret_namespaces,
)

"""What each controller needs of a cluster: the least permissions with their reasons, and the custom resources.

The table is the one place where this is written down: `plimsoll doctor` asks a server about it and prints the roles
that follow from it. Who makes a controller use something new adds a row here, with the reason.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from plimsoll.core.values import Value
from plimsoll.kube.diagnosis.permissions import Permission, Scope

KUBE_SYSTEM: Final = "kube-system"
AUTOSCALER_LEASE: Final = "cluster-autoscaler"
"""The name Cluster Autoscaler uses, so that it and Plimsoll never act at the same time."""

_WATCH: Final = ("list", "watch")
_READ: Final = ("get", *_WATCH)
_OWN: Final = (*_READ, "create", "patch", "delete")

_AUTOSCALING: Final = "autoscaling.x-k8s.io"
_STRIMZI: Final = "kafka.strimzi.io"
_STRIMZI_CORE: Final = "core.strimzi.io"
_PINGCAP: Final = "pingcap.com"
_LEASES: Final = "coordination.k8s.io"

_FROM_PLIMSOLL: Final = "plimsoll"
_FROM_STRIMZI: Final = "Strimzi"
_FROM_TIDB_OPERATOR: Final = "TiDB Operator"


class Definition(Value):
    """A custom resource that must be there. Any of `versions` will do, the first is liked best."""

    plural: str
    group: str
    versions: tuple[str, ...]
    source: str
    """Who brings it."""
    is_optional: bool = False

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}"

    @property
    def is_ours(self) -> bool:
        """Or somebody else's, although we carry one for clusters that nobody else looks after."""
        return self.source == _FROM_PLIMSOLL


class Needs(Value):
    """Everything one controller needs."""

    controller: str
    permissions: tuple[Permission, ...]
    definitions: tuple[Definition, ...] = ()
    """The first is what it looks after: where there is one, it has work to do."""

    @property
    def builtin_groups(self) -> tuple[str, ...]:
        """API groups of Kubernetes itself; Plimsoll speaks version v1 of each."""
        custom = {definition.group for definition in self.definitions}
        return tuple(
            dict.fromkeys(permission.group for permission in self.permissions if permission.group not in custom)
        )


def _events(scope: Scope) -> Permission:
    return Permission(
        group="", resource="events", verbs=("create", "patch"), scope=scope, why="to tell what it did and why"
    )


def _lease(name: str, *, scope: Scope = Scope.HOME, namespace: str = "") -> tuple[Permission, Permission]:
    making = Permission(
        group=_LEASES,
        resource="leases",
        verbs=("create",),
        scope=scope,
        namespace=namespace,
        why="to make its lease at first start",
    )
    holding = replace(making, verbs=("get", "patch"), names=(name,), why="to lead: only the holder of the lease acts")
    return making, holding


def _of(group: str, *rows: tuple[str, tuple[str, ...], str], scope: Scope = Scope.EVERYWHERE) -> list[Permission]:
    """Rows of (resource or resource/subresource, verbs, why)."""
    permissions = []
    for path, verbs, why in rows:
        resource, _, subresource = path.partition("/")
        permissions.append(
            Permission(group=group, resource=resource, subresource=subresource, verbs=verbs, scope=scope, why=why)
        )
    return permissions


_PROVISIONING_REQUESTS: Final = Definition(
    plural="provisioningrequests", group=_AUTOSCALING, versions=("v1", "v1beta1"), source=_FROM_PLIMSOLL
)
_PROVISIONING_CLASSES: Final = Definition(
    plural="provisioningclasses",
    group=_AUTOSCALING,
    versions=("v1alpha1",),
    source=_FROM_PLIMSOLL,
    is_optional=True,
)


def _strimzi(plural: str, *, group: str = _STRIMZI, is_optional: bool = False) -> Definition:
    versions = ("v1", "v1beta2")
    return Definition(plural=plural, group=group, versions=versions, source=_FROM_STRIMZI, is_optional=is_optional)


def _pingcap(plural: str, *, source: str) -> Definition:
    return Definition(plural=plural, group=_PINGCAP, versions=("v1alpha1",), source=source)


def _map(verbs: tuple[str, ...], names: tuple[str, ...], why: str) -> Permission:
    """ConfigMaps where the node autoscaler lives."""
    return Permission(
        group="", resource="configmaps", verbs=verbs, names=names, scope=Scope.ONE, namespace=KUBE_SYSTEM, why=why
    )


_NODES: Final = Needs(
    controller="nodes",
    permissions=(
        *_of(
            "",
            ("nodes", _READ, "to see which machines there are and what is free on them"),
            ("nodes", ("patch",), "to taint and cordon machines that are to go"),
            ("pods", _WATCH, "to see which pods wait for a machine and what the others use"),
            ("pods/eviction", ("create",), "to move pods off a machine before it goes"),
            ("namespaces", _WATCH, "to follow pod affinity that selects namespaces"),
            ("replicationcontrollers", _WATCH, "to know whether an evicted pod comes back"),
            ("persistentvolumeclaims", _WATCH, "to know where a pod's volumes can be"),
            ("persistentvolumes", _WATCH, "to know where a pod's volumes are"),
        ),
        *_of(
            "apps",
            ("daemonsets", _WATCH, "to reserve room on new machines for their pods"),
            ("replicasets", _WATCH, "to know whether an evicted pod comes back"),
            ("statefulsets", _WATCH, "to know whether an evicted pod comes back"),
        ),
        *_of("batch", ("jobs", _WATCH, "to know whether an evicted pod comes back")),
        *_of("policy", ("poddisruptionbudgets", _WATCH, "to remove no machine whose pods may not be disturbed")),
        *_of("scheduling.k8s.io", ("priorityclasses", _WATCH, "to know which pods are more important")),
        *_of(
            "storage.k8s.io",
            ("storageclasses", _WATCH, "to know where volumes that are not bound yet may be made"),
            ("csinodes", _WATCH, "to know how many volumes a machine takes"),
        ),
        *_of("authentication.k8s.io", ("tokenreviews", ("create",), "to know who asks for its debugging pages")),
        *_of(
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
            ("cluster-autoscaler-removals", "plimsoll-nodes-last-plans"),
            "to count removals of the last hour, and to tell why, also after a restart",
        ),
        _map(
            _WATCH,
            ("cluster-autoscaler-priority-expander", "plimsoll"),
            "to read which node groups are preferred, changed options, and whether it is to pause",
        ),
        *_lease(AUTOSCALER_LEASE, scope=Scope.ONE, namespace=KUBE_SYSTEM),
        _events(Scope.EVERYWHERE),
    ),
)

_REQUESTS: Final = Needs(
    controller="requests",
    permissions=(
        *_of(
            _AUTOSCALING,
            ("provisioningrequests", _READ, "to see what is asked for"),
            ("provisioningrequests", ("delete",), "to clear away requests that ended a week ago"),
            ("provisioningrequests/status", ("patch",), "to answer requests"),
            ("provisioningclasses", _READ, "to see which classes are allowed"),
        ),
        *_of(
            "",
            ("podtemplates", _READ, "to see what the pods of a request look like"),
            ("limitranges", _WATCH, "to know what pods are given that do not say what they need"),
        ),
        *_of("scheduling.k8s.io", ("priorityclasses", _WATCH, "to serve important requests first")),
        _events(Scope.EVERYWHERE),
    ),
    definitions=(_PROVISIONING_REQUESTS, _PROVISIONING_CLASSES),
)

_KAFKA: Final = Needs(
    controller="kafka",
    permissions=(
        *_of(
            _STRIMZI,
            ("kafkas", _READ, "to see which clusters are wanted"),
            ("kafkas/status", ("patch",), "to tell how a cluster and its rebalancing stand"),
            ("kafkanodepools", _READ, "to see how many brokers are wanted"),
            ("kafkanodepools/status", ("patch",), "to tell which node ids a pool has"),
            (
                "kafkarebalances",
                (*_READ, "create", "patch", "update", "delete"),
                "to rebalance when brokers come or go",
            ),
            ("kafkarebalances/status", ("patch",), "to tell how a rebalance stands"),
            ("kafkarebalancesettings", ("get", "list"), "to read the settings of automatic rebalances"),
            scope=Scope.WATCHED,
        ),
        *_of(
            _STRIMZI_CORE,
            ("strimzipodsets", _OWN, "to say which broker pods are to run"),
            ("strimzipodsets/status", ("patch",), "to tell which broker pods run"),
            scope=Scope.WATCHED,
        ),
        *_of(
            "",
            ("pods", (*_READ, "create", "delete"), "to run the pods of its pod sets"),
            ("configmaps", ("get", "create", "patch"), "to publish proposals and progress of a rebalance"),
            scope=Scope.WATCHED,
        ),
        *_of(
            "",
            ("secrets", ("get",), "to read the password and certificate of Cruise Control, where a Kafka is"),
            scope=Scope.INHABITED,
        ),
        *_of("apps", ("deployments", ("list",), "to see whether Strimzi's operator runs"), scope=Scope.WATCHED),
        *_lease("plimsoll-kafka"),
        _events(Scope.WATCHED),
    ),
    definitions=(
        _strimzi("kafkas"),
        _strimzi("kafkanodepools"),
        _strimzi("kafkarebalances"),
        _strimzi("kafkarebalancesettings", is_optional=True),
        _strimzi("strimzipodsets", group=_STRIMZI_CORE),
    ),
)

_TIDB: Final = Needs(
    controller="tidb",
    permissions=(
        *_of(
            _PINGCAP,
            ("tidbclusterautoscalers", _READ, "to see what is to be scaled and by which rules"),
            ("tidbclusterautoscalers", ("patch",), "to keep one until its stores are drained (finalizer)"),
            ("tidbclusterautoscalers/status", ("patch",), "to tell what was decided"),
            ("tidbclusterautoscalers/finalizers", ("update",), "to own the clusters it makes"),
            ("tidbclusters", _OWN, "to change replicas, and to make and remove groups of instances"),
            scope=Scope.WATCHED,
        ),
        *_of("", ("nodes", _WATCH, "to count the machines instances can run on")),
        *_of("", ("namespaces", ("get",), "to see which other namespaces it may scale from")),
        *_of(
            "",
            ("pods", ("list",), "to see which instances are ready"),
            ("services", ("get",), "to know where clients of TiDB servers go"),
            ("persistentvolumeclaims", ("get", "patch"), "to mark disks of stores that have left"),
            scope=Scope.WATCHED,
        ),
        *_of(
            "",
            ("secrets", ("get",), "to talk with TLS to PD, or to an external service, where a cluster asks for it"),
            scope=Scope.INHABITED,
        ),
        *_of(
            "discovery.k8s.io",
            ("endpointslices", ("list", "create", "patch", "delete"), "to send clients to the instances it adds"),
            scope=Scope.WATCHED,
        ),
        Permission(
            group="",
            resource="configmaps",
            verbs=("get",),
            names=("plimsoll", "cluster-autoscaler-status"),
            scope=Scope.HOME,
            why="to read whether it is to pause, and which nodes may still be added",
        ),
        Permission(
            group="",
            resource="configmaps",
            verbs=("create",),
            scope=Scope.HOME,
            why="to make the object that tells why, at first",
        ),
        Permission(
            group="",
            resource="configmaps",
            verbs=("get", "patch"),
            names=("plimsoll-tidb-last-plans",),
            scope=Scope.HOME,
            why="to tell why (plimsoll why), also after a restart",
        ),
        *_lease("plimsoll-tidb"),
        _events(Scope.WATCHED),
    ),
    definitions=(
        # TiDB Operator brings it no more since 1.6.2.
        _pingcap("tidbclusterautoscalers", source=_FROM_PLIMSOLL),
        _pingcap("tidbclusters", source=_FROM_TIDB_OPERATOR),
    ),
)

_FLEET_AGENT: Final = Needs(
    controller="fleet-agent",
    permissions=(
        *_of(
            "",
            ("namespaces", _OWN, "to give each Kafka a namespace of its own"),
            ("nodes", _READ, "to report how much room there is"),
            ("pods", _READ, "to report how much room there is"),
            (
                "secrets",
                ("get", "create", "patch", "delete"),
                "to keep certificates and passwords of each Kafka, in namespaces it makes as it goes",
            ),
        ),
        *_of(
            _STRIMZI,
            ("kafkas", _OWN, "to make what the fleet asks for"),
            ("kafkanodepools", _OWN, "to make what the fleet asks for"),
        ),
        *_of("apps", ("deployments", _OWN, "to keep reserved instances running, and to see Strimzi's versions")),
        *_of(
            "scheduling.k8s.io", ("priorityclasses", ("get", "create"), "to let real instances displace reserved ones")
        ),
        *_lease("plimsoll-agent"),
        _events(Scope.EVERYWHERE),
    ),
    definitions=(_strimzi("kafkas"), _strimzi("kafkanodepools")),
)

_KUBELET: Final = Needs(
    controller="kubelet",
    permissions=(
        *_of(
            "",
            ("nodes", _OWN, "to register the machines it plays"),
            ("nodes/status", ("patch",), "to report them ready"),
            ("pods", (*_READ, "delete"), "to play their pods, and to end those that are deleted"),
            ("pods/status", ("patch",), "to report pods as running"),
        ),
        Permission(
            group=_LEASES,
            resource="leases",
            verbs=("get", "create", "patch"),
            scope=Scope.ONE,
            namespace="kube-node-lease",
            why="to show that its machines are alive",
        ),
        _events(Scope.EVERYWHERE),
    ),
)

NEEDS: Final = {needs.controller: needs for needs in (_NODES, _REQUESTS, _KAFKA, _TIDB, _FLEET_AGENT, _KUBELET)}
CONTROLLERS: Final = tuple(NEEDS)

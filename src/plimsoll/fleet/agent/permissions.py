"""The permissions and custom resources that the agent needs, each with its reason."""

from __future__ import annotations

from typing import Final

from plimsoll.fleet.agent.settings import LAST_PLANS_MAP, LEASE, NODE_STATUS_MAP, SECRET
from plimsoll.fleet.agent.wire.claims_map import CLAIMS_MAP
from plimsoll.kube.diagnosis.permissions import Permission, Scope
from plimsoll.kube.diagnosis.requirements import (
    FROM_PLIMSOLL,
    WATCH,
    CustomResource,
    Requirements,
    declare_config_map_permissions,
    declare_event_permission,
    declare_lease_permissions,
    declare_permissions,
)
from plimsoll.objects.api.kafka import KAFKA_GROUP, POD_SET_GROUP
from plimsoll.objects.api.managed_kafkas import MANAGED_KAFKA_GROUP, MANAGED_KAFKA_VERSION

_FROM_STRIMZI: Final = "Strimzi"


def _declare_strimzi(plural: str, group: str = KAFKA_GROUP) -> CustomResource:
    return CustomResource(plural=plural, group=group, versions=("v1", "v1beta2"), source=_FROM_STRIMZI)


def _declare_own_map(name: str, verbs: tuple[str, ...], why: str) -> Permission:
    return Permission(group="", resource="configmaps", verbs=verbs, names=(name,), scope=Scope.OWN_NAMESPACE, why=why)


AGENT: Final = Requirements(
    controller="fleet-agent",
    permissions=(
        *declare_permissions(
            "",
            ("namespaces", ("get", *WATCH, "create", "delete"), "to give each instance a namespace, and to remove it"),
            ("secrets", ("create", "patch"), "to store certificates and passwords of instances; it reads none"),
        ),
        *declare_permissions(
            MANAGED_KAFKA_GROUP,
            ("managedkafkas", (*WATCH, "create", "patch"), "to keep what the control plane lists"),
            ("managedkafkas/status", ("patch",), "to show what it reports"),
        ),
        *declare_permissions(
            KAFKA_GROUP,
            ("kafkas", (*WATCH, "create", "patch"), "to make the Kafka of an instance"),
            ("kafkanodepools", (*WATCH, "create", "patch"), "to make the node pools of an instance"),
        ),
        *declare_permissions(POD_SET_GROUP, ("strimzipodsets", WATCH, "to see whether all brokers are ready")),
        *declare_permissions(
            "apps",
            (
                "deployments",
                (*WATCH, "create", "patch"),
                "to keep reserved instances running, and to find the versions of Kafka operators",
            ),
        ),
        *declare_permissions(
            "scheduling.k8s.io",
            ("priorityclasses", ("get", "create"), "to let every real instance pre-empt reserved ones"),
        ),
        *declare_config_map_permissions(LAST_PLANS_MAP),
        _declare_own_map(CLAIMS_MAP, ("get", "patch"), "to claim units before an instance is made"),
        Permission(
            group="",
            resource="secrets",
            verbs=("get",),
            names=(SECRET,),
            scope=Scope.OWN_NAMESPACE,
            why="to read its parameters (--secret)",
        ),
        _declare_own_map(NODE_STATUS_MAP, ("get",), "to learn the limits of the node autoscaler"),
        *declare_lease_permissions(LEASE),
        declare_event_permission(Scope.EVERYWHERE),
    ),
    custom_resources=(
        CustomResource(
            plural="managedkafkas",
            group=MANAGED_KAFKA_GROUP,
            versions=(MANAGED_KAFKA_VERSION,),
            source=FROM_PLIMSOLL,
        ),
        _declare_strimzi("kafkas"),
        _declare_strimzi("kafkanodepools"),
        _declare_strimzi("strimzipodsets", POD_SET_GROUP),
    ),
)

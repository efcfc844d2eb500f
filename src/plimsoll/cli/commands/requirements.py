"""The requirements of every controller that `plimsoll doctor` knows.

Those of Kafka and of the fleet agent are declared here: their subsystems do not exist yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.permissions import Scope
from plimsoll.kube.diagnosis.requirements import (
    OWN,
    READ,
    CustomResource,
    Requirements,
    RivalCheck,
    declare_event_permission,
    declare_lease_permissions,
    declare_permissions,
)
from plimsoll.kube.requests.options import Selection
from plimsoll.local.kubelet.permissions import KUBELET
from plimsoll.nodes.permissions import NODES, REQUESTS
from plimsoll.objects.api.workloads import Deployment
from plimsoll.tidb.permissions import TIDB

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.requirements import RivalContext

_STRIMZI: Final = "kafka.strimzi.io"
_STRIMZI_CORE: Final = "core.strimzi.io"
_STRIMZI_OPERATOR: Final = "strimzi.io/kind=cluster-operator"
_FROM_STRIMZI: Final = "Strimzi"
_KAFKA_RIVALS: Final = "rivals.kafka"


def _declare_strimzi(plural: str, *, group: str = _STRIMZI, is_optional: bool = False) -> CustomResource:
    versions = ("v1", "v1beta2")
    return CustomResource(plural=plural, group=group, versions=versions, source=_FROM_STRIMZI, is_optional=is_optional)


async def _check_strimzi_operator(client: Client, context: RivalContext) -> Finding:
    """Whether Strimzi's operator reconciles the same Kafka objects."""
    check = _KAFKA_RIVALS
    found = await client.list(Deployment, Selection(namespace=context.namespace, labels=_STRIMZI_OPERATOR))
    names = [
        f"{deployment.metadata.namespace}/{deployment.metadata.name}"
        for deployment in found.items
        if deployment.spec.replicas != 0
    ]
    if not names:
        return Finding(check=check, level=Level.OK, message="Strimzi's operator does not run")
    return Finding(
        check=check,
        level=Level.WARN,
        message=f"Strimzi's operator runs: {', '.join(names)}",
        fix="run the Kafka controller beside it with --kafka-mode companion, or scale the operator to 0",
        details={"deployments": names},
    )


KAFKA: Final = Requirements(
    controller="kafka",
    permissions=(
        *declare_permissions(
            _STRIMZI,
            ("kafkas", READ, "to read the specified clusters"),
            ("kafkas/status", ("patch",), "to report the state of a cluster and its rebalancing"),
            ("kafkanodepools", READ, "to read the specified number of brokers"),
            ("kafkanodepools/status", ("patch",), "to report the node ids of a pool"),
            (
                "kafkarebalances",
                (*READ, "create", "patch", "update", "delete"),
                "to rebalance when brokers are added or removed",
            ),
            ("kafkarebalances/status", ("patch",), "to report the state of a rebalance"),
            ("kafkarebalancesettings", ("get", "list"), "to read the settings of automatic rebalances"),
            scope=Scope.WATCHED,
        ),
        *declare_permissions(
            _STRIMZI_CORE,
            ("strimzipodsets", OWN, "to specify the broker pods"),
            ("strimzipodsets/status", ("patch",), "to report the running broker pods"),
            scope=Scope.WATCHED,
        ),
        *declare_permissions(
            "",
            ("pods", (*READ, "create", "delete"), "to run the pods of its pod sets"),
            ("configmaps", ("get", "create", "patch"), "to publish proposals and progress of a rebalance"),
            scope=Scope.WATCHED,
        ),
        *declare_permissions(
            "",
            ("secrets", ("get",), "to read the password and certificate of Cruise Control, in namespaces with a Kafka"),
            scope=Scope.INHABITED,
        ),
        *declare_permissions(
            "apps", ("deployments", ("list",), "to find out whether Strimzi's operator runs"), scope=Scope.WATCHED
        ),
        *declare_lease_permissions("plimsoll-kafka"),
        declare_event_permission(Scope.WATCHED),
    ),
    custom_resources=(
        _declare_strimzi("kafkas"),
        _declare_strimzi("kafkanodepools"),
        _declare_strimzi("kafkarebalances"),
        _declare_strimzi("kafkarebalancesettings", is_optional=True),
        _declare_strimzi("strimzipodsets", group=_STRIMZI_CORE),
    ),
    rivals=(RivalCheck(name=_KAFKA_RIVALS, find=_check_strimzi_operator),),
)


FLEET_AGENT: Final = Requirements(
    controller="fleet-agent",
    permissions=(
        *declare_permissions(
            "",
            ("namespaces", OWN, "to create a namespace for each Kafka"),
            ("nodes", READ, "to report free capacity"),
            ("pods", READ, "to report free capacity"),
            (
                "secrets",
                ("get", "create", "patch", "delete"),
                "to store certificates and passwords of each Kafka, in namespaces that it creates",
            ),
        ),
        *declare_permissions(
            _STRIMZI,
            ("kafkas", OWN, "to create the clusters of the fleet"),
            ("kafkanodepools", OWN, "to create the clusters of the fleet"),
        ),
        *declare_permissions(
            "apps", ("deployments", OWN, "to keep reserved instances running, and to find out Strimzi's version")
        ),
        *declare_permissions(
            "scheduling.k8s.io", ("priorityclasses", ("get", "create"), "to let real instances preempt reserved ones")
        ),
        *declare_lease_permissions("plimsoll-agent"),
        declare_event_permission(Scope.EVERYWHERE),
    ),
    custom_resources=(_declare_strimzi("kafkas"), _declare_strimzi("kafkanodepools")),
)


REQUIREMENTS: Final = {
    requirements.controller: requirements for requirements in (NODES, REQUESTS, KAFKA, TIDB, FLEET_AGENT, KUBELET)
}
"""By the name of the controller, in the order of the report."""


def select_requirements(controllers: Collection[str] = ()) -> tuple[Requirements, ...]:
    """Those of the named controllers; without names, all."""
    return tuple(found for name, found in REQUIREMENTS.items() if not controllers or name in controllers)

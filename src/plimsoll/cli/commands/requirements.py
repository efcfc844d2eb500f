"""The requirements of every controller that `plimsoll doctor` knows.

Those of the fleet agent are declared here: its subsystem does not exist yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kafka.permissions import KAFKA, declare_strimzi
from plimsoll.kube.diagnosis.permissions import Scope
from plimsoll.kube.diagnosis.requirements import (
    OWN,
    READ,
    Requirements,
    declare_event_permission,
    declare_lease_permissions,
    declare_permissions,
)
from plimsoll.local.kubelet.permissions import KUBELET
from plimsoll.nodes.permissions import NODES, REQUESTS
from plimsoll.objects.api.kafka import KAFKA_GROUP
from plimsoll.tidb.permissions import TIDB

if TYPE_CHECKING:
    from collections.abc import Collection

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
            KAFKA_GROUP,
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
    custom_resources=(declare_strimzi("kafkas"), declare_strimzi("kafkanodepools")),
)


REQUIREMENTS: Final = {
    requirements.controller: requirements for requirements in (NODES, REQUESTS, KAFKA, TIDB, FLEET_AGENT, KUBELET)
}
"""By the name of the controller, in the order of the report."""


def select_requirements(controllers: Collection[str] = ()) -> tuple[Requirements, ...]:
    """Those of the named controllers; without names, all."""
    return tuple(found for name, found in REQUIREMENTS.items() if not controllers or name in controllers)

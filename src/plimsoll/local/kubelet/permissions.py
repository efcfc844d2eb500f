"""The permissions that the simulated kubelet needs."""

from __future__ import annotations

from typing import Final

from plimsoll.kube.diagnosis.permissions import Permission, Scope
from plimsoll.kube.diagnosis.requirements import (
    LEASES,
    OWN,
    READ,
    Requirements,
    declare_event_permission,
    declare_permissions,
)

KUBELET: Final = Requirements(
    controller="kubelet",
    permissions=(
        *declare_permissions(
            "",
            ("nodes", OWN, "to register the simulated nodes"),
            ("nodes/status", ("patch",), "to report nodes as ready"),
            ("pods", (*READ, "delete"), "to simulate their pods, and to remove those that are deleted"),
            ("pods/status", ("patch",), "to report pods as running"),
        ),
        Permission(
            group=LEASES,
            resource="leases",
            verbs=("get", "create", "patch"),
            scope=Scope.ONE,
            namespace="kube-node-lease",
            why="to renew the leases of its nodes",
        ),
        declare_event_permission(Scope.EVERYWHERE),
    ),
)

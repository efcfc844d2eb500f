"""The requirements of every controller that `plimsoll doctor` knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.fleet.agent.permissions import AGENT
from plimsoll.fleet.providers.cluster_api.permissions import FLEET
from plimsoll.kafka.permissions import KAFKA
from plimsoll.local.kubelet.permissions import KUBELET
from plimsoll.nodes.permissions import NODES, REQUESTS
from plimsoll.tidb.permissions import TIDB

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.kube.diagnosis.requirements import Requirements

REQUIREMENTS: Final = {
    requirements.controller: requirements for requirements in (NODES, REQUESTS, KAFKA, TIDB, FLEET, AGENT, KUBELET)
}
"""By the name of the controller, in the order of the report."""


def select_requirements(controllers: Collection[str] = ()) -> tuple[Requirements, ...]:
    """Those of the named controllers; without names, all."""
    return tuple(found for name, found in REQUIREMENTS.items() if not controllers or name in controllers)

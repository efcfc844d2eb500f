"""Whether the cluster has too many brokers, as Cruise Control judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.kafka.model.proposals import Provision, ProvisionStatus
from plimsoll.kafka.planning.goal_list import HARD_GOALS
from plimsoll.kafka.planning.scope import BrokerRole

if TYPE_CHECKING:
    from plimsoll.kafka.model.settings import AnalyzerSettings
    from plimsoll.kafka.planning.placement import Placement


def judge_provision(placement: Placement, goals: tuple[str, ...], settings: AnalyzerSettings) -> Provision:
    """Too many brokers, or enough; undecided without hard goals. Too few are a refusal of a hard goal."""
    if not HARD_GOALS.intersection(goals):
        return Provision(status=ProvisionStatus.UNDECIDED)
    scope, model = placement.scope, placement.model
    brokers = int((scope.is_alive & (scope.role != BrokerRole.LEAVING)).sum())
    most = int(np.diff(model.offsets).max(initial=0))
    extra_racks = len(placement.racks_left) - most
    per_broker = settings.overprovisioned_max_replicas_per_broker
    needed = max(settings.overprovisioned_min_brokers, most, -(-model.replica_count // per_broker))
    if extra_racks < settings.overprovisioned_min_extra_racks or brokers <= needed:
        return Provision(status=ProvisionStatus.RIGHT_SIZED)
    return Provision(
        status=ProvisionStatus.OVER_PROVISIONED,
        recommendation=f"{model.replica_count} replicas need {needed} brokers at {per_broker} replicas per broker; "
        f"there are {brokers}.",
    )

"""The workers of a fleet manager, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.fleet.workers.general import GeneralKafkas
from plimsoll.fleet.workers.kafka_deleting import DeletingKafkas
from plimsoll.fleet.workers.kafka_placement import AcceptedKafkas, ProvisioningKafkas
from plimsoll.fleet.workers.kafka_preparing import PreparingKafkas
from plimsoll.fleet.workers.kafka_ready import ReadyKafkas
from plimsoll.fleet.workers.scaling import ScaleDownWorker, ScaleUpWorker

if TYPE_CHECKING:
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.model.access import AccessPolicy
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.workers.general import RowObserver
    from plimsoll.fleet.workers.passes import PassPlanner


def build_workers(
    policy: FleetPolicy, access: AccessPolicy, *, observer: RowObserver, entropy: Entropy
) -> tuple[PassPlanner, ...]:
    """The runner orders their passes; workers that a fleet does not have are left out."""
    return (
        GeneralKafkas(policy, access, observer),
        AcceptedKafkas(policy),
        PreparingKafkas(entropy),
        ProvisioningKafkas(policy, entropy),
        ReadyKafkas(policy),
        DeletingKafkas(),
        ScaleUpWorker(policy, entropy),
        ScaleDownWorker(policy),
    )

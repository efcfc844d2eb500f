"""The workers of a fleet manager, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.fleet.workers.clusters.creation import ClusterWorker
from plimsoll.fleet.workers.clusters.deletion import CleanupWorker, DeprovisioningWorker
from plimsoll.fleet.workers.clusters.provider_calls import ProviderCalls
from plimsoll.fleet.workers.general import GeneralKafkas
from plimsoll.fleet.workers.kafka_deleting import DeletingKafkas
from plimsoll.fleet.workers.kafka_placement import AcceptedKafkas, ProvisioningKafkas
from plimsoll.fleet.workers.kafka_preparing import PreparingKafkas
from plimsoll.fleet.workers.kafka_ready import ReadyKafkas
from plimsoll.fleet.workers.scaling import ScaleDownWorker, ScaleUpWorker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.model.access import AccessPolicy
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.statuses import ProviderType
    from plimsoll.fleet.planning.terraforming import SetupSettings
    from plimsoll.fleet.providers.port import ClusterProvider
    from plimsoll.fleet.workers.general import RowObserver
    from plimsoll.fleet.workers.passes import PassPlanner


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterParts:
    """What the workers of clusters need. `removals_per_hour` None: no limit."""

    providers: Mapping[ProviderType, ClusterProvider]
    setup: SetupSettings
    clock: Clock
    removals_per_hour: int | None = None
    keeps_ready: bool = True
    """Whether ready clusters are compared with what they should be."""


def build_workers(
    policy: FleetPolicy,
    access: AccessPolicy,
    *,
    observer: RowObserver,
    entropy: Entropy,
    clusters: ClusterParts | None = None,
) -> tuple[PassPlanner, ...]:
    """The runner orders their passes. `clusters` None: clusters are registered, and nothing creates or deletes them."""
    return (
        *(() if clusters is None else _build_cluster_workers(policy, clusters, entropy)),
        GeneralKafkas(policy, access, observer),
        AcceptedKafkas(policy),
        PreparingKafkas(entropy),
        ProvisioningKafkas(policy, entropy),
        ReadyKafkas(policy),
        DeletingKafkas(),
        ScaleUpWorker(policy, entropy),
        ScaleDownWorker(policy),
    )


def _build_cluster_workers(
    policy: FleetPolicy, parts: ClusterParts, entropy: Entropy
) -> tuple[PassPlanner, PassPlanner, PassPlanner]:
    """Each has its own back-off, because different processes may lead them."""

    def build_calls() -> ProviderCalls:
        return ProviderCalls(parts.providers, clock=parts.clock, entropy=entropy)

    return (
        ClusterWorker(policy, build_calls(), parts.setup, entropy=entropy, keeps_ready=parts.keeps_ready),
        DeprovisioningWorker(policy, build_calls(), removals_per_hour=parts.removals_per_hour),
        CleanupWorker(),
    )

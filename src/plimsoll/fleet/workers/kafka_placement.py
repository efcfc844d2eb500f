"""The workers that place Kafkas: `accepted_kafka` and `provisioning_kafka` (docs/design/fleet.md 1.6 and 10)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.placement import build_cluster_room, place_kafkas
from plimsoll.fleet.planning.strimzi_versions import find_latest_versions
from plimsoll.fleet.workers.endpoints import build_bootstrap_host
from plimsoll.fleet.workers.kafka_decisions import (
    Cause,
    build_change_step,
    build_failure_step,
    build_waiting,
    is_older,
)
from plimsoll.fleet.workers.passes import Step, build_work

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from plimsoll.core.entropy import Entropy
    from plimsoll.core.plans import NotDone
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.planning.placement import PlacementDecision
    from plimsoll.fleet.ports import KafkaChanges
    from plimsoll.fleet.workers.leased_store import LeasedStore
    from plimsoll.fleet.workers.passes import Work

LONGEST_WAIT_FOR_CLUSTER: Final = timedelta(hours=1)
LONGEST_WAIT_FOR_VERSION: Final = timedelta(minutes=5)


class AcceptedKafkas:
    """Gives accepted Kafkas a cluster and its versions. Without a cluster for an hour, a request fails."""

    name: Final = Worker.ACCEPTED_KAFKA

    def __init__(self, policy: FleetPolicy) -> None:
        self._policy = policy

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        kafkas = await store.list_kafkas({KafkaStatus.ACCEPTED})
        placements = await _decide(store, kafkas, self._policy, now)
        parts = [_prepare(placements, kafka) for kafka in kafkas]
        return build_work(self.name, parts, number=number, now=now, follow=Worker.PREPARING_KAFKA)


class ProvisioningKafkas:
    """Places Kafkas again whose cluster refused them because it was full."""

    name: Final = Worker.PROVISIONING_KAFKA

    def __init__(self, policy: FleetPolicy, entropy: Entropy) -> None:
        self._policy = policy
        self._entropy = entropy

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        kafkas = await store.list_kafkas({KafkaStatus.PROVISIONING}, cluster_id="")
        placements = await _decide(store, kafkas, self._policy, now)
        parts = [_place_again(placements, kafka, self._entropy) for kafka in kafkas]
        return build_work(self.name, parts, number=number, now=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placements:
    """The decisions of one pass, with the rows that they are about."""

    store: LeasedStore
    policy: FleetPolicy
    now: datetime
    decisions: dict[str, PlacementDecision]
    """By the id of the Kafka; only Kafkas without a cluster have one."""
    clusters: dict[str, Cluster]
    """By the id of the row."""
    by_cluster_id: dict[str, Cluster]

    def build_waiting(self, decision: PlacementDecision) -> NotDone:
        return decision.build_plan(0, self.now).not_done[0]

    def build_step(self, kafka: KafkaRequest, cluster: Cluster, changes: KafkaChanges) -> Step:
        room = build_cluster_room(cluster, kafka.instance_type, self.policy)

        async def run() -> bool:
            placed = await self.store.place_kafka(kafka.id, cluster, changes, statuses={kafka.status}, room=room)
            return placed is not None

        return Step(action=self.decisions[kafka.id].build_plan(0, self.now).actions[0], run=run)


async def _decide(
    store: LeasedStore, kafkas: Collection[KafkaRequest], policy: FleetPolicy, now: datetime
) -> _Placements:
    """Places what has no cluster. Without Kafkas nothing is read."""
    clusters = await store.list_heard_clusters() if kafkas else ()
    counts = await store.count_kafkas(policy) if kafkas else ()
    unplaced = [kafka for kafka in kafkas if not kafka.cluster_id]
    return _Placements(
        store=store,
        policy=policy,
        now=now,
        decisions={found.kafka_id: found for found in place_kafkas(unplaced, clusters, counts, policy, now)},
        clusters={cluster.id: cluster for cluster in clusters},
        by_cluster_id={cluster.cluster_id: cluster for cluster in clusters if cluster.cluster_id},
    )


def _prepare(placements: _Placements, kafka: KafkaRequest) -> Step | NotDone:
    decision = placements.decisions.get(kafka.id)
    if decision is None:
        return _continue_assigned(placements, kafka)
    if decision.cluster is None:
        return _wait_for_cluster(placements, kafka, decision)
    cluster = placements.clusters[decision.cluster]
    changes = _build_versions(cluster)
    if changes is None:
        return _wait_for_version(placements, kafka, cluster)
    changes["status"] = KafkaStatus.PREPARING
    return placements.build_step(kafka, cluster, changes)


def _continue_assigned(placements: _Placements, kafka: KafkaRequest) -> Step | NotDone:
    """The API has chosen the cluster: in the scaling types other than auto, and for enterprise clusters."""
    cluster = placements.by_cluster_id.get(kafka.cluster_id)
    changes = None if cluster is None else _build_versions(cluster)
    if cluster is None or changes is None:
        return _wait_for_version(placements, kafka, cluster)
    changes["status"] = KafkaStatus.PREPARING
    message = f"cluster/{cluster.id} was chosen when the Kafka was requested"
    cause = Cause(code="assigned", message=message, facts={"cluster": cluster.id})
    return build_change_step(placements.store, kafka, changes, verb="prepare", cause=cause)


def _place_again(placements: _Placements, kafka: KafkaRequest, entropy: Entropy) -> Step | NotDone:
    decision = placements.decisions[kafka.id]
    if decision.cluster is None:
        return placements.build_waiting(decision)
    cluster = placements.clusters[decision.cluster]
    changes, host = _build_versions(cluster), build_bootstrap_host(kafka, cluster)
    if changes is None or not host:
        missing = "no Strimzi version is ready" if changes is None else "its DNS name is not known yet"
        code = "no_ready_strimzi" if changes is None else "no_cluster_dns"
        facts = {"cluster": cluster.id}
        cause = Cause(code=code, message=f"cluster/{cluster.id} has room, but {missing}", facts=facts)
        return build_waiting(kafka, cause, cluster=cluster)
    changes["bootstrap_server_host"] = host
    changes["placement_id"] = entropy.generate_uid()
    return placements.build_step(kafka, cluster, changes)


def _build_versions(cluster: Cluster) -> KafkaChanges | None:
    """The versions that a new Kafka of a cluster gets; None: no Strimzi with versions is ready there."""
    latest = find_latest_versions(cluster)
    if latest is None or cluster.status is not ClusterStatus.READY:
        return None
    return {
        "desired_strimzi_version": latest.strimzi,
        "desired_kafka_version": latest.kafka,
        "desired_kafka_ibp_version": latest.kafka_ibp,
    }


def _wait_for_cluster(placements: _Placements, kafka: KafkaRequest, decision: PlacementDecision) -> Step | NotDone:
    if not is_older(kafka, LONGEST_WAIT_FOR_CLUSTER, placements.now):
        return placements.build_waiting(decision)
    cause = Cause(
        code="no_cluster_in_time",
        message=f"there was no room for one hour: {decision.message}",
        facts={"because": decision.reason},
    )
    failed_reason = (
        f"no cluster in region {kafka.region} of {kafka.cloud_provider} has room for an instance of type "
        f"{kafka.instance_type} and size {kafka.size_id}"
    )
    return build_failure_step(placements.store, kafka, failed_reason, cause)


def _wait_for_version(placements: _Placements, kafka: KafkaRequest, cluster: Cluster | None) -> Step | NotDone:
    if cluster is None:
        message, facts = f"its cluster {kafka.cluster_id!r} does not exist", {"cluster_id": kafka.cluster_id}
    else:
        message, facts = f"no Strimzi version is ready on cluster/{cluster.id}", {"cluster": cluster.id}
    cause = Cause(code="no_ready_strimzi", message=message, facts=facts)
    if is_older(kafka, LONGEST_WAIT_FOR_VERSION, placements.now):
        failed_reason = "no Kafka version is available on the cluster of this instance"
        return build_failure_step(placements.store, kafka, failed_reason, cause)
    return build_waiting(kafka, cause, cluster=cluster)

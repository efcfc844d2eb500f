"""Placement: which cluster gets a Kafka (docs/design/fleet.md 10 and 15.1)."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.plans import Action, NotDone, Plan
from plimsoll.fleet.model.clusters import Cluster, Locator
from plimsoll.fleet.model.policy import PlacementStrategy
from plimsoll.fleet.model.records import Record
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ScalingType
from plimsoll.fleet.planning.capacity import get_assumed_units, get_units, get_visiting_order, is_silent
from plimsoll.fleet.planning.plan_parts import build_plan, build_reason, refer_to_cluster, refer_to_kafka
from plimsoll.fleet.ports import ClusterRoom

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.policy import FleetPolicy, ManualCluster
    from plimsoll.fleet.model.units import KafkaCount

PLACED: Final = "placed"
WAITING: Final = "waiting"
NO_LIMIT: Final = -1
_STRATEGY_REASONS: Final = {
    PlacementStrategy.FIRST: "first_with_room",
    PlacementStrategy.BEST_FIT: "best_fit",
    PlacementStrategy.SPREAD: "spread",
}
_CLOSED: Final = ("agent_silent", "unschedulable")


class Candidate(Record):
    """A cluster that could run a Kafka, with its room. `max_units` -1: no limit.

    `reason` says why a cluster with room does not fit; it is omitted otherwise.
    """

    id: str
    count: int
    requested: int
    max_units: int
    fits: bool
    reason: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def free(self) -> int:
        return self.max_units - self.count


class PlacementDecision(Record):
    """Where a Kafka goes. `cluster` is the id of the row; None: it waits."""

    kafka_id: str
    decision: str
    cluster: str | None
    reason: str
    candidates: tuple[Candidate, ...]
    message: str = ""

    def build_plan(self, number: int, now: datetime) -> Plan:
        return build_placement_plan((self,), number, now)


def place_kafkas(
    kafkas: Iterable[KafkaRequest],
    clusters: Iterable[Cluster],
    counts: Iterable[KafkaCount],
    policy: FleetPolicy,
    now: datetime,
) -> tuple[PlacementDecision, ...]:
    """One decision per Kafka, oldest first; each sees those that were placed before it."""
    room = _Room(clusters, counts, policy, now)
    return tuple(room.place(kafka) for kafka in sorted(kafkas, key=lambda kafka: (kafka.created_at, kafka.id)))


def build_placement_plan(decisions: Iterable[PlacementDecision], number: int, now: datetime) -> Plan:
    """The decisions of one pass."""
    return build_plan(number, now, (_build_part(decision) for decision in decisions))


def check_enterprise_cluster(
    kafka: KafkaRequest, cluster: Cluster | None, counts: Iterable[KafkaCount], policy: FleetPolicy
) -> PlacementDecision:
    """Whether the named enterprise cluster takes a Kafka: its own organisation's, ready, with room for its type."""
    if (
        cluster is None
        or cluster.cluster_type is not ClusterType.ENTERPRISE
        or cluster.status is not ClusterStatus.READY
        or cluster.organization_id != kafka.organisation_id
        or kafka.instance_type not in cluster.dynamic_capacity_info
    ):
        return _build_decision(kafka, "no_cluster")
    requested = get_units(policy, kafka.instance_type, kafka.size_id)
    if requested is None:
        return _build_decision(kafka, "unknown_size")
    locator = Locator(cluster.cloud_provider, cluster.region, kafka.instance_type)
    used = _sum_units(counts, policy)[locator, cluster.cluster_id]
    units = cluster.dynamic_capacity_info[kafka.instance_type].max_units
    fits = used + requested <= units
    candidate = Candidate(id=cluster.id, count=used, requested=requested, max_units=units, fits=fits)
    if not fits:
        return _build_decision(kafka, "no_room", candidates=(candidate,))
    return _build_decision(kafka, "first_with_room", chosen=candidate, candidates=(candidate,))


def build_cluster_room(cluster: Cluster, instance_type: str, policy: FleetPolicy) -> ClusterRoom | None:
    """What the transaction that brings units of a type to a cluster checks. None: no limit is known.

    It is the rule of the decision once more: what was counted for the decision may have grown since.
    """
    locator: Locator | None = None
    types: Iterable[str] = (instance_type,)
    if policy.scaling_type is ScalingType.AUTO or cluster.cluster_type is ClusterType.ENTERPRISE:
        info = cluster.dynamic_capacity_info.get(instance_type)
        most = 0 if info is None else info.max_units
        locator = Locator(cluster.cloud_provider, cluster.region, instance_type)
    else:
        types = policy.instance_types
        manual = next((found for found in policy.manual_clusters if found.cluster_id == cluster.cluster_id), None)
        is_manual = policy.scaling_type is ScalingType.MANUAL
        most = NO_LIMIT if manual is None or not is_manual else manual.kafka_instance_limit
    if most == NO_LIMIT:
        return None
    known = {name: policy.instance_types[name].sizes if name in policy.instance_types else () for name in types}
    return ClusterRoom(
        most_units=most,
        locator=locator,
        units={name: {size.id: size.capacity_consumed for size in sizes} for name, sizes in known.items()},
        unknown_size_units={name: get_assumed_units(policy, name, "") for name in known},
    )


class _Room:
    """The clusters that may get Kafkas, with what they hold; it changes with every Kafka that is placed."""

    def __init__(
        self, clusters: Iterable[Cluster], counts: Iterable[KafkaCount], policy: FleetPolicy, now: datetime
    ) -> None:
        self._policy = policy
        self._now = now
        self._used = _sum_units(counts, policy)
        self._used_on: defaultdict[str, int] = defaultdict(int)
        for (_, cluster_id), units in self._used.items():
            self._used_on[cluster_id] += units
        self._manual = {manual.cluster_id: manual for manual in policy.manual_clusters}
        self._by_locator: defaultdict[Locator, list[Cluster]] = defaultdict(list)
        self._by_id: dict[str, Cluster] = {}
        for cluster in sorted(clusters, key=get_visiting_order):
            if (
                cluster.deleted_at is None
                and cluster.status is ClusterStatus.READY
                and cluster.cluster_type is ClusterType.MANAGED
                and cluster.cluster_id
            ):
                self._by_id[cluster.id] = cluster
                for locator in dict.fromkeys(cluster.locators):
                    self._by_locator[locator].append(cluster)

    def place(self, kafka: KafkaRequest) -> PlacementDecision:
        requested = get_units(self._policy, kafka.instance_type, kafka.size_id)
        if requested is None:
            return _build_decision(kafka, "unknown_size")
        clusters = [
            cluster for cluster in self._by_locator.get(kafka.locator, ()) if cluster.multi_az or not kafka.multi_az
        ]
        candidates = tuple(self._build_candidate(cluster, kafka, requested) for cluster in clusters)
        fitting = [candidate for candidate in candidates if candidate.fits]
        if not fitting:
            return _build_decision(kafka, _explain_waiting(candidates), candidates=candidates)
        chosen = self._choose(fitting)
        cluster = self._by_id[chosen.id]
        self._used[kafka.locator, cluster.cluster_id] += requested
        self._used_on[cluster.cluster_id] += requested
        return _build_decision(kafka, self._get_reason(), chosen=chosen, candidates=candidates)

    def _build_candidate(self, cluster: Cluster, kafka: KafkaRequest, requested: int) -> Candidate:
        count, most, schedulable = self._get_room(cluster, kafka)
        has_room = most == NO_LIMIT or count + requested <= most
        closed = ""
        if not schedulable:
            closed = "unschedulable"
        elif self._is_auto and is_silent(cluster, self._policy, self._now):
            closed = "agent_silent"
        return Candidate(
            id=cluster.id,
            count=count,
            requested=requested,
            max_units=most,
            fits=has_room and not closed,
            reason=closed if closed and has_room else msgspec.UNSET,
        )

    def _get_room(self, cluster: Cluster, kafka: KafkaRequest) -> tuple[int, int, bool]:
        """Units that count, the most units, and whether Kafkas may be placed there, by the scaling type."""
        if self._is_auto:
            info = cluster.dynamic_capacity_info.get(kafka.instance_type)
            count = self._used[kafka.locator, cluster.cluster_id]
            return count, 0 if info is None else info.max_units, cluster.schedulable
        count = self._used_on[cluster.cluster_id]
        manual = self._manual.get(cluster.cluster_id) if self._policy.scaling_type is ScalingType.MANUAL else None
        return (count, *_get_manual_room(manual, cluster))

    def _choose(self, fitting: list[Candidate]) -> Candidate:
        """The first of equals, and clusters are in the order of their creation."""
        if self._is_auto and self._policy.placement is PlacementStrategy.BEST_FIT:
            return min(fitting, key=lambda candidate: candidate.free)
        if self._is_auto and self._policy.placement is PlacementStrategy.SPREAD:
            return max(fitting, key=lambda candidate: candidate.free)
        return fitting[0]

    def _get_reason(self) -> str:
        return _STRATEGY_REASONS[self._policy.placement] if self._is_auto else "first_with_room"

    @property
    def _is_auto(self) -> bool:
        return self._policy.scaling_type is ScalingType.AUTO


def _get_manual_room(manual: ManualCluster | None, cluster: Cluster) -> tuple[int, bool]:
    """A cluster that is absent from the manual file has no limit."""
    if manual is None:
        return NO_LIMIT, cluster.schedulable
    return manual.kafka_instance_limit, manual.schedulable and cluster.schedulable


def _sum_units(counts: Iterable[KafkaCount], policy: FleetPolicy) -> defaultdict[tuple[Locator, str], int]:
    used: defaultdict[tuple[Locator, str], int] = defaultdict(int)
    for count in counts:
        if count.cluster_id and count.consuming > 0:
            units = get_assumed_units(policy, count.locator.instance_type, count.size_id)
            used[count.locator, count.cluster_id] += units * count.consuming
    return used


def _explain_waiting(candidates: tuple[Candidate, ...]) -> str:
    """Why no cluster fits: there is none, or the one with room gets no Kafkas, or none has room."""
    if not candidates:
        return "no_cluster"
    reasons = [candidate.reason for candidate in candidates]
    return next((closed for closed in _CLOSED if closed in reasons), "no_room")


def _build_decision(
    kafka: KafkaRequest, reason: str, *, chosen: Candidate | None = None, candidates: tuple[Candidate, ...] = ()
) -> PlacementDecision:
    message = _MESSAGES[reason].format(
        id=kafka.id,
        locator=kafka.locator,
        size=kafka.size_id,
        cluster="" if chosen is None else chosen.id,
        number=len(candidates),
    )
    return PlacementDecision(
        kafka_id=kafka.id,
        decision=WAITING if chosen is None else PLACED,
        cluster=None if chosen is None else chosen.id,
        reason=reason,
        candidates=candidates,
        message=message,
    )


def _build_part(decision: PlacementDecision) -> Action | NotDone:
    facts: dict[str, Any] = {"candidates": [msgspec.to_builtins(candidate) for candidate in decision.candidates]}
    reason = build_reason(decision.reason, decision.message, facts)
    subject = refer_to_kafka(decision.kafka_id)
    if decision.cluster is None:
        return NotDone(what="waiting", about=(subject,), reason=reason)
    place = refer_to_cluster(decision.cluster)
    return Action(
        verb="place", target=subject, reason=reason, arguments={"cluster": decision.cluster}, concerns=(place,)
    )


_MESSAGES: Final = {
    "first_with_room": "cluster/{cluster} is the first of {number} with room for kafka/{id}",
    "best_fit": "cluster/{cluster} has the least room of those that fit kafka/{id}",
    "spread": "cluster/{cluster} has the most room for kafka/{id}",
    "no_room": "none of {number} clusters in {locator} has room for size {size} of kafka/{id}",
    "no_cluster": "no cluster in {locator} is ready for kafka/{id}",
    "agent_silent": "the clusters in {locator} with room for kafka/{id} have silent agents",
    "unschedulable": "the clusters in {locator} with room for kafka/{id} are closed for new Kafkas",
    "unknown_size": "the size {size} of kafka/{id} is not configured",
}

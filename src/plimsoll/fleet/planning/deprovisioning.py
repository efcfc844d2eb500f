"""The second look at a cluster that is marked for deletion (docs/design/fleet.md 9, D-6)."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Final

from plimsoll.core.formatting import format_count
from plimsoll.core.plans import Action, Plan
from plimsoll.fleet.model.records import Record
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ScalingType
from plimsoll.fleet.planning.capacity import get_visiting_order
from plimsoll.fleet.planning.plan_parts import build_plan, build_reason, refer_to_cluster
from plimsoll.fleet.planning.scale_down import evaluate_types, find_need

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.planning.capacity import Capacity
    from plimsoll.fleet.planning.scale_up import LocatorEvaluation

RESTORE: Final = "restore"
DELETE: Final = "delete"


class DeprovisioningDecision(Record):
    """Whether a marked cluster returns to `ready` or is deleted."""

    id: str
    decision: str
    reason: str
    message: str

    def build_plan(self, number: int, now: datetime) -> Plan:
        return build_deprovisioning_plan((self,), number, now)


def evaluate_deprovisioning(
    clusters: Iterable[Cluster], capacity: Capacity, policy: FleetPolicy, now: datetime
) -> tuple[DeprovisioningDecision, ...]:
    """One decision per managed cluster in status `deprovisioning`, by creation time and id."""
    del now  # a deletion waits for no time
    marked = [
        cluster
        for cluster in sorted(clusters, key=get_visiting_order)
        if cluster.deleted_at is None
        and cluster.status is ClusterStatus.DEPROVISIONING
        and cluster.cluster_type is ClusterType.MANAGED
    ]
    return tuple(_decide(cluster, capacity, policy) for cluster in marked)


def list_returning_clusters(
    clusters: Iterable[Cluster], capacity: Capacity, policy: FleetPolicy, now: datetime
) -> tuple[Cluster, ...]:
    """Marked clusters that the second look will bring back, and that new Kafkas may use then."""
    known = tuple(clusters)
    returning = {
        decision.id
        for decision in evaluate_deprovisioning(known, capacity, policy, now)
        if decision.decision == RESTORE
    }
    return tuple(cluster for cluster in known if cluster.id in returning and cluster.schedulable)


def build_deprovisioning_plan(decisions: Iterable[DeprovisioningDecision], number: int, now: datetime) -> Plan:
    """The decisions of one pass."""
    return build_plan(
        number,
        now,
        (
            Action(
                verb=decision.decision,
                target=refer_to_cluster(decision.id),
                reason=build_reason(decision.reason, decision.message, {}),
            )
            for decision in decisions
        ),
    )


def _decide(cluster: Cluster, capacity: Capacity, policy: FleetPolicy) -> DeprovisioningDecision:
    if cluster.delete_requested_at is not None:
        return _build_decision(cluster, DELETE, "delete_requested")
    if not capacity.is_empty(cluster):
        units = capacity.units_on[cluster.cluster_id]
        return _build_decision(cluster, RESTORE, "not_empty", units=format_count(units, "streaming unit"))
    need = _find_need(cluster, capacity, policy)
    if need is None:
        return _build_decision(cluster, DELETE, "empty")
    reason = "capacity_needed" if need.reason not in _MESSAGES else need.reason
    return _build_decision(cluster, RESTORE, reason, because=need.message)


def _find_need(cluster: Cluster, capacity: Capacity, policy: FleetPolicy) -> LocatorEvaluation | None:
    """Why the cluster is needed. One that an operator retired is not, and without scaling rules none is."""
    if policy.scaling_type is not ScalingType.AUTO or not cluster.schedulable:
        return None
    return find_need(evaluate_types(cluster, capacity, policy, without=()))


def _build_decision(
    cluster: Cluster, decision: str, reason: str, *, units: str = "", because: str = ""
) -> DeprovisioningDecision:
    message = _MESSAGES[reason].format(id=cluster.id, units=units, because=because)
    return DeprovisioningDecision(id=cluster.id, decision=decision, reason=reason, message=message)


_MESSAGES: Final = {
    "delete_requested": "the provider is deleting cluster/{id}",
    "not_empty": "Kafkas on cluster/{id} consume {units}",
    "capacity_needed": "without cluster/{id} another cluster would be created: {because}",
    "unknown_size": "it is not known whether cluster/{id} is needed: {because}",
    "unknown_instance_type": "it is not known whether cluster/{id} is needed: {because}",
    "empty": "cluster/{id} is empty, and no other cluster is needed without it",
}

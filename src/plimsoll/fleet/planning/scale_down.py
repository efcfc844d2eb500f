"""Scale-down: which empty clusters are not needed (docs/design/fleet.md 7 and 15.1)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.durations import add_seconds, format_duration
from plimsoll.core.formatting import format_count, format_time
from plimsoll.core.plans import Action, NotDone, Plan
from plimsoll.fleet.model.records import Record
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ScalingType
from plimsoll.fleet.planning.plan_parts import build_plan, build_reason, refer_to_cluster
from plimsoll.fleet.planning.scale_up import CREATE, ERROR, LocatorEvaluation, evaluate_rest

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.planning.capacity import Capacity

REMOVE: Final = "remove"
KEEP: Final = "keep"


class TypeEvaluation(Record):
    """What scale-up would decide about one instance type of a cluster if the cluster were gone."""

    instance_type: str
    offered: bool
    decision: str
    reason: str
    inputs: dict[str, Any]


class ClusterEvaluation(Record, kw_only=True):
    """The decision about one cluster that is ready."""

    id: str
    cluster_id: str
    decision: str
    reason: str
    types: tuple[TypeEvaluation, ...] = ()
    message: str


class ScaleDown(Record):
    """A pass of scale-down. Not enabled: evaluations are complete, and nothing is removed."""

    enabled: bool
    evaluations: tuple[ClusterEvaluation, ...] = ()
    deprovision: tuple[str, ...] = ()
    """Ids of rows."""

    def build_plan(self, number: int, now: datetime) -> Plan:
        parts: list[Action | NotDone] = []
        for evaluation in self.evaluations:
            facts = {"types": [_describe_type(found) for found in evaluation.types]}
            reason = build_reason(evaluation.reason, evaluation.message, facts)
            subject = refer_to_cluster(evaluation.id)
            if evaluation.id in self.deprovision:
                parts.append(Action(verb="deprovision", target=subject, reason=reason))
            else:
                what = "evaluated only" if evaluation.decision == REMOVE else "kept"
                parts.append(NotDone(what=what, about=(subject,), reason=reason))
        return build_plan(number, now, parts)


def evaluate_scale_down(capacity: Capacity, policy: FleetPolicy, now: datetime) -> ScaleDown:
    """One evaluation per cluster that is ready, in visiting order. Scaling types other than auto have none.

    A cluster that is removed does not count for those after it. In a dry run nothing is removed, so all count.
    """
    if policy.scaling_type is not ScalingType.AUTO:
        return ScaleDown(enabled=False)
    evaluations = []
    removed: list[str] = []
    for cluster in capacity.clusters:
        if cluster.status is not ClusterStatus.READY:
            continue
        evaluation = _evaluate_cluster(cluster, capacity, policy, now, removed=removed)
        evaluations.append(evaluation)
        if evaluation.decision == REMOVE and policy.scale_down_enabled:
            removed.append(cluster.id)
    return ScaleDown(enabled=policy.scale_down_enabled, evaluations=tuple(evaluations), deprovision=tuple(removed))


def evaluate_types(
    cluster: Cluster, capacity: Capacity, policy: FleetPolicy, *, without: Collection[str]
) -> tuple[LocatorEvaluation, ...]:
    """What scale-up would decide without this cluster and the others, for each of its types (step 4)."""
    gone = {cluster.id, *without}
    return tuple(evaluate_rest(capacity, policy, locator, without=gone) for locator in dict.fromkeys(cluster.locators))


def find_need(evaluations: tuple[LocatorEvaluation, ...]) -> LocatorEvaluation | None:
    """The first reason to keep a cluster: another one would follow, or it is not known."""
    return next((found for found in evaluations if found.decision in {CREATE, ERROR}), None)


def is_region_abandoned(cluster: Cluster, policy: FleetPolicy) -> bool:
    region = policy.find_region(cluster.cloud_provider, cluster.region)
    return region is None or not region.types


def _evaluate_cluster(
    cluster: Cluster, capacity: Capacity, policy: FleetPolicy, now: datetime, *, removed: Collection[str]
) -> ClusterEvaluation:
    if cluster.cluster_type is ClusterType.ENTERPRISE:
        return _build_evaluation(cluster, KEEP, "enterprise")
    if not capacity.is_empty(cluster):
        units = capacity.units_on[cluster.cluster_id]
        return _build_evaluation(cluster, KEEP, "not_empty", facts={"units": format_count(units, "streaming unit")})
    if is_region_abandoned(cluster, policy):
        return _remove_unless_too_early(cluster, capacity, policy, now, reason="region_abandoned")
    evaluations = evaluate_types(cluster, capacity, policy, without=removed)
    types = tuple(_build_type_evaluation(found, policy) for found in evaluations)
    need = find_need(evaluations)
    if need is not None and need.decision == ERROR:
        return _build_evaluation(cluster, ERROR, need.reason, types=types, facts={"because": need.message})
    if need is not None:
        facts = {"because": need.message}
        return _build_evaluation(cluster, KEEP, "scale_up_would_follow", types=types, facts=facts)
    reason = "not_needed" if any(found.offered for found in types) else "type_not_offered"
    return _remove_unless_too_early(cluster, capacity, policy, now, reason=reason, types=types)


def _remove_unless_too_early(
    cluster: Cluster,
    capacity: Capacity,
    policy: FleetPolicy,
    now: datetime,
    *,
    reason: str,
    types: tuple[TypeEvaluation, ...] = (),
) -> ClusterEvaluation:
    removal = policy.removal
    since = cluster.empty_since
    if removal.minimum_empty_s and (since is None or now < add_seconds(since, removal.minimum_empty_s)):
        facts = {"required": format_duration(removal.minimum_empty_s), "since": "unknown" if since is None else since}
        return _build_evaluation(cluster, KEEP, "not_empty_long_enough", types=types, facts=facts)
    became_ready = [moment for locator in cluster.locators if (moment := capacity.ready_at.get(locator)) is not None]
    cool_until = add_seconds(max(became_ready), removal.cool_down_s) if became_ready else now
    if removal.cool_down_s and now < cool_until:
        return _build_evaluation(cluster, KEEP, "cooling_down", types=types, facts={"until": cool_until})
    return _build_evaluation(cluster, REMOVE, reason, types=types)


def _build_evaluation(
    cluster: Cluster,
    decision: str,
    reason: str,
    *,
    types: tuple[TypeEvaluation, ...] = (),
    facts: dict[str, Any] | None = None,
) -> ClusterEvaluation:
    shown = {name: format_time(fact) if isinstance(fact, datetime) else fact for name, fact in (facts or {}).items()}
    place = f"{cluster.cloud_provider}.{cluster.region}"
    return ClusterEvaluation(
        id=cluster.id,
        cluster_id=cluster.cluster_id,
        decision=decision,
        reason=reason,
        types=types,
        message=_MESSAGES[reason].format_map({**shown, "id": cluster.id, "place": place}),
    )


def _build_type_evaluation(found: LocatorEvaluation, policy: FleetPolicy) -> TypeEvaluation:
    return TypeEvaluation(
        instance_type=found.instance_type,
        offered=policy.find_offer(found.locator) is not None,
        decision=found.decision,
        reason=found.reason,
        inputs=found.inputs,
    )


def _describe_type(found: TypeEvaluation) -> dict[str, Any]:
    return {
        "instance_type": found.instance_type,
        "offered": found.offered,
        "decision": found.decision,
        "reason": found.reason,
        "inputs": found.inputs,
    }


_MESSAGES: Final = {
    "enterprise": "cluster/{id} belongs to a customer",
    "not_empty": "Kafkas on cluster/{id} consume {units}",
    "region_abandoned": "cluster/{id} is empty, and {place} is not offered any more",
    "type_not_offered": "cluster/{id} is empty, and {place} offers none of its instance types",
    "not_needed": "cluster/{id} is empty, and no other cluster is needed without it",
    "scale_up_would_follow": "cluster/{id} is empty, but without it another cluster would be created: {because}",
    "unknown_size": "cluster/{id} is empty, but it is not known whether it is needed: {because}",
    "unknown_instance_type": "cluster/{id} is empty, but it is not known whether it is needed: {because}",
    "not_empty_long_enough": "cluster/{id} is empty since {since}; it has to be empty for {required}",
    "cooling_down": "cluster/{id} is empty, but a cluster became ready lately; nothing is removed before {until}",
}

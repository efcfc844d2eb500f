"""Scale-up: whether a locator needs another cluster (docs/design/fleet.md 6 and 15.1).

The same rules, without clusters that are being made and without waiting times after failures, decide whether the
capacity of a cluster can be missed: scale-down and the second look before a deletion use `evaluate_rest`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from plimsoll.core.durations import add_seconds
from plimsoll.core.formatting import format_count, format_time
from plimsoll.core.plans import Action, NotDone, Plan
from plimsoll.fleet.model.clusters import Cluster, Locator
from plimsoll.fleet.model.kafkas import needs_zones
from plimsoll.fleet.model.pools import PoolBounds  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.fleet.model.records import Record
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ProviderType, ScalingType
from plimsoll.fleet.planning.machine_pools import build_pools
from plimsoll.fleet.planning.plan_parts import build_plan, build_reason, refer_to_capacity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from plimsoll.fleet.model.policy import CreationPolicy, FleetPolicy, RegionType
    from plimsoll.fleet.planning.capacity import Capacity, Summary

CREATE: Final = "create"
NONE: Final = "none"
ERROR: Final = "error"
FAILURE_WINDOW: Final = timedelta(hours=24)
_MOST_DOUBLINGS: Final = 60


class LocatorEvaluation(Record):
    """The decision about one locator: another cluster or not, with the numbers it was made from."""

    cloud_provider: str
    region: str
    instance_type: str
    decision: str
    reason: str
    inputs: dict[str, Any]
    message: str

    @property
    def locator(self) -> Locator:
        return Locator(self.cloud_provider, self.region, self.instance_type)


class Registration(Record):
    """A cluster to register. Its id and times come from the worker that inserts the row."""

    cloud_provider: str
    region: str
    supported_instance_type: str
    multi_az: bool
    status: ClusterStatus = ClusterStatus.ACCEPTED
    provider_type: ProviderType = ProviderType.OCM
    cluster_type: ClusterType = ClusterType.MANAGED
    machine_pools: tuple[PoolBounds, ...] = ()

    @property
    def locator(self) -> Locator:
        return Locator(self.cloud_provider, self.region, self.supported_instance_type)

    def build_cluster(self, row_id: str, now: datetime) -> Cluster:
        return Cluster(
            id=row_id,
            created_at=now,
            updated_at=now,
            cloud_provider=self.cloud_provider,
            region=self.region,
            multi_az=self.multi_az,
            status=self.status,
            provider_type=self.provider_type,
            supported_instance_type=self.supported_instance_type,
            cluster_type=self.cluster_type,
        )


class ScaleUp(Record):
    """A pass of scale-up. Not enabled: evaluations are complete, and nothing is registered."""

    enabled: bool
    evaluations: tuple[LocatorEvaluation, ...] = ()
    register: tuple[Registration, ...] = ()

    def build_plan(self, number: int, now: datetime) -> Plan:
        registered = {registration.locator: registration for registration in self.register}
        parts: list[Action | NotDone] = []
        for evaluation in self.evaluations:
            reason = build_reason(evaluation.reason, evaluation.message, evaluation.inputs)
            subject = refer_to_capacity(evaluation.locator)
            registration = registered.get(evaluation.locator)
            if registration is None:
                what = "evaluated only" if evaluation.decision == CREATE else "not extended"
                parts.append(NotDone(what=what, about=(subject,), reason=reason))
            else:
                arguments = {"multi_az": registration.multi_az}
                parts.append(Action(verb="register", target=subject, reason=reason, arguments=arguments))
        return build_plan(number, now, parts)


def evaluate_scale_up(capacity: Capacity, policy: FleetPolicy, now: datetime) -> ScaleUp:
    """One evaluation per locator of the provider file, in file order. Scaling types other than auto have none."""
    if policy.scaling_type is not ScalingType.AUTO:
        return ScaleUp(enabled=False)
    evaluations = tuple(
        _evaluate_locator(capacity, policy, Locator(provider.name, region.name, offer.instance_type), offer, now)
        for provider in policy.providers
        for region in provider.regions
        for offer in region.types
    )
    wanted = [evaluation.locator for evaluation in evaluations if evaluation.decision == CREATE]
    return ScaleUp(
        enabled=policy.scale_up_enabled,
        evaluations=evaluations,
        register=tuple(_build_registration(locator, policy) for locator in wanted if policy.scale_up_enabled),
    )


def hold_registrations(result: ScaleUp, returning: Iterable[Cluster]) -> ScaleUp:
    """The result without a registration where a marked cluster returns: it may be all that the locator needs.

    Both workers see the same need, and either may be first. If more is needed, the next pass registers it.
    """
    by_locator = {locator: cluster for cluster in returning for locator in cluster.locators}
    evaluations = tuple(
        structs.replace(
            found,
            decision=NONE,
            reason="cluster_returns",
            message=f"{found.locator}: cluster/{by_locator[found.locator].id} is marked for deletion, and returns",
        )
        if found.decision == CREATE and found.locator in by_locator
        else found
        for found in result.evaluations
    )
    registered = tuple(found for found in result.register if found.locator not in by_locator)
    return structs.replace(result, evaluations=evaluations, register=registered)


def evaluate_rest(
    capacity: Capacity, policy: FleetPolicy, locator: Locator, *, without: Collection[str]
) -> LocatorEvaluation:
    """The decision if these clusters and all that are being made were not there.

    A locator that the region does not offer gets `type_not_offered`. Waiting after failed creations does not count:
    it must not look as if the capacity were not needed.
    """
    offer = policy.find_offer(locator)
    summary = capacity.summarize(locator, without=without, counts_creations=False)
    inputs = _build_inputs(summary, offer, policy)
    if offer is None:
        return _build_evaluation(locator, NONE, "type_not_offered", inputs)
    error = _find_error(capacity, policy, locator)
    if error is not None:
        return _build_error(locator, error, inputs, capacity)
    decision, reason = _decide(summary, offer, policy)
    return _build_evaluation(locator, decision, reason, inputs)


def _evaluate_locator(
    capacity: Capacity, policy: FleetPolicy, locator: Locator, offer: RegionType, now: datetime
) -> LocatorEvaluation:
    summary = capacity.summarize(locator)
    inputs = _build_inputs(summary, offer, policy)
    error = _find_error(capacity, policy, locator)
    if error is not None:
        return _build_error(locator, error, inputs, capacity)
    decision, reason = _decide(summary, offer, policy)
    if decision == CREATE:
        failures = capacity.failures.get(locator, ())
        blocked = _find_backoff(failures, policy.creation, now)
        if blocked is not None:
            return _build_evaluation(locator, NONE, "create_backoff", {**inputs, **blocked})
    return _build_evaluation(locator, decision, reason, inputs)


def _find_error(capacity: Capacity, policy: FleetPolicy, locator: Locator) -> str | None:
    if locator.instance_type not in policy.instance_types:
        return "unknown_instance_type"
    return "unknown_size" if locator in capacity.errors else None


def _decide(summary: Summary, offer: RegionType, policy: FleetPolicy) -> tuple[str, str]:
    """Steps 2 to 6, in this order: the first that holds decides."""
    if offer.limit is not None and is_limit_reached(summary.consumed, offer.limit):
        return NONE, "limit_reached"
    if summary.is_ongoing and not _allows_parallel(summary, policy.creation):
        return NONE, "ongoing"
    if not summary.biggest_fits:
        return CREATE, "biggest_does_not_fit"
    if lacks_slack(summary.free, offer.slack):
        return CREATE, "below_slack"
    if policy.creation.count_backlog:
        left = summary.free - summary.backlog
        if summary.backlog > 0 and (left < summary.biggest or lacks_slack(left, offer.slack)):
            return CREATE, "backlog"
    return NONE, "enough"


def is_limit_reached(consumed: int, limit: int | None) -> bool:
    return limit is not None and consumed >= limit


def lacks_slack(free: int, slack: int) -> bool:
    """Whether less is free than the minimum. At equality the minimum is there."""
    return free < slack


def _allows_parallel(summary: Summary, creation: CreationPolicy) -> bool:
    return summary.creations < creation.max_parallel and summary.coming_units < summary.backlog


def _find_backoff(failures: Sequence[datetime], creation: CreationPolicy, now: datetime) -> dict[str, Any] | None:
    """Why no cluster is created after failed creations; None: one may be created.

    The limit holds until a failed row is retired: it is reached once that many rows failed within a day.
    """
    most = creation.max_failed
    if most and any(last - first < FAILURE_WINDOW for first, last in zip(failures, failures[most - 1 :], strict=False)):
        return {"failed": len(failures), "max_failed": most, "retry_at": None}
    recent = [failure for failure in failures if now - failure < FAILURE_WINDOW]
    if not recent:
        return None
    doubled = creation.retry_initial_s * 2.0 ** min(len(recent) - 1, _MOST_DOUBLINGS)
    retry_at = add_seconds(recent[-1], min(doubled, creation.retry_max_s))
    if now >= retry_at:
        return None
    return {"failed": len(recent), "max_failed": most, "retry_at": format_time(retry_at)}


def _build_registration(locator: Locator, policy: FleetPolicy) -> Registration:
    multi_az = needs_zones(locator.instance_type)
    region = policy.find_region(locator.cloud_provider, locator.region)
    has_class = region is not None and bool(region.cluster_class)
    return Registration(
        cloud_provider=locator.cloud_provider,
        region=locator.region,
        supported_instance_type=locator.instance_type,
        multi_az=multi_az,
        provider_type=ProviderType.CLUSTER_API if has_class else ProviderType.OCM,
        machine_pools=build_pools(locator.cloud_provider, (locator.instance_type,), policy, multi_az=multi_az),
    )


# ---- inputs and messages


def _build_inputs(summary: Summary, offer: RegionType | None, policy: FleetPolicy) -> dict[str, Any]:
    inputs: dict[str, Any] = {
        "limit": None if offer is None else offer.limit,
        "slack": 0 if offer is None else offer.slack,
        "consumed": summary.consumed,
        "max": summary.max_units,
        "free": summary.free,
        "biggest": summary.biggest,
        "biggest_fits": summary.biggest_fits,
        "ongoing": summary.is_ongoing,
    }
    if policy.creation.count_backlog or policy.creation.max_parallel > 1:
        inputs |= {"backlog": summary.backlog, "creations": summary.creations, "coming": summary.coming_units}
    return inputs


def _build_evaluation(locator: Locator, decision: str, reason: str, inputs: dict[str, Any]) -> LocatorEvaluation:
    shown = {
        **inputs,
        "locator": locator,
        "ending": _format_ending(inputs),
        "free_units": format_count(inputs["free"], "streaming unit"),
        "biggest_units": format_count(inputs["biggest"], "streaming unit"),
    }
    return LocatorEvaluation(
        cloud_provider=locator.cloud_provider,
        region=locator.region,
        instance_type=locator.instance_type,
        decision=decision,
        reason=reason,
        inputs=inputs,
        message=_MESSAGES[reason].format_map(shown),
    )


def _build_error(locator: Locator, error: str, inputs: dict[str, Any], capacity: Capacity) -> LocatorEvaluation:
    found = capacity.errors.get(locator)
    if error == "unknown_size" and found is not None:
        inputs = {**inputs, "kafka_id": found.kafka_id, "size_id": found.size_id}
    return _build_evaluation(locator, ERROR, error, inputs)


def _format_ending(inputs: dict[str, Any]) -> str:
    retry_at = inputs.get("retry_at")
    return "until a failed cluster is retired" if retry_at is None else f"before {retry_at}"


_MESSAGES: Final = {
    "limit_reached": "{locator}: {consumed} of at most {limit} streaming units are consumed",
    "ongoing": "{locator}: a cluster is being made already",
    "biggest_does_not_fit": "{locator}: no cluster has room for the biggest size, {biggest_units}",
    "below_slack": "{locator}: free are {free_units}, fewer than the minimum of {slack}",
    "backlog": "{locator}: free are {free_units}, and Kafkas without a place need {backlog}",
    "enough": "{locator}: free are {free_units}, not fewer than the minimum of {slack}, and the biggest size fits",
    "create_backoff": "{locator}: {failed} creations failed; none is made {ending}",
    "unknown_instance_type": "{locator}: this instance type is not configured",
    "unknown_size": "{locator}: kafka/{kafka_id} has the size {size_id!r}, which is not configured",
    "type_not_offered": "{locator}: the region does not offer this instance type",
}

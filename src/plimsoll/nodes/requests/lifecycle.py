"""Where a ProvisioningRequest stands, and what only time does to it (specs/nodes.md 3.6, 3.7). Pure.

Everything follows from what is stored: conditions, details and the time of creation. Asking changes nothing; the count
of attempts moves when an attempt is made, by who makes it. Every time is over strictly after it, as Cluster Autoscaler
has it: a back-off of 60 s that began at 0 is not over at 60.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.nodes.requests.model import ClassKind, Phase, StatusUpdate, UpdateKind
from plimsoll.nodes.requests.parameters import DAY_S
from plimsoll.nodes.requests.status import ConditionReason, ConditionType, build_condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.requests.model import ObservedRequests, RequestView
    from plimsoll.nodes.requests.parameters import Parameters
    from plimsoll.nodes.requests.status import Conditions, Details

RETENTION_S: Final = 7 * DAY_S
"""So long a request that is over is there to be read."""
CHECKED_PER_S: Final = 2000
PLANNED_PER_S: Final = 200
"""Pod sets that count as one second of the time boxes of checks and of growth: effort is counted, never timed, so that
the same requests are answered in the same turn on every machine. About what two slow cores do."""
_OVER: Final = (ConditionType.FAILED, ConditionType.BOOKING_EXPIRED, ConditionType.CAPACITY_REVOKED)
_MOST_DOUBLINGS: Final = 40
_END_OF_TIME: Final = datetime.max.replace(tzinfo=UTC)


def phase_of(
    conditions: Conditions, details: Details, parameters: Parameters, *, policy: Policy, now: datetime
) -> Phase:
    """By what is stored. A booking that has lasted its time is over, whether or not somebody has written that yet."""
    begun = details.intent is not None
    if is_over(conditions):
        return Phase.INTENDED if begun else Phase.OVER
    provisioned = conditions.get(ConditionType.PROVISIONED)
    if provisioned is not None and provisioned.status == "True":
        end = booking_end_time(conditions, parameters)
        return Phase.OVER if end is not None and now > end else Phase.HELD
    if begun:
        return Phase.INTENDED
    if provisioned is not None and provisioned.status == "False" and provisioned.reason == ConditionReason.WAITING:
        return Phase.ARRIVING
    if provisioned is None:
        return Phase.DUE
    if provisioned.status != "False":
        return Phase.UNKNOWN
    due = next_attempt_time(_as_tried(details, provisioned.last_transition_time), policy)
    return Phase.DUE if due is None or now > due else Phase.WAITING


def is_over(conditions: Conditions) -> bool:
    """Whether nothing is tried for it any more: it failed, or what it had is not its any longer."""
    return any(conditions.is_true(kind) for kind in _OVER)


def next_attempt_time(details: Details, policy: Policy) -> datetime | None:
    """It is due strictly after this; None: at once."""
    if details.last_attempt is None:
        return None
    doublings = min(max(details.attempts, 1) - 1, _MOST_DOUBLINGS)
    wait_s = min(policy.requests.first_backoff_s * 2**doublings, policy.requests.longest_backoff_s)
    return _later(details.last_attempt, wait_s)


def _as_tried(details: Details, refused_at: datetime | None) -> Details:
    """Who answers no writes both; another autoscaler, which this one takes over from, writes only the condition."""
    times = [one for one in (details.last_attempt, refused_at) if one is not None]
    return details.replace(last_attempt=max(times, default=None))


def expiry_time(seen: RequestView) -> datetime | None:
    """Without capacity until then, it fails."""
    return None if seen.created is None else _later(seen.created, seen.parameters.valid_s)


def booking_end_time(conditions: Conditions, parameters: Parameters) -> datetime | None:
    """None: it has no capacity, or nobody knows since when."""
    since = conditions.since(ConditionType.PROVISIONED) if conditions.is_true(ConditionType.PROVISIONED) else None
    return None if since is None else _later(since, parameters.booking_s)


def deletion_time(seen: RequestView) -> datetime | None:
    """When it is deleted; None: not by us."""
    since = [
        seen.conditions.since(kind)
        for kind in (ConditionType.PROVISIONED, ConditionType.FAILED)
        if seen.conditions.is_true(kind)
    ]
    answered = max((one for one in since if one is not None), default=None)
    if answered is None:
        return None
    return max(_later(answered, RETENTION_S), expiry_time(seen) or answered)


def has_expired(seen: RequestView, now: datetime) -> bool:
    """Whether it waited in vain for too long. Growth that was asked for and is on its way ends by itself."""
    end = expiry_time(seen)
    waits = seen.phase in {Phase.DUE, Phase.WAITING, Phase.INTENDED}
    return waits and end is not None and now > end and not is_over(seen.conditions)


def _later(time: datetime, seconds: float) -> datetime:
    try:
        return time + timedelta(seconds=seconds)
    except OverflowError:
        return _END_OF_TIME


# ---- what time does


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDeletion:
    """A request that was over long enough ago to be cleared away."""

    view: RequestView
    reason: Reason


def find_time_update(seen: RequestView, now: datetime) -> StatusUpdate | RequestDeletion | None:
    """What is to be written of a request because time went by, or because its booking cannot be made any more."""
    if has_expired(seen, now):
        told = f"no capacity was found within {seen.parameters.valid_s:g} s of its creation"
        return _said(seen, UpdateKind.FAILED, ConditionType.FAILED, ConditionReason.EXPIRED, told=told, now=now)
    if seen.phase in {Phase.HELD, Phase.ARRIVING} and seen.problem is not None:
        why, told = seen.problem
        return _said(seen, UpdateKind.FAILED, ConditionType.FAILED, why, told=told, now=now)
    if seen.phase is not Phase.OVER:
        return None
    if not is_over(seen.conditions):
        lasted = f"{seen.parameters.booking_s:g} s"
        told = f"capacity was kept for {lasted}" if seen.parameters.reserves else f"it was answered {lasted} ago"
        return _said(
            seen,
            UpdateKind.BOOKING_EXPIRED,
            ConditionType.BOOKING_EXPIRED,
            ConditionReason.TIME_OVER,
            told=told,
            now=now,
        )
    collected = deletion_time(seen)
    if collected is not None and now > collected:
        told = f"it was answered more than {RETENTION_S // DAY_S} days ago"
        return RequestDeletion(view=seen, reason=Reason(code=UpdateKind.DELETED.value, message=told))
    return None


def find_time_updates(
    seen: ObservedRequests, policy: Policy, now: datetime
) -> tuple[StatusUpdate | RequestDeletion, ...]:
    """Of all of them, as much as one turn writes: what is said goes before what is cleared away."""
    found = [one for request in seen.all if (one := find_time_update(request, now)) is not None]
    found.sort(key=lambda one: isinstance(one, RequestDeletion))
    return tuple(found[: policy.requests.refresh_writes])


def _said(
    seen: RequestView, saying: UpdateKind, kind: ConditionType, why: str, *, told: str, now: datetime
) -> StatusUpdate:
    made = build_condition(
        kind, status=True, reason=why, message=told, at=now, generation=seen.request.metadata.generation
    )
    return StatusUpdate(
        view=seen,
        kind=saying,
        reason=Reason(code=str(why), message=told),
        conditions=seen.conditions.with_condition(made),
        details=seen.details.replace(next_attempt=None),
    )


# ---- how much at once


def select_due(line: Iterable[RequestView], policy: Policy) -> tuple[RequestView, ...]:
    """Those of a line that one turn answers, in its order (specs/nodes.md 3.3, 4.4).

    Growth that was begun is always among them, and whoever fails before anything is planned costs nothing. The request
    with which a time box is full is still answered; those behind it wait for the next turn.
    """
    rules = policy.requests
    checks = _Box(
        pod_sets=rules.batch_timebox_s * CHECKED_PER_S, requests=rules.batch_size if rules.batch_checks else 1
    )
    growths = _Box(pod_sets=rules.atomic_timebox_s * PLANNED_PER_S)
    taken: list[RequestView] = []
    for request in line:
        box = checks if request.class_kind is ClassKind.CHECK else growths
        if request.problem is not None:
            taken.append(request)
        elif request.phase is Phase.INTENDED or not box.is_full:
            taken.append(request)
            box.take(request)
    return tuple(taken)


class _Box:
    """Room for so many in one turn."""

    def __init__(self, *, pod_sets: float, requests: int | None = None) -> None:
        self._pod_sets = pod_sets
        self._requests = requests
        self._taken = (0, 0)

    @property
    def is_full(self) -> bool:
        requests, pod_sets = self._taken
        if self._requests is not None and requests >= self._requests:
            return True
        return requests > 0 and pod_sets >= self._pod_sets

    def take(self, one: RequestView) -> None:
        requests, pod_sets = self._taken
        self._taken = (requests + 1, pod_sets + len(one.pods))

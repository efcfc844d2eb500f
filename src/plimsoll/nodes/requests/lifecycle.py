"""The lifecycle of a ProvisioningRequest: its phase, its deadlines, and updates due to the passing of time. Pure.

Everything derives from stored state: conditions, details and creation time (docs/design/nodes.md 3.6, 3.7). The number
of attempts changes only when an attempt is made. A deadline has passed strictly after its time, as in Cluster
Autoscaler: a back-off of 60 s that began at 0 has not ended at 60.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import add_seconds
from plimsoll.core.plans import Reason
from plimsoll.nodes.requests.model import ClassKind, Phase, StatusUpdate, UpdateKind
from plimsoll.nodes.requests.parameters import DAY_S
from plimsoll.nodes.requests.status import ConditionReason, ConditionType, build_condition

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.requests.model import ObservedRequests, RequestView
    from plimsoll.nodes.requests.parameters import Parameters
    from plimsoll.nodes.requests.status import Conditions, Details

RETENTION_S: Final = 7 * DAY_S
"""How long a finished request is kept before it is deleted."""
CHECKED_PER_S: Final = 2000
PLANNED_PER_S: Final = 200
"""Pod sets per second of the time boxes for checks and scale-ups. Effort is counted, not timed, so that the same
requests are answered in the same loop on every machine. About the speed of two slow cores.
"""
_OVER: Final = (ConditionType.FAILED, ConditionType.BOOKING_EXPIRED, ConditionType.CAPACITY_REVOKED)
_MOST_DOUBLINGS: Final = 40


def compute_phase(
    conditions: Conditions, details: Details, parameters: Parameters, *, policy: Policy, now: datetime
) -> Phase:
    """The phase by stored state. A booking ends at its time, whether or not that has been written."""
    begun = details.intent is not None
    if is_over(conditions):
        return Phase.INTENDED if begun else Phase.OVER
    provisioned = conditions.get(ConditionType.PROVISIONED)
    if provisioned is not None and provisioned.status == "True":
        end = compute_booking_end_time(conditions, parameters)
        return Phase.OVER if end is not None and now > end else Phase.HELD
    if begun:
        return Phase.INTENDED
    if provisioned is not None and provisioned.status == "False" and provisioned.reason == ConditionReason.WAITING:
        return Phase.ARRIVING
    if provisioned is None:
        return Phase.DUE
    if provisioned.status != "False":
        return Phase.UNKNOWN
    due = compute_next_attempt_time(_as_tried(details, provisioned.last_transition_time), policy)
    return Phase.DUE if due is None or now > due else Phase.WAITING


def is_over(conditions: Conditions) -> bool:
    """Whether nothing is tried for the request any more: it failed, or it lost its capacity or booking."""
    return any(conditions.is_true(kind) for kind in _OVER)


def compute_next_attempt_time(details: Details, policy: Policy) -> datetime | None:
    """The request is due strictly after this time; None: immediately."""
    if details.last_attempt is None:
        return None
    doublings = min(max(details.attempts, 1) - 1, _MOST_DOUBLINGS)
    wait_s = min(policy.requests.first_backoff_s * 2**doublings, policy.requests.longest_backoff_s)
    return add_seconds(details.last_attempt, wait_s)


def _as_tried(details: Details, refused_at: datetime | None) -> Details:
    """The details with the later of both refusal times: another autoscaler may have written only the condition."""
    times = [time for time in (details.last_attempt, refused_at) if time is not None]
    return details.replace(last_attempt=max(times, default=None))


def compute_expiry_time(view: RequestView) -> datetime | None:
    """The time at which a request without capacity fails."""
    return None if view.created is None else add_seconds(view.created, view.parameters.valid_s)


def compute_booking_end_time(conditions: Conditions, parameters: Parameters) -> datetime | None:
    """The end of the booking; None: there is no capacity, or its start is unknown."""
    since = conditions.get_since(ConditionType.PROVISIONED) if conditions.is_true(ConditionType.PROVISIONED) else None
    return None if since is None else add_seconds(since, parameters.booking_s)


def compute_deletion_time(view: RequestView) -> datetime | None:
    """The time at which the request is deleted; None: never by this controller."""
    since = [
        view.conditions.get_since(kind)
        for kind in (ConditionType.PROVISIONED, ConditionType.FAILED)
        if view.conditions.is_true(kind)
    ]
    answered = max((time for time in since if time is not None), default=None)
    if answered is None:
        return None
    return max(add_seconds(answered, RETENTION_S), compute_expiry_time(view) or answered)


def has_expired(view: RequestView, now: datetime) -> bool:
    """Whether the request waited too long without capacity. A scale-up under way ends by itself."""
    end = compute_expiry_time(view)
    waits = view.phase in {Phase.DUE, Phase.WAITING, Phase.INTENDED}
    return waits and end is not None and now > end and not is_over(view.conditions)


# ---- what time does


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDeletion:
    """A request that finished long enough ago to be deleted."""

    view: RequestView
    reason: Reason


def find_time_update(view: RequestView, now: datetime) -> StatusUpdate | RequestDeletion | None:
    """The update due because time passed, or because the booking has become impossible."""
    if has_expired(view, now):
        message = f"no capacity was found within {view.parameters.valid_s:g} s of its creation"
        return _build_update(
            view, UpdateKind.FAILED, ConditionType.FAILED, ConditionReason.EXPIRED, message=message, now=now
        )
    if view.phase in {Phase.HELD, Phase.ARRIVING} and view.problem is not None:
        why, message = view.problem
        return _build_update(view, UpdateKind.FAILED, ConditionType.FAILED, why, message=message, now=now)
    if view.phase is not Phase.OVER:
        return None
    if not is_over(view.conditions):
        lasted = f"{view.parameters.booking_s:g} s"
        message = f"capacity was kept for {lasted}" if view.parameters.reserves else f"it was answered {lasted} ago"
        return _build_update(
            view,
            UpdateKind.BOOKING_EXPIRED,
            ConditionType.BOOKING_EXPIRED,
            ConditionReason.TIME_OVER,
            message=message,
            now=now,
        )
    collected = compute_deletion_time(view)
    if collected is not None and now > collected:
        message = f"it was answered more than {RETENTION_S // DAY_S} days ago"
        return RequestDeletion(view=view, reason=Reason(code=UpdateKind.DELETED.value, message=message))
    return None


def find_time_updates(
    observed: ObservedRequests, policy: Policy, now: datetime
) -> tuple[StatusUpdate | RequestDeletion, ...]:
    """The updates of all requests, at most as many as one loop writes: status updates before deletions."""
    found = [update for view in observed.all if (update := find_time_update(view, now)) is not None]
    found.sort(key=lambda update: isinstance(update, RequestDeletion))
    return tuple(found[: policy.requests.refresh_writes])


def _build_update(
    view: RequestView, kind: UpdateKind, condition_type: ConditionType, reason: str, *, message: str, now: datetime
) -> StatusUpdate:
    condition = build_condition(
        condition_type, status=True, reason=reason, message=message, at=now, generation=view.request.metadata.generation
    )
    return StatusUpdate(
        view=view,
        kind=kind,
        reason=Reason(code=str(reason), message=message),
        conditions=view.conditions.with_condition(condition),
        details=view.details.replace(next_attempt=None),
    )


# ---- how much at once


def select_due(queue: Iterable[RequestView], policy: Policy) -> tuple[RequestView, ...]:
    """The requests of the queue that one loop answers, in queue order (docs/design/nodes.md 3.3, 4.4).

    Requests with an intent are always included, and requests that fail before planning cost nothing. The request that
    fills a time box is still answered; those behind it wait for the next loop.
    """
    rules = policy.requests
    checks = _TimeBox(
        pod_sets=rules.batch_timebox_s * CHECKED_PER_S, requests=rules.batch_size if rules.batch_checks else 1
    )
    scale_ups = _TimeBox(pod_sets=rules.atomic_timebox_s * PLANNED_PER_S)
    taken: list[RequestView] = []
    for request in queue:
        box = checks if request.class_kind is ClassKind.CHECK else scale_ups
        if request.problem is not None:
            taken.append(request)
        elif request.phase is Phase.INTENDED or not box.is_full:
            taken.append(request)
            box.take(request)
    return tuple(taken)


class _TimeBox:
    """Counts requests and pod sets against the limit of one loop."""

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

    def take(self, view: RequestView) -> None:
        requests, pod_sets = self._taken
        self._taken = (requests + 1, pod_sets + len(view.pods))

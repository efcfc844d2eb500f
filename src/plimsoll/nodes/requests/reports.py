"""What `plimsoll requests` says of a ProvisioningRequest: one word for where it stands, and what is behind it. Pure.

Read from the object alone, so it is right for requests that Cluster Autoscaler serves too; only what Plimsoll writes
into the details (attempts, groups, cost, what stands in the way) is missing then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.nodes.requests.conditions import Kind, Why
from plimsoll.nodes.requests.details import Details
from plimsoll.objects.meta import written_time

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.objects.meta import Condition
    from plimsoll.objects.requests import ProvisioningRequest

Json = dict[str, Any]

NEW: Final = "New"
ACCEPTED: Final = "Accepted"
WAITING: Final = "Waiting"
PROVISIONED: Final = "Provisioned"
CONSUMED: Final = "Consumed"
BOOKING_EXPIRED: Final = "BookingExpired"
REVOKED: Final = "Revoked"
FAILED: Final = "Failed"
_NOBODY: Final = (
    "nobody has picked it up yet: does an autoscaler run with --enable-provisioning-requests, and handle its class?"
)


def report_of(request: ProvisioningRequest, *, now: datetime) -> Json:
    details = Details.of(request.status.provisioning_class_details)
    state, told = state_of(request)
    created = request.metadata.creation_timestamp
    return {
        "namespace": request.metadata.namespace,
        "name": request.metadata.name,
        "class": request.spec.provisioning_class_name,
        "state": state,
        "reason": "" if told is None else told.reason,
        "message": _NOBODY if told is None else told.message,
        "since": _time(None if told is None else told.last_transition_time),
        "ageSeconds": None if created is None else max(0.0, (now - created).total_seconds()),
        "pods": sum(one.count for one in request.spec.pod_sets),
        "podSets": [{"template": one.pod_template_ref.name, "count": one.count} for one in request.spec.pod_sets],
        "parameters": dict(request.spec.parameters),
        "attempts": details.attempts,
        "lastAttempt": _time(details.last_attempt),
        "nextAttempt": _time(details.next_attempt),
        "nodeGroups": dict(details.node_groups),
        "costPerHour": details.plan_cost_per_hour,
        "costLowerBoundPerHour": details.cost_lower_bound_per_hour,
        "bookedUntil": _time(details.booked_until),
        "blocking": _read(details.blocking),
        "conditions": [_condition(one) for one in request.status.conditions],
    }


def state_of(request: ProvisioningRequest) -> tuple[str, Condition | None]:
    """One word, and the condition that it comes from; None: there is none yet."""
    conditions = {one.type: one for one in request.status.conditions}
    for kind, state in ((Kind.FAILED, FAILED), (Kind.CAPACITY_REVOKED, REVOKED)):
        if (found := conditions.get(kind)) is not None and found.status == "True":
            return state, found
    over = conditions.get(Kind.BOOKING_EXPIRED)
    if over is not None and over.status == "True":
        return (CONSUMED if over.reason == Why.CONSUMED else BOOKING_EXPIRED), over
    provisioned = conditions.get(Kind.PROVISIONED)
    if provisioned is not None:
        return (PROVISIONED if provisioned.status == "True" else WAITING), provisioned
    accepted = conditions.get(Kind.ACCEPTED)
    return (NEW if accepted is None else ACCEPTED), accepted


def _condition(one: Condition) -> Json:
    return {
        "type": one.type,
        "status": one.status,
        "reason": one.reason,
        "message": one.message,
        "since": _time(one.last_transition_time),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else written_time(moment)


def _read(text: str) -> Any:
    """The short JSON as data; text of somebody else as it is."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text

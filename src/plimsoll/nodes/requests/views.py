"""ProvisioningRequests as the command line shows them: `plimsoll plan` and `plimsoll requests`. Pure.

A plan shows the same messages, conditions and details as the controller, as if each request were new: it has no
attempts or times. The report of a request is read from the object alone, so it also works for requests that Cluster
Autoscaler serves; then only the details that Plimsoll writes are missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.nodes.planning.requests.cost_shares import CostShare, share_costs
from plimsoll.nodes.requests.model import ClassKind
from plimsoll.nodes.requests.status import Conditions, Details, find_state
from plimsoll.nodes.requests.status_updates import StatusUpdates, format_cost
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.nodes.planning.requests.check_queue import CheckResult
    from plimsoll.nodes.requests.model import RequestView, StatusUpdate
    from plimsoll.objects.api.meta import Condition
    from plimsoll.objects.api.provisioning_requests import ProvisioningRequest


Json = dict[str, Any]

_CONDITION: Final = ("type", "status", "reason", "message", "lastTransitionTime")
_DETAILS: Final = ("planCostPerHour", "costLowerBoundPerHour", "nodeGroups", "bookedUntil", "blocking")


class PlanUpdates:
    """The outcome of each request in one plan. `pending`: the pods the plan was made for."""

    def __init__(self, plan: ScaleUpPlan, pending: Sequence[PendingPods], *, policy: Policy, at: datetime) -> None:
        # A plan is shown as it ends: with its nodes there.
        ends = replace(policy, requests=replace(policy.requests, provisioned_when="requested"))
        self._answering = StatusUpdates(at, ends)
        self._plan = plan
        self._left = {key for unschedulable in plan.unschedulable for key in unschedulable.keys}
        self._shares = share_costs(plan, pending)
        made = (scale_up for scale_up in plan.scale_ups if not scale_up.option.exists)
        self._new_group_reasons = {
            scale_up.option.group: "; ".join(map(str, scale_up.reason.because)) for scale_up in made
        }

    def to_json(self, queue: Sequence[RequestView], checks: Mapping[str, CheckResult]) -> dict[str, Json]:
        """By NAMESPACE/NAME, in queue order."""
        return {request.name: self._to_json(request, self._build_update(_as_new(request), checks)) for request in queue}

    def _build_update(self, view: RequestView, checks: Mapping[str, CheckResult]) -> StatusUpdate:
        if view.problem is not None:
            return self._answering.mark_failed(view, *view.problem)
        if view.class_kind is ClassKind.CHECK:
            return self._answering.answer_check(view, checks[view.name])
        if any(pending.key in self._left for pending in view.pods):
            return self._answering.mark_not_placed(view, self._plan)
        share = self._shares.get(view.name, CostShare())
        if not share.nodes:
            return self._answering.mark_found(view)
        costs = Details(
            plan_cost_per_hour=format_cost(share.cost_per_hour) or "0",
            cost_lower_bound_per_hour=format_cost(share.lower_bound_per_hour) or "0",
        )
        return self._answering.mark_requested(
            replace(view, details=costs), share.nodes, new_group_reasons=self._new_group_reasons
        )

    def _to_json(self, view: RequestView, update: StatusUpdate) -> Json:
        """Conditions and details; a scale-up that is only planned has no booking."""
        details = update.details if view.class_kind is ClassKind.CHECK else update.details.replace(booked_until=None)
        texts = details.to_map()
        return {
            "conditions": [{key: condition[key] for key in _CONDITION} for condition in update.conditions.to_json()],
            "details": {key: texts[key] for key in _DETAILS if key in texts},
        }


def _as_new(view: RequestView) -> RequestView:
    return replace(view, conditions=Conditions(), details=Details())


_NOT_ACCEPTED_YET: Final = (
    "no autoscaler has accepted it yet: does one run with --enable-provisioning-requests, and handle this class?"
)


def build_request_report(request: ProvisioningRequest, *, now: datetime) -> Json:
    details = Details.from_texts(request.status.provisioning_class_details)
    state, message = find_state(request.status.conditions)
    created = request.metadata.creation_timestamp
    return {
        "namespace": request.metadata.namespace,
        "name": request.metadata.name,
        "class": request.spec.provisioning_class_name,
        "state": str(state),
        "reason": "" if message is None else message.reason,
        "message": _NOT_ACCEPTED_YET if message is None else message.message,
        "since": _format_time(None if message is None else message.last_transition_time),
        "ageSeconds": None if created is None else max(0.0, (now - created).total_seconds()),
        "pods": sum(pod_set.count for pod_set in request.spec.pod_sets),
        "podSets": [
            {"template": pod_set.pod_template_ref.name, "count": pod_set.count} for pod_set in request.spec.pod_sets
        ],
        "parameters": dict(request.spec.parameters),
        "attempts": details.attempts,
        "lastAttempt": _format_time(details.last_attempt),
        "nextAttempt": _format_time(details.next_attempt),
        "nodeGroups": dict(details.node_groups),
        "costPerHour": details.plan_cost_per_hour,
        "costLowerBoundPerHour": details.cost_lower_bound_per_hour,
        "bookedUntil": _format_time(details.booked_until),
        "blocking": _read(details.blocking),
        "conditions": [_encode_condition(condition) for condition in request.status.conditions],
    }


def _encode_condition(condition: Condition) -> Json:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "since": _format_time(condition.last_transition_time),
    }


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)


def _read(text: str) -> Any:
    """Compact JSON as data; other text unchanged."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text

"""Builds status updates of ProvisioningRequests: the next conditions and details for each outcome. Pure.

docs/design/nodes.md 2.2, 2.3 and 3.2-3.7. An update holds all owned conditions, because server-side apply removes what
it does not name. All messages are composed here: conditions, Events and the journal carry the same text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.core.durations import add_seconds
from plimsoll.core.plans import Reason
from plimsoll.nodes.model.reasons import NOT_WHOLE
from plimsoll.nodes.requests import lifecycle
from plimsoll.nodes.requests.intents import read_attempt_number
from plimsoll.nodes.requests.lifecycle import compute_next_attempt_time
from plimsoll.nodes.requests.model import StatusUpdate, UpdateKind
from plimsoll.nodes.requests.status import ConditionReason, ConditionType, build_condition, has_capacity_available

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.planning.requests.check_queue import CheckResult
    from plimsoll.nodes.requests.intents import Attempt
    from plimsoll.nodes.requests.model import RequestView
    from plimsoll.nodes.requests.status import Conditions, Details, Intent
    from plimsoll.objects.api.meta import Condition

    Blocking = Mapping[str, Sequence[str]]
    """By index of each pod set without room: what blocks it."""

ACCEPTED_TEXT = "Provisioning Request was successfully queued."


class StatusUpdates:
    """Builds updates as of one point in time."""

    def __init__(self, at: datetime, policy: Policy) -> None:
        self._at = at
        self._policy = policy

    # ---- before anything is planned

    def with_accepted(self, view: RequestView) -> Conditions:
        """The conditions with Accepted set."""
        if view.conditions.get(ConditionType.ACCEPTED) is not None:
            return view.conditions
        return view.conditions.with_condition(
            self._build_condition(view, ConditionType.ACCEPTED, ConditionReason.ACCEPTED, ACCEPTED_TEXT)
        )

    def mark_failed(self, view: RequestView, why: str, message: str) -> StatusUpdate:
        """Nothing can ever be planned for the request."""
        made = view.conditions.with_condition(self._build_condition(view, ConditionType.FAILED, why, message))
        details = view.details.replace(next_attempt=None)
        return _build_update(view, UpdateKind.FAILED, Reason(code=str(why), message=message), made, details)

    def record_attempt(self, attempt: Attempt, *, cost_before: float = 0.0, bound_before: float = 0.0) -> StatusUpdate:
        """A scale-up for the request is about to be executed. Nodes added by earlier loops count towards its cost."""
        view, share = attempt.view, attempt.share
        message = f"a scale-up for {_format_pods(view.total)} is requested: {_format_nodes(share.nodes, {})}"
        details = view.details.replace(
            intent=attempt.intent,
            plan_cost_per_hour=format_cost(cost_before + share.cost_per_hour),
            cost_lower_bound_per_hour=format_cost(bound_before + share.lower_bound_per_hour),
        )
        return _build_update(
            view,
            UpdateKind.ACCEPTED,
            Reason(code=ConditionReason.ACCEPTED.value, message=message),
            self.with_accepted(view),
            details,
        )

    # ---- checks

    def answer_check(self, view: RequestView, found: CheckResult) -> StatusUpdate:
        if found.fits:
            return self.mark_found(view)
        blocking = {_parse_index(key): list(map(str, reasons)) for key, reasons in found.blocking.items()}
        return self.mark_not_found(view, blocking, message="; ".join(map(str, found.reasons)))

    # ---- answers to an attempt

    def mark_found(self, view: RequestView) -> StatusUpdate:
        """All its pods have room on existing or upcoming nodes."""
        message = f"Capacity for {_format_pods(view.total)} is there."
        details = self._end_attempt(view).replace(node_groups={}, plan_cost_per_hour="", cost_lower_bound_per_hour="")
        return self._mark_provisioned(view, ConditionReason.FOUND, message, details)

    def mark_requested(
        self, view: RequestView, nodes: Mapping[str, int], *, new_group_reasons: Mapping[str, str]
    ) -> StatusUpdate:
        """Its nodes were requested. `nodes` by group; `new_group_reasons`: why groups were created."""
        message = f"Capacity for {_format_pods(view.total)} was requested: {_format_nodes(nodes, new_group_reasons)}."
        details = self._end_attempt(view).replace(node_groups=dict(nodes))
        if self._policy.requests.provisioned_when == "requested":
            return self._mark_provisioned(view, ConditionReason.PROVISIONED, message, details)
        message = f"{message[:-1]}; waiting until they have joined."
        made = self._with(
            view, self._build_condition(view, ConditionType.PROVISIONED, ConditionReason.WAITING, message, status=False)
        )
        reason = Reason(code=ConditionReason.WAITING.value, message=message, facts={"nodeGroups": dict(nodes)})
        return _build_update(view, UpdateKind.WAITING_FOR_NODES, reason, made, details.replace(booked_until=None))

    def mark_arrived(self, view: RequestView) -> StatusUpdate:
        """All nodes that the request waited for have joined."""
        message = f"Capacity for {_format_pods(view.total)} is there: all nodes have joined."
        booked_until = add_seconds(self._at, view.parameters.booking_s)
        return self._mark_provisioned(
            view, ConditionReason.PROVISIONED, message, view.details.replace(booked_until=booked_until)
        )

    def mark_not_found(self, view: RequestView, blocking: Blocking, *, message: str = "") -> StatusUpdate:
        """No capacity now; with `noRetry`, never."""
        message = message or _join_reasons(blocking)
        details = self._end_refused_attempt(view).replace(blocking=_encode(blocking))
        if view.parameters.retries:
            made = self._refuse(view, ConditionReason.NOT_FOUND, message)
            return _build_update(
                view, UpdateKind.NOT_FOUND, Reason(code=ConditionReason.NOT_FOUND.value, message=message), made, details
            )
        made = self._with(view, self._build_condition(view, ConditionType.FAILED, ConditionReason.NOT_FOUND, message))
        reason = Reason(code=ConditionReason.NOT_FOUND.value, message=message)
        return _build_update(view, UpdateKind.FAILED, reason, made, details.replace(next_attempt=None))

    def mark_not_placed(self, view: RequestView, plan: ScaleUpPlan) -> StatusUpdate:
        """The plan does not serve the request; the reasons are listed by pod set."""
        blocking = find_blocking(view, plan)
        return self.mark_not_found(
            view, blocking, message=f"no capacity for {_format_pods(view.total)}: {_join_reasons(blocking)}"
        )

    def mark_check_failed(self, view: RequestView, problem: str) -> StatusUpdate:
        """The capacity could not be checked; it is tried again."""
        details = self._end_refused_attempt(view).replace(blocking=_encode(block_all_pod_sets(view, problem)))
        made = self._refuse(view, ConditionReason.CHECK_FAILED, problem)
        return _build_update(
            view, UpdateKind.NOT_FOUND, Reason(code=ConditionReason.CHECK_FAILED.value, message=problem), made, details
        )

    def mark_answered_by_class(self, view: RequestView) -> StatusUpdate:
        """The answer of a registered class, which `view` already holds.

        Without an answer the class is called again later.
        """
        conditions = self.with_accepted(view)
        failed, provisioned = (conditions.get(kind) for kind in (ConditionType.FAILED, ConditionType.PROVISIONED))
        if failed is not None and failed.status == "True":
            reason = Reason(code=failed.reason, message=failed.message)
            return _build_update(
                view, UpdateKind.FAILED, reason, conditions, self._end_refused_attempt(view).replace(next_attempt=None)
            )
        if provisioned is None:
            message = f"class {view.request.spec.provisioning_class_name} gave no answer"
            return self.mark_not_found(view, block_all_pod_sets(view, message))
        reason = Reason(code=provisioned.reason, message=provisioned.message)
        if provisioned.status == "True":
            return _build_update(view, UpdateKind.PROVISIONED, reason, conditions, self._end_attempt(view))
        details = self._end_refused_attempt(view).replace(
            blocking=_encode(block_all_pod_sets(view, provisioned.message))
        )
        return _build_update(view, UpdateKind.NOT_FOUND, reason, conditions, details)

    def mark_rolling_back(self, view: RequestView, intent: Intent, blocking: Blocking) -> StatusUpdate:
        """A rollback of the attempt is about to begin; `intent` says how far. The outcome is written afterwards."""
        reason = Reason(
            code=ConditionReason.NOT_FOUND.value, message=f"{_join_reasons(blocking)}; the added nodes are rolled back"
        )
        details = view.details.replace(intent=intent, blocking=_encode(blocking))
        made = view.conditions if is_over(view) else self.with_accepted(view)
        return _build_update(view, UpdateKind.NOT_FOUND, reason, made, details)

    def mark_rolled_back(self, view: RequestView, nodes: Mapping[str, int]) -> StatusUpdate:
        """The attempt was rolled back completely. The request is tried again later unless it is over."""
        message = (
            _explain_end(view)
            or _read_blocking_message(view.details.blocking)
            or "an attempt that was begun could not be finished"
        )
        back = ", ".join(f"{group} -{count}" for group, count in nodes.items() if count)
        message = f"{message}; rolled back: {back or 'nothing was left to take back'}"
        reason = Reason(code=UpdateKind.ROLLED_BACK.value, message=message, facts={"nodeGroups": dict(nodes)})
        if is_over(view):
            update = _build_update(
                view, UpdateKind.ROLLED_BACK, reason, view.conditions, view.details.replace(intent=None)
            )
            return replace(update, is_news=bool(back))
        details = self._end_refused_attempt(view).replace(node_groups={})
        return _build_update(
            view, UpdateKind.ROLLED_BACK, reason, self._refuse(view, ConditionReason.NOT_FOUND, message), details
        )

    # ---- afterwards

    def mark_consumed(self, view: RequestView) -> StatusUpdate:
        message = f"all {_format_pods(view.total)} of it have their nodes"
        made = self._with(
            view, self._build_condition(view, ConditionType.BOOKING_EXPIRED, ConditionReason.CONSUMED, message)
        )
        reason = Reason(code=ConditionReason.CONSUMED.value, message=message)
        return _build_update(view, UpdateKind.BOOKING_EXPIRED, reason, made, view.details)

    def mark_revoked(
        self, view: RequestView, why: ConditionReason, message: str, *, intent: Intent | None = None
    ) -> StatusUpdate:
        """The capacity was lost before the booking ended. `intent`: what remains to be rolled back."""
        made = self._with(view, self._build_condition(view, ConditionType.CAPACITY_REVOKED, why, message))
        reason = Reason(code=why.value, message=message)
        return _build_update(view, UpdateKind.REVOKED, reason, made, view.details.replace(intent=intent))

    # ---- form

    def _end_attempt(self, view: RequestView) -> Details:
        until = add_seconds(self._at, view.parameters.booking_s) if view.parameters.reserves else None
        return view.details.replace(
            attempts=read_attempt_number(view),
            last_attempt=self._at,
            next_attempt=None,
            booked_until=until,
            intent=None,
            blocking="",
        )

    def _end_refused_attempt(self, view: RequestView) -> Details:
        details = view.details.replace(
            attempts=read_attempt_number(view),
            last_attempt=self._at,
            booked_until=None,
            intent=None,
            plan_cost_per_hour="",
            cost_lower_bound_per_hour="",
        )
        return details.replace(next_attempt=compute_next_attempt_time(details, self._policy))

    def _mark_provisioned(
        self, view: RequestView, why: ConditionReason, message: str, details: Details
    ) -> StatusUpdate:
        reason = Reason(code=why.value, message=message)
        return _build_update(
            view, UpdateKind.PROVISIONED, reason, self._set_provisioned(view, why, message, status=True), details
        )

    def _refuse(self, view: RequestView, why: ConditionReason, message: str) -> Conditions:
        return self._set_provisioned(view, why, message, status=False)

    def _set_provisioned(self, view: RequestView, why: ConditionReason, message: str, *, status: bool) -> Conditions:
        """For the class name of the first API design, CapacityAvailable repeats Provisioned."""
        own = has_capacity_available(view.request.spec.provisioning_class_name)
        kinds = (ConditionType.PROVISIONED, ConditionType.CAPACITY_AVAILABLE) if own else (ConditionType.PROVISIONED,)
        return self._with(view, *(self._build_condition(view, kind, why, message, status=status) for kind in kinds))

    def _with(self, view: RequestView, *made: Condition) -> Conditions:
        conditions = self.with_accepted(view)
        for condition in made:
            conditions = conditions.with_condition(condition)
        return conditions

    def _build_condition(
        self, view: RequestView, kind: ConditionType, why: str, message: str, *, status: bool = True
    ) -> Condition:
        generation = view.request.metadata.generation
        return build_condition(kind, status, why, message, at=self._at, generation=generation)


def _build_update(
    view: RequestView, kind: UpdateKind, reason: Reason, conditions: Conditions, details: Details
) -> StatusUpdate:
    return StatusUpdate(view=view, kind=kind, reason=reason, conditions=conditions, details=details)


def is_over(view: RequestView) -> bool:
    """Whether nothing is tried for the request any more."""
    return lifecycle.is_over(view.conditions)


def _format_nodes(nodes: Mapping[str, int], new_group_reasons: Mapping[str, str]) -> str:
    """The new nodes by group; for new groups also why they are created."""
    message = []
    for group, count in nodes.items():
        what = f"{group} +{count}" if count else f"room on new nodes of {group}"
        if group in new_group_reasons:
            what += f" (new group: {new_group_reasons[group]})" if new_group_reasons[group] else " (new group)"
        message.append(what)
    return ", ".join(message)


def _explain_end(view: RequestView) -> str:
    """Why the request is over; empty if it is not."""
    ended = (view.conditions.get(kind) for kind in (ConditionType.CAPACITY_REVOKED, ConditionType.FAILED))
    return next((condition.message for condition in ended if condition is not None and condition.status == "True"), "")


# ---- what stands in the way


def find_blocking(view: RequestView, plan: ScaleUpPlan) -> Blocking:
    """What blocks the request in a plan that does not serve it. Pod sets that would fit on their own are left out."""
    left = {key: unschedulable.reasons for unschedulable in plan.unschedulable for key in unschedulable.keys}
    short = {pending.key: left[pending.key] for pending in view.pods if pending.key in left}
    lacking = {key: reasons for key, reasons in short.items() if any(reason.code != NOT_WHOLE for reason in reasons)}
    return {_parse_index(key): list(map(str, reasons)) for key, reasons in (lacking or short).items()}


def block_all_pod_sets(view: RequestView, message: str) -> Blocking:
    """The same blocking message for all pod sets."""
    return {str(index): [message] for index in range(len(view.request.spec.pod_sets))}


def _parse_index(key: str) -> str:
    """The index of a pod set, from the key of its pods."""
    return key.rpartition("/")[2]


def _join_reasons(blocking: Blocking) -> str:
    return "; ".join(dict.fromkeys(reason for reasons in blocking.values() for reason in reasons))


def _read_blocking_message(blocking: str) -> str:
    try:
        return _join_reasons(msgspec.json.decode(blocking, type=dict[str, list[str]]))
    except msgspec.MsgspecError:
        return ""


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def format_cost(amount: float) -> str:
    """The cost as written into details; empty if no price is known."""
    return f"{round(amount, 9):.12g}" if amount else ""


def _format_pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"

"""What a ProvisioningRequest is told, and remembers: its next conditions and details, whatever becomes of it. Pure.

specs/nodes.md 2.2, 2.3 and 3.2-3.7; whoever serves requests decides which of these it is. An answer holds all
conditions of ours, because an apply takes away what it does not name. Sentences end here: what conditions, Events and
the journal tell is the same text.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.reasons import NOT_WHOLE
from plimsoll.nodes.requests import lifecycle
from plimsoll.nodes.requests.intents import attempt_number
from plimsoll.nodes.requests.lifecycle import next_attempt_time
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
    """By the number of a pod set, of those that find no room: what stands in their way."""

ACCEPTED_TEXT = "Provisioning Request was successfully queued."


class StatusUpdates:
    """Answers of one moment."""

    def __init__(self, at: datetime, policy: Policy) -> None:
        self._at = at
        self._policy = policy

    # ---- before anything is planned

    def with_accepted(self, seen: RequestView) -> Conditions:
        """Its conditions, with the one that says it was picked up."""
        if seen.conditions.get(ConditionType.ACCEPTED) is not None:
            return seen.conditions
        return seen.conditions.with_condition(
            self._condition(seen, ConditionType.ACCEPTED, ConditionReason.ACCEPTED, ACCEPTED_TEXT)
        )

    def failed(self, seen: RequestView, why: str, message: str) -> StatusUpdate:
        """Nothing can be planned for it, and never will be."""
        made = seen.conditions.with_condition(self._condition(seen, ConditionType.FAILED, why, message))
        details = seen.details.replace(next_attempt=None)
        return _verdict(seen, UpdateKind.FAILED, Reason(code=str(why), message=message), made, details)

    def begun(self, attempt: Attempt, *, cost_before: float = 0.0, bound_before: float = 0.0) -> StatusUpdate:
        """Growth for it is about to be asked for; what earlier turns added for it costs something too."""
        seen, share = attempt.view, attempt.share
        told = f"growth for {_pods(seen.total)} is asked for: {_growth(share.nodes, {})}"
        details = seen.details.replace(
            intent=attempt.intent,
            plan_cost_per_hour=format_cost(cost_before + share.cost_per_hour),
            cost_lower_bound_per_hour=format_cost(bound_before + share.lower_bound_per_hour),
        )
        return _verdict(
            seen,
            UpdateKind.ACCEPTED,
            Reason(code=ConditionReason.ACCEPTED.value, message=told),
            self.with_accepted(seen),
            details,
        )

    # ---- checks

    def checked(self, seen: RequestView, found: CheckResult) -> StatusUpdate:
        if found.fits:
            return self.found(seen)
        blocking = {_index(key): list(map(str, reasons)) for key, reasons in found.blocking.items()}
        return self.not_found(seen, blocking, told="; ".join(map(str, found.reasons)))

    # ---- answers to an attempt

    def found(self, seen: RequestView) -> StatusUpdate:
        """All its pods have room on nodes that are there or on their way."""
        told = f"Capacity for {_pods(seen.total)} is there."
        details = self._answered(seen).replace(node_groups={}, plan_cost_per_hour="", cost_lower_bound_per_hour="")
        return self._provisioned(seen, ConditionReason.FOUND, told, details)

    def requested(
        self, seen: RequestView, nodes: Mapping[str, int], *, explain_new_group: Mapping[str, str]
    ) -> StatusUpdate:
        """Its nodes were asked for. `nodes` by group; of groups made for it, why."""
        told = f"Capacity for {_pods(seen.total)} was requested: {_growth(nodes, explain_new_group)}."
        details = self._answered(seen).replace(node_groups=dict(nodes))
        if self._policy.requests.provisioned_when == "requested":
            return self._provisioned(seen, ConditionReason.PROVISIONED, told, details)
        told = f"{told[:-1]}; waiting until they have joined."
        made = self._with(
            seen, self._condition(seen, ConditionType.PROVISIONED, ConditionReason.WAITING, told, status=False)
        )
        reason = Reason(code=ConditionReason.WAITING.value, message=told, facts={"nodeGroups": dict(nodes)})
        return _verdict(seen, UpdateKind.WAITING_FOR_NODES, reason, made, details.replace(booked_until=None))

    def arrived(self, seen: RequestView) -> StatusUpdate:
        """All the nodes that it waited for are there."""
        told = f"Capacity for {_pods(seen.total)} is there: all nodes have joined."
        booked_until = self._at + timedelta(seconds=seen.parameters.booking_s)
        return self._provisioned(
            seen, ConditionReason.PROVISIONED, told, seen.details.replace(booked_until=booked_until)
        )

    def not_found(self, seen: RequestView, blocking: Blocking, *, told: str = "") -> StatusUpdate:
        """Not now; with `noRetry` never."""
        told = told or _summed_up(blocking)
        details = self._refused(seen).replace(blocking=_compact(blocking))
        if seen.parameters.retries:
            made = self._refusal(seen, ConditionReason.NOT_FOUND, told)
            return _verdict(
                seen, UpdateKind.NOT_FOUND, Reason(code=ConditionReason.NOT_FOUND.value, message=told), made, details
            )
        made = self._with(seen, self._condition(seen, ConditionType.FAILED, ConditionReason.NOT_FOUND, told))
        reason = Reason(code=ConditionReason.NOT_FOUND.value, message=told)
        return _verdict(seen, UpdateKind.FAILED, reason, made, details.replace(next_attempt=None))

    def not_placed(self, seen: RequestView, plan: ScaleUpPlan) -> StatusUpdate:
        """The plan has no place for it; it says why, pod set by pod set."""
        blocking = find_blocking(seen, plan)
        return self.not_found(seen, blocking, told=f"no capacity for {_pods(seen.total)}: {_summed_up(blocking)}")

    def check_failed(self, seen: RequestView, problem: str) -> StatusUpdate:
        """Whoever should have answered could not; it is tried again."""
        details = self._refused(seen).replace(blocking=_compact(block_all_pod_sets(seen, problem)))
        made = self._refusal(seen, ConditionReason.CHECK_FAILED, problem)
        return _verdict(
            seen, UpdateKind.NOT_FOUND, Reason(code=ConditionReason.CHECK_FAILED.value, message=problem), made, details
        )

    def answered_by_class(self, seen: RequestView) -> StatusUpdate:
        """What a class of others said of it, which `view` holds already; who got no answer is asked again later."""
        conditions = self.with_accepted(seen)
        failed, provisioned = (conditions.get(kind) for kind in (ConditionType.FAILED, ConditionType.PROVISIONED))
        if failed is not None and failed.status == "True":
            reason = Reason(code=failed.reason, message=failed.message)
            return _verdict(seen, UpdateKind.FAILED, reason, conditions, self._refused(seen).replace(next_attempt=None))
        if provisioned is None:
            told = f"class {seen.request.spec.provisioning_class_name} gave no answer"
            return self.not_found(seen, block_all_pod_sets(seen, told))
        reason = Reason(code=provisioned.reason, message=provisioned.message)
        if provisioned.status == "True":
            return _verdict(seen, UpdateKind.PROVISIONED, reason, conditions, self._answered(seen))
        details = self._refused(seen).replace(blocking=_compact(block_all_pod_sets(seen, provisioned.message)))
        return _verdict(seen, UpdateKind.NOT_FOUND, reason, conditions, details)

    def rolling_back(self, seen: RequestView, intent: Intent, blocking: Blocking) -> StatusUpdate:
        """What was begun for it is about to be taken back; `intent` says how far. It is answered when that is done."""
        reason = Reason(
            code=ConditionReason.NOT_FOUND.value, message=f"{_summed_up(blocking)}; what was added is taken back"
        )
        details = seen.details.replace(intent=intent, blocking=_compact(blocking))
        made = seen.conditions if is_over(seen) else self.with_accepted(seen)
        return _verdict(seen, UpdateKind.NOT_FOUND, reason, made, details)

    def rolled_back(self, seen: RequestView, nodes: Mapping[str, int]) -> StatusUpdate:
        """What was begun for it is taken back, all of it; it is tried again later, unless it is over."""
        told = _why_over(seen) or _told(seen.details.blocking) or "an attempt that was begun could not be finished"
        back = ", ".join(f"{group} -{count}" for group, count in nodes.items() if count)
        message = f"{told}; rolled back: {back or 'nothing was left to take back'}"
        reason = Reason(code=UpdateKind.ROLLED_BACK.value, message=message, facts={"nodeGroups": dict(nodes)})
        if is_over(seen):
            verdict = _verdict(seen, UpdateKind.ROLLED_BACK, reason, seen.conditions, seen.details.replace(intent=None))
            return replace(verdict, is_news=bool(back))
        details = self._refused(seen).replace(node_groups={})
        return _verdict(
            seen, UpdateKind.ROLLED_BACK, reason, self._refusal(seen, ConditionReason.NOT_FOUND, message), details
        )

    # ---- afterwards

    def consumed(self, seen: RequestView) -> StatusUpdate:
        told = f"all {_pods(seen.total)} of it have their nodes"
        made = self._with(seen, self._condition(seen, ConditionType.BOOKING_EXPIRED, ConditionReason.CONSUMED, told))
        reason = Reason(code=ConditionReason.CONSUMED.value, message=told)
        return _verdict(seen, UpdateKind.BOOKING_EXPIRED, reason, made, seen.details)

    def revoked(
        self, seen: RequestView, why: ConditionReason, told: str, *, intent: Intent | None = None
    ) -> StatusUpdate:
        """Its capacity is gone before its booking was over. `intent`: what is yet to be taken back of it."""
        made = self._with(seen, self._condition(seen, ConditionType.CAPACITY_REVOKED, why, told))
        reason = Reason(code=why.value, message=told)
        return _verdict(seen, UpdateKind.REVOKED, reason, made, seen.details.replace(intent=intent))

    # ---- form

    def _answered(self, seen: RequestView) -> Details:
        until = self._at + timedelta(seconds=seen.parameters.booking_s) if seen.parameters.reserves else None
        return seen.details.replace(
            attempts=attempt_number(seen),
            last_attempt=self._at,
            next_attempt=None,
            booked_until=until,
            intent=None,
            blocking="",
        )

    def _refused(self, seen: RequestView) -> Details:
        details = seen.details.replace(
            attempts=attempt_number(seen),
            last_attempt=self._at,
            booked_until=None,
            intent=None,
            plan_cost_per_hour="",
            cost_lower_bound_per_hour="",
        )
        return details.replace(next_attempt=next_attempt_time(details, self._policy))

    def _provisioned(self, seen: RequestView, why: ConditionReason, told: str, details: Details) -> StatusUpdate:
        reason = Reason(code=why.value, message=told)
        return _verdict(seen, UpdateKind.PROVISIONED, reason, self._mirrored(seen, why, told, status=True), details)

    def _refusal(self, seen: RequestView, why: ConditionReason, told: str) -> Conditions:
        return self._mirrored(seen, why, told, status=False)

    def _mirrored(self, seen: RequestView, why: ConditionReason, told: str, *, status: bool) -> Conditions:
        """Under the name of the first design there is another condition that says the same."""
        own = has_capacity_available(seen.request.spec.provisioning_class_name)
        kinds = (ConditionType.PROVISIONED, ConditionType.CAPACITY_AVAILABLE) if own else (ConditionType.PROVISIONED,)
        return self._with(seen, *(self._condition(seen, kind, why, told, status=status) for kind in kinds))

    def _with(self, seen: RequestView, *made: Condition) -> Conditions:
        conditions = self.with_accepted(seen)
        for one in made:
            conditions = conditions.with_condition(one)
        return conditions

    def _condition(
        self, seen: RequestView, kind: ConditionType, why: str, message: str, *, status: bool = True
    ) -> Condition:
        generation = seen.request.metadata.generation
        return build_condition(kind, status, why, message, at=self._at, generation=generation)


def _verdict(
    seen: RequestView, saying: UpdateKind, reason: Reason, conditions: Conditions, details: Details
) -> StatusUpdate:
    return StatusUpdate(view=seen, kind=saying, reason=reason, conditions=conditions, details=details)


def is_over(seen: RequestView) -> bool:
    """Whether nothing is tried for it any more."""
    return lifecycle.is_over(seen.conditions)


def _growth(nodes: Mapping[str, int], explain_new_group: Mapping[str, str]) -> str:
    """Group by group what is its own of the new nodes; of new groups also why they are made."""
    told = []
    for group, count in nodes.items():
        what = f"{group} +{count}" if count else f"room on new nodes of {group}"
        if group in explain_new_group:
            what += f" (new group: {explain_new_group[group]})" if explain_new_group[group] else " (new group)"
        told.append(what)
    return ", ".join(told)


def _why_over(seen: RequestView) -> str:
    """Empty where it is not."""
    ended = (seen.conditions.get(kind) for kind in (ConditionType.CAPACITY_REVOKED, ConditionType.FAILED))
    return next((one.message for one in ended if one is not None and one.status == "True"), "")


# ---- what stands in the way


def find_blocking(seen: RequestView, plan: ScaleUpPlan) -> Blocking:
    """By a plan that has no place for it. Pod sets that would fit without the others are not named."""
    left = {key: unschedulable.reasons for unschedulable in plan.unschedulable for key in unschedulable.keys}
    short = {pending.key: left[pending.key] for pending in seen.pods if pending.key in left}
    lacking = {key: reasons for key, reasons in short.items() if any(reason.code != NOT_WHOLE for reason in reasons)}
    return {_index(key): list(map(str, reasons)) for key, reasons in (lacking or short).items()}


def block_all_pod_sets(seen: RequestView, told: str) -> Blocking:
    """Where it is the same for all its pods."""
    return {str(index): [told] for index in range(len(seen.request.spec.pod_sets))}


def _index(key: str) -> str:
    """Of a pod set, by the key of its pods."""
    return key.rpartition("/")[2]


def _summed_up(blocking: Blocking) -> str:
    return "; ".join(dict.fromkeys(reason for reasons in blocking.values() for reason in reasons))


def _told(blocking: str) -> str:
    try:
        return _summed_up(msgspec.json.decode(blocking, type=dict[str, list[str]]))
    except msgspec.MsgspecError:
        return ""


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def format_cost(amount: float) -> str:
    """As details tell it; nothing where nothing is known of prices."""
    return f"{round(amount, 9):.12g}" if amount else ""


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"

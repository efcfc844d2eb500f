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
from plimsoll.nodes.requests.classes import mirrors
from plimsoll.nodes.requests.conditions import Kind, Why, condition
from plimsoll.nodes.requests.lifecycle import next_attempt
from plimsoll.nodes.requests.model import StatusUpdate, UpdateKind
from plimsoll.nodes.requests.rollback.intents import number_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.planning.requests.check_queue import Checked
    from plimsoll.nodes.requests.conditions import Conditions
    from plimsoll.nodes.requests.details import Details, Intent
    from plimsoll.nodes.requests.model import RequestView
    from plimsoll.nodes.requests.rollback.intents import Attempt
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

    def accepted(self, seen: RequestView) -> Conditions:
        """Its conditions, with the one that says it was picked up."""
        if seen.conditions.get(Kind.ACCEPTED) is not None:
            return seen.conditions
        return seen.conditions.with_condition(self._condition(seen, Kind.ACCEPTED, Why.ACCEPTED, ACCEPTED_TEXT))

    def failed(self, seen: RequestView, why: str, message: str) -> StatusUpdate:
        """Nothing can be planned for it, and never will be."""
        made = seen.conditions.with_condition(self._condition(seen, Kind.FAILED, why, message))
        details = seen.details.but(next_attempt=None)
        return _verdict(seen, UpdateKind.FAILED, Reason(code=str(why), message=message), made, details)

    def begun(self, attempt: Attempt, *, cost_before: float = 0.0, bound_before: float = 0.0) -> StatusUpdate:
        """Growth for it is about to be asked for; what earlier turns added for it costs something too."""
        seen, share = attempt.seen, attempt.share
        told = f"growth for {_pods(seen.total)} is asked for: {_growth(share.nodes, {})}"
        details = seen.details.but(
            intent=attempt.intent,
            plan_cost_per_hour=money(cost_before + share.cost_per_hour),
            cost_lower_bound_per_hour=money(bound_before + share.lower_bound_per_hour),
        )
        return _verdict(
            seen, UpdateKind.ACCEPTED, Reason(code=Why.ACCEPTED.value, message=told), self.accepted(seen), details
        )

    # ---- checks

    def checked(self, seen: RequestView, found: Checked) -> StatusUpdate:
        if found.fits:
            return self.found(seen)
        blocking = {_index(key): list(map(str, reasons)) for key, reasons in found.blocking.items()}
        return self.not_found(seen, blocking, told="; ".join(map(str, found.reasons)))

    # ---- answers to an attempt

    def found(self, seen: RequestView) -> StatusUpdate:
        """All its pods have room on nodes that are there or on their way."""
        told = f"Capacity for {_pods(seen.total)} is there."
        details = self._answered(seen).but(node_groups={}, plan_cost_per_hour="", cost_lower_bound_per_hour="")
        return self._provisioned(seen, Why.FOUND, told, details)

    def given(self, seen: RequestView, nodes: Mapping[str, int], *, why_made: Mapping[str, str]) -> StatusUpdate:
        """Its nodes were asked for. `nodes` by group; of groups made for it, why."""
        told = f"Capacity for {_pods(seen.total)} was requested: {_growth(nodes, why_made)}."
        details = self._answered(seen).but(node_groups=dict(nodes))
        if self._policy.requests.provisioned_when == "requested":
            return self._provisioned(seen, Why.PROVISIONED, told, details)
        told = f"{told[:-1]}; waiting until they have joined."
        made = self._with(seen, self._condition(seen, Kind.PROVISIONED, Why.WAITING, told, status=False))
        reason = Reason(code=Why.WAITING.value, message=told, facts={"nodeGroups": dict(nodes)})
        return _verdict(seen, UpdateKind.WAITING_FOR_NODES, reason, made, details.but(booked_until=None))

    def arrived(self, seen: RequestView) -> StatusUpdate:
        """All the nodes that it waited for are there."""
        told = f"Capacity for {_pods(seen.total)} is there: all nodes have joined."
        booked_until = self._at + timedelta(seconds=seen.parameters.booking_s)
        return self._provisioned(seen, Why.PROVISIONED, told, seen.details.but(booked_until=booked_until))

    def not_found(self, seen: RequestView, blocking: Blocking, *, told: str = "") -> StatusUpdate:
        """Not now; with `noRetry` never."""
        told = told or _summed_up(blocking)
        details = self._refused(seen).but(blocking=_compact(blocking))
        if seen.parameters.retries:
            made = self._refusal(seen, Why.NOT_FOUND, told)
            return _verdict(seen, UpdateKind.NOT_FOUND, Reason(code=Why.NOT_FOUND.value, message=told), made, details)
        made = self._with(seen, self._condition(seen, Kind.FAILED, Why.NOT_FOUND, told))
        reason = Reason(code=Why.NOT_FOUND.value, message=told)
        return _verdict(seen, UpdateKind.FAILED, reason, made, details.but(next_attempt=None))

    def left_over(self, seen: RequestView, plan: ScaleUpPlan) -> StatusUpdate:
        """The plan has no place for it; it says why, pod set by pod set."""
        blocking = blocking_of(seen, plan)
        return self.not_found(seen, blocking, told=f"no capacity for {_pods(seen.total)}: {_summed_up(blocking)}")

    def not_checked(self, seen: RequestView, problem: str) -> StatusUpdate:
        """Whoever should have answered could not; it is tried again."""
        details = self._refused(seen).but(blocking=_compact(blocks_all(seen, problem)))
        made = self._refusal(seen, Why.CHECK_FAILED, problem)
        return _verdict(seen, UpdateKind.NOT_FOUND, Reason(code=Why.CHECK_FAILED.value, message=problem), made, details)

    def by_class(self, seen: RequestView) -> StatusUpdate:
        """What a class of others said of it, which `seen` holds already; who got no answer is asked again later."""
        conditions = self.accepted(seen)
        failed, provisioned = (conditions.get(kind) for kind in (Kind.FAILED, Kind.PROVISIONED))
        if failed is not None and failed.status == "True":
            reason = Reason(code=failed.reason, message=failed.message)
            return _verdict(seen, UpdateKind.FAILED, reason, conditions, self._refused(seen).but(next_attempt=None))
        if provisioned is None:
            told = f"class {seen.request.spec.provisioning_class_name} gave no answer"
            return self.not_found(seen, blocks_all(seen, told))
        reason = Reason(code=provisioned.reason, message=provisioned.message)
        if provisioned.status == "True":
            return _verdict(seen, UpdateKind.PROVISIONED, reason, conditions, self._answered(seen))
        details = self._refused(seen).but(blocking=_compact(blocks_all(seen, provisioned.message)))
        return _verdict(seen, UpdateKind.NOT_FOUND, reason, conditions, details)

    def rolling_back(self, seen: RequestView, intent: Intent, blocking: Blocking) -> StatusUpdate:
        """What was begun for it is about to be taken back; `intent` says how far. It is answered when that is done."""
        reason = Reason(code=Why.NOT_FOUND.value, message=f"{_summed_up(blocking)}; what was added is taken back")
        details = seen.details.but(intent=intent, blocking=_compact(blocking))
        made = seen.conditions if is_over(seen) else self.accepted(seen)
        return _verdict(seen, UpdateKind.NOT_FOUND, reason, made, details)

    def rolled_back(self, seen: RequestView, nodes: Mapping[str, int]) -> StatusUpdate:
        """What was begun for it is taken back, all of it; it is tried again later, unless it is over."""
        told = _why_over(seen) or _told(seen.details.blocking) or "an attempt that was begun could not be finished"
        back = ", ".join(f"{group} -{count}" for group, count in nodes.items() if count)
        message = f"{told}; rolled back: {back or 'nothing was left to take back'}"
        reason = Reason(code=UpdateKind.ROLLED_BACK.value, message=message, facts={"nodeGroups": dict(nodes)})
        if is_over(seen):
            verdict = _verdict(seen, UpdateKind.ROLLED_BACK, reason, seen.conditions, seen.details.but(intent=None))
            return replace(verdict, is_news=bool(back))
        details = self._refused(seen).but(node_groups={})
        return _verdict(seen, UpdateKind.ROLLED_BACK, reason, self._refusal(seen, Why.NOT_FOUND, message), details)

    # ---- afterwards

    def consumed(self, seen: RequestView) -> StatusUpdate:
        told = f"all {_pods(seen.total)} of it have their nodes"
        made = self._with(seen, self._condition(seen, Kind.BOOKING_EXPIRED, Why.CONSUMED, told))
        reason = Reason(code=Why.CONSUMED.value, message=told)
        return _verdict(seen, UpdateKind.BOOKING_EXPIRED, reason, made, seen.details)

    def revoked(self, seen: RequestView, why: Why, told: str, *, intent: Intent | None = None) -> StatusUpdate:
        """Its capacity is gone before its booking was over. `intent`: what is yet to be taken back of it."""
        made = self._with(seen, self._condition(seen, Kind.CAPACITY_REVOKED, why, told))
        reason = Reason(code=why.value, message=told)
        return _verdict(seen, UpdateKind.REVOKED, reason, made, seen.details.but(intent=intent))

    # ---- form

    def _answered(self, seen: RequestView) -> Details:
        until = self._at + timedelta(seconds=seen.parameters.booking_s) if seen.parameters.reserves else None
        return seen.details.but(
            attempts=number_of(seen),
            last_attempt=self._at,
            next_attempt=None,
            booked_until=until,
            intent=None,
            blocking="",
        )

    def _refused(self, seen: RequestView) -> Details:
        details = seen.details.but(
            attempts=number_of(seen),
            last_attempt=self._at,
            booked_until=None,
            intent=None,
            plan_cost_per_hour="",
            cost_lower_bound_per_hour="",
        )
        return details.but(next_attempt=next_attempt(details, self._policy))

    def _provisioned(self, seen: RequestView, why: Why, told: str, details: Details) -> StatusUpdate:
        reason = Reason(code=why.value, message=told)
        return _verdict(seen, UpdateKind.PROVISIONED, reason, self._mirrored(seen, why, told, status=True), details)

    def _refusal(self, seen: RequestView, why: Why, told: str) -> Conditions:
        return self._mirrored(seen, why, told, status=False)

    def _mirrored(self, seen: RequestView, why: Why, told: str, *, status: bool) -> Conditions:
        """Under the name of the first design there is another condition that says the same."""
        own = mirrors(seen.request.spec.provisioning_class_name)
        kinds = (Kind.PROVISIONED, Kind.CAPACITY_AVAILABLE) if own else (Kind.PROVISIONED,)
        return self._with(seen, *(self._condition(seen, kind, why, told, status=status) for kind in kinds))

    def _with(self, seen: RequestView, *made: Condition) -> Conditions:
        conditions = self.accepted(seen)
        for one in made:
            conditions = conditions.with_condition(one)
        return conditions

    def _condition(self, seen: RequestView, kind: Kind, why: str, message: str, *, status: bool = True) -> Condition:
        generation = seen.request.metadata.generation
        return condition(kind, status, why, message, at=self._at, generation=generation)


def _verdict(
    seen: RequestView, saying: UpdateKind, reason: Reason, conditions: Conditions, details: Details
) -> StatusUpdate:
    return StatusUpdate(seen=seen, saying=saying, reason=reason, conditions=conditions, details=details)


def is_over(seen: RequestView) -> bool:
    """Whether nothing is tried for it any more."""
    return lifecycle.is_over(seen.conditions)


def _growth(nodes: Mapping[str, int], why_made: Mapping[str, str]) -> str:
    """Group by group what is its own of the new nodes; of new groups also why they are made."""
    told = []
    for group, count in nodes.items():
        what = f"{group} +{count}" if count else f"room on new nodes of {group}"
        if group in why_made:
            what += f" (new group: {why_made[group]})" if why_made[group] else " (new group)"
        told.append(what)
    return ", ".join(told)


def _why_over(seen: RequestView) -> str:
    """Empty where it is not."""
    ended = (seen.conditions.get(kind) for kind in (Kind.CAPACITY_REVOKED, Kind.FAILED))
    return next((one.message for one in ended if one is not None and one.status == "True"), "")


# ---- what stands in the way


def blocking_of(seen: RequestView, plan: ScaleUpPlan) -> Blocking:
    """By a plan that has no place for it. Pod sets that would fit without the others are not named."""
    left = {key: unschedulable.reasons for unschedulable in plan.remaining for key in unschedulable.keys}
    short = {pending.key: left[pending.key] for pending in seen.pods if pending.key in left}
    lacking = {key: reasons for key, reasons in short.items() if any(reason.code != NOT_WHOLE for reason in reasons)}
    return {_index(key): list(map(str, reasons)) for key, reasons in (lacking or short).items()}


def blocks_all(seen: RequestView, told: str) -> Blocking:
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


def money(amount: float) -> str:
    """As details tell it; nothing where nothing is known of prices."""
    return f"{round(amount, 9):.12g}" if amount else ""


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"

"""Reports the result of a reconcile of a KafkaRebalance: Events, log and journal.

The status is written by the reconciler: it is part of the work. No failed report stops the reconciler.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref, Result
from plimsoll.kafka.model.rebalance_steps import (
    CallKind,
    CallPurpose,
    IgnoredRebalance,
    RebalanceCall,
    RebalanceOutcome,
)
from plimsoll.kafka.model.rebalances import RebalanceState
from plimsoll.kafka.planning.scaling.rebalance_answers import EXECUTOR_STATE
from plimsoll.kafka.reporting.journal_plans import SUBSYSTEM
from plimsoll.kube.recorder.event_objects import EventType
from plimsoll.objects.api.kafka import KAFKA_GROUP, STRIMZI_VERSION, KafkaRebalance
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.operator.pause import DRY_RUN
from plimsoll.operator.reporter import ReconcileReporter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.kafka.model.rebalance_steps import RebalanceStep

VERBS: Final = {
    CallKind.DRY_RUN: "request-proposal",
    CallKind.REAL_RUN: "request-execution",
    CallKind.STOP: "stop-execution",
}
"""The calls that change something at Cruise Control."""
_PLANNED_CALLS: Final = {
    CallPurpose.APPROVE: "its execution would be requested",
    CallPurpose.RENEW: "a proposal would be requested again",
    CallPurpose.STOP: "its execution would be stopped",
    CallPurpose.REFRESH: "its execution would be stopped, and a proposal requested",
    CallPurpose.DELETE: "its execution would be stopped, and it would be deleted",
}
"""What a call is for, unless it only looks."""
_CAUSES: Final = {
    CallPurpose.POLL: "it needs a proposal",
    CallPurpose.APPROVE: "its proposal is approved",
    CallPurpose.RENEW: "what it failed for may have passed",
    CallPurpose.STOP: "it is to stop",
    CallPurpose.REFRESH: "it is to stop and to get a new proposal",
    CallPurpose.RESUME: "its execution may have gone on while it was paused",
    CallPurpose.DELETE: "it is being deleted",
}
"""Why a call that changes something was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceResult:
    """What a reconcile did. Without outcome, ignored, pause and problem the object is just going."""

    namespace: str
    name: str
    uid: str
    cluster: str
    at: datetime
    before: RebalanceState
    known_warnings: frozenset[str] = frozenset()
    """Messages of the warnings that were in the status before."""
    calls: tuple[RebalanceCall, ...] = field(default=())
    outcome: RebalanceOutcome | None = None
    ignored: Reason | None = None
    pause: Reason | None = None
    planned: RebalanceStep | None = None
    """The first step that the pause or the dry run holds back."""
    problem: str = ""
    """Why the reconcile ended early; it is run again."""
    retry_after_s: float | None = None

    @property
    def ref(self) -> Ref:
        return Ref(kind="kafkarebalance", namespace=self.namespace, name=self.name)

    @property
    def state(self) -> RebalanceState:
        return self.before if self.outcome is None else self.outcome.state

    @property
    def is_dry_run(self) -> bool:
        return self.pause is not None and self.pause.code == DRY_RUN


class RebalanceReporter(ReconcileReporter):
    """Reports reconciles of a KafkaRebalance. `recorder` None: no Events are recorded."""

    async def report(self, result: RebalanceResult) -> None:
        recorder = await self.report_reconcile(
            "rebalance.done",
            result,
            sentence=build_sentence(result),
            build=lambda number: build_journal_plan(result, number=number),
        )
        if recorder is None:
            return
        about = build_reference(result)
        for event_type, reason, message in list_events(result):
            recorder.record(about, event_type, reason=reason, message=message)


def build_reference(result: RebalanceResult) -> ObjectReference:
    return ObjectReference(
        api_version=f"{KAFKA_GROUP}/{STRIMZI_VERSION}",
        kind=KafkaRebalance.get_kind_name(),
        namespace=result.namespace,
        name=result.name,
        uid=result.uid,
    )


def build_sentence(result: RebalanceResult) -> str:
    """Build the sentence for the log."""
    if result.pause is not None:
        planned = _describe_planned(result)
        if not planned and result.is_dry_run:
            return f"{result.ref}: there is nothing to do"
        return f"{result.ref}: nothing is done, {result.pause}{': ' if planned else ''}{planned}"
    if result.ignored is not None:
        return f"{result.ref}: ignored, {result.ignored}"
    if result.outcome is None:
        return f"{result.ref}: {result.problem or 'being deleted'}"
    if result.outcome.is_released:
        return f"{result.ref}: nothing of it runs, its deletion goes on"
    message = f": {result.outcome.message}" if result.outcome.message else ""
    if result.state is result.before:
        return f"{result.ref}: still {result.state.value}{message}"
    return f"{result.ref}: from {result.before.value} to {result.state.value}{message}"


def _describe_planned(result: RebalanceResult) -> str:
    """What would be done; empty: nothing that changes something."""
    planned, before = result.planned, f"it is {result.before.value}"
    if isinstance(planned, IgnoredRebalance):
        return f"ignored, {planned.reason}"
    if isinstance(planned, RebalanceCall):
        words = _PLANNED_CALLS.get(planned.purpose, "")
        if planned.kind is CallKind.DRY_RUN:
            words = "a proposal would be requested"
        return f"{before}: {words}" if words else ""
    if isinstance(planned, RebalanceOutcome) and planned.state is not result.before:
        message = f": {planned.message}" if planned.message else ""
        return f"{before}: it would be {planned.state.value}{message}"
    return ""


def list_events(result: RebalanceResult) -> Iterator[tuple[EventType, str, str]]:
    """Type, reason and message of the Events: a new state, and warnings that are new."""
    outcome = result.outcome
    if outcome is None or outcome.is_released:
        return
    if outcome.state is not result.before:
        is_bad = outcome.state is RebalanceState.NOT_READY
        message = outcome.message or f"from {result.before.value} to {outcome.state.value}"
        yield EventType.WARNING if is_bad else EventType.NORMAL, outcome.reason or outcome.state.value, message
    for warning in _list_warnings(outcome):
        if str(warning) not in result.known_warnings:
            yield EventType.WARNING, warning.code, str(warning)


def build_journal_plan(result: RebalanceResult, *, number: int) -> tuple[Plan, tuple[Outcome, ...]]:
    """The plan for `plimsoll why kafkarebalance/NS/NAME` and `kafka/NS/NAME`, with its outcomes."""
    concerns = (Ref(kind="kafka", namespace=result.namespace, name=result.cluster),) if result.cluster else ()
    actions = [_build_action(call, result, concerns) for call in result.calls if call.kind in VERBS]
    refused = result.outcome is not None and result.outcome.state is RebalanceState.NOT_READY
    outcomes = []
    if result.pause is not None and isinstance(result.planned, RebalanceCall) and result.planned.kind in VERBS:
        held_back = _build_action(result.planned, result, concerns)
        outcomes.append(Outcome(action=held_back, result=Result.HELD_BACK, reason=result.pause))
    for number_of_action, action in enumerate(actions, start=1):
        is_failed = refused and number_of_action == len(actions)
        reason = _get_state_reason(result) if is_failed else None
        outcomes.append(Outcome(action=action, result=Result.FAILED if is_failed else Result.DONE, reason=reason))
    not_done = [
        NotDone(what=what, about=(result.ref,), reason=reason, concerns=concerns or UNSET)
        for what, reason in _list_reasons(result)
    ]
    held = [outcome.action for outcome in outcomes if outcome.result is Result.HELD_BACK]
    plan = Plan(
        subsystem=SUBSYSTEM,
        snapshot=number,
        at=result.at,
        actions=(*held, *actions),
        not_done=tuple(not_done),
        subject=concerns[0] if concerns else result.ref,
    )
    return plan, tuple(outcomes)


def _build_action(call: RebalanceCall, result: RebalanceResult, concerns: tuple[Ref, ...]) -> Action:
    message = f"it is {result.before.value}: {_CAUSES[call.purpose]}"
    reason = Reason(code="Rebalance", message=message, facts={"row": call.row})
    precondition = {"state": result.before.value}
    verb = VERBS[call.kind]
    if not concerns:
        return Action(verb=verb, target=result.ref, reason=reason, precondition=precondition)
    return Action(verb=verb, target=result.ref, reason=reason, precondition=precondition, concerns=concerns)


def _list_reasons(result: RebalanceResult) -> Iterator[tuple[str, Reason]]:
    """Why it stands where it stands."""
    if result.pause is not None:
        yield "is left as it is", result.pause
    if result.ignored is not None:
        yield "is ignored", result.ignored
    if result.outcome is None:
        return
    if result.state is RebalanceState.NOT_READY:
        yield "is NotReady", _get_state_reason(result)
    elif result.state is RebalanceState.PROPOSAL_READY and result.retry_after_s is None:
        yield "waits", Reason(code="ApprovalMissing", message="the proposal waits for strimzi.io/rebalance=approve")
    for warning in _list_warnings(result.outcome):
        yield "has a warning", warning


def _list_warnings(outcome: RebalanceOutcome) -> list[Reason]:
    """The warnings without what every execution has for a while: at its beginning its progress is not known."""
    is_executing = outcome.state is RebalanceState.REBALANCING
    return [warning for warning in outcome.warnings if not (is_executing and warning.code == EXECUTOR_STATE)]


def _get_state_reason(result: RebalanceResult) -> Reason:
    assert result.outcome is not None
    return Reason(code=result.outcome.reason or "NotReady", message=result.outcome.message or "it is NotReady")

"""Reports the cycles of the agent: log, Events on ManagedKafkas, plans for `plimsoll why`. No report stops the work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.plans import NotDone, Outcome, Plan, Reason, Ref, Result
from plimsoll.fleet.agent.model.reports import ERROR, REJECTED
from plimsoll.kube.recorder.event_objects import EventType
from plimsoll.objects.api.managed_kafkas import MANAGED_KAFKA_GROUP, MANAGED_KAFKA_VERSION
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.operator.reporter import News, ReconcileReporter

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.fleet.agent.control_plane import ControlPlaneAnswer
    from plimsoll.fleet.agent.instance_reconciler import InstanceResult
    from plimsoll.fleet.agent.intake_executor import IntakeResult
    from plimsoll.objects.api.managed_kafkas import ManagedKafka

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

SUBSYSTEM: Final = "agent"
_LIST: Final = Ref(kind="agent", name="list")
_BAD: Final = frozenset({REJECTED, ERROR})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedCycle:
    """The part of a cycle that is about one subject."""

    ref: Ref
    at: datetime
    is_dry_run: bool
    outcomes: tuple[Outcome, ...]
    not_done: tuple[NotDone, ...]

    def build_plan(self, number: int) -> tuple[Plan, tuple[Outcome, ...]]:
        plan = Plan(
            subsystem=SUBSYSTEM,
            snapshot=number,
            at=self.at,
            actions=tuple(outcome.action for outcome in self.outcomes),
            not_done=self.not_done,
            subject=self.ref,
        )
        return plan, self.outcomes


class AgentReporter(ReconcileReporter):
    """`recorder` None: no Events are recorded."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._events = News()
        self._state = News()

    async def report(self, result: InstanceResult, *, now: datetime, dry_run: bool) -> None:
        """An instance: what was done about it, and how it is."""
        report = result.report
        state = (
            "Ready" if report.is_ready else f"{report.reason}: {report.message}" if report.message else report.reason
        )
        about = NotDone(
            what="is",
            about=(result.ref,),
            reason=Reason(code="Ready" if report.is_ready else report.reason or "NotReady", message=state),
            concerns=(_refer_to_kafka(result.managed),),
        )
        cycle = ReportedCycle(
            ref=result.ref,
            at=now,
            is_dry_run=dry_run,
            outcomes=result.outcomes,
            not_done=(*result.not_done, *(() if report.is_ready else (about,))),
        )
        done = "; ".join(str(outcome) for outcome in result.outcomes)
        sentence = f"{result.ref}: {state}" + (f" ({done})" if done else "")
        recorder = await self.report_reconcile("instance.reconciled", cycle, sentence=sentence, build=cycle.build_plan)
        if recorder is None:
            return
        reference = _build_reference(result.managed)
        for outcome in result.outcomes:
            if outcome.result is Result.DONE:
                reason = outcome.action.reason
                message = f"{outcome.action.verb}: {reason}"
                recorder.record(reference, EventType.NORMAL, reason=reason.code, message=message)
        if report.reason in _BAD and self._events.is_news(str(result.ref), (report.reason, report.message)):
            recorder.record(reference, EventType.WARNING, reason=report.reason, message=report.message)

    async def report_intake(self, taken: IntakeResult, *, now: datetime, dry_run: bool) -> None:
        """What a list changed. One plan for all of it: instances that it made have no object to report on yet."""
        cycle = ReportedCycle(ref=_LIST, at=now, is_dry_run=dry_run, outcomes=taken.outcomes, not_done=taken.not_done)
        sentences = [str(outcome) for outcome in taken.outcomes] + [str(kept) for kept in taken.not_done]
        self.log_once("list.taken", str(_LIST), sentences)
        await self.record_plan(str(_LIST), cycle.build_plan, at=now, dry_run=dry_run)

    def report_answer(self, answer: ControlPlaneAnswer, limits_problem: str) -> None:
        """A poll with an answer. `limits_problem`: why the limits of the node autoscaler are not known."""
        listed = answer.kafkas
        facts = (len(listed.items), len(listed.unreadable), limits_problem)
        if not self._state.is_news("poll", facts):
            return
        log.info("control_plane.answers", items=len(listed.items), unreadable=len(listed.unreadable))
        if limits_problem:
            log.warning("node_limits.unknown", problem=limits_problem)

    def report_silence(self, problem: str, *, missed: int) -> None:
        """A call without a usable answer."""
        log_event = log.warning if self._state.is_news("poll", problem) else log.debug
        log_event("control_plane.silent", problem=problem, missed=missed)


def _refer_to_kafka(managed: ManagedKafka) -> Ref:
    """Under this name `plimsoll why kafka/NS/NAME` finds it, beside what the Kafka operator says."""
    return Ref(kind="kafka", namespace=managed.metadata.namespace, name=managed.metadata.name)


def _build_reference(managed: ManagedKafka) -> ObjectReference:
    return ObjectReference(
        api_version=f"{MANAGED_KAFKA_GROUP}/{MANAGED_KAFKA_VERSION}",
        kind="ManagedKafka",
        namespace=managed.metadata.namespace,
        name=managed.metadata.name,
        uid=managed.metadata.uid,
    )

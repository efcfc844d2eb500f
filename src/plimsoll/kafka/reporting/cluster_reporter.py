"""Reports the result of a reconcile of a Kafka cluster: Events, log and journal.

The status is written by the reconciler: it is part of the work. No failed report stops the reconciler.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, UnsetType

from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Ref, Result
from plimsoll.kafka.planning.scaling.reasons import BROKERS_STAYED_EMPTY
from plimsoll.kafka.reporting.journal_plans import SUBSYSTEM
from plimsoll.kafka.wire.names import build_auto_rebalance_name
from plimsoll.kube.recorder.event_objects import EventType
from plimsoll.objects.api.kafka import KAFKA_GROUP, STRIMZI_VERSION, KafkaNodePool
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.operator.pause import DRY_RUN
from plimsoll.operator.reporter import ReconcileReporter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.kafka.model.auto_rebalance import AutoRebalanceAction, AutoRebalanceStep
    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.objects.codec.decode_problems import BadObject

_MOST_SUBJECTS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterResult:
    """What a reconcile of a Kafka did and why. `step` None: it failed before it could decide."""

    kafka: Kafka
    at: datetime
    step: AutoRebalanceStep | None = None
    actions: tuple[AutoRebalanceAction, ...] = field(default=())
    """The actions that were carried out."""
    pod_set_changes: tuple[Action, ...] = ()
    """What was changed in pod sets; if nothing may be done, what would be changed."""
    warnings: tuple[Reason, ...] = ()
    problem: Reason | None = None
    unreadable: tuple[BadObject, ...] = ()
    """The objects that cannot be decoded, if they are the problem."""
    pause: Reason | None = None
    retry_after_s: float | None = None

    @property
    def ref(self) -> Ref:
        return Ref(kind="kafka", namespace=self.kafka.metadata.namespace, name=self.kafka.metadata.name)

    @property
    def failure(self) -> Reason | None:
        """Why it could not do its work: its problem, or that brokers which it needs cannot be seen."""
        unseen = (warning for warning in self.warnings if warning.code == "KafkaUnavailable")
        return self.problem or next(unseen, None)

    @property
    def is_dry_run(self) -> bool:
        return self.pause is not None and self.pause.code == DRY_RUN


class ClusterReporter(ReconcileReporter):
    """Reports reconciles of a Kafka. `recorder` None: no Events are recorded."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._warnings: dict[str, frozenset[tuple[EventType, str, str]]] = {}
        """By Kafka: the warnings of its last reconcile. A reconcile that failed says nothing about warnings."""

    async def report(self, result: ClusterResult) -> None:
        recorder = await self.report_reconcile(
            "cluster.reconciled",
            result,
            sentence=build_sentence(result),
            build=lambda number: build_journal_plan(result, number=number),
        )
        if recorder is None:
            return
        subject = str(result.ref)
        events = tuple(dict.fromkeys(list_events(result)))
        known = self._warnings.get(subject, frozenset())
        objects = [build_reference(result.kafka), *_list_unreadable_pools(result)]
        for event in events:
            event_type, reason, message = event
            is_about_pools = result.problem is not None and message == str(result.problem)
            if event_type is EventType.NORMAL or event not in known:
                for about in objects if is_about_pools else objects[:1]:
                    recorder.record(about, event_type, reason=reason, message=message)
        self._remember(subject, frozenset(events) | (known if result.step is None else frozenset()))

    def _remember(self, subject: str, events: frozenset[tuple[EventType, str, str]]) -> None:
        """Keep the warnings of the last reconcile: one that was gone and is back is an Event again."""
        warnings = frozenset(event for event in events if event[0] is EventType.WARNING)
        if len(self._warnings) >= _MOST_SUBJECTS:
            self._warnings.clear()
        self._warnings.pop(subject, None)
        if warnings:
            self._warnings[subject] = warnings


def build_reference(kafka: Kafka) -> ObjectReference:
    return ObjectReference(
        api_version=f"{KAFKA_GROUP}/{STRIMZI_VERSION}",
        kind="Kafka",
        namespace=kafka.metadata.namespace,
        name=kafka.metadata.name,
        uid=kafka.metadata.uid,
    )


def _list_unreadable_pools(result: ClusterResult) -> list[ObjectReference]:
    return [
        ObjectReference(
            api_version=f"{KAFKA_GROUP}/{STRIMZI_VERSION}",
            kind=bad.kind,
            namespace=bad.namespace,
            name=bad.name,
            uid=bad.uid,
        )
        for bad in result.unreadable
        if bad.kind == KafkaNodePool.get_kind_name()
    ]


def build_sentence(result: ClusterResult) -> str:
    """Build the sentence for the log."""
    if result.pause is not None:
        planned = "; ".join(str(action.reason) for action in _list_planned(result))
        if not planned and result.is_dry_run:
            return f"{result.ref}: {result.failure or 'there is nothing to do'}"
        return f"{result.ref}: nothing is done, {result.pause}{': ' if planned else ''}{planned}"
    if result.problem is not None:
        return f"{result.ref}: {result.problem}"
    state = "" if result.step is None else result.step.stored.state.value
    reasons = () if result.step is None else result.step.reasons
    about = "; ".join(dict.fromkeys(str(reason) for reason in (*reasons, *result.warnings)))
    return f"{result.ref}: {state or 'nothing to rebalance'}{': ' if about else ''}{about}"


def list_events(result: ClusterResult) -> Iterator[tuple[EventType, str, str]]:
    """Type, reason and message of the Events: actions, problems and warnings."""
    for change in result.pod_set_changes if result.pause is None else ():
        yield EventType.NORMAL, change.reason.code, str(change.reason)
    for action in result.actions:
        is_bad = action.reason.code == BROKERS_STAYED_EMPTY
        yield EventType.WARNING if is_bad else EventType.NORMAL, action.reason.code, str(action.reason)
    for reason in result.step.reasons if result.step is not None else ():
        if reason.code == "AutoRebalanceCancelled":
            yield EventType.NORMAL, reason.code, str(reason)
    for problem in (result.problem, *result.warnings):
        if problem is not None:
            yield EventType.WARNING, problem.code, str(problem)


def build_journal_plan(result: ClusterResult, *, number: int) -> tuple[Plan, tuple[Outcome, ...]]:
    """The plan for `plimsoll why kafka/NS/NAME`, with its outcomes."""
    if result.pause is not None:
        actions = tuple(_list_planned(result))
        outcomes = tuple(Outcome(action=action, result=Result.HELD_BACK, reason=result.pause) for action in actions)
    else:
        actions = (*result.pod_set_changes, *(_build_action(action, result) for action in result.actions))
        outcomes = tuple(Outcome(action=action, result=Result.DONE) for action in actions)
    not_done = [
        NotDone(what=what, about=(result.ref,), reason=reason, concerns=_list_concerned(result, reason))
        for what, reason in _list_reasons(result)
    ]
    plan = Plan(
        subsystem=SUBSYSTEM,
        snapshot=number,
        at=result.at,
        actions=actions,
        not_done=tuple(not_done),
        subject=result.ref,
    )
    return plan, outcomes


def _list_concerned(result: ClusterResult, reason: Reason) -> tuple[Ref, ...] | UnsetType:
    """The node pools that a reason is about."""
    pool = reason.facts.get("pool")
    pools = [about.name for about in _list_unreadable_pools(result)] if reason is result.problem else []
    names = [pool] if isinstance(pool, str) else pools
    refs = tuple(Ref(kind="kafkanodepool", namespace=result.kafka.metadata.namespace, name=name) for name in names)
    return refs or UNSET


def _list_planned(result: ClusterResult) -> Iterator[Action]:
    """What would be done if it were allowed."""
    yield from result.pod_set_changes
    for action in result.step.actions if result.step is not None else ():
        yield _build_action(action, result)


def _build_action(action: AutoRebalanceAction, result: ClusterResult) -> Action:
    metadata = result.kafka.metadata
    name = build_auto_rebalance_name(metadata.name, action.mode)
    target = Ref(kind="kafkarebalance", namespace=metadata.namespace, name=name)
    return Action(verb=action.kind.value, target=target, reason=action.reason, concerns=(result.ref,))


def _list_reasons(result: ClusterResult) -> Iterator[tuple[str, Reason]]:
    """Why it stands where it stands."""
    if result.pause is not None:
        yield "is left as it is", result.pause
    if result.problem is not None:
        yield "is NotReady", result.problem
    listed = {str(action.reason) for action in _list_planned(result)} | {str(act.reason) for act in result.actions}
    waits = [("waits", reason) for reason in (result.step.reasons if result.step is not None else ())]
    for what, reason in (*waits, *(("has a warning", warning) for warning in result.warnings)):
        if str(reason) not in listed:
            listed.add(str(reason))
            yield what, reason

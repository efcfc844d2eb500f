"""What follows an answer of Cruise Control: another call, or the outcome (docs/design/kafka.md 6.3 and 6.4). Pure.

A is the answer to a request for a proposal, A' that to a request for an execution, B a user task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.rebalance_steps import BegunStep, CallKind, CallPurpose, RebalanceCall, RebalanceOutcome
from plimsoll.kafka.model.rebalances import (
    Computing,
    ExecutorSubstate,
    NoSuchTask,
    NotEnoughWindows,
    Proposed,
    RebalanceAnnotation,
    RebalanceRefused,
    RebalanceState,
    RebalanceTask,
    RebalanceTaskStatus,
    ServerBusy,
    TransientReason,
)
from plimsoll.kafka.planning.scaling.empty_brokers import find_empty_brokers
from plimsoll.kafka.planning.scaling.rebalance_transitions import (
    KAFKA_NOT_READY,
    POLL_S,
    block_bad_spec,
    conclude_stop,
    fail,
    find_trigger,
    get_requested_step,
    is_begun_open,
    is_left_over,
    keep_state,
    list_warnings,
    release,
)

if TYPE_CHECKING:
    from plimsoll.kafka.model.rebalance_steps import KafkaSummary, ObservedRebalance
    from plimsoll.kafka.model.rebalances import RebalanceAnswer, RebalanceTaskAnswer

    Answer = RebalanceAnswer | RebalanceTaskAnswer | ExecutorSubstate | None

REST_ERROR: Final = "CruiseControlRestException"
EXECUTOR_STATE: Final = "CruiseControlExecutorState"
STOP_PENDING: Final = "StopPending"
WINDOWS: Final = "NotEnoughValidWindowsException"
UNREADABLE: Final = "UnreadableAnswer"
IN_PROGRESS: Final = frozenset(
    {
        "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS",
        "INTRA_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS",
        "LEADER_MOVEMENT_TASK_IN_PROGRESS",
    }
)
"""The states of the executor in which progress can be computed."""
_TRANSIENT_TEXTS: Final = {
    "Cannot start a new execution": TransientReason.EXECUTION_IN_PROGRESS,
    "reached the servlet capacity": TransientReason.SERVER_BUSY,
    "BrokerCapacityResolutionException": TransientReason.CAPACITY_MISSING,
    "NullPointerException": TransientReason.CAPACITY_MISSING,
    "TimeoutException": TransientReason.TIMEOUT,
    "NoSuchResourceException": TransientReason.ACCESS_MISSING,
    "InvalidResourceException": TransientReason.ACCESS_MISSING,
}
"""Texts of transient refusals, and the reason that a condition gets."""
_LOADS: Final = ("loadBeforeOptimization", "loadAfterOptimization")
_IS_RUNNING: Final = frozenset({RebalanceTaskStatus.ACTIVE, RebalanceTaskStatus.IN_EXECUTION})


def interpret_answer(
    observed: ObservedRebalance, kafka: KafkaSummary, call: RebalanceCall, answer: Answer
) -> RebalanceCall | RebalanceOutcome:
    """The next call, or the outcome of the step."""
    return _Interpreter(observed, kafka, call).interpret(answer)


def find_step_to_begin(observed: ObservedRebalance, outcome: RebalanceOutcome) -> BegunStep | None:
    """What is stored before the outcome is written, so that a crash cannot leave a handled annotation behind.

    Only a stop needs it: a state that follows a refresh accepts it again, and a real run was begun before its request.
    """
    if not outcome.handles_annotation or observed.annotation != RebalanceAnnotation.STOP or observed.begun is not None:
        return None
    return BegunStep(step=RebalanceAnnotation.STOP, annotation=observed.annotation)


def find_progress_problem(executor: ExecutorSubstate) -> Reason | None:
    """Why the progress of an execution cannot be computed now; None: it can, or the last one stays."""
    if executor.state not in IN_PROGRESS:
        message = f"progress is unknown while the executor is in state {executor.state[:100]}"
        return Reason(code=EXECUTOR_STATE, message=message, facts={"state": executor.state[:100]})
    return None


class _Interpreter:
    """Interprets the answer to one call."""

    def __init__(self, observed: ObservedRebalance, kafka: KafkaSummary, call: RebalanceCall) -> None:
        self._observed = observed
        self._kafka = kafka
        self._call = call

    def interpret(self, answer: Answer) -> RebalanceCall | RebalanceOutcome:
        match self._call.kind:
            case CallKind.DRY_RUN:
                return self._interpret_dry_run(answer)
            case CallKind.REAL_RUN:
                return self._interpret_real_run(answer)
            case CallKind.USER_TASK:
                return self._interpret_task(answer)
            case CallKind.FIND_EXECUTION:
                return self._interpret_found(answer)
            case CallKind.STOP:
                return self._interpret_stop(answer)
            case CallKind.EXECUTOR_STATE:
                return self._interpret_executor(answer)

    # ---- A and A'

    def _interpret_dry_run(self, answer: Answer) -> RebalanceOutcome:
        match answer:
            case Proposed() if isinstance(answer.body.get("summary"), dict):
                return self._enter(RebalanceState.PROPOSAL_READY, session_id=answer.session_id, body=answer.body)
            case Computing():
                return self._enter(RebalanceState.PENDING_PROPOSAL, session_id=answer.session_id, clears_result=True)
            case NotEnoughWindows():
                return self._wait_for_windows()
            case RebalanceRefused():
                return self._refuse(answer, is_handled=True)
        return self._refuse(_describe_unreadable(), is_handled=True)

    def _interpret_real_run(self, answer: Answer) -> RebalanceOutcome:
        match answer:
            case Proposed():
                return self._enter(RebalanceState.REBALANCING, session_id=answer.session_id, body=answer.body)
            case Computing():
                return self._enter(RebalanceState.REBALANCING, session_id=answer.session_id)
            case NotEnoughWindows():
                return self._wait_for_windows()
            case RebalanceRefused():
                refused = self._refuse(answer, is_handled=True)
                # Of a request without an answer it is unknown whether it was accepted.
                is_doubtful = refused.reason in {TransientReason.CONNECTION, TransientReason.TIMEOUT}
                return replace(refused, keeps_begun=is_doubtful)
        return replace(self._refuse(_describe_unreadable(), is_handled=True), keeps_begun=True)

    # ---- B

    def _interpret_task(self, answer: Answer) -> RebalanceCall | RebalanceOutcome:
        match answer:
            case RebalanceTask() if answer.id.lower() != self._call.task_id.lower():
                return self._hold(
                    Reason(code=UNREADABLE, message=f"Cruise Control answered with task {answer.id[:50]}")
                )
            case RebalanceTask():
                return self._interpret_known_task(answer)
            case NoSuchTask():
                return self._interpret_missing_task()
            case ServerBusy():
                return self._hold(None)
            case RebalanceRefused():
                return self._interpret_refused_task(answer)
        return self._hold(Reason(code=UNREADABLE, message="Cruise Control's answer cannot be read"))

    def _interpret_known_task(self, task: RebalanceTask) -> RebalanceCall | RebalanceOutcome:
        match self._call.purpose:
            case CallPurpose.STOP | CallPurpose.REFRESH:
                return self._interpret_task_to_stop(task)
            case CallPurpose.DELETE:
                kind = CallKind.STOP if task.status in _IS_RUNNING else CallKind.EXECUTOR_STATE
                return self._follow(kind, task_id=task.id)
            case CallPurpose.RESUME:
                return self._interpret_resumed(task)
        if self._observed.state is RebalanceState.REBALANCING:
            return self._interpret_execution(task)
        return self._interpret_computation(task)

    def _interpret_computation(self, task: RebalanceTask) -> RebalanceCall | RebalanceOutcome:
        """B(dry)."""
        body = task.body or {}
        has_summary = isinstance(body.get("summary"), dict)
        match task.status:
            case RebalanceTaskStatus.COMPLETED if has_summary:
                return self._enter(RebalanceState.PROPOSAL_READY, session_id=task.id, body=task.body)
            case RebalanceTaskStatus.COMPLETED:
                # The proposal cannot be read any more.
                return self._follow(CallKind.DRY_RUN)
            case RebalanceTaskStatus.IN_EXECUTION if has_summary and all(name in body for name in _LOADS):
                return self._enter(RebalanceState.PROPOSAL_READY, session_id=task.id, body=task.body)
            case RebalanceTaskStatus.COMPLETED_WITH_ERROR:
                return self._end_with_error(task, "Cruise Control could not compute the proposal")
        return self._hold(None)

    def _interpret_execution(self, task: RebalanceTask) -> RebalanceCall | RebalanceOutcome:
        """B(real)."""
        has_summary = task.body is not None and isinstance(task.body.get("summary"), dict)
        match task.status:
            case RebalanceTaskStatus.COMPLETED:
                ended = self._enter(RebalanceState.READY, body=task.body if has_summary else None)
                return replace(ended, handles_spec=not self._observed.is_spec_changed, retry_after_s=None)
            case RebalanceTaskStatus.COMPLETED_WITH_ERROR:
                failed = self._end_with_error(task, "the execution ended with an error or was stopped")
                return replace(failed, handles_spec=not self._observed.is_spec_changed)
            case RebalanceTaskStatus.IN_EXECUTION:
                return self._follow(CallKind.EXECUTOR_STATE, purpose=CallPurpose.POLL, body=task.body)
        return self._hold(None)

    def _interpret_task_to_stop(self, task: RebalanceTask) -> RebalanceCall | RebalanceOutcome:
        """Before a stop or a refresh: whether there is still something to stop."""
        is_stop = self._call.purpose is CallPurpose.STOP
        match task.status:
            case RebalanceTaskStatus.IN_EXECUTION:
                return self._follow(CallKind.STOP, task_id=task.id)
            case RebalanceTaskStatus.ACTIVE:
                return self._follow(CallKind.STOP, task_id=task.id, must_repeat=True)
            case RebalanceTaskStatus.COMPLETED if is_stop:
                # It was faster than the stop.
                return replace(self._enter(RebalanceState.READY), retry_after_s=None)
            case RebalanceTaskStatus.COMPLETED_WITH_ERROR if is_stop:
                return conclude_stop(self._observed, self._kafka, self._call.row)
        return self._follow(CallKind.DRY_RUN)

    def _interpret_resumed(self, task: RebalanceTask) -> RebalanceCall | RebalanceOutcome:
        match task.status:
            case RebalanceTaskStatus.IN_EXECUTION:
                return self._enter(RebalanceState.REBALANCING, session_id=task.id)
            case RebalanceTaskStatus.ACTIVE:
                return self._enter(RebalanceState.PENDING_PROPOSAL, session_id=task.id)
        return self._follow(CallKind.DRY_RUN)

    def _interpret_missing_task(self) -> RebalanceCall | RebalanceOutcome:
        """Cruise Control was restarted, or the task expired."""
        match self._call.purpose:
            case CallPurpose.STOP | CallPurpose.REFRESH:
                # An engine that was restarted may have resumed the execution.
                return self._follow(CallKind.STOP)
            case CallPurpose.DELETE:
                return self._follow(CallKind.EXECUTOR_STATE, task_id=self._call.task_id)
        if self._observed.spec is None:
            return block_bad_spec(self._observed)
        if not self._kafka.is_ready:
            message = "Kafka cluster is not Ready"
            return fail(self._observed, self._kafka, self._call.row, reason=KAFKA_NOT_READY, message=message)
        return self._follow(CallKind.DRY_RUN)

    def _interpret_refused_task(self, refused: RebalanceRefused) -> RebalanceCall | RebalanceOutcome:
        refused = normalize_refusal(refused)
        if refused.is_transient or self._call.purpose is CallPurpose.DELETE:
            return self._hold(Reason(code=refused.reason, message=refused.message))
        match self._call.purpose:
            case CallPurpose.STOP | CallPurpose.REFRESH:
                return self._follow(CallKind.STOP)
            case CallPurpose.RESUME:
                return self._follow(CallKind.DRY_RUN)
        return replace(self._refuse(refused), session_id=self._observed.session_id)

    # ---- the execution that a lost answer may have started

    def _interpret_found(self, answer: Answer) -> RebalanceCall | RebalanceOutcome:
        match answer:
            case RebalanceTask():
                if self._is_ours(answer):
                    return self._adopt(answer)
                return self._interpret_not_found(answer.id)
            case NoSuchTask():
                return self._interpret_not_found("")
            case RebalanceRefused():
                refused = normalize_refusal(answer)
                is_first = self._observed.begun is None and self._call.purpose is not CallPurpose.DELETE
                if is_first and not refused.is_transient:
                    return self._refuse(refused, is_handled=True)
                return self._hold(Reason(code=refused.reason, message=refused.message))
        return self._hold(None)

    def _is_ours(self, task: RebalanceTask) -> bool:
        """Whether an execution is one that this rebalance requested."""
        if is_begun_open(self._observed) and self._observed.begun is not None:
            return task.id != self._observed.begun.previous_task_id
        return self._call.purpose is CallPurpose.POLL

    def _adopt(self, task: RebalanceTask) -> RebalanceCall | RebalanceOutcome:
        if self._call.purpose is CallPurpose.DELETE:
            kind = CallKind.STOP if task.status in _IS_RUNNING else CallKind.EXECUTOR_STATE
            return self._follow(kind, task_id=task.id)
        begun = self._observed.begun
        reached = self._enter(RebalanceState.REBALANCING, session_id=task.id, body=_get_proposal(task.body))
        is_handled = begun is not None and bool(begun.annotation) and self._observed.annotation == begun.annotation
        return replace(
            reached,
            handles_annotation=is_handled or reached.handles_annotation,
            handles_spec=not self._observed.is_spec_changed,
        )

    def _interpret_not_found(self, previous_task_id: str) -> RebalanceCall | RebalanceOutcome:
        match self._call.purpose:
            case CallPurpose.DELETE:
                return release(self._observed, self._kafka)
            case CallPurpose.APPROVE:
                return self._begin_execution(previous_task_id)
            case CallPurpose.POLL:
                return self._interpret_missing_task()
        return self._follow(CallKind.DRY_RUN)

    def _begin_execution(self, previous_task_id: str) -> RebalanceCall | RebalanceOutcome:
        """No execution was accepted."""
        observed = self._observed
        if observed.begun is None:
            begins = BegunStep(
                step=RebalanceAnnotation.APPROVE,
                annotation=get_requested_step(observed),
                previous_task_id=previous_task_id,
            )
            return self._follow(CallKind.REAL_RUN, begins=begins)
        match find_trigger(observed, self._kafka):
            case RebalanceAnnotation.APPROVE:
                return self._follow(CallKind.EXECUTOR_STATE)
            case RebalanceAnnotation.REFRESH:
                return self._follow(CallKind.DRY_RUN)
            case RebalanceAnnotation.STOP:
                return conclude_stop(observed, self._kafka, self._call.row)
        return keep_state(observed, self._kafka, self._call.row)

    # ---- stop and executor

    def _interpret_stop(self, answer: Answer) -> RebalanceCall | RebalanceOutcome:
        if isinstance(answer, RebalanceRefused):
            refused = normalize_refusal(answer)
            return self._hold(Reason(code=refused.reason, message=f"the execution is not stopped: {refused.message}"))
        if self._call.must_repeat:
            message = "the execution has not started yet: the stop is repeated until it is sure to end"
            return self._hold(Reason(code=STOP_PENDING, message=message))
        match self._call.purpose:
            case CallPurpose.STOP:
                return conclude_stop(self._observed, self._kafka, self._call.row)
            case CallPurpose.REFRESH:
                return self._follow(CallKind.DRY_RUN)
        return self._hold(Reason(code=STOP_PENDING, message="waits until the executor is idle"))

    def _interpret_executor(self, answer: Answer) -> RebalanceCall | RebalanceOutcome:
        executor = answer if isinstance(answer, ExecutorSubstate) else None
        match self._call.purpose:
            case CallPurpose.APPROVE | CallPurpose.RENEW:
                return self._interpret_idleness(executor, answer)
            case CallPurpose.DELETE:
                return self._interpret_deletion(executor, answer)
        problem = _explain(answer) if executor is None else find_progress_problem(executor)
        held = self._hold(None if problem is None else replace(problem, code=EXECUTOR_STATE))
        body = None if self._observed.has_result else _get_proposal(self._call.body)
        return replace(held, executor=executor, body=body)

    def _interpret_idleness(
        self, executor: ExecutorSubstate | None, answer: Answer
    ) -> RebalanceCall | RebalanceOutcome:
        """A real run waits until the executor is idle: a stop returns before the executor has stopped."""
        if executor is None:
            refused = normalize_refusal(answer) if isinstance(answer, RebalanceRefused) else _describe_unreadable()
            if refused.is_transient or self._call.purpose is CallPurpose.RENEW:
                return self._hold(Reason(code=refused.reason, message=refused.message))
            return self._refuse(refused, is_handled=True)
        if not executor.is_idle:
            message = f"waits until the executor is idle: {executor.state[:100]}"
            return self._hold(Reason(code=EXECUTOR_STATE, message=message, facts={"state": executor.state[:100]}))
        if self._call.purpose is CallPurpose.RENEW:
            return self._follow(CallKind.DRY_RUN)
        if self._observed.begun is None:
            return self._follow(CallKind.FIND_EXECUTION)
        return self._follow(CallKind.REAL_RUN, begins=self._observed.begun)

    def _interpret_deletion(
        self, executor: ExecutorSubstate | None, answer: Answer
    ) -> RebalanceCall | RebalanceOutcome:
        if executor is None:
            return self._hold(_explain(answer))
        if executor.is_idle or executor.triggered_task_id not in {"", self._call.task_id}:
            return release(self._observed, self._kafka)
        return self._follow(CallKind.STOP, task_id=self._call.task_id)

    # ---- parts

    def _follow(
        self,
        kind: CallKind,
        *,
        purpose: CallPurpose | None = None,
        task_id: str = "",
        begins: BegunStep | None = None,
        body: dict[str, Any] | None = None,
        must_repeat: bool = False,
    ) -> RebalanceCall:
        return RebalanceCall(
            kind=kind,
            purpose=purpose or self._call.purpose,
            row=self._call.row,
            task_id=task_id,
            begins=begins,
            body=body,
            must_repeat=must_repeat,
        )

    def _enter(
        self,
        state: RebalanceState,
        *,
        session_id: str = "",
        body: dict[str, Any] | None = None,
        clears_result: bool = False,
    ) -> RebalanceOutcome:
        observed = self._observed
        # What the next state accepts is handled at once.
        goes_on = state is RebalanceState.PROPOSAL_READY and (observed.is_auto_approved or bool(observed.annotation))
        is_polled = state in {RebalanceState.PENDING_PROPOSAL, RebalanceState.REBALANCING}
        empty = find_empty_brokers(observed.spec, body)
        return RebalanceOutcome(
            row=self._call.row,
            state=state,
            session_id=session_id,
            body=body,
            clears_result=clears_result,
            warnings=(*list_warnings(observed, self._kafka), *(() if empty is None else (empty,))),
            handles_annotation=self._is_requested(),
            retry_after_s=0.0 if goes_on else POLL_S if is_polled else None,
        )

    def _is_requested(self) -> bool:
        """Whether the annotation caused this step, or an earlier one that has ended."""
        is_triggered = find_trigger(self._observed, self._kafka) is not None and bool(
            get_requested_step(self._observed)
        )
        return is_triggered or is_left_over(self._observed)

    def _wait_for_windows(self) -> RebalanceOutcome:
        reached = self._enter(RebalanceState.PENDING_PROPOSAL, clears_result=True)
        return replace(reached, reason=WINDOWS, message="Cruise Control has too few samples of the load yet")

    def _refuse(self, refused: RebalanceRefused, *, is_handled: bool = False) -> RebalanceOutcome:
        refused = normalize_refusal(refused)
        return fail(
            self._observed,
            self._kafka,
            self._call.row,
            reason=refused.reason,
            message=refused.message,
            handles_annotation=is_handled and self._is_requested(),
        )

    def _end_with_error(self, task: RebalanceTask, problem: str) -> RebalanceOutcome:
        """The task keeps its session, so that a user can look at it in Cruise Control."""
        match task.failure:
            case NotEnoughWindows():
                return self._wait_for_windows()
            case RebalanceRefused():
                refused = normalize_refusal(task.failure)
            case _:
                cause = f": {task.cause}" if task.cause else ""
                refused = RebalanceRefused(reason=REST_ERROR, message=f"{problem} (user task {task.id}){cause}")
        return replace(self._refuse(refused), session_id=task.id)

    def _hold(self, problem: Reason | None) -> RebalanceOutcome:
        """Nothing changes; it is tried again soon."""
        held = keep_state(self._observed, self._kafka, self._call.row)
        warnings = held.warnings if problem is None else (*held.warnings, problem)
        return replace(held, warnings=warnings, keeps_begun=is_begun_open(self._observed), retry_after_s=POLL_S)


def normalize_refusal(refused: RebalanceRefused) -> RebalanceRefused:
    """The same refusal, transient if and only if its reason says so: the reason is all that a condition keeps."""
    if refused.reason in {transient.value for transient in TransientReason}:
        return replace(refused, is_transient=True)
    if not refused.is_transient:
        return refused
    for text, reason in _TRANSIENT_TEXTS.items():
        if text in refused.message or text == refused.reason:
            return replace(refused, reason=reason)
    message = f"{refused.reason}: {refused.message}"
    return RebalanceRefused(reason=TransientReason.CONNECTION, message=message, is_transient=True)


def _explain(answer: Answer) -> Reason:
    refused = normalize_refusal(answer) if isinstance(answer, RebalanceRefused) else _describe_unreadable()
    return Reason(code=refused.reason, message=refused.message)


def _describe_unreadable() -> RebalanceRefused:
    return RebalanceRefused(reason=UNREADABLE, message="Cruise Control answered with something that is no proposal")


def _get_proposal(body: dict[str, Any] | None) -> dict[str, Any] | None:
    """A body that has a summary; else None."""
    return body if body is not None and isinstance(body.get("summary"), dict) else None

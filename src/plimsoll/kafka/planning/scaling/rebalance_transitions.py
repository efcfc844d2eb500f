"""The states of a KafkaRebalance (docs/design/kafka.md 6): which call follows what is observed. Pure.

`decide_call` applies the guards of 6.2, the accepted annotations of 6.1 and the table of 6.3. Its result is a call to
Cruise Control or, where none is needed, the outcome. `rebalance_answers.interpret_answer` takes the answer of a call:
its result is the next call or the outcome. A step ends with the first outcome.

Nothing is requested twice because an answer was lost: a real run is begun (`BegunStep`) before it is requested, and a
begun one is looked for in Cruise Control before another one is requested.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.rebalance_steps import (
    CallKind,
    CallPurpose,
    IgnoredRebalance,
    RebalanceCall,
    RebalanceOutcome,
)
from plimsoll.kafka.model.rebalances import UNREADABLE, RebalanceAnnotation, RebalanceState, TransientReason

if TYPE_CHECKING:
    from plimsoll.kafka.model.rebalance_steps import KafkaSummary, ObservedRebalance, RebalanceStep

POLL_S: Final = 10.0
"""How often Cruise Control is asked about a live rebalance."""
RENEW_S: Final = 30.0
"""How often a rebalance is tried again whose failure may end by itself."""

INVALID_RESOURCE: Final = "InvalidResourceException"
NO_SUCH_RESOURCE: Final = "NoSuchResourceException"
KAFKA_NOT_READY: Final = "KafkaNotReady"
INVALID_ANNOTATION: Final = "InvalidAnnotation"
LABEL_MISSING: Final = "Resource lacks label 'strimzi.io/cluster': No cluster related to a possible rebalance"
NO_CRUISE_CONTROL: Final = (
    "Kafka resource lacks 'cruiseControl' declaration: No deployed Cruise Control for doing a rebalance"
)


class Row(StrEnum):
    """The rows of the tables in docs/design/kafka.md: 6.2 guards, 6.3 transitions, 4.5 deletion."""

    TEMPLATE = "6.2-template"
    NO_CLUSTER_LABEL = "6.2-no-cluster-label"
    KAFKA_MISSING = "6.2-kafka-missing"
    KAFKA_NOT_SELECTED = "6.2-kafka-not-selected"
    UNREADABLE = "6.2-unreadable"
    TWO_STATES = "6.2-two-states"
    KAFKA_NOT_READY = "6.2-kafka-not-ready"
    NO_CRUISE_CONTROL = "6.2-no-cruise-control"
    PAUSED = "6.2-paused"
    BAD_SPEC = "6.2-bad-spec"
    NEW = "6.3-new-reconcile"
    UNPAUSED = "6.3-paused-unpaused"
    PENDING_WITHOUT_SESSION = "6.3-pending-proposal-no-session"
    PENDING_SESSION = "6.3-pending-proposal-session"
    PENDING_REFRESH = "6.3-pending-proposal-refresh"
    PENDING_STOP = "6.3-pending-proposal-stop"
    READY_APPROVED = "6.3-proposal-ready-approve"
    READY_REFRESH = "6.3-proposal-ready-refresh"
    READY_STOP = "6.3-proposal-ready-auto-approved-stop"
    READY_NONE = "6.3-proposal-ready-none"
    REBALANCING_STOP = "6.3-rebalancing-stop"
    REBALANCING_REFRESH = "6.3-rebalancing-refresh"
    REBALANCING_NONE = "6.3-rebalancing-none"
    DONE_REFRESH = "6.3-stopped-or-ready-refresh"
    DONE_NONE = "6.3-stopped-or-ready-none"
    NOT_READY_REFRESH = "6.3-not-ready-refresh"
    NOT_READY_RENEWED = "6.3-not-ready-renewed"
    NOT_READY_NONE = "6.3-not-ready-none"
    DELETED = "4.5-user-deletes"


ACCEPTED: Final = {
    RebalanceState.NEW: (),
    RebalanceState.PENDING_PROPOSAL: (RebalanceAnnotation.STOP, RebalanceAnnotation.REFRESH),
    RebalanceState.PROPOSAL_READY: (RebalanceAnnotation.APPROVE, RebalanceAnnotation.REFRESH),
    RebalanceState.REBALANCING: (RebalanceAnnotation.STOP, RebalanceAnnotation.REFRESH),
    RebalanceState.STOPPED: (RebalanceAnnotation.REFRESH,),
    RebalanceState.NOT_READY: (RebalanceAnnotation.REFRESH,),
    RebalanceState.READY: (RebalanceAnnotation.REFRESH,),
    RebalanceState.RECONCILIATION_PAUSED: (),
}
"""The annotations that a state accepts (docs/design/kafka.md 6.1)."""

_BEGINS_IN: Final = {
    RebalanceAnnotation.APPROVE: (RebalanceState.PROPOSAL_READY,),
    RebalanceAnnotation.STOP: (
        RebalanceState.PENDING_PROPOSAL,
        RebalanceState.PROPOSAL_READY,
        RebalanceState.REBALANCING,
    ),
}
"""The states in which a step begins. In any other state it has ended."""
_MAY_EXECUTE: Final = frozenset(
    {RebalanceState.REBALANCING, RebalanceState.RECONCILIATION_PAUSED, RebalanceState.NOT_READY}
)
"""States in which Cruise Control may execute the session of the rebalance."""


# ---- what a rebalance may do next


def list_accepted(observed: ObservedRebalance) -> tuple[RebalanceAnnotation, ...]:
    """The accepted annotations. An automatic approval is as good as an execution, so that `stop` stops it."""
    accepted = ACCEPTED[observed.state]
    if observed.state is RebalanceState.PROPOSAL_READY and observed.is_auto_approved:
        return (*accepted, RebalanceAnnotation.STOP)
    return accepted


def is_left_over(observed: ObservedRebalance) -> bool:
    """Whether the annotation is one whose step ended, but whose removal was interrupted."""
    begun = observed.begun
    return (
        begun is not None
        and bool(begun.annotation)
        and observed.annotation == begun.annotation
        and observed.state not in _BEGINS_IN.get(begun.step, ())
    )


def get_requested_step(observed: ObservedRebalance) -> str:
    """The annotation if the state accepts it; else empty."""
    if is_left_over(observed) or observed.annotation not in list_accepted(observed):
        return ""
    return observed.annotation


def is_renewing(reason: str, message: str) -> bool:
    """Whether a rebalance that is NotReady for this reason is requested again without a user."""
    if reason in {transient.value for transient in TransientReason}:
        return True
    if reason in {KAFKA_NOT_READY, NO_SUCH_RESOURCE, UNREADABLE}:
        return True
    return reason == INVALID_RESOURCE and message in {LABEL_MISSING, NO_CRUISE_CONTROL}


def find_trigger(observed: ObservedRebalance, kafka: KafkaSummary) -> RebalanceAnnotation | None:
    """What a user, an automatic approval or a changed spec asks for now; None: nothing."""
    requested = get_requested_step(observed)
    if requested == RebalanceAnnotation.STOP:
        return RebalanceAnnotation.STOP
    if observed.state is RebalanceState.PROPOSAL_READY and observed.is_auto_approved:
        # The real run computes the proposal anew, from the current spec: it is a refresh as well.
        return RebalanceAnnotation.APPROVE
    if requested == RebalanceAnnotation.REFRESH or observed.is_spec_changed:
        if observed.state is RebalanceState.REBALANCING and (observed.spec is None or not kafka.is_ready):
            # The execution goes on until what would replace it can be requested.
            return None
        return RebalanceAnnotation.REFRESH
    return RebalanceAnnotation.APPROVE if requested == RebalanceAnnotation.APPROVE else None


def list_warnings(observed: ObservedRebalance, kafka: KafkaSummary) -> tuple[Reason, ...]:
    """The Warning conditions that hold whatever the step does."""
    warnings = list(observed.warnings)
    if observed.annotation and not get_requested_step(observed) and not is_left_over(observed):
        warnings.append(_warn_of_annotation(observed))
    if not kafka.is_ready and observed.state in {RebalanceState.REBALANCING, RebalanceState.STOPPED}:
        warnings.append(Reason(code=KAFKA_NOT_READY, message="Kafka cluster is not Ready"))
    if observed.state is RebalanceState.REBALANCING:
        warnings += observed.problems
    return tuple(warnings)


def keep_state(observed: ObservedRebalance, kafka: KafkaSummary, row: str) -> RebalanceOutcome:
    """The state as it is."""
    return RebalanceOutcome(
        row=row,
        state=observed.state,
        reason=observed.reason,
        message=observed.message,
        session_id=observed.session_id,
        warnings=list_warnings(observed, kafka),
        handles_annotation=is_left_over(observed),
        handles_spec=not observed.is_spec_changed,
    )


def fail(
    observed: ObservedRebalance,
    kafka: KafkaSummary,
    row: str,
    *,
    reason: str,
    message: str,
    handles_annotation: bool = False,
) -> RebalanceOutcome:
    """NotReady, with its reason."""
    return RebalanceOutcome(
        row=row,
        state=RebalanceState.NOT_READY,
        reason=reason,
        message=message,
        warnings=list_warnings(observed, kafka),
        handles_annotation=handles_annotation or is_left_over(observed),
        retry_after_s=RENEW_S if is_renewing(reason, message) else None,
    )


# ---- decide


def decide_call(observed: ObservedRebalance, kafka: KafkaSummary | None) -> RebalanceStep:
    """The first call of a step, or its outcome. `kafka` None: the Kafka does not exist."""
    if observed.is_template:
        return _ignore(Row.TEMPLATE, "Template", "it is a template: pure configuration, which is never processed")
    if kafka is not None and not kafka.is_selected:
        return _ignore(Row.KAFKA_NOT_SELECTED, "NotSelected", "its Kafka is not one of this operator")
    if observed.is_deleting:
        return _decide_deletion(observed, kafka)
    blocked = _check_guards(observed, kafka)
    if blocked is not None:
        return blocked
    assert kafka is not None, "a missing Kafka is a guard"
    return _decide_by_state(observed, kafka)


def block_unreadable(
    state: RebalanceState, condition: tuple[str, str], problem: Reason, warnings: tuple[Reason, ...]
) -> RebalanceOutcome:
    """The rebalance or its Kafka cannot be decoded. What must not start by itself keeps its state, with a Warning.

    `condition`: reason and message of the state, as far as they can be read. `warnings`: those that it has.
    """
    kept = (problem, *(warning for warning in warnings if warning.code != UNREADABLE))
    is_waiting = state is RebalanceState.NOT_READY and not is_renewing(*condition)
    if state in _KEPT_IF_UNREADABLE or is_waiting:
        reason, message = condition
        return RebalanceOutcome(row=Row.UNREADABLE, state=state, reason=reason, message=message, warnings=kept)
    return RebalanceOutcome(
        row=Row.UNREADABLE,
        state=RebalanceState.NOT_READY,
        reason=problem.code,
        message=str(problem),
        warnings=kept[1:],
    )


_KEPT_IF_UNREADABLE: Final = frozenset(
    {
        RebalanceState.REBALANCING,
        RebalanceState.STOPPED,
        RebalanceState.READY,
        RebalanceState.RECONCILIATION_PAUSED,
    }
)


def _check_guards(observed: ObservedRebalance, kafka: KafkaSummary | None) -> RebalanceOutcome | None:
    """The guards of 6.2, in their order; None: all pass."""
    if not observed.cluster:
        return _block(observed, Row.NO_CLUSTER_LABEL, INVALID_RESOURCE, LABEL_MISSING)
    if kafka is None:
        message = f"Kafka resource '{observed.cluster}' identified by label 'strimzi.io/cluster' does not exist"
        return _block(observed, Row.KAFKA_MISSING, NO_SUCH_RESOURCE, message)
    if observed.state_problem is not None:
        problem = observed.state_problem
        return _block(observed, Row.TWO_STATES, problem.code, problem.message)
    if not kafka.is_ready and (held := _hold_until_ready(observed, kafka)) is not None:
        return held
    if not kafka.has_cruise_control:
        return _block(observed, Row.NO_CRUISE_CONTROL, INVALID_RESOURCE, NO_CRUISE_CONTROL)
    if observed.is_paused:
        return RebalanceOutcome(
            row=Row.PAUSED,
            state=RebalanceState.RECONCILIATION_PAUSED,
            session_id=observed.session_id,
            warnings=observed.warnings,
            keeps_begun=_may_have_requested(observed),
        )
    if observed.spec is None and observed.state is not RebalanceState.REBALANCING:
        return block_bad_spec(observed)
    return None


def _hold_until_ready(observed: ObservedRebalance, kafka: KafkaSummary) -> RebalanceOutcome | None:
    """The Kafka is not Ready. None: the rebalance goes on."""
    match observed.state:
        case RebalanceState.READY | RebalanceState.REBALANCING:
            return None
        case RebalanceState.STOPPED:
            # A user stopped it: it must not start again by itself when the Kafka is Ready again.
            return keep_state(observed, kafka, Row.KAFKA_NOT_READY)
        case RebalanceState.NOT_READY if not is_renewing(observed.reason, observed.message):
            return keep_state(observed, kafka, Row.KAFKA_NOT_READY)
    return _block(observed, Row.KAFKA_NOT_READY, KAFKA_NOT_READY, "Kafka cluster is not Ready")


def _decide_by_state(observed: ObservedRebalance, kafka: KafkaSummary) -> RebalanceStep:
    """The table of 6.3."""
    trigger = find_trigger(observed, kafka)
    match observed.state:
        case RebalanceState.NEW:
            return _request_proposal(Row.NEW)
        case RebalanceState.RECONCILIATION_PAUSED:
            return _decide_unpaused(observed)
        case RebalanceState.PENDING_PROPOSAL:
            return _decide_pending(observed, kafka, trigger)
        case RebalanceState.PROPOSAL_READY:
            return _decide_proposal_ready(observed, kafka, trigger)
        case RebalanceState.REBALANCING:
            return _decide_rebalancing(observed, trigger)
        case RebalanceState.NOT_READY:
            return _decide_not_ready(observed, kafka, trigger)
        case RebalanceState.STOPPED | RebalanceState.READY:
            if trigger is RebalanceAnnotation.REFRESH:
                return _request_proposal(Row.DONE_REFRESH)
            return keep_state(observed, kafka, Row.DONE_NONE)


def _decide_unpaused(observed: ObservedRebalance) -> RebalanceCall:
    if _may_have_requested(observed):
        return RebalanceCall(kind=CallKind.FIND_EXECUTION, purpose=CallPurpose.RESUME, row=Row.UNPAUSED)
    if observed.session_id:
        # An execution may have gone on meanwhile.
        return RebalanceCall(
            kind=CallKind.USER_TASK, purpose=CallPurpose.RESUME, row=Row.UNPAUSED, task_id=observed.session_id
        )
    return _request_proposal(Row.UNPAUSED)


def _decide_pending(
    observed: ObservedRebalance, kafka: KafkaSummary, trigger: RebalanceAnnotation | None
) -> RebalanceStep:
    match trigger:
        case RebalanceAnnotation.STOP:
            return conclude_stop(observed, kafka, Row.PENDING_STOP)
        case RebalanceAnnotation.REFRESH:
            return _request_proposal(Row.PENDING_REFRESH)
    if not observed.session_id:
        return _request_proposal(Row.PENDING_WITHOUT_SESSION)
    return RebalanceCall(
        kind=CallKind.USER_TASK, purpose=CallPurpose.POLL, row=Row.PENDING_SESSION, task_id=observed.session_id
    )


def _decide_proposal_ready(
    observed: ObservedRebalance, kafka: KafkaSummary, trigger: RebalanceAnnotation | None
) -> RebalanceStep:
    if _may_have_requested(observed):
        return RebalanceCall(kind=CallKind.FIND_EXECUTION, purpose=CallPurpose.APPROVE, row=Row.READY_APPROVED)
    match trigger:
        case RebalanceAnnotation.APPROVE:
            return RebalanceCall(kind=CallKind.EXECUTOR_STATE, purpose=CallPurpose.APPROVE, row=Row.READY_APPROVED)
        case RebalanceAnnotation.REFRESH:
            return _request_proposal(Row.READY_REFRESH)
        case RebalanceAnnotation.STOP:
            return conclude_stop(observed, kafka, Row.READY_STOP)
    return keep_state(observed, kafka, Row.READY_NONE)


def _decide_rebalancing(observed: ObservedRebalance, trigger: RebalanceAnnotation | None) -> RebalanceStep:
    """The user task says whether there is something to stop, and whether it is ours."""
    match trigger:
        case RebalanceAnnotation.STOP:
            row, purpose = Row.REBALANCING_STOP, CallPurpose.STOP
        case RebalanceAnnotation.REFRESH:
            row, purpose = Row.REBALANCING_REFRESH, CallPurpose.REFRESH
        case _:
            row, purpose = Row.REBALANCING_NONE, CallPurpose.POLL
    if observed.session_id:
        return RebalanceCall(kind=CallKind.USER_TASK, purpose=purpose, row=row, task_id=observed.session_id)
    if purpose is not CallPurpose.POLL:
        return RebalanceCall(kind=CallKind.STOP, purpose=purpose, row=row)
    if observed.spec is None:
        return block_bad_spec(observed)
    return RebalanceCall(kind=CallKind.FIND_EXECUTION, purpose=purpose, row=row)


def _decide_not_ready(
    observed: ObservedRebalance, kafka: KafkaSummary, trigger: RebalanceAnnotation | None
) -> RebalanceStep:
    is_refreshed = trigger is RebalanceAnnotation.REFRESH
    if not is_refreshed and not is_renewing(observed.reason, observed.message):
        return keep_state(observed, kafka, Row.NOT_READY_NONE)
    row = Row.NOT_READY_REFRESH if is_refreshed else Row.NOT_READY_RENEWED
    if _may_have_requested(observed):
        return RebalanceCall(kind=CallKind.FIND_EXECUTION, purpose=CallPurpose.RENEW, row=row)
    if not is_refreshed and observed.reason == TransientReason.EXECUTION_IN_PROGRESS:
        return RebalanceCall(kind=CallKind.EXECUTOR_STATE, purpose=CallPurpose.RENEW, row=row)
    return _request_proposal(row)


def _decide_deletion(observed: ObservedRebalance, kafka: KafkaSummary | None) -> RebalanceStep:
    """An object that is being deleted is released when nothing of it is executed any more."""
    if kafka is None or not kafka.has_cruise_control or not observed.cluster:
        return release(observed, kafka)
    if _may_have_requested(observed) and observed.spec is not None:
        return RebalanceCall(kind=CallKind.FIND_EXECUTION, purpose=CallPurpose.DELETE, row=Row.DELETED)
    if observed.session_id and observed.state in _MAY_EXECUTE:
        return RebalanceCall(
            kind=CallKind.USER_TASK, purpose=CallPurpose.DELETE, row=Row.DELETED, task_id=observed.session_id
        )
    return release(observed, kafka)


# ---- parts


def release(observed: ObservedRebalance, kafka: KafkaSummary | None) -> RebalanceOutcome:
    """Nothing of it is executed: it may go.

    If the status of the Kafka counts on it, the reconcile of the Kafka lets it go, after it has stored that the
    operation is over. An object that is missing before looks as if it had never been created.
    """
    if kafka is not None and kafka.running == observed.name:
        return replace(keep_state(observed, kafka, Row.DELETED), keeps_begun=True, retry_after_s=POLL_S)
    return RebalanceOutcome(
        row=Row.DELETED,
        state=observed.state,
        reason=observed.reason,
        message=observed.message,
        session_id=observed.session_id,
        is_released=True,
    )


def block_bad_spec(observed: ObservedRebalance) -> RebalanceOutcome:
    """NotReady: the spec is wrong, and nothing can be requested."""
    message = "; ".join(problem.message for problem in observed.problems)
    return _block(observed, Row.BAD_SPEC, INVALID_RESOURCE, message)


def conclude_stop(observed: ObservedRebalance, kafka: KafkaSummary, row: str) -> RebalanceOutcome:
    return RebalanceOutcome(
        row=row,
        state=RebalanceState.STOPPED,
        warnings=list_warnings(observed, kafka),
        handles_annotation=True,
    )


def _request_proposal(row: str) -> RebalanceCall:
    return RebalanceCall(kind=CallKind.DRY_RUN, purpose=CallPurpose.POLL, row=row)


def is_begun_open(observed: ObservedRebalance) -> bool:
    """Whether the begun step has not ended."""
    begun = observed.begun
    return begun is not None and (_may_have_requested(observed) or observed.state in _BEGINS_IN.get(begun.step, ()))


def _may_have_requested(observed: ObservedRebalance) -> bool:
    """A real run was begun, and its outcome was not written."""
    return (
        observed.begun is not None
        and observed.begun.step is RebalanceAnnotation.APPROVE
        and observed.state
        in {RebalanceState.PROPOSAL_READY, RebalanceState.NOT_READY, RebalanceState.RECONCILIATION_PAUSED}
    )


def _block(observed: ObservedRebalance, row: str, reason: str, message: str) -> RebalanceOutcome:
    """A guard does not pass. What may have been requested is not forgotten."""
    return RebalanceOutcome(
        row=row,
        state=RebalanceState.NOT_READY,
        reason=reason,
        message=message,
        session_id=observed.session_id,
        warnings=observed.warnings,
        handles_annotation=is_left_over(observed),
        keeps_begun=_may_have_requested(observed),
        retry_after_s=RENEW_S if is_renewing(reason, message) else None,
    )


def _ignore(row: str, code: str, message: str) -> IgnoredRebalance:
    return IgnoredRebalance(row=row, reason=Reason(code=code, message=message))


def _warn_of_annotation(observed: ObservedRebalance) -> Reason:
    accepted = list_accepted(observed)
    words = ", ".join(annotation.value for annotation in accepted) or "none"
    return Reason(
        code=INVALID_ANNOTATION,
        message=f"annotation strimzi.io/rebalance={observed.annotation[:100]} is not accepted in state "
        f"{observed.state.value}; accepted: {words}",
        facts={"annotation": observed.annotation[:100], "accepted": [annotation.value for annotation in accepted]},
    )

"""The guards and transitions of a KafkaRebalance: a test per row of docs/design/kafka.md 6.2 and 6.3."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.rebalance_steps import (
    BegunStep,
    CallKind,
    IgnoredRebalance,
    KafkaSummary,
    ObservedRebalance,
    RebalanceCall,
    RebalanceOutcome,
)
from plimsoll.kafka.model.rebalances import (
    Computing,
    ExecutorSubstate,
    NoSuchTask,
    NotEnoughWindows,
    Proposed,
    RebalanceAnnotation,
    RebalanceRefused,
    RebalanceSpec,
    RebalanceState,
    RebalanceTask,
    RebalanceTaskStatus,
    ServerBusy,
    TransientReason,
)
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling.rebalance_answers import find_step_to_begin, interpret_answer, normalize_refusal
from plimsoll.kafka.planning.scaling.rebalance_transitions import (
    ACCEPTED,
    KAFKA_NOT_READY,
    LABEL_MISSING,
    NO_CRUISE_CONTROL,
    POLL_S,
    RENEW_S,
    Row,
    block_unreadable,
    decide_call,
    is_renewing,
)

State = RebalanceState
Status = RebalanceTaskStatus
KAFKA = KafkaSummary()
BODY = {"summary": {"numReplicaMovements": 3}, "loadBeforeOptimization": {}, "loadAfterOptimization": {}}
PROPOSED = Proposed(session_id="s1", body=BODY)
IDLE = ExecutorSubstate(state="NO_TASK_IN_PROGRESS")
BUSY = ExecutorSubstate(
    state="INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS", finished_data_mb=5, total_data_mb=10, triggered_task_id="s0"
)
REFUSED = RebalanceRefused(reason="OptimizationFailureException", message="[RackAwareGoal] too few racks")
UNREACHABLE = RebalanceRefused(reason=TransientReason.CONNECTION, message="connection refused", is_transient=True)
TIMED_OUT = RebalanceRefused(reason=TransientReason.TIMEOUT, message="no answer in 30 s", is_transient=True)
WRONG = Reason(code="InvalidResourceException", message="spec.brokers: mode add-brokers needs at least one broker")


def observe(state: State = State.NEW, **more: Any) -> ObservedRebalance:
    return replace(ObservedRebalance(name="r", cluster="c", state=state, spec=RebalanceSpec()), **more)


def task(status: Status, **more: Any) -> RebalanceTask:
    return replace(RebalanceTask(id="s0", status=status), **more)


def run(
    observed: ObservedRebalance, *answers: Any, kafka: KafkaSummary | None = KAFKA
) -> tuple[list[CallKind], RebalanceOutcome]:
    """The calls of a step, and its outcome."""
    step = decide_call(observed, kafka)
    calls = []
    for answer in answers:
        assert isinstance(step, RebalanceCall), f"{answer} is not asked for: {step}"
        assert kafka is not None
        calls.append(step.kind)
        step = interpret_answer(observed, kafka, step, answer)
    assert isinstance(step, RebalanceOutcome), step
    return calls, step


def codes(outcome: RebalanceOutcome) -> list[str]:
    return [warning.code for warning in outcome.warnings]


# ---- 6.2: each guard by its row, in order


GUARDS: dict[Row, tuple[ObservedRebalance, KafkaSummary | None, tuple[State, str, str] | None]] = {
    Row.TEMPLATE: (observe(is_template=True, cluster=""), None, None),
    Row.NO_CLUSTER_LABEL: (observe(cluster=""), None, (State.NOT_READY, "InvalidResourceException", LABEL_MISSING)),
    Row.KAFKA_MISSING: (
        observe(),
        None,
        (
            State.NOT_READY,
            "NoSuchResourceException",
            "Kafka resource 'c' identified by label 'strimzi.io/cluster' does not exist",
        ),
    ),
    Row.KAFKA_NOT_SELECTED: (observe(), KafkaSummary(is_selected=False, is_ready=False), None),
    Row.TWO_STATES: (
        observe(State.NOT_READY, state_problem=Reason(code="InvalidResourceException", message="two states")),
        KafkaSummary(is_ready=False),
        (State.NOT_READY, "InvalidResourceException", "two states"),
    ),
    Row.KAFKA_NOT_READY: (
        observe(State.PROPOSAL_READY, session_id="s0"),
        KafkaSummary(is_ready=False, has_cruise_control=False),
        (State.NOT_READY, KAFKA_NOT_READY, "Kafka cluster is not Ready"),
    ),
    Row.NO_CRUISE_CONTROL: (
        observe(is_paused=True),
        KafkaSummary(has_cruise_control=False),
        (State.NOT_READY, "InvalidResourceException", NO_CRUISE_CONTROL),
    ),
    Row.PAUSED: (observe(is_paused=True, spec=None), KAFKA, (State.RECONCILIATION_PAUSED, "", "")),
    Row.BAD_SPEC: (
        observe(spec=None, problems=(WRONG,)),
        KAFKA,
        (State.NOT_READY, "InvalidResourceException", WRONG.message),
    ),
}


@pytest.mark.parametrize("row", GUARDS, ids=str)
def test_guard(row: Row):
    observed, kafka, expected = GUARDS[row]
    step = decide_call(observed, kafka)
    assert not isinstance(step, RebalanceCall)
    assert step.row == row
    if expected is None:
        assert isinstance(step, IgnoredRebalance)
        return
    assert isinstance(step, RebalanceOutcome)
    assert (step.state, step.reason, step.message) == expected


UNREADABLE_KAFKA = Reason(code="UnreadableObject", message="kafka/ns/c cannot be decoded: spec: no object")
MUST_NOT_START = [
    (State.REBALANCING, ("", "")),
    (State.STOPPED, ("", "")),
    (State.READY, ("", "")),
    (State.RECONCILIATION_PAUSED, ("", "")),
    (State.NOT_READY, (REFUSED.reason, REFUSED.message)),
]
MAY_START = [
    (State.NEW, ("", "")),
    (State.PENDING_PROPOSAL, ("", "")),
    (State.PROPOSAL_READY, ("", "")),
    (State.NOT_READY, (TIMED_OUT.reason, TIMED_OUT.message)),
]


@pytest.mark.parametrize("problem", [pytest.param(UNREADABLE_KAFKA, id="6.2-unreadable")])
def test_what_cannot_be_decoded_is_named_and_starts_nothing(problem: Reason):
    outdated, other = Reason(code="UnreadableObject", message="before"), Reason(code="IgnoredField", message="x")
    for state, condition in MUST_NOT_START:
        kept = block_unreadable(state, condition, problem, (outdated, other))
        assert (kept.state, kept.reason, kept.message) == (state, *condition)
        assert kept.warnings == (problem, other)
    for state, condition in MAY_START:
        blocked = block_unreadable(state, condition, problem, (outdated, other))
        assert (blocked.state, blocked.reason) == (State.NOT_READY, problem.code)
        assert blocked.message == str(problem)
        assert blocked.warnings == (other,)
        assert is_renewing(blocked.reason, blocked.message), "it is requested when the object is mended"


MISSING_SECRETS = [
    pytest.param("NoSuchResourceException", id="6.2-missing-secrets"),
    pytest.param("InvalidResourceException", id="6.2-secrets-without-a-key"),
]


@pytest.mark.parametrize("reason", MISSING_SECRETS)
def test_guard_missing_secrets(reason: str):
    refused = RebalanceRefused(reason=reason, message="Secret ns/c-cruise-control-api", is_transient=True)
    _, outcome = run(observe(), refused)
    assert (outcome.state, outcome.reason) == (State.NOT_READY, TransientReason.ACCESS_MISSING)
    assert outcome.retry_after_s == RENEW_S


@pytest.mark.parametrize("state", [State.READY, State.STOPPED, State.REBALANCING])
def test_guard_kafka_not_ready_leaves_what_is_done_or_runs(state: State):
    observed = observe(state, session_id="s0")
    answers = (task(Status.IN_EXECUTION), BUSY) if state is State.REBALANCING else ()
    _, outcome = run(observed, *answers, kafka=KafkaSummary(is_ready=False))
    assert outcome.state is state
    assert outcome.session_id == "s0"
    assert codes(outcome) == ([] if state is State.READY else [KAFKA_NOT_READY])


def test_guard_kafka_not_ready_keeps_a_failure_that_waits_for_a_user():
    observed = observe(State.NOT_READY, reason="OptimizationFailureException", message="no")
    _, outcome = run(observed, kafka=KafkaSummary(is_ready=False))
    assert (outcome.state, outcome.reason) == (State.NOT_READY, "OptimizationFailureException")


@pytest.mark.parametrize("changes", [{"annotation": "refresh"}, {"is_spec_changed": True}])
def test_guard_kafka_not_ready_defers_the_refresh_of_an_execution(changes: dict[str, Any]):
    observed = observe(State.REBALANCING, session_id="s0", **changes)
    calls, outcome = run(observed, task(Status.IN_EXECUTION), BUSY, kafka=KafkaSummary(is_ready=False))
    assert CallKind.STOP not in calls
    assert not outcome.handles_annotation
    assert outcome.handles_spec == ("is_spec_changed" not in changes)


def test_guard_bad_spec_leaves_a_running_execution():
    observed = observe(State.REBALANCING, session_id="s0", spec=None, problems=(WRONG,), is_spec_changed=True)
    calls, outcome = run(observed, task(Status.IN_EXECUTION), BUSY)
    assert calls == [CallKind.USER_TASK, CallKind.EXECUTOR_STATE]
    assert (outcome.state, outcome.handles_spec) == (State.REBALANCING, False)
    assert WRONG in outcome.warnings
    _, ended = run(observed, task(Status.COMPLETED))
    assert (ended.state, ended.handles_spec) == (State.READY, False)


# ---- 6.3: each transition by its row


DRY = [CallKind.DRY_RUN]
POLL = [CallKind.USER_TASK]
REAL = [CallKind.EXECUTOR_STATE, CallKind.FIND_EXECUTION, CallKind.REAL_RUN]

TRANSITIONS: dict[Row, tuple[ObservedRebalance, tuple[Any, ...], list[CallKind], State]] = {
    Row.NEW: (observe(), (PROPOSED,), DRY, State.PROPOSAL_READY),
    Row.UNPAUSED: (observe(State.RECONCILIATION_PAUSED), (Computing(session_id="s1"),), DRY, State.PENDING_PROPOSAL),
    Row.PENDING_WITHOUT_SESSION: (observe(State.PENDING_PROPOSAL), (PROPOSED,), DRY, State.PROPOSAL_READY),
    Row.PENDING_SESSION: (
        observe(State.PENDING_PROPOSAL, session_id="s0"),
        (task(Status.COMPLETED, body=BODY),),
        POLL,
        State.PROPOSAL_READY,
    ),
    Row.PENDING_REFRESH: (
        observe(State.PENDING_PROPOSAL, session_id="s0", annotation="refresh"),
        (PROPOSED,),
        DRY,
        State.PROPOSAL_READY,
    ),
    Row.PENDING_STOP: (
        observe(State.PENDING_PROPOSAL, session_id="s0", annotation="stop"),
        (),
        [],
        State.STOPPED,
    ),
    Row.READY_APPROVED: (
        observe(State.PROPOSAL_READY, session_id="s0", annotation="approve"),
        (IDLE, NoSuchTask(), PROPOSED),
        REAL,
        State.REBALANCING,
    ),
    Row.READY_REFRESH: (
        observe(State.PROPOSAL_READY, session_id="s0", annotation="refresh"),
        (PROPOSED,),
        DRY,
        State.PROPOSAL_READY,
    ),
    Row.READY_STOP: (
        observe(State.PROPOSAL_READY, session_id="s0", annotation="stop", is_auto_approved=True),
        (),
        [],
        State.STOPPED,
    ),
    Row.READY_NONE: (observe(State.PROPOSAL_READY, session_id="s0"), (), [], State.PROPOSAL_READY),
    Row.REBALANCING_STOP: (
        observe(State.REBALANCING, session_id="s0", annotation="stop"),
        (task(Status.IN_EXECUTION), None),
        [CallKind.USER_TASK, CallKind.STOP],
        State.STOPPED,
    ),
    Row.REBALANCING_REFRESH: (
        observe(State.REBALANCING, session_id="s0", annotation="refresh"),
        (task(Status.IN_EXECUTION), None, PROPOSED),
        [CallKind.USER_TASK, CallKind.STOP, CallKind.DRY_RUN],
        State.PROPOSAL_READY,
    ),
    Row.REBALANCING_NONE: (
        observe(State.REBALANCING, session_id="s0"),
        (task(Status.COMPLETED, body=BODY),),
        POLL,
        State.READY,
    ),
    Row.DONE_REFRESH: (observe(State.STOPPED, annotation="refresh"), (PROPOSED,), DRY, State.PROPOSAL_READY),
    Row.DONE_NONE: (observe(State.READY), (), [], State.READY),
    Row.NOT_READY_REFRESH: (
        observe(State.NOT_READY, reason="X", message="y", annotation="refresh"),
        (PROPOSED,),
        DRY,
        State.PROPOSAL_READY,
    ),
    Row.NOT_READY_RENEWED: (
        observe(State.NOT_READY, reason=TransientReason.CONNECTION, message="y"),
        (PROPOSED,),
        DRY,
        State.PROPOSAL_READY,
    ),
    Row.NOT_READY_NONE: (observe(State.NOT_READY, reason="X", message="y"), (), [], State.NOT_READY),
}


@pytest.mark.parametrize("row", TRANSITIONS, ids=str)
def test_transition(row: Row):
    observed, answers, calls, state = TRANSITIONS[row]
    made, outcome = run(observed, *answers)
    assert (made, outcome.state, outcome.row) == (calls, state, row)
    assert outcome.handles_annotation == bool(observed.annotation)
    assert codes(outcome) == []


def test_every_row_has_a_test():
    assert {*GUARDS, *TRANSITIONS, Row.UNREADABLE, Row.DELETED} == set(Row)


@pytest.mark.parametrize(
    "row", [row for row, (observed, *_) in TRANSITIONS.items() if observed.annotation == "refresh"]
)
def test_a_changed_spec_acts_like_refresh(row: Row):
    observed, answers, calls, state = TRANSITIONS[row]
    made, outcome = run(replace(observed, annotation="", is_spec_changed=True), *answers)
    assert (made, outcome.state) == (calls, state)
    assert outcome.handles_spec


def test_refresh_of_ready_is_that_of_stopped():
    made, outcome = run(observe(State.READY, annotation="refresh"), PROPOSED)
    assert (made, outcome.state, outcome.row) == (DRY, State.PROPOSAL_READY, Row.DONE_REFRESH)


# ---- 6.3 A: the answer to a dry run


def test_answer_a_proposal():
    _, outcome = run(observe(), PROPOSED)
    assert (outcome.state, outcome.session_id, outcome.body) == (State.PROPOSAL_READY, "s1", BODY)
    assert outcome.retry_after_s is None, "it waits for a user"
    _, automatic = run(observe(is_auto_approved=True), PROPOSED)
    assert automatic.retry_after_s == 0, "it goes on at once"


@pytest.mark.parametrize(
    ("replicas", "status", "says"),
    [
        (0, "VIOLATED", "no replica moves onto broker 3: no move that the goals allow improves RackAwareGoal"),
        (0, "NO-ACTION", "no replica moves onto broker 3: the cluster is already balanced"),
        (2, "VIOLATED", ""),
    ],
)
def test_answer_a_names_new_brokers_that_stay_empty(replicas: int, status: str, says: str):
    load = {"brokers": [{"Broker": 0, "Replicas": 5}, {"Broker": 3, "Replicas": replicas}]}
    body = {
        "summary": {"numReplicaMovements": 0},
        "goalSummary": [{"goal": "RackAwareGoal", "status": status}],
        "loadAfterOptimization": load,
    }
    spec = RebalanceSpec(mode=Mode.ADD_BROKERS, brokers=(3,))
    _, outcome = run(observe(spec=spec), Proposed(session_id="s1", body=body))
    assert codes(outcome) == (["BrokersStayEmpty"] if says else [])
    assert not says or outcome.warnings[0].message.startswith(says)
    _, full = run(observe(), Proposed(session_id="s1", body=body))
    assert codes(full) == [], "no new broker is asked about"


def test_answer_a_progress():
    _, outcome = run(observe(), Computing(session_id="s1"))
    assert (outcome.state, outcome.session_id, outcome.clears_result) == (State.PENDING_PROPOSAL, "s1", True)
    assert outcome.retry_after_s == POLL_S


def test_answer_a_not_enough_windows():
    _, outcome = run(observe(), NotEnoughWindows())
    assert (outcome.state, outcome.session_id) == (State.PENDING_PROPOSAL, "")
    assert outcome.retry_after_s == POLL_S


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (REFUSED, "OptimizationFailureException"),
        (Proposed(session_id="s1", body={"summary": "none"}), "UnreadableAnswer"),
        (Proposed(session_id="s1", body={}), "UnreadableAnswer"),
    ],
)
def test_answer_a_anything_else(answer: Any, reason: str):
    _, outcome = run(observe(), answer)
    assert (outcome.state, outcome.reason, outcome.retry_after_s) == (State.NOT_READY, reason, None)


# ---- 6.3 A': the answer to a real run


APPROVED = observe(State.PROPOSAL_READY, session_id="s0", annotation="approve")


@pytest.mark.parametrize(
    ("answer", "state", "session"),
    [
        (PROPOSED, State.REBALANCING, "s1"),
        (Computing(session_id="s1"), State.REBALANCING, "s1"),
        (NotEnoughWindows(), State.PENDING_PROPOSAL, ""),
        (REFUSED, State.NOT_READY, ""),
    ],
)
def test_answer_to_a_real_run(answer: Any, state: State, session: str):
    for observed in (APPROVED, replace(APPROVED, annotation="", is_auto_approved=True)):
        calls, outcome = run(observed, IDLE, NoSuchTask(), answer)
        assert calls == REAL
        assert (outcome.state, outcome.session_id, outcome.keeps_begun) == (state, session, False)
        assert outcome.handles_annotation == bool(observed.annotation)


def test_a_real_run_is_begun_before_it_is_requested():
    step = interpret_answer(
        APPROVED,
        KAFKA,
        RebalanceCall(kind=CallKind.FIND_EXECUTION, purpose=_purpose(APPROVED), row=""),
        RebalanceTask(id="old", status=Status.COMPLETED),
    )
    assert isinstance(step, RebalanceCall)
    assert step.kind is CallKind.REAL_RUN
    assert step.begins == BegunStep(step=RebalanceAnnotation.APPROVE, annotation="approve", previous_task_id="old")


def _purpose(observed: ObservedRebalance) -> Any:
    step = decide_call(observed, KAFKA)
    assert isinstance(step, RebalanceCall)
    return step.purpose


def test_a_real_run_waits_for_an_idle_executor():
    calls, outcome = run(APPROVED, BUSY)
    assert calls == [CallKind.EXECUTOR_STATE]
    assert (outcome.state, outcome.handles_annotation) == (State.PROPOSAL_READY, False)
    assert (codes(outcome), outcome.retry_after_s) == (["CruiseControlExecutorState"], POLL_S)


def test_an_approval_waits_for_an_unreachable_cruise_control():
    _, outcome = run(APPROVED, UNREACHABLE)
    assert (outcome.state, outcome.handles_annotation) == (State.PROPOSAL_READY, False)
    assert codes(outcome) == [TransientReason.CONNECTION]


BEGUN = BegunStep(step=RebalanceAnnotation.APPROVE, annotation="approve", previous_task_id="old")


@pytest.mark.parametrize("state", [State.PROPOSAL_READY, State.NOT_READY, State.RECONCILIATION_PAUSED])
def test_an_execution_whose_answer_was_lost_is_adopted(state: State):
    observed = observe(
        state, session_id="s0", begun=BEGUN, annotation="approve", reason=TransientReason.TIMEOUT, message="x"
    )
    calls, outcome = run(observed, RebalanceTask(id="new", status=Status.IN_EXECUTION))
    assert calls == [CallKind.FIND_EXECUTION]
    assert (outcome.state, outcome.session_id) == (State.REBALANCING, "new")
    assert outcome.handles_annotation
    assert not outcome.keeps_begun


@pytest.mark.parametrize("answer", [NoSuchTask(), RebalanceTask(id="old", status=Status.COMPLETED)])
def test_an_execution_that_was_not_accepted_is_requested(answer: Any):
    observed = replace(APPROVED, begun=BEGUN)
    calls, outcome = run(observed, answer, IDLE, PROPOSED)
    assert calls == [CallKind.FIND_EXECUTION, CallKind.EXECUTOR_STATE, CallKind.REAL_RUN]
    assert outcome.state is State.REBALANCING
    renewed = observe(State.NOT_READY, begun=BEGUN, reason=TransientReason.TIMEOUT, message="x")
    calls, outcome = run(renewed, answer, PROPOSED)
    assert calls == [CallKind.FIND_EXECUTION, CallKind.DRY_RUN]


@pytest.mark.parametrize("answer", [UNREACHABLE, REFUSED, ServerBusy()])
def test_what_may_run_is_not_forgotten(answer: Any):
    _, outcome = run(replace(APPROVED, begun=BEGUN), answer)
    assert (outcome.state, outcome.keeps_begun, outcome.retry_after_s) == (State.PROPOSAL_READY, True, POLL_S)


def test_a_real_run_without_an_answer_is_kept_as_begun():
    for answer, is_kept in ((TIMED_OUT, True), (UNREACHABLE, True), (REFUSED, False)):
        _, outcome = run(APPROVED, IDLE, NoSuchTask(), answer)
        assert (outcome.state, outcome.keeps_begun) == (State.NOT_READY, is_kept)


@pytest.mark.parametrize("kafka", [None, KafkaSummary(is_ready=False), KafkaSummary(has_cruise_control=False)])
def test_a_guard_does_not_forget_what_may_run(kafka: KafkaSummary | None):
    _, outcome = run(replace(APPROVED, begun=BEGUN), kafka=kafka)
    assert outcome.keeps_begun


def test_auto_approval_is_checked_before_refresh():
    observed = replace(APPROVED, annotation="refresh", is_auto_approved=True, is_spec_changed=True)
    calls, outcome = run(observed, IDLE, NoSuchTask(), PROPOSED)
    assert (calls, outcome.state) == (REAL, State.REBALANCING)
    assert outcome.handles_annotation
    assert outcome.handles_spec


def test_the_approval_of_another_spec_is_void():
    calls, outcome = run(replace(APPROVED, is_spec_changed=True), PROPOSED)
    assert (calls, outcome.state) == (DRY, State.PROPOSAL_READY)
    assert outcome.handles_annotation, "the next proposal must not be approved by it"


# ---- 6.3 B: user tasks


PENDING = observe(State.PENDING_PROPOSAL, session_id="s0")
RUNNING = observe(State.REBALANCING, session_id="s0")


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (task(Status.ACTIVE), State.PENDING_PROPOSAL),
        (task(Status.IN_EXECUTION), State.PENDING_PROPOSAL),
        (task(Status.IN_EXECUTION, body={"summary": {}, "loadAfterOptimization": {}}), State.PENDING_PROPOSAL),
        (task(Status.IN_EXECUTION, body=BODY), State.PROPOSAL_READY),
        (task(Status.COMPLETED, body=BODY), State.PROPOSAL_READY),
        (task(Status.COMPLETED_WITH_ERROR), State.NOT_READY),
        (task(Status.COMPLETED_WITH_ERROR, failure=NotEnoughWindows()), State.PENDING_PROPOSAL),
        (task(Status.COMPLETED_WITH_ERROR, failure=REFUSED), State.NOT_READY),
        (ServerBusy(), State.PENDING_PROPOSAL),
        (UNREACHABLE, State.PENDING_PROPOSAL),
        (REFUSED, State.NOT_READY),
    ],
)
def test_answer_b_of_a_computation(answer: Any, state: State):
    calls, outcome = run(PENDING, answer)
    assert (calls, outcome.state) == (POLL, state)
    if state is State.NOT_READY:
        assert outcome.session_id == "s0", "a user may look at it"


@pytest.mark.parametrize(
    ("answer", "state", "session"),
    [
        (task(Status.ACTIVE), State.REBALANCING, "s0"),
        (task(Status.COMPLETED, body=BODY), State.READY, ""),
        (task(Status.COMPLETED), State.READY, ""),
        (task(Status.COMPLETED_WITH_ERROR), State.NOT_READY, "s0"),
        (ServerBusy(), State.REBALANCING, "s0"),
        (UNREACHABLE, State.REBALANCING, "s0"),
        (REFUSED, State.NOT_READY, "s0"),
        (RebalanceTask(id="other", status=Status.COMPLETED), State.REBALANCING, "s0"),
    ],
)
def test_answer_b_of_an_execution(answer: Any, state: State, session: str):
    calls, outcome = run(RUNNING, answer)
    assert (calls, outcome.state, outcome.session_id) == (POLL, state, session)


@pytest.mark.parametrize("observed", [PENDING, RUNNING, replace(RUNNING, session_id="")])
def test_answer_b_without_a_task_requests_a_proposal(observed: ObservedRebalance):
    calls, outcome = run(observed, NoSuchTask(), PROPOSED)
    assert calls[-1] is CallKind.DRY_RUN
    assert (outcome.state, outcome.session_id) == (State.PROPOSAL_READY, "s1")


def test_answer_b_without_a_task_and_kafka_waits():
    _, outcome = run(RUNNING, NoSuchTask(), kafka=KafkaSummary(is_ready=False))
    assert (outcome.state, outcome.reason, outcome.session_id) == (State.NOT_READY, KAFKA_NOT_READY, "")


def test_a_proposal_that_cannot_be_read_any_more_is_requested_again():
    calls, _ = run(PENDING, task(Status.COMPLETED), PROPOSED)
    assert calls == [CallKind.USER_TASK, CallKind.DRY_RUN]


@pytest.mark.parametrize("has_result", [True, False])
def test_an_execution_shows_its_progress_and_fills_the_result_once(has_result: bool):
    _, outcome = run(replace(RUNNING, has_result=has_result), task(Status.IN_EXECUTION, body=BODY), BUSY)
    assert (outcome.state, outcome.executor) == (State.REBALANCING, BUSY)
    assert outcome.body == (None if has_result else BODY)
    assert codes(outcome) == []


@pytest.mark.parametrize(
    ("answer", "is_known"),
    [
        (BUSY, True),
        (replace(BUSY, finished_data_mb=None, total_data_mb=None), True),
        (replace(BUSY, finished_data_mb=0.0), True),
        (replace(BUSY, finished_data_mb=0.0, total_data_mb=0.0), True),
        (replace(BUSY, state="STARTING_EXECUTION"), False),
        (UNREACHABLE, False),
    ],
)
def test_progress_that_is_unknown_is_a_warning(answer: Any, is_known: bool):
    _, outcome = run(RUNNING, task(Status.IN_EXECUTION), answer)
    assert outcome.state is State.REBALANCING
    assert codes(outcome) == ([] if is_known else ["CruiseControlExecutorState"])


# ---- stop


STOPPING = replace(RUNNING, annotation="stop")


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ((task(Status.IN_EXECUTION), None), State.STOPPED),
        ((NoSuchTask(), None), State.STOPPED),
        ((REFUSED, None), State.STOPPED),
        ((task(Status.COMPLETED),), State.READY),
        ((task(Status.COMPLETED_WITH_ERROR),), State.STOPPED),
    ],
)
def test_a_stop_ends_the_execution(answers: tuple[Any, ...], state: State):
    _, outcome = run(STOPPING, *answers)
    assert (outcome.state, outcome.session_id, outcome.handles_annotation) == (state, "", True)
    assert find_step_to_begin(STOPPING, outcome) == BegunStep(step=RebalanceAnnotation.STOP, annotation="stop")


@pytest.mark.parametrize(
    "answers",
    [
        (task(Status.ACTIVE), None),
        (task(Status.IN_EXECUTION), UNREACHABLE),
        (task(Status.IN_EXECUTION), REFUSED),
        (UNREACHABLE,),
        (ServerBusy(),),
    ],
)
def test_a_stop_that_did_not_arrive_is_repeated(answers: tuple[Any, ...]):
    for observed in (STOPPING, replace(STOPPING, annotation="refresh")):
        _, outcome = run(observed, *answers)
        assert (outcome.state, outcome.session_id) == (State.REBALANCING, "s0")
        assert not outcome.handles_annotation
        assert outcome.retry_after_s == POLL_S


def test_a_session_that_is_lost_is_stopped_all_the_same():
    calls, outcome = run(replace(STOPPING, session_id=""), None)
    assert (calls, outcome.state) == ([CallKind.STOP], State.STOPPED)


@pytest.mark.parametrize(
    ("answer", "state"), [(Status.IN_EXECUTION, State.REBALANCING), (Status.ACTIVE, State.PENDING_PROPOSAL)]
)
def test_an_execution_that_went_on_during_a_pause_is_found(answer: Status, state: State):
    _, outcome = run(observe(State.RECONCILIATION_PAUSED, session_id="s0"), task(answer))
    assert (outcome.state, outcome.session_id) == (state, "s0")
    calls, _ = run(observe(State.RECONCILIATION_PAUSED, session_id="s0"), task(Status.COMPLETED), PROPOSED)
    assert calls == [CallKind.USER_TASK, CallKind.DRY_RUN]


# ---- 6.1 annotations


@pytest.mark.parametrize("state", State, ids=str)
@pytest.mark.parametrize("word", ["approve", "refresh", "stop", "none", "Approve", "anything"])
def test_an_annotation_that_is_not_accepted_is_left_with_a_warning(state: State, word: str):
    if word in ACCEPTED[state]:
        return
    answers: dict[State, tuple[Any, ...]] = {
        State.NEW: (PROPOSED,),
        State.RECONCILIATION_PAUSED: (PROPOSED,),
        State.PENDING_PROPOSAL: (PROPOSED,),
        State.REBALANCING: (task(Status.ACTIVE),),
    }
    session = "s0" if state is State.REBALANCING else ""
    _, outcome = run(observe(state, annotation=word, session_id=session), *answers.get(state, ()))
    assert not outcome.handles_annotation
    (warning,) = outcome.warnings
    assert warning.code == "InvalidAnnotation"
    for accepted in ACCEPTED[state]:
        assert accepted.value in warning.message


@pytest.mark.parametrize(
    ("step", "state"),
    [
        (RebalanceAnnotation.APPROVE, State.REBALANCING),
        (RebalanceAnnotation.APPROVE, State.NOT_READY),
        (RebalanceAnnotation.STOP, State.STOPPED),
        (RebalanceAnnotation.STOP, State.READY),
    ],
)
def test_an_annotation_whose_removal_was_interrupted_is_removed_without_a_word(step: RebalanceAnnotation, state: State):
    begun = BegunStep(step=step, annotation=step.value)
    observed = observe(state, session_id="s0", annotation=step.value, begun=begun, reason="X", message="y")
    answers = (task(Status.ACTIVE),) if state is State.REBALANCING else ()
    _, outcome = run(observed, *answers)
    assert (outcome.state, outcome.handles_annotation, codes(outcome)) == (state, True, [])
    assert not outcome.keeps_begun


# ---- 6.4 failures that renew themselves


@pytest.mark.parametrize("reason", TransientReason, ids=str)
def test_transient_reasons_renew_themselves(reason: TransientReason):
    observed = observe(State.NOT_READY, reason=reason, message="x")
    waits = reason is TransientReason.EXECUTION_IN_PROGRESS
    calls, outcome = run(observed, *((IDLE,) if waits else ()), PROPOSED)
    assert calls[-1] is CallKind.DRY_RUN
    assert outcome.state is State.PROPOSAL_READY


def test_an_ongoing_execution_is_waited_for():
    refused = RebalanceRefused(
        reason="IllegalStateException",
        message="Cannot start a new execution while there is an ongoing execution. Please use stop",
        is_transient=True,
    )
    _, outcome = run(APPROVED, IDLE, NoSuchTask(), refused)
    assert (outcome.state, outcome.reason) == (State.NOT_READY, TransientReason.EXECUTION_IN_PROGRESS)
    observed = observe(State.NOT_READY, reason=outcome.reason, message=outcome.message)
    for answer in (BUSY, UNREACHABLE):
        calls, waiting = run(observed, answer)
        assert calls == [CallKind.EXECUTOR_STATE]
        assert (waiting.state, waiting.reason, waiting.retry_after_s) == (State.NOT_READY, outcome.reason, POLL_S)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (KAFKA_NOT_READY, "Kafka cluster is not Ready"),
        ("InvalidResourceException", LABEL_MISSING),
        ("InvalidResourceException", NO_CRUISE_CONTROL),
        ("NoSuchResourceException", "Kafka resource 'c' does not exist"),
    ],
)
def test_guards_that_pass_again_renew_a_rebalance(reason: str, message: str):
    calls, _ = run(observe(State.NOT_READY, reason=reason, message=message), PROPOSED)
    assert calls == DRY


@pytest.mark.parametrize("reason", ["OptimizationFailureException", "InvalidResourceException", "", "Anything"])
def test_everything_else_waits_for_a_user(reason: str):
    assert not is_renewing(reason, "x")
    _, outcome = run(observe(State.NOT_READY, reason=reason, message="x"))
    assert (outcome.state, outcome.retry_after_s) == (State.NOT_READY, None)


def test_a_transient_refusal_is_one_by_its_reason():
    refused = RebalanceRefused(reason="SomeNewException", message="try later", is_transient=True)
    assert normalize_refusal(refused) == RebalanceRefused(
        reason=TransientReason.CONNECTION, message="SomeNewException: try later", is_transient=True
    )
    assert normalize_refusal(REFUSED) == REFUSED


# ---- 4.5: a rebalance that is being deleted


def test_deletion_without_an_execution_goes_on():
    for state in (State.NEW, State.PENDING_PROPOSAL, State.PROPOSAL_READY, State.STOPPED, State.READY):
        calls, outcome = run(observe(state, session_id="s0", is_deleting=True))
        assert (calls, outcome.is_released, outcome.row) == ([], True, Row.DELETED)


def test_deletion_is_left_to_the_kafka_whose_status_counts_on_the_rebalance():
    observed = observe(State.NOT_READY, is_deleting=True)
    for running, is_released in ((observed.name, False), ("c-auto-rebalancing-remove-brokers", True), ("", True)):
        calls, outcome = run(observed, kafka=KafkaSummary(running=running))
        assert (calls, outcome.is_released) == ([], is_released)
        assert (outcome.state, outcome.retry_after_s) == (State.NOT_READY, None if is_released else POLL_S)


@pytest.mark.parametrize("status", [Status.ACTIVE, Status.IN_EXECUTION])
def test_deletion_stops_the_execution_and_waits(status: Status):
    observed = replace(RUNNING, is_deleting=True)
    calls, outcome = run(observed, task(status), None)
    assert calls == [CallKind.USER_TASK, CallKind.STOP]
    assert (outcome.is_released, outcome.state, outcome.retry_after_s) == (False, State.REBALANCING, POLL_S)


@pytest.mark.parametrize(
    ("executor", "is_released"),
    [
        (IDLE, True),
        (replace(BUSY, triggered_task_id="another"), True),
        (replace(BUSY, state="STOPPING_EXECUTION"), False),
        (replace(BUSY, triggered_task_id=""), False),
    ],
)
def test_deletion_waits_until_the_executor_is_idle(executor: ExecutorSubstate, is_released: bool):
    observed = replace(RUNNING, is_deleting=True)
    for answer in (task(Status.COMPLETED_WITH_ERROR), NoSuchTask()):
        _, outcome = run(observed, answer, executor, *(() if is_released else (None,)))
        assert outcome.is_released == is_released


@pytest.mark.parametrize("answer", [UNREACHABLE, REFUSED, ServerBusy()])
def test_deletion_waits_for_an_answer(answer: Any):
    _, outcome = run(replace(RUNNING, is_deleting=True), answer)
    assert not outcome.is_released
    assert outcome.retry_after_s == POLL_S


@pytest.mark.parametrize("kafka", [None, KafkaSummary(has_cruise_control=False)])
def test_deletion_without_a_cruise_control_goes_on(kafka: KafkaSummary | None):
    _, outcome = run(replace(RUNNING, is_deleting=True), kafka=kafka)
    assert outcome.is_released


def test_deletion_stops_an_execution_whose_answer_was_lost():
    observed = replace(APPROVED, is_deleting=True, begun=BEGUN)
    calls, outcome = run(observed, RebalanceTask(id="new", status=Status.IN_EXECUTION), None)
    assert (calls, outcome.is_released) == ([CallKind.FIND_EXECUTION, CallKind.STOP], False)
    _, outcome = run(observed, NoSuchTask())
    assert outcome.is_released

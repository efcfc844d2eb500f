"""Every recorded answer of a Cruise Control, and every broken one, becomes a value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kafka.cruise_control.client import answers
from plimsoll.kafka.model.rebalances import (
    Computing,
    ExecutorSubstate,
    NoSuchTask,
    NotEnoughWindows,
    Proposed,
    RebalanceRefused,
    RebalanceTask,
    RebalanceTaskStatus,
    ServerBusy,
    TransientReason,
)
from plimsoll.web.client import FailureKind, RequestFailed, Response
from tests.kafka.cruise_control.client.recorded import NAMES, build_response, read_recorded

READERS = (
    answers.read_rebalance_answer,
    lambda answer: answers.read_task_answer(answer, "684744fc-de53-4a8f-aaa1-d407f51eb171"),
    answers.read_stop_answer,
    answers.read_state_answer,
    answers.read_load_answer,
)
VALUES = (
    Proposed
    | Computing
    | NotEnoughWindows
    | RebalanceRefused
    | RebalanceTask
    | NoSuchTask
    | ServerBusy
    | ExecutorSubstate
    | frozenset
    | None
)
TASK = "10b0f01f-ab68-45e2-af35-064891245e7b"


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_answer_becomes_a_value_of_every_question(name: str):
    for read in READERS:
        assert isinstance(read(build_response(name)), VALUES)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if read_recorded(name)["request"]["path"].endswith(("_broker", "/rebalance"))]
)
def test_a_recorded_rebalance_is_a_proposal_progress_too_few_windows_or_a_refusal(name: str):
    recorded = read_recorded(name)
    found = answers.read_rebalance_answer(build_response(name))
    status, text = recorded["response"]["status"], json.dumps(recorded["response"])
    if status == 200 and "json" in recorded["response"]:
        assert isinstance(found, Proposed)
        assert found.session_id == recorded["response"]["headers"]["User-Task-ID"]
        assert found.body["summary"] == recorded["response"]["json"]["summary"]
        assert "proposals" not in found.body
    elif status == 202:
        assert found == Computing(session_id=recorded["response"]["headers"]["User-Task-ID"])
    elif "NotEnoughValidWindowsException" in text:
        assert found == NotEnoughWindows()
    else:
        assert isinstance(found, RebalanceRefused)


@pytest.mark.parametrize(
    ("name", "reason", "is_transient", "words"),
    [
        ("error-second-execution", "IllegalStateException", True, "Cannot start a new execution"),
        ("error-servlet-capacity", answers.REST_ERROR, True, "servlet capacity"),
        ("error-servlet-capacity-text", answers.REST_ERROR, True, "servlet capacity"),
        ("error-add-broker-does-not-exist", "IllegalArgumentException", False, "Broker [9] does not exist."),
        ("error-remove-broker-does-not-exist", "IllegalArgumentException", False, "Broker 9 does not exist."),
        ("error-missing-hard-goals", "IllegalArgumentException", False, "Missing hard goals"),
        ("error-unknown-goal", "IllegalArgumentException", False, "Goals [NoSuchGoal] are not supported"),
        ("error-remove-broker-not-enough-racks", "OptimizationFailureException", False, "[RackAwareGoal]"),
        ("cccli-remove-brokers-dryrun", "OptimizationFailureException", False, "[RackAwareGoal]"),
        ("error-bad-regex", answers.REST_ERROR, False, "Unclosed group"),
        ("auth-none", TransientReason.ACCESS_MISSING, True, "401: a page in HTML: Error 401 Unauthorized"),
        ("auth-user-post-rebalance", answers.REST_ERROR, False, "403: a page in HTML: Error 403 !role"),
        ("error-method-put", answers.REST_ERROR, False, "405: no text"),
        ("error-unknown-endpoint", answers.REST_ERROR, False, "Unrecognized endpoint"),
        ("task-header-unknown", answers.REST_ERROR, False, "Unexpected header"),
    ],
)
def test_a_refusal_names_the_class_of_the_error_and_says_whether_it_passes(
    name: str, reason: str, words: str, *, is_transient: bool
):
    found = answers.read_rebalance_answer(build_response(name))
    assert isinstance(found, RebalanceRefused)
    assert (found.reason, found.is_transient) == (reason, is_transient)
    assert words in found.message


def test_a_capacity_that_is_not_loaded_passes():
    text = "Error processing POST request '/add_broker' due to: 'java.lang.NullPointerException: capacity of 3'."
    found = answers.read_rebalance_answer(_build_error(500, text))
    assert found == RebalanceRefused(
        reason="NullPointerException", message=f"Cruise Control answers 500: {text}", is_transient=True
    )


@pytest.mark.parametrize("status", [502, 503, 504, 429])
def test_a_proxy_without_a_server_passes(status: int):
    found = answers.read_rebalance_answer(Response(status=status, body=b"<html>"))
    assert isinstance(found, RebalanceRefused)
    assert found.is_transient


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (FailureKind.UNCONNECTED, "CruiseControlRetriableConnectionException"),
        (FailureKind.TIMED_OUT, "TimeoutException"),
        (FailureKind.UNTRUSTED, "SSLException"),
        (FailureKind.LOST, "CruiseControlRestException"),
    ],
)
def test_no_answer_is_a_refusal_that_passes(kind: FailureKind, reason: str):
    for read in READERS:
        found = read(RequestFailed(problem="p", kind=kind))
        assert found == RebalanceRefused(reason=reason, message="p", is_transient=True)


def test_an_answer_about_other_brokers_is_of_another_cluster():
    response = build_response("add-broker-dryrun-verbose")
    assert isinstance(answers.read_rebalance_answer(response, brokers=(3,)), Proposed)
    found = answers.read_rebalance_answer(response, brokers=(3, 12))
    assert isinstance(found, RebalanceRefused)
    assert "another cluster: it does not know broker 12" in found.message


def test_an_answer_without_a_task_is_refused():
    response = build_response("add-broker-dryrun-verbose")
    for headers in ({}, {"user-task-id": "x y"}):
        found = answers.read_rebalance_answer(Response(status=200, body=response.body, headers=headers))
        assert isinstance(found, RebalanceRefused)
        assert "User-Task-ID" in found.message


@given(st.data())
def test_half_an_answer_passes_and_is_never_a_proposal(data: st.DataObject):
    response = build_response("add-broker-dryrun-verbose")
    length = data.draw(st.integers(0, len(response.body) - 1))
    half = Response(status=200, body=response.body[:length], headers=response.headers)
    for read in READERS:
        found = read(half)
        assert isinstance(found, RebalanceRefused)
        assert found.is_transient
        assert len(found.message) <= 1000


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_wrong_types_are_refused(content: object):
    bodies = [content]
    keys = ("summary", "loadAfterOptimization", "userTasks", "ExecutorState", "brokers", "message", "progress")
    bodies += [{key: content} for key in keys]
    bodies += [{"summary": {}, "loadAfterOptimization": {"brokers": content}}, {"userTasks": [content]}]
    bodies += [{"userTasks": [{"UserTaskId": TASK, "Status": "Completed", "originalResponse": content}]}]
    for body in bodies:
        for status in (200, 202, 500):
            raw = json.dumps(body).encode()
            response = Response(status=status, body=raw, headers={"user-task-id": TASK})
            for read in READERS:
                assert isinstance(read(response), VALUES)
            assert isinstance(answers.read_task_answer(response, TASK), VALUES)


def test_deep_json_is_refused():
    deep = Response(status=200, body=b'{"summary":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    for read in READERS:
        assert isinstance(read(deep), RebalanceRefused)


# ---- user tasks


@pytest.mark.parametrize(
    ("name", "task", "status", "has_body"),
    [
        ("async-user-task", TASK, RebalanceTaskStatus.ACTIVE, False),
        ("user-tasks-one", "684744fc-de53-4a8f-aaa1-d407f51eb171", RebalanceTaskStatus.COMPLETED, False),
        ("user-tasks-one-fetch", "684744fc-de53-4a8f-aaa1-d407f51eb171", RebalanceTaskStatus.COMPLETED, True),
        ("user-tasks-in-execution", "697c2dd4-c0b0-4858-8405-cdea3a236636", RebalanceTaskStatus.IN_EXECUTION, True),
        (
            "user-tasks-after-stop",
            "697c2dd4-c0b0-4858-8405-cdea3a236636",
            RebalanceTaskStatus.COMPLETED_WITH_ERROR,
            True,
        ),
        ("add-broker-user-task-completed", "e4bd08de-d851-49d1-83ba-6e1be9cc11b3", RebalanceTaskStatus.COMPLETED, True),
    ],
)
def test_a_user_task_has_its_status_and_its_answer(
    name: str, task: str, status: RebalanceTaskStatus, *, has_body: bool
):
    found = answers.read_task_answer(build_response(name), task)
    assert isinstance(found, RebalanceTask)
    assert (found.id, found.status) == (task, status)
    assert (found.body is not None) == has_body
    if found.body is not None:
        assert "numReplicaMovements" in found.body["summary"]
        assert found.body["loadAfterOptimization"]["brokers"]


def test_an_empty_list_means_that_the_task_is_gone():
    assert answers.read_task_answer(build_response("user-tasks-unknown-id"), TASK) == NoSuchTask()


def test_a_list_of_other_tasks_is_not_believed():
    found = answers.read_task_answer(build_response("user-tasks-one"), TASK)
    assert isinstance(found, RebalanceRefused)
    assert found.is_transient


def test_servlet_capacity_means_that_the_server_is_busy():
    for name in ("error-servlet-capacity", "error-servlet-capacity-text"):
        assert answers.read_task_answer(build_response(name), TASK) == ServerBusy()


# ---- stop, state and load


def test_a_stop_is_accepted_whether_or_not_something_runs():
    assert answers.read_stop_answer(build_response("stop-while-executing")) is None
    assert answers.read_stop_answer(build_response("stop-when-idle")) is None
    assert isinstance(answers.read_stop_answer(Response(status=200, body=b"<html>login</html>")), RebalanceRefused)


@pytest.mark.parametrize(
    ("name", "total", "finished"),
    [
        ("state-executor", None, None),
        ("state-executor-inter-broker", 8.0, 0.0),
        ("state-executor-inter-broker-midway", 18.0, 3.0),
        ("state-executor-leader-movement-task-in-progress", None, None),
    ],
)
def test_the_executor_state_has_the_numbers_that_cruise_control_sends(
    name: str, total: float | None, finished: float | None
):
    found = answers.read_state_answer(build_response(name))
    assert isinstance(found, ExecutorSubstate)
    recorded = read_recorded(name)["response"]["json"]["ExecutorState"]
    assert found.state == recorded["state"]
    assert found.is_idle == (name == "state-executor")
    assert found.finished_data_mb == finished
    assert found.total_data_mb == (total if total is None else float(recorded["totalDataToMove"]))
    assert found.triggered_task_reason == recorded.get("triggeredTaskReason", "")
    assert found.body == recorded


@pytest.mark.parametrize("amount", ["8", -1, True, None, [8], 1e300])
def test_an_amount_that_is_no_amount_is_left_out(amount: object):
    body = {"ExecutorState": {"state": "STARTING_EXECUTION", "totalDataToMove": amount}}
    found = answers.read_state_answer(Response(status=200, body=json.dumps(body).encode()))
    assert isinstance(found, ExecutorSubstate)
    assert found.total_data_mb is None


def test_brokers_with_a_capacity_are_known():
    assert answers.read_load_answer(build_response("load")) == frozenset({0, 1, 2})
    assert answers.read_load_answer(build_response("load-with-new-broker")) == frozenset({0, 1, 2, 3})
    assert isinstance(answers.read_load_answer(build_response("early-load")), RebalanceRefused)


def _build_error(status: int, message: str) -> Response:
    return Response(status=status, body=json.dumps({"errorMessage": message, "version": 1}).encode())

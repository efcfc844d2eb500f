"""Requests to a Cruise Control: parameters in Strimzi's order, time limits, and the second question after an error."""

from __future__ import annotations

import json
from base64 import b64decode

import pytest

from plimsoll.kafka.cruise_control.client.client import CruiseControlClient, build_query
from plimsoll.kafka.model.rebalances import (
    Computing,
    NoSuchTask,
    NotEnoughWindows,
    Proposed,
    RebalanceRefused,
    RebalanceSpec,
    RebalanceTask,
    RebalanceTaskStatus,
    ServerBusy,
    VolumesOfBroker,
)
from plimsoll.kafka.model.requests import Mode
from plimsoll.testing import run_virtual
from plimsoll.web.client import FailureKind, RequestFailed, Response
from tests.kafka.cruise_control.client.recorded import ScriptedClient, build_response

BASE = "https://c-cruise-control.ns.svc:9090/kafkacruisecontrol"
FAILED = "a8930cd3-b76f-45f8-a440-3de74236f67e"
EVERYTHING = RebalanceSpec(
    mode=Mode.ADD_BROKERS,
    brokers=(3, 4),
    goals=("RackAwareGoal", "ReplicaCapacityGoal"),
    skip_hard_goal_check=True,
    excluded_topics="a.*|b&c",
    concurrent_partition_movements_per_broker=7,
    concurrent_intra_broker_partition_movements=2,
    concurrent_leader_movements=9,
    replication_throttle=1_000_000,
    replica_movement_strategies=("BaseReplicaMovementStrategy", "PostponeUrpReplicaMovementStrategy"),
)


@pytest.mark.parametrize(
    ("spec", "is_dry_run", "url"),
    [
        (
            RebalanceSpec(),
            True,
            "rebalance?json=true&dryrun=true&verbose=true&skip_hard_goal_check=false&rebalance_disk=false",
        ),
        (
            RebalanceSpec(rebalance_disk=True, concurrent_intra_broker_partition_movements=3),
            False,
            (
                "rebalance?json=true&dryrun=false&verbose=true&skip_hard_goal_check=false&rebalance_disk=true"
                "&concurrent_intra_broker_partition_movements=3"
            ),
        ),
        (
            RebalanceSpec(mode=Mode.REMOVE_BROKERS, brokers=(12,)),
            True,
            "remove_broker?json=true&dryrun=true&verbose=true&skip_hard_goal_check=false&brokerid=12",
        ),
        (
            EVERYTHING,
            True,
            (
                "add_broker?json=true&dryrun=true&verbose=true&skip_hard_goal_check=true&excluded_topics=a.%2A%7Cb%26c"
                "&replica_movement_strategies=BaseReplicaMovementStrategy,PostponeUrpReplicaMovementStrategy"
                "&concurrent_partition_movements_per_broker=7&concurrent_leader_movements=9"
                "&replication_throttle=1000000&goals=RackAwareGoal,ReplicaCapacityGoal&brokerid=3,4"
            ),
        ),
        (
            RebalanceSpec(
                mode=Mode.REMOVE_DISKS,
                move_replicas_off_volumes=(
                    VolumesOfBroker(broker=0, volumes=(1, 2)),
                    VolumesOfBroker(broker=5, volumes=(1,)),
                ),
            ),
            True,
            (
                "remove_disks?json=true&dryrun=true&verbose=true&brokerid_and_logdirs="
                "0-%2Fvar%2Flib%2Fkafka%2Fdata-1%2Fkafka-log0,0-%2Fvar%2Flib%2Fkafka%2Fdata-2%2Fkafka-log0,"
                "5-%2Fvar%2Flib%2Fkafka%2Fdata-1%2Fkafka-log5"
            ),
        ),
    ],
    ids=["full", "disks of brokers", "remove", "everything", "remove disks"],
)
def test_a_request_has_its_parameters_in_order(spec: RebalanceSpec, url: str, *, is_dry_run: bool):
    web = ScriptedClient(build_response("async-202-first"))
    answer = run_virtual(CruiseControlClient(BASE, web=web).request_rebalance(spec, is_dry_run=is_dry_run))
    assert isinstance(answer, Computing)
    (request,) = web.requests
    assert (request.method, request.url, request.body) == ("POST", f"{BASE}/{url}", b"")
    assert (request.connect_timeout_s, request.timeout_s) == (5.0, 30.0)
    assert request.is_safe == is_dry_run


def test_zero_values_are_left_out():
    names = [name for name, _ in build_query(RebalanceSpec(mode=Mode.ADD_BROKERS, brokers=(3,)), is_dry_run=True)]
    assert names == ["json", "dryrun", "verbose", "skip_hard_goal_check", "brokerid"]


def test_a_user_logs_in_with_every_request():
    web = ScriptedClient(build_response("state-executor"), build_response("stop-when-idle"))
    client = CruiseControlClient(BASE, web=web, user="rebalance-operator", password="pa:ss wörd")

    async def ask() -> None:
        await client.read_executor_state()
        await client.stop_execution()

    run_virtual(ask())
    assert [request.url for request in web.requests] == [
        f"{BASE}/state?json=true&substates=executor",
        f"{BASE}/stop_proposal_execution?json=true",
    ]
    for request in web.requests:
        scheme, _, encoded = request.headers["Authorization"].partition(" ")
        assert scheme == "Basic"
        assert b64decode(encoded).decode() == "rebalance-operator:pa:ss wörd"


def test_a_task_whose_answer_cannot_be_shown_is_asked_for_its_status():
    listed = build_response("user-tasks-one").body.replace(b"684744fc-de53-4a8f-aaa1-d407f51eb171", FAILED.encode())
    listed = listed.replace(b'"Completed"', b'"CompletedWithError"')
    web = ScriptedClient(build_response("error-user-tasks-fetch-failed-task"), Response(status=200, body=listed))
    found = run_virtual(CruiseControlClient(BASE, web=web).read_user_task(FAILED))
    assert found == RebalanceTask(id=FAILED, status=RebalanceTaskStatus.COMPLETED_WITH_ERROR)
    assert [request.url.partition("?")[2] for request in web.requests] == [
        f"json=true&user_task_ids={FAILED}&fetch_completed_task=true",
        f"json=true&user_task_ids={FAILED}",
    ]


def test_a_busy_server_is_not_asked_twice():
    web = ScriptedClient(build_response("error-servlet-capacity"))
    assert run_virtual(CruiseControlClient(BASE, web=web).read_user_task(FAILED)) == ServerBusy()


def test_a_second_error_is_the_answer():
    error = build_response("error-user-tasks-fetch-failed-task")
    found = run_virtual(CruiseControlClient(BASE, web=ScriptedClient(error, error)).read_user_task(FAILED))
    assert isinstance(found, RebalanceRefused)


@pytest.mark.parametrize("session", ["", "nope", "../state", "a8930cd3b76f45f8a4403de74236f67e", "x&y=1"])
def test_a_session_that_is_no_task_id_is_not_sent(session: str):
    web = ScriptedClient()
    assert run_virtual(CruiseControlClient(BASE, web=web).read_user_task(session)) == NoSuchTask()
    assert not web.requests


def test_a_request_is_sent_once_whatever_comes_back():
    for failed in (
        RequestFailed(problem="gone", kind=FailureKind.LOST),
        RequestFailed(problem="late", kind=FailureKind.TIMED_OUT),
        build_response("error-servlet-capacity"),
        build_response("error-second-execution"),
    ):
        web = ScriptedClient(failed)
        answer = run_virtual(CruiseControlClient(BASE, web=web).request_rebalance(EVERYTHING, is_dry_run=False))
        assert isinstance(answer, RebalanceRefused)
        assert answer.is_transient


def test_an_answer_of_another_cluster_is_not_a_proposal():
    spec = RebalanceSpec(mode=Mode.REMOVE_BROKERS, brokers=(12,))
    for expected, asked in ((Proposed, RebalanceSpec()), (RebalanceRefused, spec)):
        web = ScriptedClient(build_response("remove-broker-dryrun-verbose"))
        answer = run_virtual(CruiseControlClient(BASE, web=web).request_rebalance(asked, is_dry_run=True))
        assert isinstance(answer, expected)


def build_tasks(*requests: tuple[str, str, str]) -> Response:
    """An answer with tasks: id, start, and request."""
    tasks = [
        {"UserTaskId": task_id, "StartMs": start, "RequestURL": request, "Status": "InExecution"}
        for task_id, start, request in requests
    ]
    return Response(status=200, body=json.dumps({"userTasks": tasks, "version": 1}).encode())


REAL = "POST /kafkacruisecontrol/add_broker?brokerid=3%2C4&json=true&dryrun=false&verbose=true"
REAL += "&skip_hard_goal_check=false"


def test_the_newest_execution_with_the_same_request_is_found():
    web = ScriptedClient(
        build_tasks(
            ("a", "1000", REAL),
            ("b", "3000", REAL),
            ("c", "2000", REAL),
            ("d", "9000", REAL.replace("dryrun=false", "dryrun=true")),
            ("e", "9000", REAL.replace("3%2C4", "3%2C4%2C5")),
            ("f", "9000", REAL.replace("add_broker", "remove_broker")),
            ("g", "9000", f"{REAL}&goals=RackAwareGoal"),
            ("h", "not a time", REAL),
        )
    )
    spec = RebalanceSpec(mode=Mode.ADD_BROKERS, brokers=(3, 4))
    found = run_virtual(lambda _: CruiseControlClient(BASE, web=web).find_execution(spec))
    assert found == RebalanceTask(id="b", status=RebalanceTaskStatus.IN_EXECUTION)
    assert [request.url for request in web.requests] == [f"{BASE}/user_tasks?json=true"]


def test_without_an_execution_of_that_request_there_is_none():
    web = ScriptedClient(build_tasks(("a", "1", REAL)), build_response("user-tasks"))
    client = CruiseControlClient(BASE, web=web)
    for _ in range(2):
        assert run_virtual(lambda _: client.find_execution(RebalanceSpec())) == NoSuchTask()


def test_an_execution_that_an_engine_resumed_is_found():
    web = ScriptedClient(build_tasks(("a", "9", REAL.replace("dryrun=false", "dryrun=true")), ("b", "5", "")))
    found = run_virtual(lambda _: CruiseControlClient(BASE, web=web).find_execution(RebalanceSpec()))
    assert found == RebalanceTask(id="b", status=RebalanceTaskStatus.IN_EXECUTION)


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("x due to: 'a.b.NotEnoughValidWindowsException: There are only 0 valid windows'.", NotEnoughWindows()),
        (
            "x due to: 'a.b.OptimizationFailureException: [RackAwareGoal] no'.",
            RebalanceRefused(
                reason="OptimizationFailureException",
                message="x due to: 'a.b.OptimizationFailureException: [RackAwareGoal] no'.",
            ),
        ),
        ("", None),
        (7, None),
    ],
)
def test_a_failed_task_says_why_if_the_server_does(text: object, failure: object):
    task = {
        "UserTaskId": FAILED,
        "Status": "CompletedWithError",
        "originalResponse": json.dumps({"errorMessage": text, "version": 1}),
    }
    body = json.dumps({"userTasks": [task], "version": 1}).encode()
    web = ScriptedClient(Response(status=200, body=body))
    found = run_virtual(lambda _: CruiseControlClient(BASE, web=web).read_user_task(FAILED))
    assert found == RebalanceTask(id=FAILED, status=RebalanceTaskStatus.COMPLETED_WITH_ERROR, failure=failure)  # type: ignore[arg-type]


def test_tasks_without_an_id_are_not_found():
    body = json.dumps({"userTasks": [{"RequestURL": ""}, {"RequestURL": REAL, "StartMs": "9"}]}).encode()
    web = ScriptedClient(Response(status=200, body=body))
    spec = RebalanceSpec(mode=Mode.ADD_BROKERS, brokers=(3, 4))
    assert run_virtual(lambda _: CruiseControlClient(BASE, web=web).find_execution(spec)) == NoSuchTask()

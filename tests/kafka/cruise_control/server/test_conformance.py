"""Every recorded exchange with a real Cruise Control, against our server over a cluster of the same shape.

Compared are status, header names, JSON keys and types, and the wording of errors. What differs on purpose is in
`DIFFERENCES`, with its reason; docs/kafka-cruise-control.md has the same table for users.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plimsoll.kafka.cruise_control.server.authentication import User
from plimsoll.kafka.cruise_control.server.endpoints import Role
from plimsoll.kafka.model.executions import (
    ExecutionProgress,
    ExecutionTask,
    ExecutorState,
    MovementCounts,
    TaskState,
    TaskType,
)
from plimsoll.kafka.model.proposals import Proposal
from plimsoll.testing import run_virtual
from tests.kafka.cruise_control.server.server_bench import Bench, Reply, describe_cluster, start_server

ANSWERS = Path(__file__).parents[3] / "fixtures" / "cruise_control"
DIFFERENCES = {
    "auth-none": "401 is JSON, not a page in HTML",
    "auth-wrong": "401 is JSON, not a page in HTML",
    "auth-user-post-rebalance": "403 is JSON, not a page in HTML",
    "auth-viewer-state": "403 is JSON, not a page in HTML",
    "auth-user-load": "was answered while the model was being built",
    "auth-viewer-kafka-cluster-state": "was answered before the brokers were known",
    "dryrun-not-a-boolean-executes": "a value that is not a boolean is refused",
    "early-load": "there are no sampling windows to wait for",
    "early-proposals-not-enough-windows": "there are no sampling windows to wait for",
    "early-rebalance-not-enough-windows": "there are no sampling windows to wait for",
    "error-load-right-after-execution": "there are no sampling windows to wait for",
    "error-remove-right-after-execution": "there are no sampling windows to wait for",
    "error-servlet-capacity": "only running tasks count",
    "error-servlet-capacity-text": "only running tasks count",
    "error-user-tasks-fetch-failed-task": "failed tasks can be fetched",
    "error-bad-regex": "patterns are RE2, whose messages differ",
    "get-response-schema": "no schema header is sent",
}
INTENDED_WORDING = {
    "error-add-broker-bad-brokerid": "the parameter is named",
    "error-unknown-endpoint": "only served endpoints are listed",
    "error-wrong-method-get-rebalance": "only served endpoints are listed",
    "error-wrong-method-post-state": "only served endpoints are listed",
    "error-unknown-goal": "the list of goals is ours",
    "error-missing-hard-goals": "goals are listed by priority",
    "error-remove-broker-not-enough-racks": "the advice is given once",
}
OWN_KEYS = {"dataToMoveBytes", "numReplicasToMove", "leastReplicaMovements", "leastBytesToMove", "held", "reason"}
"""Keys that only our answers have."""
OWN_LINES = ("Least possible: ", "Held: ")
"""Lines that only our texts have."""
HEADERS = {"User-Task-ID", "Content-Type", "Cruise-Control-Version", "Set-Cookie"}
USERS = (
    User(name="viewer", password="v", role=Role.VIEWER),
    User(name="admin", password="a", role=Role.ADMIN),
)


def read_answer(name: str) -> dict[str, Any]:
    return json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))


NAMES = sorted(path.stem for path in ANSWERS.glob("*.json"))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in DIFFERENCES])
def test_answer_has_the_shape_of_cruise_control(name: str):
    recorded = read_answer(name)
    reply = run_virtual(lambda clock: _replay(clock, name, recorded["request"]))
    response = recorded["response"]
    assert reply.status == response["status"], reply.body[:500]
    sent = {header.lower() for header in reply.headers}
    assert {header.lower() for header in HEADERS & set(response["headers"])} <= sent
    if reply.status == 405:
        return
    assert reply.headers["content-type"] == response["headers"]["Content-Type"].lower()
    if "json" in response:
        compare_shape(reply.json, response["json"], name)
    else:
        ours = [line for line in list_line_shapes(reply.body.decode()) if not line.startswith(OWN_LINES)]
        assert ours == list_line_shapes(response["text"])


def list_line_shapes(text: str) -> list[str]:
    """The lines of a text without their numbers, names and widths. Rows of the same shape count once."""
    shapes: list[str] = []
    for line in text.strip().splitlines():
        shape = re.sub(r"\[ *[0-9]+ ms\]", "[# ms]", line)
        shape = re.sub(r"\[[^]#]*\]", "[]", shape)
        shape = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "#", shape)
        shape = re.sub(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z", "#", shape)
        shape = re.sub(r"[0-9]+(\.[0-9]+)*", "#", shape)
        shape = re.sub(r"(GET|POST) /kafkacruisecontrol/\S*", "URL", shape)
        shape = re.sub(r"\b(Active|InExecution|Completed)\b", "STATUS", shape)
        shape = re.sub(r"^ +\S+-#", "PARTITION-#", shape)
        shape = re.sub(r"triggeredTaskReason: .*", "triggeredTaskReason:", shape)
        shape = re.sub(r"\((NO-ACTION|FIXED|VIOLATED)\):.*", "(STATUS):", shape)
        shape = re.sub(r"\b(true|false)\b", "BOOLEAN", " ".join(shape.split()))
        shape = shape.removesuffix("}")  # Cruise Control forgets it in some lines.
        if not shapes or shapes[-1] != shape:
            shapes.append(shape)
    return shapes


def test_every_intended_difference_is_of_a_recorded_exchange():
    assert set(DIFFERENCES) <= set(NAMES)
    assert set(INTENDED_WORDING) <= set(NAMES)


async def _replay(clock: Any, name: str, request: dict[str, Any]) -> Reply:
    headers = dict(request["headers"])
    users = USERS if "Authorization" in headers else ()
    if users:
        headers["Authorization"] = "Basic dmlld2VyOnY=" if "viewer" in name else "Basic YWRtaW46YQ=="
    is_slow = name.startswith("async-202")
    async with start_server(clock, cluster=_choose_cluster(name), users=users, max_block_time_s=1.0) as bench:
        bench.describe_delay_s = 5.0 if is_slow else 0.0
        if name.startswith("state-executor"):
            bench.executor.current = _choose_progress(name)
        query = request["query"]
        if name == "cccli-user-tasks":
            await bench.client.call("GET", "state", "json=true")
        if name == "error-second-execution":
            bench.executor.current = ExecutionProgress(state=ExecutorState.INTER_BROKER_REPLICA_MOVEMENT)
        if "User-Task-ID" in headers and name != "task-header-unknown":
            headers["User-Task-ID"] = await _start_task(bench, name, request)
        if "user_task_ids=" in query and name not in {"user-tasks-bad-id", "user-tasks-unknown-id"}:
            task = await _start_task(bench, name, request)
            query = re.sub(r"user_task_ids=[0-9a-f-]+", f"user_task_ids={task}", query)
        path = request["path"].removeprefix("/kafkacruisecontrol/")
        return await bench.client.call(request["method"], path, query, headers=headers)


async def _start_task(bench: Bench, name: str, request: dict[str, Any]) -> str:
    """The task that a recorded request asks for again, in the state that the recording is about."""
    headers = {key: value for key, value in request["headers"].items() if key != "User-Task-ID"}
    if "Authorization" in headers:
        headers["Authorization"] = "Basic YWRtaW46YQ=="
    if request["path"].endswith("user_tasks"):
        executes = "stop" in name or "execution" in name or name.startswith(("add", "remove"))
        dry_run = "false" if executes else "true"
        first = await bench.client.call(
            "POST", "add_broker", f"json=true&verbose=true&brokerid=3&dryrun={dry_run}", headers=headers
        )
        if name == "async-user-task":
            bench.describe_delay_s = 100.0
            first = await bench.client.call("POST", "rebalance", "json=true&dryrun=true", headers=headers)
        if "stop" in name:
            await bench.client.call("POST", "stop_proposal_execution", "json=true", headers=headers)
        elif executes and "execution" not in name:
            bench.executor.finish()
        await bench.clock.sleep(1.0)
        return first.headers["user-task-id"]
    query = request["query"]
    if name == "task-header-other-parameters":
        query = query.replace("verbose=false", "verbose=true")
    path = request["path"].removeprefix("/kafkacruisecontrol/")
    first = await bench.client.call(request["method"], path, query, headers=headers)
    if name == "async-200-final":
        await bench.clock.sleep(30.0)
    return first.headers["user-task-id"]


def _choose_cluster(name: str) -> Any:
    if name in {"error-add-broker-does-not-exist", "error-remove-broker-not-enough-racks", "add-broker-too-early-1"}:
        return describe_cluster(brokers=3)
    if name == "cccli-remove-brokers-dryrun":
        return describe_cluster(brokers=3)
    hosting = 4 if "remove-broker" in name and "user-task" not in name else 3
    brokers = 3 if name in {"load", "kafka-cluster-state", "add-broker-existing-not-new"} else 4
    return describe_cluster(brokers=brokers, hosting=hosting)


def _choose_progress(name: str) -> ExecutionProgress:
    task = ExecutionTask(
        id=1,
        type=TaskType.INTER_BROKER_REPLICA_ACTION,
        state=TaskState.PENDING,
        proposal=Proposal(topic="t0", partition=0, old_leader=0, old_replicas=(0, 1), new_replicas=(3, 1)),
    )
    busy = ExecutionProgress(
        state=ExecutorState.INTER_BROKER_REPLICA_MOVEMENT,
        execution_id="697c2dd4-c0b0-4858-8405-cdea3a236636",
        inter_broker=MovementCounts(total=54, pending=54),
        total_bytes=8 << 20,
        tasks=(task,),
    )
    if "stopping" in name:
        return msgspec.structs.replace(busy, state=ExecutorState.STOPPING_EXECUTION)
    if "leader" in name:
        return msgspec.structs.replace(busy, state=ExecutorState.LEADER_MOVEMENT)
    return busy if "inter-broker" in name else ExecutionProgress()


def compare_shape(ours: Any, recorded: Any, name: str, path: str = "") -> None:
    """Ours has every key that was recorded, with the same type; further keys are known ones."""
    if isinstance(recorded, dict):
        assert isinstance(ours, dict), path
        if _is_map(path):
            for value in ours.values():
                compare_shape(value, next(iter(recorded.values()), value), name, f"{path}.*")
            return
        optional = {"recentlyRemovedBrokers", "reasonOfLatestPauseOrResume", "stackTrace"}
        missing = set(recorded) - set(ours) - optional
        assert not missing, f"{path}: {missing}"
        further = set(ours) - set(recorded) - OWN_KEYS - optional
        further -= {"finishedDataMovement", "totalDataToMove"}  # Ours sends them in every state of progress.
        assert not further, f"{path}: {further}"
        for key, value in recorded.items():
            if key in ours:
                _compare_value(ours[key], value, name, f"{path}.{key}")
    elif isinstance(recorded, list):
        assert isinstance(ours, list), path
        if recorded and ours:
            compare_shape(ours[0], recorded[0], name, f"{path}[]")
    elif isinstance(recorded, (int, float)) and not isinstance(recorded, bool):
        assert isinstance(ours, (int, float)), path
        assert not isinstance(ours, bool), path
    else:
        assert type(ours) is type(recorded), path


def _compare_value(ours: Any, recorded: Any, name: str, path: str) -> None:
    if path == ".errorMessage":
        wanted = _normalise(recorded)
        if name in INTENDED_WORDING:
            wanted = wanted[:60]
        assert _normalise(ours).startswith(wanted), ours
    elif path.endswith(".originalResponse"):
        compare_shape(json.loads(ours), json.loads(recorded), name, path)
    else:
        compare_shape(ours, recorded, name, path)


def _normalise(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<uuid>", text)


def _is_map(path: str) -> bool:
    """Whether keys are ids, not names."""
    return path.endswith(("ByBrokerId", "IsController", "monitoredWindows"))

"""The server from outside: tasks, sessions, executions, refusals (docs/design/kafka.md 7, K27, K32, K33)."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
import pytest

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.core.plans import Reason, Ref, Result
from plimsoll.journal.entries import Query
from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.kafka.cruise_control.client.answers import read_rebalance_answer, read_task_answer
from plimsoll.kafka.cruise_control.server.authentication import User, read_users
from plimsoll.kafka.cruise_control.server.endpoints import Role
from plimsoll.kafka.executor.errors import ExecutionRefused, RecordUnusable
from plimsoll.kafka.executor.record import RecordedPlan
from plimsoll.kafka.model.executions import ExecutionEnd
from plimsoll.kafka.model.rebalances import RebalanceRefused, RebalanceTask
from plimsoll.testing import run_virtual
from plimsoll.web.client import Response
from tests.kafka.cruise_control.server.server_bench import describe_cluster, start_server


def test_k27_shapes_of_add_broker_and_its_user_task():
    async def story(clock: Any) -> None:
        async with start_server(clock, cluster=describe_cluster(brokers=4)) as bench:
            query = "brokerid=3&dryrun=true&json=true&verbose=true"
            reply = await bench.client.call("POST", "add_broker", query)
            assert reply.status == 200
            task = str(uuid.UUID(reply.headers["user-task-id"]))
            assert set(reply.json) == {
                "summary",
                "goalSummary",
                "loadAfterOptimization",
                "loadBeforeOptimization",
                "proposals",
                "version",
            }
            assert all(
                set(proposal["newReplicas"]) - set(proposal["oldReplicas"]) <= {3}
                for proposal in reply.json["proposals"]
            )
            listed = await bench.client.call(
                "GET", "user_tasks", f"json=true&user_task_ids={task}&fetch_completed_task=true"
            )
            (row,) = listed.json["userTasks"]
            assert row["Status"] == "Completed"
            assert json.loads(row["originalResponse"])["summary"] == reply.json["summary"]
            assert not bench.executor.executions

    run_virtual(story)


def test_a_kept_plan_is_not_used_once_a_broker_has_joined_or_failed():
    async def story(clock: Any) -> None:
        async with start_server(clock, cluster=describe_cluster(brokers=5)) as bench:
            await bench.client.call("GET", "proposals", "json=true")
            brokers = bench.cluster.brokers
            fenced = msgspec.structs.replace(brokers[4], is_fenced=True)
            bench.cluster = msgspec.structs.replace(bench.cluster, brokers=(*brokers[:4], fenced))
            await bench.client.call("POST", "rebalance", "json=true&dryrun=false")
            ((_, proposals, _),) = bench.executor.executions
            assert {broker for proposal in proposals for broker in proposal.added} == {3}
            bench.executor.finish()

    run_virtual(story)


@pytest.mark.parametrize(
    ("endpoint", "query", "status", "text"),
    [
        ("add_broker", "brokerid=9&json=true", 500, "Broker [9] does not exist."),
        ("remove_broker", "brokerid=9&json=true", 500, "Broker 9 does not exist."),
        ("rebalance", "colour=red&json=true", 400, "[colour]"),
        ("rebalance", "goals=ReplicaDistributionGoal&json=true", 500, "Missing hard goals"),
        ("rebalance", "goals=Nonsense&json=true&skip_hard_goal_check=true", 500, "Goals [Nonsense] are not supported."),
        ("rebalance", "json=true&json=false", 400, "json is given twice"),
        ("rebalance", "json=true&concurrent_leader_movements=0", 400, "concurrent_leader_movements"),
        ("rebalance", "json=true&replication_throttle=99999999999999999999", 400, "replication_throttle"),
        ("rebalance", "json=true&excluded_topics=(", 400, "excluded_topics"),
        ("rebalance", "json=true&excluded_topics=" + "a" * 2000, 400, "excluded_topics"),
        ("rebalance", "json=true&goals=%ff", 400, "cannot be read"),
        ("remove_disks", "json=true&brokerid_and_logdirs=0", 400, "brokerid_and_logdirs"),
        ("add_broker", "json=true&brokerid=99999999999", 400, "brokerid"),
    ],
)
def test_k27_wrong_requests_are_refused_and_name_the_parameter(endpoint: str, query: str, status: int, text: str):
    async def story(clock: Any) -> None:
        async with start_server(clock) as bench:
            reply = await bench.client.call("POST", endpoint, query)
            assert reply.status == status
            assert text in reply.json["errorMessage"]

    run_virtual(story)


@pytest.mark.parametrize("query", ["dryrun=maybe", "dryrun=1", "verbose=1&dryrun=false", "dryrun="])
def test_k32_a_value_that_is_not_a_boolean_is_refused_and_nothing_moves(query: str):
    async def story(clock: Any) -> None:
        async with start_server(clock, cluster=describe_cluster(brokers=4)) as bench:
            reply = await bench.client.call("POST", "rebalance", f"json=true&{query}")
            assert reply.status == 400
            assert query.partition("=")[0] in reply.json["errorMessage"]
            assert not bench.executor.executions

    run_virtual(story)


def test_k33_polls_with_the_cookie_only_are_one_task_and_one_execution():
    async def story(clock: Any) -> None:
        async with start_server(clock, cluster=describe_cluster(brokers=4), max_block_time_s=1.0) as bench:
            bench.describe_delay_s = 3.5
            query = "brokerid=3&allow_capacity_estimation=False&dryrun=False"
            statuses, ids = [], set()
            for _ in range(4):
                reply = await bench.client.call("POST", "add_broker", query)
                bench.client.cookie = reply.headers["set-cookie"].partition(";")[0]
                statuses.append(reply.status)
                ids.add(reply.headers["user-task-id"])
            assert statuses == [202, 202, 202, 200]
            assert len(ids) == 1
            assert [execution[0] for execution in bench.executor.executions] == [*ids]

    run_virtual(story)


def test_another_session_starts_a_task_of_its_own():
    async def story(clock: Any) -> None:
        async with start_server(clock) as bench:
            first = await bench.client.call("POST", "rebalance", "json=true")
            second = await bench.client.call("POST", "rebalance", "json=true")
            assert first.headers["user-task-id"] != second.headers["user-task-id"]

    run_virtual(story)


def test_an_execution_is_in_execution_until_it_ends():
    async def story(clock: Any) -> None:
        async with start_server(clock, cluster=describe_cluster(brokers=4)) as bench:
            reply = await bench.client.call(
                "POST",
                "add_broker",
                "json=true&brokerid=3&dryrun=false&replication_throttle=1000&concurrent_partition_movements_per_broker=7",
            )
            task = reply.headers["user-task-id"]
            await clock.sleep(1)
            assert await _get_status(bench, task) == "InExecution"
            (execution,) = bench.executor.executions
            assert execution[2].replication_throttle == 1000
            assert execution[2].concurrent_partition_movements_per_broker == 7
            state = (await bench.client.call("GET", "state", "json=true&substates=executor")).json["ExecutorState"]
            assert state["triggeredUserTaskId"] == task
            assert state["triggeredTaskReason"].startswith("No reason provided (Client: 127.0.0.1, Date: ")
            refused = await bench.client.call("POST", "rebalance", "json=true&dryrun=false")
            assert refused.status == 500
            assert "Cannot start a new execution while there is an ongoing execution" in refused.json["errorMessage"]
            bench.executor.finish()
            await clock.sleep(1)
            assert await _get_status(bench, task) == "Completed"

    run_virtual(story)


def test_an_execution_is_journalled_and_measured():
    async def story(clock: Any) -> None:
        async with start_server(clock, cluster=describe_cluster(brokers=4)) as bench:
            await bench.client.call("POST", "add_broker", "json=true&brokerid=3&dryrun=false")
            await clock.sleep(1)
            metrics = (await bench.client.call("GET", "/metrics")).body.decode()
            state = "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"
            assert f'plimsoll_kafka_executor_state{{state="{state}"}} 1.0' in metrics
            assert 'plimsoll_kafka_broker_replicas{broker="3"} 0.0' in metrics
            bench.executor.finish()
            await clock.sleep(1)
            (entry,) = await bench.journal.list_entries(Query(ref=Ref(kind="broker", name="3")))
            assert {outcome.result for outcome in entry.outcomes} == {Result.DONE}

    run_virtual(story)


def test_an_execution_that_is_refused_is_held_back_in_the_journal():
    async def story(clock: Any) -> None:
        async with start_server(clock, cluster=describe_cluster(brokers=4)) as bench:
            reason = Reason(code="Paused", message="paused: maintenance")
            bench.executor.refusal = ExecutionRefused(reason)
            reply = await bench.client.call("POST", "add_broker", "json=true&brokerid=3&dryrun=false")
            await clock.sleep(1)
            assert await _get_status(bench, reply.headers["user-task-id"]) == "CompletedWithError"
            (entry,) = await bench.journal.list_entries(Query(ref=Ref(kind="broker", name="3")))
            assert entry.outcomes
            assert all((outcome.result, outcome.reason) == (Result.HELD_BACK, reason) for outcome in entry.outcomes)

    run_virtual(story)


def test_nothing_is_planned_if_no_broker_answered():
    async def story(clock: Any) -> None:
        cluster = describe_cluster(brokers=4)
        silent = tuple(
            msgspec.structs.replace(broker, log_dirs=None, problem="timed out") for broker in cluster.brokers
        )
        async with start_server(clock, cluster=msgspec.structs.replace(cluster, brokers=silent)) as bench:
            reply = await bench.client.call("POST", "rebalance", "json=true&dryrun=false")
            assert reply.status == 500
            assert "TimeoutException: no broker answered with its log directories" in reply.json["errorMessage"]
            assert not bench.executor.executions

    run_virtual(story)


def test_a_request_that_a_silent_broker_refuses_may_be_made_again():
    async def story(clock: Any) -> None:
        cluster = describe_cluster(brokers=4)
        silent = msgspec.structs.replace(cluster.brokers[3], log_dirs=None, problem="timed out")
        brokers = (*cluster.brokers[:3], silent)
        async with start_server(clock, cluster=msgspec.structs.replace(cluster, brokers=brokers)) as bench:
            reply = await bench.client.call("POST", "add_broker", "json=true&brokerid=3")
            found = read_rebalance_answer(Response(status=reply.status, body=reply.body, headers=reply.headers))
            assert isinstance(found, RebalanceRefused)
            assert found.is_transient
            assert "broker 3 did not answer (timed out)" in found.message

    run_virtual(story)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KafkaUnavailable("no broker answers"), "TimeoutException: no broker answers"),
        (RecordUnusable("it cannot be read"), "RecordUnusable: it cannot be read"),
    ],
)
def test_an_execution_that_cannot_begin_says_so_and_may_be_requested_again(error: PlimsollError, words: str):
    async def story(clock: Any) -> None:
        async with start_server(clock, cluster=describe_cluster(brokers=4)) as bench:
            bench.executor.refusal = error
            reply = await bench.client.call("POST", "add_broker", "json=true&brokerid=3&dryrun=false")
            await clock.sleep(1)
            task = reply.headers["user-task-id"]
            shown = await bench.client.call("GET", "user_tasks", "json=true&fetch_completed_task=true")
            found = read_task_answer(Response(status=200, body=shown.body, headers=shown.headers), task)
            assert isinstance(found, RebalanceTask)
            assert isinstance(found.failure, RebalanceRefused)
            assert found.failure.is_transient
            assert words in found.failure.message

    run_virtual(story)


def test_a_stop_that_fails_is_repeated_while_its_execution_runs():
    async def story(clock: Any) -> None:
        async with start_server(clock, cluster=describe_cluster(brokers=4)) as bench:
            reply = await bench.client.call("POST", "add_broker", "json=true&brokerid=3&dryrun=false")
            await clock.sleep(1)
            bench.executor.failing_stops = 2
            await bench.client.call("POST", "stop_proposal_execution", "json=true")
            await clock.sleep(10)
            assert bench.executor.stops == [False] * 3
            assert await _get_status(bench, reply.headers["user-task-id"]) == "CompletedWithError"
            bench.executor.failing_stops = 1
            await bench.client.call("POST", "stop_proposal_execution", "json=true")
            await clock.sleep(10)
            assert bench.executor.stops == [False] * 4, "nothing runs that could be stopped"

    run_virtual(story)


def test_an_execution_that_cannot_be_resumed_yet_has_not_ended():
    async def story(clock: Any) -> None:
        async with start_server(clock) as bench:
            task = str(uuid.UUID(int=7))
            bench.executor.failing_resumes = 1
            started_at = clock.now().isoformat()
            plan = RecordedPlan(execution_id=task, cluster_id="abc", proposals=(), started_at=started_at)
            bench.client.server.resume_execution(plan)
            await clock.sleep(1)
            assert await _get_status(bench, task) == "InExecution"
            await clock.sleep(60)
            assert await _get_status(bench, task) == "CompletedWithError"

    run_virtual(story)


@pytest.mark.parametrize("end", [ExecutionEnd.STOPPED, ExecutionEnd.FAILED])
def test_an_execution_that_does_not_complete_ends_with_an_error(end: ExecutionEnd):
    async def story(clock: Any) -> None:
        async with start_server(clock, cluster=describe_cluster(brokers=4)) as bench:
            reply = await bench.client.call("POST", "add_broker", "json=true&brokerid=3&dryrun=false")
            await clock.sleep(1)
            bench.executor.finish(end)
            await clock.sleep(1)
            assert await _get_status(bench, reply.headers["user-task-id"]) == "CompletedWithError"

    run_virtual(story)


def test_stop_leaves_foreign_reassignments_alone_unless_asked():
    async def story(clock: Any) -> None:
        async with start_server(clock) as bench:
            await bench.client.call("POST", "stop_proposal_execution", "json=true")
            await bench.client.call("POST", "stop_proposal_execution", "json=true&stop_external_agent=true")
            await clock.sleep(1)
            assert bench.executor.stops == [False, True]

    run_virtual(story)


def test_only_running_tasks_count_towards_the_capacity():
    async def story(clock: Any) -> None:
        async with start_server(clock, max_block_time_s=0.1) as bench:
            for _ in range(20):
                assert (await bench.client.call("GET", "state", "json=true")).status == 200
            bench.describe_delay_s = 100.0
            for _ in range(5):
                assert (await bench.client.call("GET", "load", "json=true")).status == 202
            full = await bench.client.call("GET", "load", "json=true")
            assert full.status == 500
            assert "There are already 5 active user tasks" in full.json["errorMessage"]

    run_virtual(story)


def test_finished_tasks_are_kept_by_type_and_age():
    async def story(clock: Any) -> None:
        async with start_server(clock) as bench:
            for _ in range(40):
                await bench.client.call("POST", "rebalance", "json=true")
                await bench.client.call("GET", "load", "json=true")
            tasks = (await bench.client.call("GET", "user_tasks", "json=true")).json["userTasks"]
            assert sum("/rebalance" in task["RequestURL"] for task in tasks) == 30
            assert sum("/load" in task["RequestURL"] for task in tasks) == 20
            await clock.sleep(2 * 86_400)
            tasks = (await bench.client.call("GET", "user_tasks", "json=true")).json["userTasks"]
            assert {task["RequestURL"].split("?")[0] for task in tasks} == {"POST /kafkacruisecontrol/rebalance"}

    run_virtual(story)


def test_roles_decide_and_passwords_are_checked(tmp_path: Any):
    file = tmp_path / "users"
    file.write_text("# comment\nvi: pw:1,x,VIEWER\nop: secret,ADMIN\n", encoding="utf-8")
    users = read_users(file)
    assert users[0] == User(name="vi", password="pw:1,x", role=Role.VIEWER)

    async def story(clock: Any) -> None:
        async with start_server(clock, users=users) as bench:
            viewer = {"authorization": "Basic dmk6cHc6MSx4"}
            admin = {"authorization": "Basic b3A6c2VjcmV0"}
            for headers in ({}, {"authorization": "Basic dmk6d3Jvbmc="}, {"authorization": "Bearer x"}):
                reply = await bench.client.call("GET", "state", "json=true", headers=headers)
                assert reply.status == 401
                assert reply.headers["www-authenticate"].startswith("basic realm=")
            assert (await bench.client.call("GET", "kafka_cluster_state", "json=true", headers=viewer)).status == 200
            assert (await bench.client.call("GET", "state", "json=true", headers=viewer)).status == 403
            assert (await bench.client.call("POST", "rebalance", "json=true", headers=viewer)).status == 403
            assert (await bench.client.call("POST", "rebalance", "json=true", headers=admin)).status == 200

    run_virtual(story)


@pytest.mark.parametrize("line", ["x", "x: y", "x: y,KING", "x: y,ADMIN\nx: z,ADMIN", ""])
def test_a_wrong_file_of_users_is_refused_with_its_line(tmp_path: Any, line: str):
    file = tmp_path / "users"
    file.write_text(line, encoding="utf-8")
    with pytest.raises(InvalidInput, match="users"):
        read_users(file)


async def _get_status(bench: Any, task: str) -> str:
    reply = await bench.client.call("GET", "user_tasks", f"json=true&user_task_ids={task}")
    return reply.json["userTasks"][0]["Status"]

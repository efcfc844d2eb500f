"""The client of Cruise Control against our own engine in process: dry run, real run, stop, and restarts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.kafka.executor.errors import RecordUnusable
from plimsoll.kafka.model.rebalances import (
    Computing,
    ExecutorSubstate,
    NoSuchTask,
    Proposed,
    RebalanceRefused,
    RebalanceSpec,
    RebalanceTask,
    RebalanceTaskStatus,
)
from plimsoll.kafka.model.requests import Mode
from plimsoll.local.kafka.answers import NoAnswer, RequestRefused
from plimsoll.operator.pause import ActionGuard
from plimsoll.testing import run_virtual
from tests.kafka.engine.engine_bench import EngineBench, build_kafka, build_pool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.kafka.cruise_control.client.client import CruiseControlClient
    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.runtime.clocks import VirtualClock

ADD = RebalanceSpec(mode=Mode.ADD_BROKERS, brokers=(3,), replication_throttle=20_000_000)
REMOVE = RebalanceSpec(mode=Mode.REMOVE_BROKERS, brokers=(2,), skip_hard_goal_check=True, goals=("DiskCapacityGoal",))


def run_bench(test: Callable[[EngineBench], Awaitable[None]]) -> None:
    async def run(clock: VirtualClock) -> None:
        bench = EngineBench(clock)
        await test(bench)
        await bench.connections.close()

    run_virtual(run)


async def request(client: CruiseControlClient, spec: RebalanceSpec, *, is_dry_run: bool) -> Proposed:
    answer = await client.request_rebalance(spec, is_dry_run=is_dry_run)
    assert isinstance(answer, Proposed), answer
    return answer


async def wait_for_end(bench: EngineBench, client: CruiseControlClient, session: str) -> RebalanceTask:
    for _ in range(10_000):
        task = await client.read_user_task(session)
        assert isinstance(task, RebalanceTask), task
        if task.status not in {RebalanceTaskStatus.ACTIVE, RebalanceTaskStatus.IN_EXECUTION}:
            return task
        await bench.clock.sleep(1.0)
    raise AssertionError("the execution does not end")


async def read_state(client: CruiseControlClient) -> ExecutorSubstate:
    state = await client.read_executor_state()
    assert isinstance(state, ExecutorSubstate), state
    return state


def test_a_dry_run_proposes_and_moves_nothing():
    async def test(bench: EngineBench) -> None:
        client = await bench.find()
        proposed = await request(client, ADD, is_dry_run=True)
        assert proposed.body["summary"]["numReplicaMovements"] >= 20
        assert [entry["Broker"] for entry in proposed.body["loadAfterOptimization"]["brokers"]] == [0, 1, 2, 3]
        await bench.clock.sleep(60.0)
        assert (bench.count_replicas(3), bench.is_moving) == (0, False)
        task = await client.read_user_task(proposed.session_id)
        assert isinstance(task, RebalanceTask)
        assert task.status is RebalanceTaskStatus.COMPLETED
        assert task.body is not None
        assert task.body["summary"] == proposed.body["summary"]
        assert (await read_state(client)).is_idle

    run_bench(test)


def test_a_real_run_moves_to_the_end():
    async def test(bench: EngineBench) -> None:
        client = await bench.find()
        proposed = await request(client, ADD, is_dry_run=False)
        await bench.clock.sleep(3.0)
        assert bench.engines.list_progress()["ns", "c"].execution_id == proposed.session_id
        state = await read_state(client)
        assert state.state == "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"
        assert state.triggered_task_id == proposed.session_id
        assert state.total_data_mb is not None
        assert state.total_data_mb > 0
        task = await wait_for_end(bench, client, proposed.session_id)
        assert task.status is RebalanceTaskStatus.COMPLETED
        assert bench.count_replicas(3) >= 20
        assert bench.list_throttles() == []
        assert (await read_state(client)).is_idle

    run_bench(test)


def test_a_second_execution_is_refused_until_the_first_has_ended():
    async def test(bench: EngineBench) -> None:
        client = await bench.find()
        first = await request(client, ADD, is_dry_run=False)
        await bench.clock.sleep(1.0)
        refused = await client.request_rebalance(RebalanceSpec(), is_dry_run=False)
        assert isinstance(refused, RebalanceRefused)
        assert (refused.reason, refused.is_transient) == ("IllegalStateException", True)
        await wait_for_end(bench, client, first.session_id)
        await request(client, RebalanceSpec(), is_dry_run=False)

    run_bench(test)


def test_a_stop_rolls_back_and_ends_the_task_with_an_error():
    async def test(bench: EngineBench) -> None:
        client = await bench.find()
        proposed = await request(client, ADD, is_dry_run=False)
        await bench.clock.sleep(2.0)
        assert bench.is_moving
        assert await client.stop_execution() is None
        task = await wait_for_end(bench, client, proposed.session_id)
        assert task.status is RebalanceTaskStatus.COMPLETED_WITH_ERROR
        assert not bench.is_moving
        assert bench.list_throttles() == []
        assert (await read_state(client)).is_idle
        assert await client.stop_execution() is None

    run_bench(test)


def test_a_broker_that_does_not_exist_is_refused():
    async def test(bench: EngineBench) -> None:
        client = await bench.find()
        spec = RebalanceSpec(mode=Mode.ADD_BROKERS, brokers=(9,))
        refused = await client.request_rebalance(spec, is_dry_run=True)
        assert isinstance(refused, RebalanceRefused)
        assert "Broker [9] does not exist." in refused.message
        assert not refused.is_transient

    run_bench(test)


def test_a_slow_computation_is_answered_with_progress_and_then_with_its_result():
    async def test(bench: EngineBench) -> None:
        client = await bench.find()
        engine = await bench.engines.start(bench.kafka)
        describe = engine._source.describe

        async def describe_late() -> object:
            await bench.clock.sleep(25.0)
            return await describe()

        engine._source.describe = describe_late  # type: ignore[method-assign,assignment]
        answer = await client.request_rebalance(ADD, is_dry_run=True)
        assert isinstance(answer, Computing)
        task = await client.read_user_task(answer.session_id)
        assert isinstance(task, RebalanceTask)
        assert (task.status, task.body) == (RebalanceTaskStatus.ACTIVE, None)
        ended = await wait_for_end(bench, client, answer.session_id)
        assert ended.status is RebalanceTaskStatus.COMPLETED
        assert ended.body is not None

    run_bench(test)


# ---- restarts


def test_after_a_restart_the_task_of_a_dry_run_is_unknown():
    async def test(bench: EngineBench) -> None:
        proposed = await request(await bench.find(), ADD, is_dry_run=True)
        await bench.restart()
        assert await (await bench.find()).read_user_task(proposed.session_id) == NoSuchTask()

    run_bench(test)


def test_after_a_restart_the_execution_goes_on_under_its_task():
    async def test(bench: EngineBench) -> None:
        proposed = await request(await bench.find(), ADD, is_dry_run=False)
        await bench.clock.sleep(4.0)
        assert bench.is_moving
        await bench.restart()
        client = await bench.find()
        task = await client.read_user_task(proposed.session_id)
        assert isinstance(task, RebalanceTask)
        assert task.status is RebalanceTaskStatus.IN_EXECUTION
        refused = await client.request_rebalance(ADD, is_dry_run=False)
        assert isinstance(refused, RebalanceRefused)
        assert refused.is_transient
        ended = await wait_for_end(bench, client, proposed.session_id)
        assert ended.status is RebalanceTaskStatus.COMPLETED
        assert bench.count_replicas(3) >= 20
        assert bench.list_throttles() == []
        sent = [targets for targets in bench.brokers.sent_targets.values() if len(targets) > 1]
        assert sent == []

    run_bench(test)


def test_after_a_restart_an_execution_can_be_stopped():
    async def test(bench: EngineBench) -> None:
        proposed = await request(await bench.find(), ADD, is_dry_run=False)
        await bench.clock.sleep(4.0)
        await bench.restart()
        client = await bench.find()
        assert await client.stop_execution() is None
        ended = await wait_for_end(bench, client, proposed.session_id)
        assert ended.status is RebalanceTaskStatus.COMPLETED_WITH_ERROR
        assert not bench.is_moving
        assert bench.list_throttles() == []

    run_bench(test)


def test_an_execution_is_resumed_when_the_cluster_is_configured_without_a_request():
    async def test(bench: EngineBench) -> None:
        await request(await bench.find(), ADD, is_dry_run=False)
        await bench.clock.sleep(4.0)
        await bench.restart()
        assert await bench.view.configure(bench.kafka, (build_pool(ids=(0, 1, 2, 3)),)) == ()
        await bench.clock.sleep(600.0)
        assert bench.count_replicas(3) >= 20
        assert bench.list_throttles() == []

    run_bench(test)


def test_an_execution_is_resumed_once_the_brokers_answer():
    async def test(bench: EngineBench) -> None:
        proposed = await request(await bench.find(), ADD, is_dry_run=False)
        await bench.clock.sleep(4.0)
        await bench.restart()
        bench.brokers.reject("describe_nodes", NoAnswer("no broker answers"), times=3)
        client = await bench.find()
        ended_early = await client.read_user_task(proposed.session_id)
        assert isinstance(ended_early, RebalanceTask)
        await bench.clock.sleep(600.0)
        assert bench.count_replicas(3) >= 20
        assert bench.list_throttles() == []
        assert (await read_state(client)).is_idle

    run_bench(test)


def test_an_execution_that_the_brokers_refuse_leaves_nothing_and_does_not_block_the_next():
    async def test(bench: EngineBench) -> None:
        client = await bench.find()
        first = await request(client, ADD, is_dry_run=False)
        await bench.clock.sleep(2.0)
        bench.brokers.reject("list_reassignments", RequestRefused("CLUSTER_AUTHORIZATION_FAILED"), times=1)
        ended = await wait_for_end(bench, client, first.session_id)
        assert ended.status is RebalanceTaskStatus.COMPLETED_WITH_ERROR
        await bench.clock.sleep(60.0)
        assert not bench.is_moving
        assert bench.list_throttles() == []
        second = await request(client, ADD, is_dry_run=False)
        assert (await wait_for_end(bench, client, second.session_id)).status is RebalanceTaskStatus.COMPLETED

    run_bench(test)


def test_a_pause_of_the_kafka_holds_an_execution_that_runs():
    async def test(bench: EngineBench) -> None:
        async def read_pause(kafka: Kafka) -> ActionGuard:
            return ActionGuard(paused=kafka.metadata.annotations.get("plimsoll.io/paused", ""))

        bench.engines.read_pause = read_pause
        client = await bench.find()
        proposed = await request(client, ADD, is_dry_run=False)
        await bench.clock.sleep(3.0)
        paused = msgspec.structs.replace(
            bench.kafka,
            metadata=msgspec.structs.replace(bench.kafka.metadata, annotations={"plimsoll.io/paused": "yes"}),
        )
        await bench.find(paused)
        await bench.clock.sleep(600.0)
        moved = bench.count_replicas(3)
        assert moved < 20
        assert not bench.is_moving
        await bench.find(bench.kafka)
        assert (await wait_for_end(bench, client, proposed.session_id)).status is RebalanceTaskStatus.COMPLETED
        assert bench.count_replicas(3) >= 20

    run_bench(test)


# ---- life of an engine


def test_a_cluster_without_brokers_is_refused_for_now():
    async def test(bench: EngineBench) -> None:
        refused = await bench.engines.find(build_kafka("other"))
        assert isinstance(refused, RebalanceRefused)
        assert (refused.reason, refused.is_transient) == ("CruiseControlRetriableConnectionException", True)

    run_bench(test)


def test_brokers_that_do_not_answer_are_an_error_that_is_not_a_proposal():
    async def test(bench: EngineBench) -> None:
        client = await bench.find()
        bench.brokers.reject("describe_topics", NoAnswer("no broker answers"))
        refused = await client.request_rebalance(ADD, is_dry_run=True)
        assert isinstance(refused, RebalanceRefused)
        assert "no broker answers" in refused.message

    run_bench(test)


def test_a_record_that_cannot_be_read_is_named_and_nothing_starts():
    class Damaged:
        async def read(self) -> None:
            raise RecordUnusable("the record is damaged")

        async def write_plan(self, _plan: object) -> None:
            raise AssertionError

        async def write_state(self, _state: object) -> None:
            raise AssertionError

    async def test(bench: EngineBench) -> None:
        bench.open_store = lambda _kafka: Damaged()
        refused = await bench.engines.find(bench.kafka)
        assert isinstance(refused, RebalanceRefused)
        assert (refused.reason, refused.is_transient) == ("RecordUnusable", True)
        (problem,) = await bench.view.configure(bench.kafka, ())
        assert problem.code == "RecordUnusable"

    run_bench(test)


def test_one_engine_per_cluster_however_many_ask_for_it():
    async def test(bench: EngineBench) -> None:
        engines = await asyncio.gather(*(bench.engines.start(bench.kafka) for _ in range(10)))
        assert len({id(engine) for engine in engines}) == 1

    run_bench(test)


def test_a_kafka_that_is_made_anew_gets_its_own_engine_and_record():
    async def test(bench: EngineBench) -> None:
        first = await bench.engines.start(bench.kafka)
        await request(first.client, ADD, is_dry_run=False)
        second = await bench.engines.start(build_kafka(uid="u2"))
        assert second is not first
        assert (await read_state(second.client)).is_idle
        await bench.clock.sleep(30.0)
        assert (await read_state(second.client)).is_idle

    run_bench(test)


def test_a_kafka_that_is_gone_has_no_engine():
    async def test(bench: EngineBench) -> None:
        first = await bench.engines.start(bench.kafka)
        await bench.view.forget("ns", "c")
        await bench.view.forget("ns", "c")
        assert await bench.engines.start(bench.kafka) is not first

    run_bench(test)


def test_capacities_of_the_objects_decide():
    async def test(bench: EngineBench) -> None:
        small = build_pool("small", ids=(3,), storage={"type": "persistent-claim", "size": "100Mi"})
        large = build_pool("large", ids=(0, 1, 2), storage={"type": "persistent-claim", "size": "10Gi"})
        assert await bench.view.configure(bench.kafka, (small, large)) == ()
        proposed = await request(await bench.find(), ADD, is_dry_run=True)
        loads = {entry["Broker"]: entry for entry in proposed.body["loadAfterOptimization"]["brokers"]}
        assert (loads[3]["DiskCapacityMB"], loads[0]["DiskCapacityMB"]) == (100.0, 10240.0)
        assert loads[3]["DiskMB"] <= 80.0

    run_bench(test)


def test_goals_of_the_configuration_decide():
    async def test(bench: EngineBench) -> None:
        kafka = build_kafka(
            config={"hard.goals": "RackAwareGoal", "default.goals": "com.x.RackAwareGoal,DiskCapacityGoal"}
        )
        await bench.view.configure(kafka, (build_pool(),))
        proposed = await request(await bench.find(kafka), RebalanceSpec(), is_dry_run=True)
        assert [goal["goal"] for goal in proposed.body["goalSummary"]] == ["RackAwareGoal", "DiskCapacityGoal"]
        refused = await (await bench.find(kafka)).request_rebalance(
            RebalanceSpec(goals=("DiskCapacityGoal",)), is_dry_run=True
        )
        assert isinstance(refused, RebalanceRefused)
        assert "Missing hard goals [RackAwareGoal]" in refused.message

    run_bench(test)


def test_the_journal_names_the_cluster_of_what_moved():
    async def test(bench: EngineBench) -> None:
        client = await bench.find()
        proposed = await request(client, ADD, is_dry_run=False)
        await wait_for_end(bench, client, proposed.session_id)
        for ref in ("kafka/ns/c", "broker/ns/c.3", "topic/ns/c.orders"):
            assert await bench.journal.list_entries(Query(ref=Ref.parse(ref))), ref

    run_bench(test)


def test_observing_a_cluster_whose_brokers_are_silent_fails():
    async def test(bench: EngineBench) -> None:
        for broker in range(4):
            bench.brokers.kill_broker(broker)
        with pytest.raises(KafkaUnavailable):
            await bench.view.observe(bench.kafka)

    run_bench(test)

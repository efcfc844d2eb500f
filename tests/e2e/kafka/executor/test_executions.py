"""The executor on real brokers: moves, throttles, stop, other clients, dead brokers, registrations."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec
import pytest
from kafka.admin import AlterConfigOp, ConfigResource
from kafka.errors import InvalidReplicationAssignmentError
from kafka.structs import TopicPartition

from plimsoll.kafka.executor.unregistering import unregister_broker
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions, ExecutionRequest, TaskState, TaskType
from plimsoll.kafka.model.proposals import LogDirMove, Proposal
from tests.e2e.kafka.executor.executions import FAST, LISTS, MB, NEW, RATES, RealExecutions, Traffic, wait_moving

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.kafka.executor.executor import Executor
    from plimsoll.kafka.model.executions import ExecutionOutcome
    from tests.e2e.kafka.real_kafka import RealKafka

SLOW = ExecutionOptions(replication_throttle=MB // 2, progress_check_interval_s=0.2, dead_broker_grace_s=1.0)
HALTED = msgspec.structs.replace(SLOW, replication_throttle=MB // 8)
"""Brokers let ten seconds' worth through at once: most of a megabyte waits until the throttle is lifted."""


@pytest.fixture
def executions(kafka: RealKafka, tmp_path: Path) -> RealExecutions:
    return RealExecutions(kafka, tmp_path / "record")


def test_a_fourth_broker_is_filled_and_emptied_under_traffic(kafka: RealKafka, executions: RealExecutions) -> None:
    executions.fill(partitions=6)
    kafka.create_topic(
        "traffic", {n: [n % 3, (n + 1) % 3, (n + 2) % 3] for n in range(3)}, {"min.insync.replicas": "2"}
    )
    starred = dict.fromkeys(LISTS, "*")
    kafka.create_topic("starred", {0: [0, 1, 2]}, starred)
    kafka.produce("starred", total_bytes=2 * MB)
    topics = ("a", "b", "traffic", "starred")
    before = executions.read_assignment(*topics)
    kafka.start_broker(NEW)
    traffic = Traffic(kafka, "traffic", 3)
    traffic.start()
    try:
        adding = executions.propose_add(*topics)
        outcome = executions.execute(adding)
        assert outcome.end is ExecutionEnd.COMPLETED, outcome.not_completed
        executions.check_nothing_left(*topics, starred=["starred"])
        assert executions.read_assignment(*topics) == {
            (moved.topic, moved.partition): list(moved.new_replicas) for moved in adding
        }
        removing = executions.propose_remove(*topics)
        outcome = executions.execute(removing)
        assert outcome.end is ExecutionEnd.COMPLETED, outcome.not_completed
        executions.check_nothing_left(*topics, starred=["starred"])
        assert executions.read_assignment(*topics) == before
    finally:
        traffic.finish()
    traffic.check()
    executions.wait_in_sync(*topics)


def test_leaders_are_those_of_the_plan(kafka: RealKafka, executions: RealExecutions) -> None:
    executions.fill()
    proposals = executions.propose(("a", "b"), 0, lambda old: [*old[1:], old[0]])
    assert executions.execute(proposals).end is ExecutionEnd.COMPLETED
    for topic in kafka.client.describe_topics(["a", "b"]):
        for partition in topic["partitions"]:
            assert partition["leader_id"] == partition["replica_nodes"][0]
    assert executions.execute(proposals).end is ExecutionEnd.COMPLETED, "a second time there is nothing to do"
    executions.check_nothing_left("a", "b")


def test_a_stop_rolls_back_and_restores_the_order_of_replicas(kafka: RealKafka, executions: RealExecutions) -> None:
    executions.fill(size=8 * MB)
    before = executions.read_assignment("a", "b")
    kafka.start_broker(NEW)
    proposals = executions.propose_add("a", "b", size=8 * MB)

    async def work(executor: Executor) -> ExecutionOutcome | None:
        running = asyncio.create_task(executor.execute("e1", proposals, SLOW))
        await wait_moving(executor)
        throttles = await asyncio.to_thread(executions.wait_for_throttles, "a", "b")
        assert throttles["broker", str(NEW)] == {RATES[1]: str(MB // 2)}
        assert RATES[0] in throttles["broker", "0"]
        assert set(throttles["topic", "a"]) == set(LISTS)
        stopped = await executor.stop()
        assert stopped is await running
        return stopped

    outcome = executions.run(work)
    assert outcome.end is ExecutionEnd.STOPPED
    executions.check_nothing_left("a", "b")
    moved = {
        (ended.proposal.topic, ended.proposal.partition)
        for ended in outcome.not_completed
        if ended.type is TaskType.INTER_BROKER_REPLICA_ACTION
    }
    assert moved, "something was under way"
    after = executions.read_assignment("a", "b")
    assert {key: after[key] for key in moved} == {key: before[key] for key in moved}


def test_a_foreign_reassignment_and_its_throttle_are_left_alone(kafka: RealKafka, executions: RealExecutions) -> None:
    executions.fill(topics=("a",), partitions=3, size=4 * MB)
    kafka.start_broker(NEW)
    proposals = executions.propose_add("a", size=4 * MB)
    foreign = TopicPartition("a", 0)
    rate = {RATES[1]: (AlterConfigOp.SET, "600000")}
    entry = {LISTS[1]: (AlterConfigOp.SET, f"0:{NEW}")}
    kafka.client.alter_configs([ConfigResource("broker", str(NEW), rate)], raise_on_unknown=False)
    kafka.client.alter_configs([ConfigResource("topic", "a", entry)])
    throttles = executions.read_throttles("a")
    assert throttles == {("topic", "a"): {LISTS[1]: f"0:{NEW}"}, ("broker", str(NEW)): {RATES[1]: "600000"}}
    kafka.client.alter_partition_reassignments({foreign: [1, 2, NEW]})

    async def work(executor: Executor) -> tuple[set[str], ExecutionOutcome]:
        running = asyncio.create_task(executor.execute("e1", proposals, FAST))
        held: set[str] = set()
        while not running.done():
            held |= {reason.code for reason in executor.get_progress().held}
            await asyncio.sleep(0.05)
        return held, await running

    held, outcome = executions.run(work)
    assert {"ForeignReassignment", "ForeignThrottle"} <= held
    assert outcome.end is ExecutionEnd.COMPLETED, outcome.not_completed
    assert kafka.list_replicas("a") == {moved.partition: list(moved.new_replicas) for moved in proposals}
    assert executions.read_throttles("a") == throttles
    assert kafka.client.list_partition_reassignments() == {}


def test_a_broker_killed_in_mid_move_costs_its_own_moves(kafka: RealKafka, executions: RealExecutions) -> None:
    executions.fill(size=4 * MB)
    kafka.start_broker(NEW)
    kafka.start_broker(4)
    onto_new = executions.propose_add("a", size=4 * MB)
    onto_other = executions.propose(("b",), 4 * MB, lambda old: [*old[:2], 4])

    async def work(executor: Executor) -> ExecutionOutcome:
        running = asyncio.create_task(executor.execute("e1", [*onto_new, *onto_other], SLOW))
        await wait_moving(executor, at_least=4)
        await asyncio.to_thread(kafka.kill_broker, NEW)
        return await running

    outcome = executions.run(work)
    assert outcome.end is ExecutionEnd.FAILED
    dead = {ended.proposal.topic for ended in outcome.not_completed if ended.state is TaskState.DEAD}
    assert dead == {"a"}
    assert str(NEW) in str(outcome.reason)
    assert kafka.list_replicas("b") == {moved.partition: list(moved.new_replicas) for moved in onto_other}
    assert kafka.client.list_partition_reassignments() == {}
    assert executions.read_throttles("a", "b") == {}, "nothing is left on the brokers that run"
    kafka.start_broker(NEW)
    assert executions.read_throttles("a", "b") == {("broker", str(NEW)): {RATES[1]: str(MB // 2)}}

    async def clean(executor: Executor) -> bool:
        return await executor.clean_up()

    kafka.wait_until(lambda: executions.run(clean), "the rate of the broker that is back is removed")
    executions.check_nothing_left("a", "b")
    executions.wait_in_sync("a", "b")


def test_a_topic_deleted_in_mid_move_is_no_error(kafka: RealKafka, executions: RealExecutions) -> None:
    executions.fill(size=2 * MB)
    kafka.start_broker(NEW)
    proposals = executions.propose_add("a", "b", size=2 * MB)

    async def work(executor: Executor) -> ExecutionOutcome:
        running = asyncio.create_task(executor.execute("e1", proposals, SLOW))
        await wait_moving(executor)
        await asyncio.to_thread(kafka.client.delete_topics, ["a"])
        return await running

    assert executions.run(work).end is ExecutionEnd.COMPLETED
    executions.check_nothing_left("b")


@pytest.mark.slow
def test_partitions_and_topics_that_are_created_in_mid_move_are_left_alone_or_named(
    kafka: RealKafka, executions: RealExecutions
) -> None:
    """Topic a gets a partition on the broker that is emptied; topic b is deleted and created again with fewer."""
    executions.fill(size=MB)
    kafka.start_broker(NEW)
    assert executions.execute(executions.propose_add("a", "b", size=MB)).end is ExecutionEnd.COMPLETED
    proposals = executions.propose_remove("a", "b", size=MB)
    added: list[list[int]] = []

    async def work(executor: Executor) -> ExecutionOutcome:
        request = ExecutionRequest(removed_brokers=(NEW,))
        running = asyncio.create_task(executor.execute("e1", proposals, HALTED, request=request))
        await wait_moving(executor)
        added.append(await asyncio.to_thread(add_partition, kafka))
        await asyncio.to_thread(kafka.client.delete_topics, ["b"])
        await asyncio.to_thread(kafka.create_topic, "b", {0: [2, 1, 0]})
        executor.change_options(FAST)
        return await running

    outcome = executions.run(work)
    assert (outcome.end, outcome.not_completed, outcome.not_emptied) == (ExecutionEnd.FAILED, (), (NEW,))
    assert str(outcome.reason) == "broker 3 got 1 replica while it was emptied (a-3): do not switch it off"
    moved = {proposal.partition: list(proposal.new_replicas) for proposal in proposals if proposal.topic == "a"}
    assert kafka.list_replicas("a") == {**moved, 3: added[0]}
    assert sorted(kafka.list_replicas("b")) == [0]
    assert NEW not in kafka.list_replicas("b")[0]
    executions.check_nothing_left("a", "b")
    executions.wait_in_sync("a", "b")


def add_partition(kafka: RealKafka) -> list[int]:
    """A fourth partition of topic a, on the new broker too. It has as many replicas as Kafka asks for.

    Kafka counts those of partition 0, in both places while it moves.
    """
    for replicas in ([NEW, 1, 2, 0], [NEW, 1, 2]):
        with contextlib.suppress(InvalidReplicationAssignmentError):
            kafka.client.create_partitions({"a": {"count": 4, "assignments": [replicas]}})
            return replicas
    raise AssertionError("Kafka takes neither number of replicas")


def test_replicas_move_between_log_directories(kafka: RealKafka, executions: RealExecutions) -> None:
    executions.fill(topics=("a",), partitions=3)
    first, second = kafka.find_log_dirs(1)
    proposals = []
    for number, replicas in kafka.list_replicas("a").items():
        moves = (LogDirMove(broker=1, source=first, destination=second),)
        proposals.append(
            Proposal(
                topic="a",
                partition=number,
                old_leader=replicas[0],
                old_replicas=tuple(replicas),
                new_replicas=tuple(replicas),
                log_dir_moves=moves,
            )
        )
    outcome = executions.execute(proposals)
    assert outcome.end is ExecutionEnd.COMPLETED, outcome.not_completed

    async def read(executor: Executor) -> set[str]:
        logs = await executor._admin.describe_log_dirs(1)
        assert not any(replica.is_future for _, replica in logs.replicas)
        return {replica.log_dir for key, replica in logs.replicas if key.topic == "a"}

    assert executions.run(read) == {second}
    executions.check_nothing_left("a")


def test_only_an_empty_broker_that_is_gone_is_unregistered(kafka: RealKafka, executions: RealExecutions) -> None:
    executions.fill(topics=("a",), partitions=3)
    kafka.start_broker(NEW)
    assert executions.execute(executions.propose_add("a")).end is ExecutionEnd.COMPLETED

    async def is_gone(broker: int) -> bool:
        return broker not in kafka.running

    async def unregister(executor: Executor) -> object:
        return await unregister_broker(executor._admin, NEW, is_gone)

    def ask() -> str:
        reason = executions.run(unregister)
        return "" if reason is None else reason.code

    def list_registered() -> list[int]:
        return [node["broker_id"] for node in kafka.client.describe_cluster()["brokers"]]

    assert ask() == "BrokerRuns"
    kafka.stop_broker(NEW)
    kafka.wait_until(lambda: ask() == "HostsReplicas", "the broker is fenced and hosts replicas")
    assert executions.execute(executions.propose_remove("a")).end is ExecutionEnd.COMPLETED, "also off a dead broker"
    kafka.wait_until(lambda: ask() == "", "brokers know that no replica is left, and the broker is unregistered")
    kafka.wait_until(lambda: NEW not in list_registered(), "the registration is gone")
    assert ask() == "", "a second time there is nothing to do"

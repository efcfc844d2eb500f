"""Topics and partitions that are created, deleted or changed while they move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions, ExecutionRequest, TaskState
from tests.kafka.executor.simulated_clusters import MB, NEW, LaggingAdmin, run_cluster

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


def test_a_topic_deleted_while_it_moves_counts_as_completed():
    with run_cluster(size=100 * MB) as world:
        task = world.start(world.cluster.propose_add())
        world.run.advance_by(2)
        world.kafka.delete_topic("a")
        outcome = world.finish(task)
        assert outcome.end is ExecutionEnd.COMPLETED
        assert "a" not in world.kafka.catch_up().topics
        world.cluster.check_nothing_left()


def test_topics_created_while_others_move_are_left_alone():
    with run_cluster() as world:
        task = world.start(world.cluster.propose_add())
        world.run.advance_by(3)
        created = [[0, 1, 2]] * 3
        world.kafka.create_topic("c", created, size_bytes=20 * MB)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        topics = world.kafka.catch_up().topics
        assert [part.replicas for part in topics["c"].partitions.values()] == created
        assert not world.kafka.sent_targets.get(("c", 0))
        world.cluster.check_nothing_left()
        world.cluster.check_in_sync()


def test_a_topic_deleted_before_it_moves_counts_as_completed():
    with run_cluster() as world:
        proposals = world.cluster.propose_add()
        world.kafka.delete_topic("b")
        assert world.finish(world.start(proposals)).end is ExecutionEnd.COMPLETED
        world.cluster.check_nothing_left()


def test_a_partition_whose_replication_factor_changed_is_not_moved():
    with run_cluster() as world:
        proposals = world.cluster.propose_add()
        (first, *_) = proposals
        world.kafka.alter_reassignments({(first.topic, first.partition): first.old_replicas[:2]})
        outcome = world.finish(world.start(proposals))
        dead = [ended for ended in outcome.not_completed if ended.state is TaskState.DEAD]
        assert str(dead[0].reason) == "the partition has 2 replicas, and 3 when the move was planned"
        assert world.cluster.partition(first.topic, first.partition).replicas == list(first.old_replicas[:2])


# ---- partitions that are added


@pytest.mark.parametrize("at_s", [0, 3, 9])
def test_partitions_added_to_a_topic_while_it_moves_are_left_alone(at_s: int):
    with run_cluster(size=100 * MB) as world:
        proposals = world.cluster.propose_add()
        task = world.start(proposals)
        world.run.advance_by(at_s)
        added = [[2, 1, 0], [0, 2, 1]]
        world.kafka.add_partitions("a", added, size_bytes=30 * MB)
        outcome = world.finish(task)
        assert (outcome.end, outcome.not_completed) == (ExecutionEnd.COMPLETED, ())
        for moved in proposals:
            assert world.cluster.partition(moved.topic, moved.partition).replicas == list(moved.new_replicas)
        assert [world.cluster.partition("a", number).replicas for number in (3, 4)] == added
        assert not {("a", 3), ("a", 4)} & world.kafka.sent_targets.keys()
        world.cluster.check_nothing_left()
        world.cluster.check_in_sync()


def test_partitions_added_to_a_topic_are_moved_by_the_next_plan():
    with run_cluster(on_new=True, size=20 * MB) as world:
        task = world.start(world.cluster.propose_remove())
        world.run.advance_by(2)
        world.kafka.add_partitions("a", [[NEW, 1, 2]], size_bytes=20 * MB)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        world.run.run_until(world.executor.execute("e2", world.cluster.propose_remove(), ExecutionOptions()))
        assert not any(NEW in part.replicas for part in world.cluster.partitions())
        world.cluster.check_nothing_left()
        world.cluster.check_in_sync()


@pytest.mark.parametrize("creates_topic", [False, True])
def test_a_broker_that_gets_replicas_while_it_is_emptied_is_not_removed(
    creates_topic: bool, reviewed: ReviewedSentences
):
    """The movements are done, and a broker that is switched off now takes replicas with it."""
    with run_cluster(on_new=True, size=50 * MB) as world:
        request = ExecutionRequest(removed_brokers=(NEW,))
        task = world.run.spawn(
            world.executor.execute("e1", world.cluster.propose_remove(), ExecutionOptions(), request=request)
        )
        world.run.advance_by(2)
        if creates_topic:
            world.kafka.create_topic("c", [[NEW, 1, 2]], size_bytes=MB)
        else:
            world.kafka.add_partitions("a", [[NEW, 1, 2], [0, 1, 2]], size_bytes=MB)
        outcome = world.finish(task)
        assert (outcome.end, outcome.not_completed, outcome.not_emptied) == (ExecutionEnd.FAILED, (), (NEW,))
        reviewed(str(outcome.reason))
        assert world.until(world.executor.list_removed_brokers()) == []
        world.cluster.check_nothing_left()


def test_a_broker_that_is_emptied_counts_as_empty_also_if_an_old_answer_shows_its_replicas():
    with run_cluster(on_new=True) as world:
        admin = LaggingAdmin(world.kafka, world.run.clock, lag_s=4)
        world.executor = Executor(admin, world.run.clock, world.cluster.store)
        world.until(admin.describe_topics())
        request = ExecutionRequest(removed_brokers=(NEW,))
        moving = world.executor.execute("e1", world.cluster.propose_remove(), ExecutionOptions(), request=request)
        outcome = world.until(moving)
        assert (outcome.end, outcome.not_emptied) == (ExecutionEnd.COMPLETED, ())
        assert world.until(world.executor.list_removed_brokers()) == [NEW]


# ---- topics that are created again


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("at_s", [0, 3])
def test_a_topic_created_again_with_fewer_partitions_ends_the_movements_of_the_others(at_s: int, crashes: bool):
    """Kafka shows the new topic at once, so that the old one is never seen as deleted."""
    with run_cluster(partitions=12, size=100 * MB) as world:
        proposals = world.cluster.propose_add()
        task = world.start(proposals, ExecutionOptions(concurrent_partition_movements_per_broker=1))
        world.run.advance_by(at_s)
        if crashes:
            task.cancel()
            world.run.settle()
        world.kafka.delete_topic("a")
        created = [[0, 2, 1]]
        world.kafka.create_topic("a", created, size_bytes=5 * MB)
        if crashes:
            world.executor = world.cluster.build_executor()
            task = world.run.spawn(world.executor.resume())
        outcome = world.finish(task)
        assert (outcome.end, outcome.not_completed) == (ExecutionEnd.COMPLETED, ())
        assert outcome.completed >= len(proposals)
        assert len(world.kafka.catch_up().topics["a"].partitions) == 1
        for moved in proposals:
            if moved.topic == "b" or moved.partition == 0:
                assert world.cluster.partition(moved.topic, moved.partition).replicas == list(moved.new_replicas)
        world.cluster.check_nothing_left()
        world.cluster.check_in_sync()


def test_a_topic_created_again_with_another_replication_factor_is_not_moved():
    with run_cluster(size=100 * MB) as world:
        task = world.start(world.cluster.propose_add())
        world.run.advance_by(3)
        world.kafka.delete_topic("a")
        created = [[0, 1], [1, 2], [2, 0]]
        world.kafka.create_topic("a", created, size_bytes=5 * MB)
        outcome = world.finish(task)
        assert outcome.end is ExecutionEnd.FAILED
        assert {ended.proposal.topic for ended in outcome.not_completed} == {"a"}
        assert "the partition has 2 replicas, and 3 when the move was planned" in {
            str(ended.reason) for ended in outcome.not_completed
        }
        assert [part.replicas for part in world.kafka.catch_up().topics["a"].partitions.values()] == created
        world.cluster.check_nothing_left()
        world.cluster.check_in_sync()


def test_an_old_answer_without_a_partition_that_was_just_added_costs_no_movement():
    with run_cluster() as world:
        admin = LaggingAdmin(world.kafka, world.run.clock, lag_s=6)
        world.executor = Executor(admin, world.run.clock, world.cluster.store)
        world.until(admin.describe_topics())
        world.kafka.add_partitions("a", [[0, 1, 2]], size_bytes=20 * MB)
        outcome = world.finish(world.start([world.cluster.propose("a", 3, NEW, 1, 2)]))
        assert outcome.end is ExecutionEnd.COMPLETED
        assert world.cluster.partition("a", 3).replicas == [NEW, 1, 2]
        world.cluster.check_nothing_left()

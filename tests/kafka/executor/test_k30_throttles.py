"""K30: throttles are on exactly what moves, what others have set stays, and nothing of ours is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions, TaskType
from tests.kafka.executor.simulated_clusters import (
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    LISTS,
    MB,
    NEW,
    THROTTLED,
    Running,
    run_cluster,
)

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


def read_entries(world: Running, key: str) -> dict[str, set[str]]:
    return {
        name: set(values[key].split(","))
        for (kind, name), values in world.cluster.throttles().items()
        if kind == "topic" and key in values
    }


def test_k30_throttles_of_a_removal_name_exactly_what_moves():
    with run_cluster(on_new=True) as world:
        proposals = world.cluster.propose_remove()
        one_each = ExecutionOptions(replication_throttle=5 * MB, max_partition_movements_in_cluster=1)
        task = world.start(proposals, one_each)
        seen = []
        while not task.done():
            moving = [part for part in world.cluster.partitions() if part.is_reassigning]
            throttles = world.cluster.throttles()
            if moving:
                (part,) = moving
                seen.append(part.key)
                old = set(part.replicas) - set(part.adding)
                assert read_entries(world, LEADER_LIST) == {part.topic: {f"{part.partition}:{b}" for b in old}}
                assert read_entries(world, FOLLOWER_LIST) == {
                    part.topic: {f"{part.partition}:{b}" for b in part.adding}
                }
                rates = {
                    (int(name), key) for (kind, name), values in throttles.items() if kind == "broker" for key in values
                }
                assert rates == {(b, LEADER_RATE) for b in old} | {(b, FOLLOWER_RATE) for b in part.adding}
                assert world.cluster.rates() == {str(5 * MB)}
            world.run.advance_by(1)
        assert len(set(seen)) == len(proposals)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        world.cluster.check_nothing_left()
        world.cluster.check_in_sync()
        assert not any(NEW in part.replicas for part in world.cluster.partitions())


def test_k30_a_star_stays_and_foreign_entries_and_rates_stay():
    with run_cluster(on_new=True) as world:
        world.cluster.set("topic", "a", LEADER_LIST, "*")
        world.cluster.set("topic", "b", FOLLOWER_LIST, "7:7")
        world.cluster.set("broker", "1", LEADER_RATE, "777")
        before = world.cluster.throttles()
        task = world.start(world.cluster.propose_remove())
        during = world.cluster.throttles()
        assert during["topic", "a"][LEADER_LIST] == "*"
        assert during["topic", "a"][FOLLOWER_LIST], "the other list of the topic is ours to use"
        assert during["topic", "b"][FOLLOWER_LIST].startswith("7:7,")
        assert during["broker", "1"][LEADER_RATE] == "777"
        codes = {reason.code: reason for reason in world.executor.get_progress().held}
        assert "broker 1 has a throttle rate of another client" in codes["ForeignThrottle"].message
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        assert world.cluster.throttles() == before


def test_k30_an_entry_that_another_client_set_before_is_not_removed():
    with run_cluster(on_new=True) as world:
        (first, *_) = world.cluster.propose_remove()
        entry = f"{first.partition}:{first.old_replicas[0]}"
        world.cluster.set("topic", first.topic, LEADER_LIST, entry)
        task = world.start([first])
        assert entry in world.cluster.throttles()["topic", first.topic][LEADER_LIST].split(",")
        world.finish(task)
        assert world.cluster.throttles() == {("topic", first.topic): {LEADER_LIST: entry}}


def test_k30_nothing_is_left_after_a_stop():
    with run_cluster(on_new=True, size=200 * MB) as world:
        before = world.cluster.assignment()
        task = world.start(world.cluster.propose_remove())
        world.run.advance_by(3)
        assert world.cluster.throttles()
        outcome = world.until(world.executor.stop())
        assert outcome is world.finish(task)
        assert outcome.end is ExecutionEnd.STOPPED
        world.cluster.check_nothing_left()
        assert world.cluster.assignment() == before, "also the order of replicas is as before"
        moves = [ended for ended in outcome.not_completed if ended.type is TaskType.INTER_BROKER_REPLICA_ACTION]
        assert len(moves) == len(world.cluster.propose_remove())
        for ended in outcome.not_completed:
            assert ended.reason is not None
            stays = f"the replicas stay on {list(ended.proposal.old_replicas)}"
            if ended.type is TaskType.LEADER_ACTION:
                stays = f"broker {ended.proposal.old_leader} still leads"
            assert stays in ended.reason.message


def test_a_static_rate_is_neither_foreign_nor_removed():
    with run_cluster(on_new=True) as world:
        world.kafka.catch_up().brokers[0].static_settings[LEADER_RATE] = "999"
        task = world.start(world.cluster.propose_remove())
        assert world.cluster.throttles()["broker", "0"][LEADER_RATE] == str(5 * MB)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        world.cluster.check_nothing_left()
        assert world.kafka.catch_up().brokers[0].static_settings[LEADER_RATE] == "999"


def test_a_rate_that_another_client_sets_while_we_move_stays():
    with run_cluster(on_new=True) as world:
        task = world.start(world.cluster.propose_remove())
        world.cluster.set("broker", "0", LEADER_RATE, "123456")
        world.finish(task)
        assert world.cluster.throttles() == {("broker", "0"): {LEADER_RATE: "123456"}}


def test_a_list_that_becomes_a_star_while_we_move_stays_a_star():
    with run_cluster(on_new=True) as world:
        task = world.start(
            world.cluster.propose_remove(),
            ExecutionOptions(replication_throttle=5 * MB, max_partition_movements_in_cluster=1),
        )
        for topic in "ab":
            for key in LISTS:
                world.cluster.set("topic", topic, key, "*")
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        assert world.cluster.throttles() == {("topic", t): dict.fromkeys(LISTS, "*") for t in "ab"}


def test_without_a_rate_nothing_is_throttled():
    with run_cluster(on_new=True) as world:
        world.finish(world.start(world.cluster.propose_remove(), ExecutionOptions()))
        assert world.kafka.requests["alter_configs"] == 0


def test_the_throttle_of_a_running_execution_can_be_changed():
    with run_cluster(on_new=True, size=200 * MB) as world:
        task = world.start(world.cluster.propose_remove())
        world.executor.change_options(ExecutionOptions(replication_throttle=MB, max_partition_movements_in_cluster=9))
        world.run.advance_by(2)
        rates = {
            v for (kind, _), values in world.cluster.throttles().items() if kind == "broker" for v in values.values()
        }
        assert rates == {str(MB)}
        world.executor.change_options(ExecutionOptions())
        world.run.advance_by(2)
        assert world.cluster.throttles() == {}
        assert world.finish(task).end is ExecutionEnd.COMPLETED


@pytest.mark.parametrize("rate", [0, -1, 2**70])
def test_an_absurd_rate_is_refused_by_name(rate: int, reviewed: ReviewedSentences):
    with run_cluster() as world:
        execution = world.executor.execute(
            "e1", world.cluster.propose_add(), ExecutionOptions(replication_throttle=rate)
        )
        with pytest.raises(InvalidInput) as raised:
            world.until(execution)
        reviewed(str(raised.value))


def test_the_throttle_holds_the_speed_of_each_broker():
    with run_cluster(on_new=True, size=50 * MB) as world:
        start = world.run.clock.monotonic_s()
        world.finish(world.start(world.cluster.propose_remove(), THROTTLED))
        throttled_s = world.run.clock.monotonic_s() - start
        assert throttled_s >= 10, "50 MB at 5 MB/s"

"""Simulated brokers keep the facts that were seen on real ones."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from plimsoll.local.kafka.answers import NoAnswer, RequestRefused
from plimsoll.local.kafka.cluster import SimulatedKafka
from plimsoll.local.kafka.settings import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, SettingChange
from plimsoll.runtime.virtual_run import VirtualRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.kafka.partitions import SimulatedPartition

MB = 1_000_000
A0 = ("a", 0)


class World:
    def __init__(self, run: VirtualRun) -> None:
        self.run = run
        self.kafka = SimulatedKafka(run.clock)
        for broker in range(4):
            self.kafka.add_broker(broker, rack=f"r{broker % 3}", bytes_per_s=10 * MB)
        self.kafka.create_topic("a", [[0, 1, 2]], size_bytes=100 * MB)

    def partition(self, topic: str = "a", number: int = 0) -> SimulatedPartition:
        return self.kafka.catch_up().topics[topic].partitions[number]

    def change(self, kind: str, name: str, *changes: tuple[str, str, str]) -> str:
        answer = self.kafka.alter_settings({(kind, name): [SettingChange(*change) for change in changes]})
        error = answer[kind, name]
        return "" if error is None else error.code

    def read(self, kind: str, name: str, key: str) -> str | None:
        found = self.kafka.describe_settings([(kind, name)], [key])[kind, name]
        assert isinstance(found, dict)
        return found[key].value if key in found else None

    def reassign(self, *target: int) -> str:
        error = self.kafka.alter_reassignments({A0: target or None})[A0]
        return "" if error is None else error.code


@contextmanager
def simulate() -> Iterator[World]:
    with VirtualRun() as run:
        yield World(run)


@pytest.fixture
def world() -> Iterator[World]:
    with simulate() as made:
        yield made


# ---- reassignments


def test_a_reassignment_takes_as_long_as_the_network_needs(world: World):
    assert world.reassign(3, 1, 2) == ""
    assert world.kafka.list_reassignments()[A0] == ((3, 1, 2, 0), (3,), (0,))
    world.run.advance_by(9.9)
    assert A0 in world.kafka.list_reassignments()
    assert world.partition().logs[3].size == pytest.approx(99 * MB)
    world.run.advance_by(0.1)
    assert world.kafka.list_reassignments() == {}
    partition = world.partition()
    assert (partition.replicas, sorted(partition.isr), partition.leader) == ([3, 1, 2], [1, 2, 3], 3)
    assert sorted(partition.logs) == [1, 2, 3]


def test_a_throttle_slows_exactly_the_replicas_that_its_lists_name(world: World):
    world.kafka.create_topic("b", [[1, 2, 0]], size_bytes=100 * MB)
    world.change("topic", "a", (FOLLOWER_REPLICAS, "SET", "0:3"))
    world.change("broker", "3", (FOLLOWER_RATE, "SET", str(MB)))
    world.kafka.alter_reassignments({A0: [3, 1, 2], ("b", 0): [3, 2, 0]})
    world.run.advance_by(20)
    assert world.partition("b").replicas == [3, 2, 0]
    assert world.partition().logs[3].size == pytest.approx(20 * MB)
    world.change("broker", "3", (FOLLOWER_RATE, "DELETE", ""))
    world.run.advance_by(8)
    assert world.partition().replicas == [3, 1, 2]


def test_a_leader_throttle_is_shared_by_the_fetches_from_the_broker(world: World):
    world.kafka.create_topic("b", [[0, 1]], size_bytes=100 * MB)
    for topic in "ab":
        world.change("topic", topic, (LEADER_REPLICAS, "SET", "*"))
    world.change("broker", "0", (LEADER_RATE, "SET", str(2 * MB)))
    world.kafka.alter_reassignments({A0: [3, 1, 2], ("b", 0): [2, 1]})
    world.run.advance_by(10)
    assert world.partition().logs[3].size == pytest.approx(10 * MB)
    assert world.partition("b").logs[2].size == pytest.approx(10 * MB)


def test_cancelling_restores_the_replicas_and_twice_is_an_error(world: World):
    world.reassign(3, 1, 2)
    world.run.advance_by(5)
    assert world.reassign() == ""
    partition = world.partition()
    assert sorted(partition.replicas) == [0, 1, 2]
    assert sorted(partition.logs) == [0, 1, 2]
    assert partition.leader == 0
    assert world.reassign() == "NO_REASSIGNMENT_IN_PROGRESS"


@pytest.mark.parametrize("target", [(9, 1, 2), (1, 1, 2)])
def test_unknown_and_duplicate_brokers_are_refused_per_partition(world: World, target: tuple[int, ...]):
    assert world.reassign(*target) == "INVALID_REPLICA_ASSIGNMENT"
    answer = world.kafka.alter_reassignments({("gone", 0): [0]})
    assert [error.code for error in answer.values() if error] == ["UNKNOWN_TOPIC_OR_PARTITION"]


def test_a_new_order_of_the_same_replicas_is_there_at_once_and_elects_by_request(world: World):
    world.reassign(2, 1, 0)
    assert world.partition().replicas == [2, 1, 0]
    assert world.partition().leader == 0
    assert world.kafka.elect_preferred_leaders([A0])[A0] is None
    assert world.partition().leader == 2
    answer = world.kafka.elect_preferred_leaders([A0, ("x", 1)])
    assert [error.code for error in answer.values() if error] == ["ELECTION_NOT_NEEDED", "UNKNOWN_TOPIC_OR_PARTITION"]


def test_produced_data_reaches_new_replicas_too(world: World):
    world.kafka.set_rates("a", 0, bytes_in_per_s=5 * MB)
    world.reassign(3, 1, 2)
    world.run.advance_by(19)
    assert world.partition().is_reassigning
    world.run.advance_by(1.1)
    partition = world.partition()
    assert partition.replicas == [3, 1, 2]
    assert [log.size for log in partition.logs.values()] == pytest.approx([partition.end] * 3)
    assert partition.end == pytest.approx(200.5 * MB)


# ---- settings


def test_appended_entries_merge_and_the_last_subtracted_leaves_an_empty_value(world: World):
    assert world.change("topic", "a", (LEADER_REPLICAS, "APPEND", "0:1,0:2")) == ""
    assert world.change("topic", "a", (LEADER_REPLICAS, "APPEND", "0:2,0:0")) == ""
    assert world.read("topic", "a", LEADER_REPLICAS) == "0:1,0:2,0:0"
    assert world.change("topic", "a", (LEADER_REPLICAS, "SUBTRACT", "0:1,0:2,7:7,0:0")) == ""
    assert world.read("topic", "a", LEADER_REPLICAS) == ""
    assert world.change("topic", "a", (LEADER_REPLICAS, "DELETE", "")) == ""
    assert world.read("topic", "a", LEADER_REPLICAS) is None


def test_a_star_stays_and_nothing_else_of_that_request_applies(world: World):
    world.change("topic", "a", (LEADER_REPLICAS, "SET", "*"))
    both = ((FOLLOWER_REPLICAS, "APPEND", "0:3"), (LEADER_REPLICAS, "APPEND", "0:1"))
    assert world.change("topic", "a", *both) == "INVALID_CONFIG"
    assert world.read("topic", "a", LEADER_REPLICAS) == "*"
    assert world.read("topic", "a", FOLLOWER_REPLICAS) is None


def test_settings_of_a_broker_are_its_own(world: World):
    world.kafka.kill_broker(3)
    assert world.change("broker", "3", (LEADER_RATE, "SET", "5")) == "REQUEST_TIMED_OUT"
    assert world.change("topic", "gone", (LEADER_REPLICAS, "APPEND", "0:1")) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert world.change("broker", "2", (LEADER_RATE, "SET", "-5")) == "INVALID_CONFIG"
    assert world.change("broker", "2", (LEADER_RATE, "APPEND", "5")) == "INVALID_CONFIG"


def test_cordoned_brokers_get_no_new_topics_and_take_explicit_reassignments(world: World):
    world.change("broker", "3", ("cordoned.log.dirs", "SET", "*"))
    assert world.read("broker", "3", "cordoned.log.dirs") == ""
    world.kafka.place_topic("new", partitions=12, replication_factor=3)
    state = world.kafka.catch_up()
    assert {broker for part in state.topics["new"].partitions.values() for broker in part.replicas} == {0, 1, 2}
    assert world.reassign(3, 1, 2) == ""
    with pytest.raises(RequestRefused, match="INVALID_REPLICATION_FACTOR"):
        world.kafka.place_topic("wide", partitions=1, replication_factor=4)


# ---- faults


def test_a_dead_broker_is_fenced_after_the_session_and_catches_up_when_it_is_back(world: World):
    world.kafka.set_rates("a", 0, bytes_in_per_s=MB)
    world.kafka.kill_broker(0)
    world.run.advance_by(8)
    assert world.partition().leader == 0
    assert world.partition().end == 100 * MB, "producers wait for a replica that does not answer"
    world.run.advance_by(2)
    partition = world.partition()
    assert (partition.leader, partition.isr) == (1, [1, 2])
    world.run.advance_by(9)
    world.kafka.start_broker(0)
    assert world.partition().isr == [1, 2]
    world.run.advance_by(2)
    assert sorted(world.partition().isr) == [0, 1, 2]
    assert world.partition().leader == 1


def test_the_last_in_sync_replica_is_waited_for(world: World):
    world.kafka.create_topic("single", [[3]], size_bytes=MB)
    world.kafka.kill_broker(3)
    world.run.advance_by(10)
    assert (world.partition("single").leader, world.partition("single").isr) == (-1, [3])
    world.kafka.start_broker(3)
    assert world.partition("single").leader == 3


def test_a_volume_that_runs_full_goes_offline_and_its_replicas_with_it(world: World):
    world.kafka.add_broker(4, log_dirs={"/small": 50 * MB}, bytes_per_s=10 * MB)
    world.reassign(4, 1, 2)
    world.run.advance_by(20)
    state = world.kafka.catch_up()
    assert not state.brokers[4].log_dirs["/small"].is_online
    assert world.partition().is_reassigning
    assert world.partition().logs[4].size == pytest.approx(50 * MB)


def test_unregistering_a_live_broker_takes_its_replicas_offline(world: World):
    assert world.kafka.unregister_broker(2) is None
    assert world.partition().isr == [0, 1]
    error = world.kafka.unregister_broker(2)
    assert error is not None
    assert error.code == "BROKER_ID_NOT_REGISTERED"
    world.kafka.start_broker(2)
    assert sorted(world.partition().isr) == [0, 1, 2]


def test_a_slow_broker_slows_its_moves_and_rejected_requests_have_no_effect(world: World):
    world.kafka.slow_broker(3, MB)
    world.kafka.reject("alter_reassignments", RequestRefused("CLUSTER_AUTHORIZATION_FAILED"))
    with pytest.raises(RequestRefused, match="CLUSTER_AUTHORIZATION_FAILED"):
        world.reassign(3, 1, 2)
    assert world.kafka.list_reassignments() == {}
    world.reassign(3, 1, 2)
    world.run.advance_by(10)
    assert world.partition().logs[3].size == pytest.approx(10 * MB)


def test_without_a_broker_there_is_no_answer(world: World):
    for broker in range(4):
        world.kafka.kill_broker(broker)
    with pytest.raises(NoAnswer):
        world.kafka.list_reassignments()


# ---- log directories


def test_a_replica_moves_between_log_directories_and_back_cancels(world: World):
    world.kafka.add_broker(5, log_dirs={"/one": 1 << 40, "/two": 1 << 40}, bytes_per_s=10 * MB)
    world.kafka.create_topic("j", [[5]], size_bytes=100 * MB)
    key = ("j", 0)
    assert world.kafka.alter_replica_log_dirs([(key, 5, "/two")]) == {(key, 5, "/two"): None}
    world.run.advance_by(5)
    log = world.partition("j").logs[5]
    assert (log.path, log.future_path, log.future_size) == ("/one", "/two", pytest.approx(50 * MB))
    world.kafka.alter_replica_log_dirs([(key, 5, "/one")])
    assert world.partition("j").logs[5].future_path == ""
    world.kafka.alter_replica_log_dirs([(key, 5, "/two")])
    world.run.advance_by(10)
    assert world.partition("j").logs[5].path == "/two"
    moves = [(key, 5, "/none"), (key, 9, "/two"), (key, 1, "/data")]
    codes = [error.code for error in world.kafka.alter_replica_log_dirs(moves).values() if error]
    assert codes == ["LOG_DIR_NOT_FOUND", "REQUEST_TIMED_OUT", "REPLICA_NOT_AVAILABLE"]


def test_reading_often_or_seldom_gives_the_same_state():
    def run(steps: int) -> tuple[float, list[int]]:
        with simulate() as world:
            world.kafka.set_rates("a", 0, bytes_in_per_s=MB / 3)
            world.reassign(3, 1, 2)
            for _ in range(steps):
                world.run.advance_by(9 / steps)
                world.kafka.catch_up()
            return round(world.partition().logs[3].size), world.partition().replicas

    assert run(1) == run(7) == run(90)

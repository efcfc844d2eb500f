"""Simulated clusters that are stored: a new process goes on with the same brokers, replicas, sizes and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.kafka.settings import SettingChange
from plimsoll.local.kafka.snapshot_store import build_config_map_name
from tests.local.apiserver.builders import MERGE
from tests.local.kafka.kafka_cluster import KAFKAS, PODS, LocalKafkaCluster
from tests.local.kafka.test_simulated_brokers import TOPICS
from tests.objects.crds.kafka_definitions import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{build_config_map_name('c')}"


@pytest.fixture
def world() -> Iterator[LocalKafkaCluster]:
    with LocalKafkaCluster(keeps_state=True) as world:
        world.make_kafka(topics=TOPICS)
        world.make_pods(0, 1, 2)
        yield world


def restart(world: LocalKafkaCluster) -> None:
    world.run.advance_by(30)
    world.kill()
    world.start()
    world.run.advance_by(1)


def test_a_new_process_finds_what_was_moved_deleted_and_set(world: LocalKafkaCluster):
    world.make_pods(3)
    world.kafka.alter_reassignments({("orders", 0): [3, 1, 2]})
    world.kafka.delete_topic("rates")
    world.kafka.alter_settings({("broker", "3"): [SettingChange("cordoned.log.dirs", "SET", "*")]})
    world.run.advance_by(60)
    before, cluster_id = world.list_replicas("orders"), world.kafka.cluster_id
    old = world.kafka
    restart(world)
    assert world.kafka is not old
    assert world.list_replicas("orders") == before
    assert before[0] == (3, 1, 2)
    state = world.kafka.catch_up()
    assert sorted(state.topics) == ["orders"]
    assert state.topics["orders"].partitions[0].logs[3].size == 1 << 20
    assert state.list_cordoned(state.brokers[3]) == frozenset(state.brokers[3].log_dirs)
    assert world.kafka.cluster_id == cluster_id
    assert world.alive == {0: "a", 1: "b", 2: "c", 3: "a"}


def test_a_move_that_was_under_way_goes_on(world: LocalKafkaCluster):
    world.make_pods(3)
    world.kafka.slow_broker(3, 1000.0)
    world.kafka.alter_reassignments({("orders", 0): [3, 1, 2]})
    restart(world)
    assert world.kafka.list_reassignments()["orders", 0].adding == (3,)
    world.kafka.slow_broker(3, 1e9)
    world.run.advance_by(5)
    assert not world.kafka.list_reassignments()
    assert world.list_replicas("orders")[0] == (3, 1, 2)


def test_pods_that_went_meanwhile_are_fenced(world: LocalKafkaCluster):
    world.run.advance_by(30)
    world.kill()
    world.delete(f"{PODS}/c-p-1")
    world.start()
    world.run.advance_by(60)
    assert world.alive == {0: "a", 2: "c"}
    assert world.kafka.catch_up().brokers[1].is_fenced


def test_a_quiet_cluster_is_not_written_again(world: LocalKafkaCluster):
    world.run.advance_by(30)
    version = world.ask("GET", MAP).body["metadata"]["resourceVersion"]
    world.run.advance_by(3600)
    assert world.ask("GET", MAP).body["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize("value", ["", "nonsense!", "bm9uc2Vuc2U="])
def test_a_state_that_cannot_be_used_begins_anew(world: LocalKafkaCluster, value: Any):
    world.run.advance_by(30)
    world.kill()
    assert world.ask("PATCH", MAP, {"data": {"state": value}}, content=MERGE).status == 200
    world.start()
    world.run.advance_by(30)
    assert world.alive == {0: "a", 1: "b", 2: "c"}
    assert sorted(world.kafka.catch_up().topics) == ["orders", "rates"]


def test_a_kafka_made_anew_does_not_get_the_state_of_the_old_one(world: LocalKafkaCluster):
    world.kafka.delete_topic("orders")
    world.run.advance_by(30)
    world.delete(f"{KAFKAS}/c")
    world.make_kafka()
    restart(world)
    assert world.kafka.catch_up().topics == {}


def test_a_namespace_that_is_being_deleted_is_no_failure(world: LocalKafkaCluster, capsys: pytest.CaptureFixture[str]):
    world.run.advance_by(30)
    world.delete(f"/api/v1/namespaces/{NAMESPACE}")
    world.delete(MAP)
    capsys.readouterr()
    world.kafka.delete_topic("orders")
    world.run.advance_by(60)
    assert "reconcile.failed" not in capsys.readouterr().out

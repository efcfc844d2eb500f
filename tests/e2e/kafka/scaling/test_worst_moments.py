"""Topics and pools change at the worst moments of a scaling, on real brokers under load. Nothing is lost or left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kafka import errors

from tests.e2e.kafka.record_traffic import GROUP, RecordTraffic
from tests.e2e.kafka.scaling.kafka_chain import MOVING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.kafka.scaling.kafka_chain import KafkaChain

TOPICS = [f"written-{number}" for number in range(6)]
NEW = 3
"""The broker that comes and goes."""
OTHER = 10
"""The broker of the other pool."""
OFFSETS = "__consumer_offsets"


@pytest.fixture(scope="module")
def written(chain: KafkaChain) -> KafkaChain:
    chain.create_topics(TOPICS)
    return chain


@pytest.fixture
def traffic(written: KafkaChain) -> Iterator[RecordTraffic]:
    """Records are written and read all the time; afterwards each acknowledged one was read, in order."""
    with RecordTraffic(written.bootstrap, TOPICS) as running:
        yield running
        running.finish()
    assert sum(map(len, running.acknowledged.values())) > len(TOPICS)
    assert not running.refused
    assert running.list_unread() == []
    assert running.list_disordered() == []
    assert written.list_leftovers() == []


def create_filled(chain: KafkaChain, *names: str) -> None:
    """Topics that take some seconds to move."""
    chain.create_topics(names)
    for name in names:
        chain.produce(name, 3_000_000)


@pytest.mark.usefixtures("traffic")
def test_topics_are_created_enlarged_and_deleted_while_replicas_move(written: KafkaChain):
    chain = written
    create_filled(chain, "enlarged", "deleted-early", "deleted-late")
    chain.scale(4)
    chain.wait_for_state(MOVING)
    chain.enlarge_topic("enlarged", 3)
    chain.delete_topics(["deleted-early"])
    chain.create_topics(["created-early"], partitions=4)
    chain.wait_until_grown(NEW)
    chain.wait_until_done()
    assert chain.list_registered() == [0, 1, 2, 3]
    assert chain.list_replicas("deleted-early") == {}

    chain.create_assigned_topic("still", {0: [0, 1, 2]})
    move_offsets(chain)
    committed = read_committed(chain)
    assert committed
    chain.scale(3)
    mend_replication_factor(chain)
    chain.wait_for_state(MOVING)
    chain.enlarge_topic("still", 3, assignment=[[0, 1, NEW], [NEW, 0, 2]])
    chain.delete_topics(["deleted-late"])
    chain.up.until(lambda: chain.count_replicas().get(NEW, 0) <= 2, "the last replicas leave")
    chain.create_assigned_topic("created-late", {0: [0, 1, NEW], 1: [NEW, 1, 2]})
    chain.wait_until_shrunk(NEW)
    chain.wait_until_done()
    assert set(chain.count_replicas()) == {0, 1, 2}
    sizes = {name: len(chain.list_replicas(name)) for name in ("enlarged", "still", "created-late", "deleted-late")}
    assert sizes == {"enlarged": 3, "still": 3, "created-late": 2, "deleted-late": 0}
    assert all(read_committed(chain)[place] >= offset for place, offset in committed.items())


def mend_replication_factor(chain: KafkaChain) -> None:
    """Kafka gives partitions that are added while partition 0 moves as many replicas as are in both places.

    With them three brokers are too few. The condition names the topic, and nothing goes until a user has mended it.
    """
    targets = {("enlarged", number): ids[:3] for number, ids in chain.list_replicas("enlarged").items() if len(ids) > 3}
    if not targets:
        return
    chain.wait_for_state("NotReady")
    assert "enlarged" in str(chain.list_conditions("kafkas", "my-cluster"))
    assert chain.find_pod(NEW) is not None
    chain.reassign(targets)
    rebalance = "kafkarebalance/my-cluster-auto-rebalancing-remove-brokers"
    chain.up.kubectl("annotate", rebalance, "-n", "kafka", "strimzi.io/rebalance=refresh")


def move_offsets(chain: KafkaChain) -> None:
    """The consumer group's offsets are on the broker that will leave."""
    targets = {(OFFSETS, number): [NEW, 0, 1] for number in chain.list_replicas(OFFSETS)}
    chain.reassign(targets)
    chain.up.until(lambda: not chain.ask(lambda admin: admin.list_reassignments()), "the offsets have moved")
    assert set(chain.list_replicas(OFFSETS).values()) == {(NEW, 0, 1)}


def read_committed(chain: KafkaChain) -> dict[object, int]:
    """The offsets of the group. A coordinator that has just become leader loads them first."""
    found: dict[object, int] = {}

    def read() -> bool:
        with chain.client() as client:
            try:
                offsets = client.list_group_offsets({GROUP: None})[GROUP]
            except errors.CoordinatorLoadInProgressError:
                return False
        found.update((place, offset.offset) for place, offset in offsets.items())
        return True

    chain.up.until(read, "the coordinator has loaded the offsets")
    return found


@pytest.mark.usefixtures("traffic")
def test_replicas_are_raised_again_and_two_pools_go_in_opposite_directions(written: KafkaChain):
    chain = written
    chain.grow()
    chain.wait_until_done()
    pod = chain.find_pod(NEW)
    assert pod is not None
    chain.scale(3)
    chain.wait_for_state(MOVING)
    chain.scale(4)
    chain.up.until(lambda: chain.count_replicas().get(NEW, 0) > 0, "replicas are back")
    chain.wait_until_done()
    kept = chain.find_pod(NEW)
    assert kept is not None
    assert kept["metadata"]["uid"] == pod["metadata"]["uid"], "its pod never went"
    assert chain.list_registered() == [0, 1, 2, 3]
    assert chain.count_replicas()[NEW] > 0

    chain.create_pool("others", 1, node_ids="[10-19]")
    chain.scale(3)
    chain.wait_until_shrunk(NEW)
    chain.up.until(lambda: chain.count_replicas().get(OTHER), "the other pool has replicas")
    chain.wait_until_done()
    assert set(chain.count_replicas()) == {0, 1, 2, OTHER}
    chain.delete_pool("others")
    chain.up.until(lambda: chain.list_registered() == [0, 1, 2], "the deleted pool is empty and gone")
    chain.wait_until_done()
    assert set(chain.count_replicas()) == {0, 1, 2}
    assert [pool["metadata"]["name"] for pool in chain.up.objects("kafkanodepools", "-n", "kafka")] == [
        "brokers",
        "controllers",
    ]

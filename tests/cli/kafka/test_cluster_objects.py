"""`plimsoll kafka status` of the Kafka objects of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from plimsoll.cli.kafka.objects import list_clusters, read_clusters
from plimsoll.cli.shared.output import Table
from plimsoll.core.errors import InvalidInput
from tests.app.kafka.kafka_world import KafkaWorld
from tests.kafka.controllers.operator_bench import MB
from tests.kafka.controllers.pod_set_cluster import PodSetCluster
from tests.kafka.controllers.test_k39_companion import CompanionBench

if TYPE_CHECKING:
    from plimsoll.kafka.reporting.cluster_overview import ClusterOverview
    from tests.golden.reviewed_sentences import ReviewedSentences


def read(world: PodSetCluster, namespace: str = "") -> tuple[ClusterOverview, ...]:
    return world.run.run_until(read_clusters(world.connect("kubectl"), namespace))


def test_it_shows_state_brokers_rebalance_and_since_when():
    with KafkaWorld() as world:
        world.start_process("operator")
        world.make_kafka()
        world.make_pool()
        world.advance_until(lambda: "clusterId" in world.status_of_kafka, within_s=120)
        (quiet,) = read(world)
        assert (quiet.ready, quiet.state, quiet.add_brokers, quiet.rebalances) == ("True", "", (), ())

        world.brokers.create_topic("orders", [[n % 3, (n + 1) % 3] for n in range(30)], size_bytes=500 * MB)
        world.scale(4)
        world.advance_until(lambda: world.state == "Rebalancing", within_s=60)
        (busy,) = read(world, "kafka")
        assert (busy.namespace, busy.name, busy.state, busy.add_brokers) == ("kafka", "c", "Rebalancing", (3,))
        assert busy.since is not None
        table = list_clusters([busy])[0]
        assert isinstance(table, Table)
        assert table.rows[0][:7] == (
            "kafka",
            "c",
            "True",
            "Rebalancing",
            "3",
            "-",
            "c-auto-rebalancing-add-brokers (Rebalancing)",
        )
        data = msgspec.to_builtins(busy)
        assert data["addBrokers"] == (3,)
        assert [rebalance["state"] for rebalance in data["rebalances"]] == ["Rebalancing"]
        assert read(world, "other") == ()


def test_a_cluster_with_a_problem_says_which():
    with KafkaWorld() as world:
        world.start_process("operator")
        world.make_kafka(modes=[{"mode": "add-brokers", "settings": "missing"}])
        world.make_pool(ids="nonsense")
        world.run.advance_by(30)
        (cluster,) = read(world)
        assert cluster.problem
        assert f"kafka/c: {cluster.problem}" in list_clusters([cluster])


def test_beside_strimzi_it_shows_what_the_companion_stores():
    with CompanionBench() as world:
        world.make_running()
        world.scale(4)
        world.run_strimzi()
        world.make_all_ready()
        world.step(3)
        (cluster,) = read(world)
        assert cluster.add_brokers == (3,)
        assert cluster.state in {"ScalingUp", "PendingProposal"}
        assert "cruiseControl" not in world.status_of_kafka


def test_without_definitions_it_says_so(reviewed: ReviewedSentences):
    with PodSetCluster(definitions=()) as world, pytest.raises(InvalidInput) as raised:
        read(world)
    reviewed(str(raised.value))


def test_without_a_kafka_it_says_so():
    assert list_clusters([]) == ["there is no Kafka"]

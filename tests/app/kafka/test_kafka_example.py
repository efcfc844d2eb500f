"""`examples/kafka/cluster.yaml` in what `plimsoll up` runs: it does what its first lines promise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from plimsoll.app.kafka.embedded_kafka import EmbeddedKafka, EmbeddedKafkaDependencies
from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kafka.engine.engine import run_inline
from plimsoll.runtime.entropy import SeededEntropy
from tests.local.kafka.kafka_cluster import LocalKafkaCluster
from tests.objects.crds.kafka_definitions import NAMESPACE, PLURALS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service

EXAMPLE = Path(__file__).parents[3] / "examples" / "kafka" / "cluster.yaml"
POOL = f"/apis/kafka.strimzi.io/v1/namespaces/{NAMESPACE}/kafkanodepools/brokers"


class OperatedKafkaCluster(LocalKafkaCluster):
    """With the operator, beside scheduler and kubelets."""

    def _build_parts(self, components: Components) -> Sequence[Service]:
        services = super()._build_parts(components)
        dependencies = EmbeddedKafkaDependencies(
            connector=SimulatedBrokers(self.clusters.find),
            clock=self.run.clock,
            entropy=SeededEntropy("up"),
            journal=MemoryJournal(),
            run_blocking=run_inline,
        )
        return [*services, *EmbeddedKafka(components, dependencies).list_services()]


def count_replicas(world: OperatedKafkaCluster) -> dict[int, int]:
    """By registered broker."""
    kafka = world.clusters.find(NAMESPACE, "my-cluster")
    assert kafka is not None
    state = kafka.catch_up()
    return {
        broker.id: sum(broker.id in partition.replicas for partition in state.iterate_partitions())
        for broker in state.brokers.values()
        if broker.is_registered
    }


def test_the_example_scales_up_and_down():
    with OperatedKafkaCluster() as world:
        for body in yaml.safe_load_all(EXAMPLE.read_text()):
            if body["kind"] in PLURALS:
                world.made(f"/apis/{body['apiVersion']}/namespaces/{NAMESPACE}/{PLURALS[body['kind']]}", body)
        world.run.advance_by(120)
        assert count_replicas(world) == {0: 18, 1: 18, 2: 18}

        world.patch(POOL, {"spec": {"replicas": 4}})
        world.run.advance_by(1800)
        assert count_replicas(world)[3] == 9, "it shares the replicas of its zone with the broker that was there"

        world.patch(POOL, {"spec": {"replicas": 3}})
        world.run.advance_by(1800)
        assert count_replicas(world) == {0: 18, 1: 18, 2: 18}

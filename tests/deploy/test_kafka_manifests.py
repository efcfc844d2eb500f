"""The rights that deploy/kafka grants are enough for the operator."""

from __future__ import annotations

from plimsoll.kafka.rivals import refuse_rivals
from tests.app.kafka.kafka_world import KafkaWorld
from tests.deploy.manifests import install_account
from tests.kafka.controllers.operator_bench import MB


def test_the_rights_are_enough_for_a_broker_that_comes_and_goes():
    with KafkaWorld() as world:
        operator = world.start_process("operator", token=install_account(world, "kafka"))
        world.make_kafka()
        world.make_pool()
        world.advance_until(lambda: "clusterId" in world.status_of_kafka, within_s=120)
        world.brokers.create_topic("orders", [[n % 3, (n + 1) % 3] for n in range(30)], size_bytes=100 * MB)
        world.scale(4)
        world.advance_until(lambda: world.state == "Rebalancing", within_s=60)
        world.advance_until(lambda: world.lists == ([], []) and not world.rebalances, within_s=300)
        world.scale(3)
        world.advance_until(lambda: len(world.pods) == 3 and not world.rebalances, within_s=300)
        world.run.run_until(refuse_rivals(operator.process.client, ""))
        assert world.count_replicas(3) == 0
        refused = [call for call, status in operator.process.transport.answered if status == 403]
        assert refused == []

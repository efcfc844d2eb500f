"""Kafka in `plimsoll up`, but for its sockets: the operator, and Cruise Control's API that others may call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.app.kafka.embedded_kafka import EmbeddedKafka, EmbeddedKafkaDependencies
from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.cli.kafka.objects import list_clusters, read_clusters
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kafka.engine.engine import run_inline
from plimsoll.runtime.entropy import SeededEntropy
from tests.app.kafka.kafka_world import KafkaWorld
from tests.kafka.controllers.operator_bench import API, MB

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping, Sequence

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service
    from tests.golden.reviewed_sentences import ReviewedSentences

TOKEN = "knock-knock"


class UpKafkaCluster(KafkaWorld):
    """With what `plimsoll up` adds to simulated brokers."""

    embedded: EmbeddedKafka

    def _build_parts(self, components: Components) -> Sequence[Service]:
        services = super()._build_parts(components)
        tools = EmbeddedKafkaDependencies(
            connector=SimulatedBrokers(self.clusters.find),
            clock=self.run.clock,
            entropy=SeededEntropy("up"),
            journal=MemoryJournal(),
            run_blocking=run_inline,
        )
        self.embedded = EmbeddedKafka(components, tools)
        return [*services, *self.embedded.list_services()]

    def call(self, path: str, *, token: str = TOKEN, method: str = "GET") -> tuple[int, Any]:
        """Status and body of an answer."""
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "method": method, "path": path, "query_string": b"json=true", "headers": headers}
        self.run.run_until(self.embedded.build_cruise_control_app(token=TOKEN)(scope, receive, send))
        return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.fixture
def world() -> Iterator[UpKafkaCluster]:
    """Three brokers run."""
    with UpKafkaCluster() as world:
        world.make_kafka()
        world.make_pool()
        world.advance_until(lambda: "clusterId" in world.status_of_kafka, within_s=120)
        yield world


def test_a_pool_that_grows_and_shrinks_is_rebalanced(world: UpKafkaCluster):
    world.brokers.create_topic("orders", [[n % 3, (n + 1) % 3] for n in range(30)], size_bytes=1_000_000)
    world.scale(4)
    world.advance_until(lambda: world.lists == ([3], []), within_s=60)
    world.advance_until(lambda: world.lists == ([], []) and not world.rebalances, within_s=300)
    assert world.count_replicas(3) > 0
    world.scale(3)
    world.advance_until(lambda: len(world.pods) == 3, within_s=300)
    assert world.count_replicas(3) == 0


def test_a_rebalance_is_ready_as_soon_as_its_execution_has_ended(world: UpKafkaCluster):
    world.brokers.create_topic("orders", [[0, 1] for _ in range(30)], size_bytes=500 * MB)
    make_rebalance(world)
    world.advance_until(lambda: world.rebalance_state("manual") == "Rebalancing", within_s=300)

    def is_executing() -> bool:
        _, answer = world.call("/kafkacruisecontrol/state")
        return bool(answer["ExecutorState"]["state"] != "NO_TASK_IN_PROGRESS")

    assert is_executing()
    while is_executing():
        world.run.advance_by(0.25)
    world.run.advance_by(0.25)
    assert world.rebalance_state("manual") == "Ready"


def make_rebalance(world: UpKafkaCluster) -> None:
    """It is approved."""
    metadata = {
        "name": "manual",
        "labels": {"strimzi.io/cluster": "c"},
        "annotations": {"strimzi.io/rebalance-auto-approval": "true"},
    }
    head = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance"}
    world.made(f"{API}/kafkarebalances", {**head, "metadata": metadata, "spec": {"skipHardGoalCheck": True}})


def test_the_execution_of_a_deleted_rebalance_is_shown_and_can_be_stopped(
    world: UpKafkaCluster, reviewed: ReviewedSentences
):
    world.brokers.create_topic("orders", [[0, 1] for _ in range(30)], size_bytes=500 * MB)
    make_rebalance(world)
    world.advance_until(lambda: world.rebalance_state("manual") == "Rebalancing", within_s=300)
    client = world.connect("kubectl")
    (shown,) = world.run.run_until(read_clusters(client, ""))
    assert shown.execution == "", "its KafkaRebalance shows it"

    world.delete(f"{API}/kafkarebalances/manual")
    world.advance_until(lambda: not world.rebalances, within_s=60)
    (unseen,) = world.run.run_until(read_clusters(client, ""))
    assert unseen.execution
    reviewed(str(list_clusters([unseen])[-1]).replace(unseen.execution, "ID"))

    status, _ = world.call("/kafkacruisecontrol/stop_proposal_execution", method="POST")
    assert status == 200
    world.run.advance_by(60)
    (stopped,) = world.run.run_until(read_clusters(client, ""))
    assert stopped.execution == ""


@pytest.mark.parametrize("path", ["/kafka/c/kafkacruisecontrol/state", "/kafkacruisecontrol/state"])
def test_others_reach_the_engine_of_a_cluster_with_the_token(world: UpKafkaCluster, path: str):
    status, body = world.call(path)
    assert status == 200
    assert body["ExecutorState"]["state"] == "NO_TASK_IN_PROGRESS"
    assert world.call(path, token="wrong")[0] == 401


def test_a_cluster_that_is_not_there_is_not_found(world: UpKafkaCluster):
    status, body = world.call("/kafka/other/kafkacruisecontrol/state")
    assert status == 404
    assert "now: kafka/c" in body["errorMessage"]
    assert world.call("/healthz") == (200, {"status": "ok"})


def test_reconciles_are_on_the_metrics_page(world: UpKafkaCluster):
    assert b'strimzi_reconciliations_total{kind="Kafka",namespace="kafka"}' in world.embedded.expose_metrics()

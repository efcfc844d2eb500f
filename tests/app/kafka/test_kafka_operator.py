"""`plimsoll run kafka` as a process: a warm standby takes over an execution, a dry run writes nothing, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kafka.settings import KafkaMode, KafkaSettings
from tests.app.elected_nodes import TO_LEAD_S
from tests.app.kafka.kafka_world import KafkaWorld
from tests.kafka.controllers.operator_bench import API, MB
from tests.kafka.controllers.pod_set_cluster import build_pod_set
from tests.kafka.controllers.test_bad_input import OPEN_DEFINITIONS
from tests.kafka.controllers.test_k11_k31_automatic_rebalancing import make_settings
from tests.objects.crds.kafka_definitions import NAMESPACE, list_our_definitions, list_strimzi_definitions

if TYPE_CHECKING:
    from collections.abc import Callable

LISTED = {
    "/apis/kafka.strimzi.io/v1/kafkas",
    "/apis/kafka.strimzi.io/v1/kafkanodepools",
    "/apis/kafka.strimzi.io/v1/kafkarebalances",
    "/apis/core.strimzi.io/v1/strimzipodsets",
}


def make_running_cluster(world: KafkaWorld) -> None:
    """Three brokers with a topic."""
    world.make_kafka()
    world.make_pool()
    world.advance_until(lambda: len(world.live) == 3 and "clusterId" in world.status_of_kafka, within_s=120)
    replicas = [[(number + offset) % 3 for offset in range(3)] for number in range(30)]
    world.brokers.create_topic("orders", replicas, size_bytes=500 * MB)


def test_a_standby_has_listed_before_it_leads_and_ends_the_rebalance_that_the_dead_leader_began():
    with KafkaWorld() as world:
        leader = world.start_process("leader").process
        leader.advance_until(lambda: leader.holder.is_leading, within_s=5)
        standby = world.start_process("standby").process
        make_running_cluster(world)
        world.scale(4)
        world.advance_until(lambda: world.state == "Rebalancing", within_s=60)
        assert set(standby.transport.lists) >= LISTED
        assert standby.transport.writes == []

        leader.kill()
        listed = len(standby.transport.lists)
        standby.advance_until(lambda: standby.holder.is_leading, within_s=TO_LEAD_S)
        world.advance_until(lambda: not world.rebalances and world.lists == ([], []), within_s=900)
        assert set(standby.transport.lists[listed:]).isdisjoint(LISTED)
        assert world.count_replicas(3) > 0
        world.scale(3)
        world.advance_until(lambda: len(world.live) == 3 and world.pool_ids() == [0, 1, 2], within_s=900)
        world.advance_until(lambda: not world.rebalances, within_s=60)
        configured = world.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps").body["items"]
        assert [found["metadata"]["name"] for found in configured if "execution" in found["metadata"]["name"]] == []


def test_a_dry_run_writes_nothing_and_starts_no_engine_beside_the_leader():
    with KafkaWorld() as world:
        leader = world.start_process("leader").process
        leader.advance_until(lambda: leader.holder.is_leading, within_s=5)
        make_running_cluster(world)
        world.scale(4)
        world.advance_until(lambda: world.state == "Rebalancing", within_s=60)
        # A process with its own lease, so that its guard would let it write.
        leader.kill()
        # A deletion makes the reconciler ask the engine whether it still moves replicas.
        world.delete(f"{API}/kafkarebalances/c-auto-rebalancing-add-brokers")
        dry = world.start_process("dry", KafkaSettings(dry_run=True, resync_s=10))
        dry.process.advance_until(lambda: dry.process.holder.is_leading, within_s=TO_LEAD_S)
        before = len(dry.process.transport.writes)
        world.run.advance_by(60)
        assert 'strimzi_reconciliations_total{kind="Kafka"' in dry.get_metrics()
        assert dry.process.transport.writes[before:] == []
        assert dry.program.parts.connections.list_engines() == []


def test_k13_an_edit_of_settings_causes_no_reconcile():
    with KafkaWorld() as world:
        operator = world.start_process("leader", KafkaSettings(resync_s=3600))
        make_settings(world)
        make_running_cluster(world)
        world.run.advance_by(60)
        counted = 'strimzi_reconciliations_total{kind="Kafka",namespace="kafka"}'
        before = [line for line in operator.get_metrics().splitlines() if line.startswith(counted)]
        world.patch(f"{API}/kafkarebalancesettings/s", {"spec": {"goals": ["DiskCapacityGoal"]}})
        world.run.advance_by(60)
        after = [line for line in operator.get_metrics().splitlines() if line.startswith(counted)]
        assert len(before) == 1
        assert after == before
        world.annotate("kafkas", "c", any_change="true")
        world.run.advance_by(1)
        assert after[0] not in operator.get_metrics(), "an edit of the Kafka causes one"


def test_a_companion_never_writes_kafkas_node_pools_pod_sets_and_rebalances_of_users():
    with KafkaWorld() as world:
        companion = world.start_process("companion", KafkaSettings(mode=KafkaMode.COMPANION, resync_s=10)).process
        world.make_kafka(annotations={"plimsoll.io/auto-rebalancing": "true"})
        world.make_pool()
        head = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance"}
        of_a_user = {"metadata": {"name": "of-a-user", "labels": {"strimzi.io/cluster": "c"}}, "spec": {}}
        world.made(f"{API}/kafkarebalances", {**head, **of_a_user})
        world.run.advance_by(60)
        owned = ("kafkas", "kafkanodepools", "strimzipodsets", "pods", "of-a-user")
        assert [write for write in companion.transport.writes if any(kind in write for kind in owned)] == []
        assert any("/configmaps" in write for write in companion.transport.writes), "it keeps its own state"
        assert world.pods == {}


def test_reconciles_are_counted_with_strimzis_names_per_kind_and_namespace():
    with KafkaWorld() as world:
        operator = world.start_process("leader")
        make_running_cluster(world)
        body = {"metadata": {"name": "other"}, "spec": {"kafka": {}}}
        head = {"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka"}
        world.made(f"{API}/kafkas", {**head, **body})
        bad = {"metadata": {"name": "bad", "labels": {"strimzi.io/cluster": "none"}}, "spec": {}}
        world.made(f"{API}/kafkarebalances", {**head, "kind": "KafkaRebalance", **bad})
        world.run.advance_by(60)
        metrics = operator.get_metrics()
        assert 'strimzi_resources{kind="Kafka",namespace="kafka"} 2.0' in metrics
        assert 'strimzi_resources{kind="KafkaRebalance",namespace="kafka"} 1.0' in metrics
        assert 'strimzi_resource_state{kind="Kafka",name="c",reason="",resource_namespace="kafka"} 1.0' in metrics
        lost = 'strimzi_resource_state{kind="KafkaRebalance",name="bad",reason="NotReady",resource_namespace="kafka"} 0'
        assert lost in metrics
        for name in (
            "reconciliations_total",
            "reconciliations_successful_total",
            "reconciliations_duration_seconds_sum",
        ):
            assert f'strimzi_{name}{{kind="Kafka",namespace="kafka"}}' in metrics
        assert 'strimzi_reconciliations_failed_total{kind="KafkaRebalance",namespace="kafka"}' in metrics

        world.delete(f"{API}/kafkarebalances/bad")
        world.advance_until(lambda: "bad" not in world.rebalances, within_s=60)
        world.run.advance_by(60)
        assert 'name="bad"' not in operator.get_metrics()


def test_an_operator_of_one_namespace_asks_for_nothing_of_others_and_leaves_their_pod_sets_alone():
    with KafkaWorld() as world:
        world.namespace("other")
        labels = {"strimzi.io/cluster": "c"}
        foreign = build_pod_set(0)
        foreign["metadata"] = {"name": "c-p", "labels": labels}
        world.made("/apis/core.strimzi.io/v1/namespaces/other/strimzipodsets", foreign)
        process = world.start_process("operator", KafkaSettings(namespace=NAMESPACE, resync_s=30)).process
        make_running_cluster(world)
        assert world.ask("GET", "/api/v1/namespaces/other/pods").body["items"] == []
        assert process.transport.lists
        assert [path for path in process.transport.lists if f"/namespaces/{NAMESPACE}/" not in path] == []


def test_a_cluster_scales_beside_clusters_with_mistakes_and_each_mistake_is_named():
    with KafkaWorld(definitions=OPEN_DEFINITIONS) as world:
        auto_rebalance = {"kafka": {}, "cruiseControl": {"autoRebalance": {"mode": "add-brokers"}}}
        for name, spec in (("object", auto_rebalance), ("text", "none"), ("list", {"kafka": []})):
            make_object(world, "Kafka", name, spec)
            make_pool(world, name, {"replicas": 0, "roles": ["broker"], "storage": {"type": "ephemeral"}})
        make_object(world, "Kafka", "pools", {"kafka": {}})
        make_pool(world, "pools", {"replicas": "three"})
        make_object(world, "KafkaNodePool", "alone", {"replicas": 1, "roles": ["broker"], "storage": {}})
        make_object(world, "KafkaRebalance", "strings", {"mode": "add-brokers", "brokers": ["3"]}, cluster="c")
        make_object(world, "KafkaRebalance", "number", 7, cluster="c")
        world.start_process("operator")
        make_running_cluster(world)
        world.scale(4)
        world.advance_until(lambda: world.state == "Rebalancing", within_s=60)
        for plural, name, field in (
            ("kafkas", "object", "spec.cruiseControl.autoRebalance: "),
            ("kafkas", "text", "spec: "),
            ("kafkas", "list", "spec.kafka: "),
            ("kafkas", "pools", "spec.replicas: "),
            ("kafkanodepools", "pools-p", "spec.replicas: "),
            ("kafkanodepools", "alone", "metadata.labels[strimzi.io/cluster]: "),
            ("kafkarebalances", "strings", "spec.brokers[0]: "),
            ("kafkarebalances", "number", "spec: "),
        ):
            conditions = world.ask("GET", f"{API}/{plural}/{name}").body["status"]["conditions"]
            assert any(field in condition.get("message", "") for condition in conditions), conditions
        world.run.advance_by(30)
        events = world.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/events").body["items"]
        found = {(event["involvedObject"]["kind"], event["involvedObject"]["name"]) for event in events}
        assert {("Kafka", "text"), ("Kafka", "list"), ("KafkaNodePool", "pools-p")} <= found


@pytest.mark.parametrize("definitions", [list_our_definitions, list_strimzi_definitions], ids=["ours", "strimzi"])
@pytest.mark.parametrize("is_held", [False, True], ids=["idle", "held"])
def test_a_quiet_pass_writes_nothing_whatever_the_definitions_prune(
    definitions: Callable[[], list[dict[str, Any]]], *, is_held: bool
):
    with KafkaWorld(definitions=definitions()) as world:
        process = world.start_process("operator", KafkaSettings(resync_s=10)).process
        make_running_cluster(world)
        world.scale(4)
        world.advance_until(lambda: "Rebalancing" in world.list_rebalance_states().values(), within_s=60)
        if is_held:
            world.annotate("kafkarebalances", "c-auto-rebalancing-add-brokers", rebalance="stop")
        end = ["Stopped"] if is_held else []
        world.advance_until(lambda: list(world.list_rebalance_states().values()) == end, within_s=900)
        world.run.advance_by(30)
        before = len(process.transport.sent), len(process.transport.writes)
        world.run.advance_by(60)
        assert process.transport.writes[before[1] :] == []
        assert len(process.transport.sent) >= before[0] + 5, "it did reconcile"


def make_object(world: KafkaWorld, kind: str, name: str, spec: Any, *, cluster: str = "") -> None:
    labels = {"strimzi.io/cluster": cluster} if cluster else {}
    body = {"apiVersion": "kafka.strimzi.io/v1", "kind": kind, "metadata": {"name": name, "labels": labels}}
    world.made(f"{API}/{kind.lower()}s", {**body, "spec": spec})


def make_pool(world: KafkaWorld, cluster: str, spec: dict[str, Any]) -> None:
    make_object(world, "KafkaNodePool", f"{cluster}-p", spec, cluster=cluster)

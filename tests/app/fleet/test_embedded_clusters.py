"""Clusters of the simulated OCM in this process: their pools, their growth, and their beginnings and ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from plimsoll.app.fleet.addons import KAFKA_OPERATOR_ADDON, AddonHost, KafkaOperatorAddon
from plimsoll.app.fleet.embedded_clusters import LOGGED_CLUSTER
from plimsoll.local.apiserver.transport.in_process import InProcessTransport
from plimsoll.runtime.supervisor import Service
from tests.app.fleet.cluster_worlds import DEPLOYMENTS, GROUPS, ClusterWorld, build_deployment, open_clusters
from tests.architecture.source_tree import REPOSITORY
from tests.local.ocm.ocm_world import STANDARD, build_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
KAFKA_PODS = "/api/v1/namespaces/kafka/pods"
_STRIMZI = "/apis/kafka.strimzi.io/v1/namespaces/kafka"
KAFKA_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "KafkaRebalanceSettings": f"{_STRIMZI}/kafkarebalancesettings",
    "KafkaNodePool": f"{_STRIMZI}/kafkanodepools",
    "Kafka": f"{_STRIMZI}/kafkas",
}


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    with open_clusters() as opened:
        yield opened


def test_a_pool_is_a_node_group_per_zone_with_a_third_of_its_bounds(world: ClusterWorld):
    cluster = world.order_with_pool(least=3, most=6)
    assert world.get_state(cluster) == ("ready", "")
    assert world.list_groups(cluster) == {
        **{f"default-{zone}": (1, 1, 6) for zone in "abc"},
        **{f"kafka-standard-{zone}": (1, 1, 2) for zone in "abc"},
    }
    nodes = world.list_ready_nodes(cluster)
    of_pool = [node for node in nodes if node["metadata"]["labels"][INSTANCE_TYPE] == "r5.xlarge"]
    assert (len(nodes), len(of_pool)) == (6, 3)
    assert {node["metadata"]["labels"][ZONE] for node in of_pool} == {f"us-east-1{zone}" for zone in "abc"}
    for node in of_pool:
        assert STANDARD["labels"].items() <= node["metadata"]["labels"].items()
        assert STANDARD["taints"][0] in node["spec"]["taints"]


def test_a_cluster_in_one_zone_has_a_group_with_all_of_the_bounds(world: ClusterWorld):
    cluster = world.order(multi_az=False)
    assert world.list_groups(cluster) == {"default-a": (3, 3, 18)}


def test_the_node_autoscaler_grows_a_pool_up_to_its_maximum_and_makes_no_groups(world: ClusterWorld):
    cluster = world.order_with_pool(least=3, most=6)
    world.ask(cluster, "POST", DEPLOYMENTS, build_deployment(9))
    world.run.advance_by(180)
    groups = world.list_groups(cluster)
    assert {name: bounds for name, bounds in groups.items() if name.startswith("kafka")} == {
        f"kafka-standard-{zone}": (1, 2, 2) for zone in "abc"
    }
    assert set(groups) == {f"{pool}-{zone}" for pool in ("default", "kafka-standard") for zone in "abc"}
    assert world.count_running(cluster) == 6


def test_changed_bounds_of_a_pool_reach_its_groups_and_those_of_users_are_left_alone(world: ClusterWorld):
    cluster = world.order_with_pool(least=3, most=6)
    group = {"metadata": {"name": "mine"}, "spec": {"machineType": "m5.large", "max": 3}}
    group |= {"apiVersion": "cloud.plimsoll.io/v1alpha1", "kind": "NodeGroup"}
    world.ask(cluster, "POST", GROUPS, group)
    path = f"/clusters/{cluster}/machine_pools/kafka-standard"
    status, _ = world.call("PATCH", path, {"autoscaling": {"min_replicas": 6, "max_replicas": 12}})
    assert status == 200
    world.run.advance_by(60)
    groups = world.list_groups(cluster)
    assert {groups[f"kafka-standard-{zone}"] for zone in "abc"} == {(2, 2, 4)}
    assert world.call("DELETE", path)[0] == 204
    world.run.advance_by(60)
    assert set(world.list_groups(cluster)) == {"default-a", "default-b", "default-c", "mine"}


def test_a_lowered_maximum_takes_no_machine_away(world: ClusterWorld):
    cluster = world.order_with_pool(least=3, most=6)
    world.ask(cluster, "POST", DEPLOYMENTS, build_deployment(6))
    world.run.advance_by(120)
    path = f"/clusters/{cluster}/machine_pools/kafka-standard"
    assert world.call("PATCH", path, {"autoscaling": {"min_replicas": 3, "max_replicas": 3}})[0] == 200
    world.run.advance_by(60)
    assert {world.list_groups(cluster)[f"kafka-standard-{zone}"] for zone in "abc"} == {(1, 2, 1)}
    assert world.count_running(cluster) == 6


def test_a_deleted_cluster_ends_its_watches_and_the_others_go_on(world: ClusterWorld):
    first, second = world.order("mk-1"), world.order("mk-2")
    server = world.get(first).server
    uids = {node["metadata"]["uid"] for node in world.list_ready_nodes(second)}

    async def watch() -> list[bytes]:
        headers = {"authorization": f"Bearer {server.token}"}
        answer = await InProcessTransport(server.application).request("GET", "/api/v1/nodes?watch=1", headers=headers)
        assert not isinstance(answer.body, bytes)
        return [chunk async for chunk in answer.body]

    watching = world.run.spawn(watch(), name="kubectl get nodes --watch")
    world.run.settle()
    assert world.call("DELETE", f"/clusters/{first}")[0] == 204
    world.run.advance_by(60)
    assert watching.done()
    assert watching.result(), "its nodes were sent"
    assert world.get_state(first) == ("gone", "")
    assert world.clusters.find(first) is None
    world.ask(second, "POST", DEPLOYMENTS, build_deployment(2, cpu="1", in_pool=False))
    world.run.advance_by(60)
    assert world.count_running(second) == 2
    assert {node["metadata"]["uid"] for node in world.list_ready_nodes(second)} == uids


def test_a_machine_type_that_cannot_be_had_fails_the_cluster_with_its_name(world: ClusterWorld):
    nodes = build_cluster()["nodes"] | {"compute_machine_type": {"id": "m99.huge"}}
    cluster = world.order(nodes=nodes)
    state, problem = world.get_state(cluster)
    assert state == "error"
    assert "m99.huge" in problem
    assert world.call("DELETE", f"/clusters/{cluster}")[0] == 204
    world.run.advance_by(60)
    assert world.get_state(cluster) == ("gone", "")


class RecordingAddon:
    """An add-on that does nothing but run."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def build_services(self, host: AddonHost, parameters: Mapping[str, str]) -> list[Service]:
        cluster, given = host.spec.name, dict(parameters)

        async def run() -> None:
            self.events.append((cluster, given, "began"))
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.events.append((cluster, given, "ended"))

        return [Service(name="recording", run=run)]


def test_an_add_on_runs_while_it_is_installed_and_begins_again_with_changed_parameters():
    addon = RecordingAddon()
    with open_clusters(addons={"agent": addon}) as world:
        cluster = world.order()
        body = {"addon": {"id": "agent"}, "parameters": {"items": [{"id": "url", "value": "a"}]}}
        assert world.call("POST", f"/clusters/{cluster}/addons", body)[0] == 201
        world.run.advance_by(60)
        body["parameters"] = {"items": [{"id": "url", "value": "b"}]}
        assert world.call("PATCH", f"/clusters/{cluster}/addons/agent", body)[0] == 200
        world.run.advance_by(60)
        assert [(given["url"], event) for _, given, event in addon.events] == [
            ("a", "began"),
            ("a", "ended"),
            ("b", "began"),
        ]
        assert world.call("DELETE", f"/clusters/{cluster}")[0] == 204
        world.run.advance_by(60)
        assert addon.events[-1] == ("mk-1", {"url": "b"}, "ended")


def test_clusters_go_on_when_their_service_is_restarted():
    addon = RecordingAddon()
    with open_clusters(addons={"agent": addon}) as world:
        cluster = world.order_with_pool()
        body = {"addon": {"id": "agent"}, "parameters": {"items": []}}
        assert world.call("POST", f"/clusters/{cluster}/addons", body)[0] == 201
        world.run.advance_by(60)
        world.restart_clusters()
        world.run.advance_by(60)
        assert len(world.list_ready_nodes(cluster)) == 6
        assert [event for *_, event in addon.events] == ["began", "ended", "began"]


def test_the_kafka_operator_is_an_add_on():
    with open_clusters(addons={KAFKA_OPERATOR_ADDON: KafkaOperatorAddon()}) as world:
        cluster = world.order()
        for manifest in yaml.safe_load_all((REPOSITORY / "examples/kafka/cluster.yaml").read_text()):
            world.ask(cluster, "POST", KAFKA_PATHS[manifest["kind"]], manifest)
        world.run.advance_by(120)
        assert world.list_items(cluster, KAFKA_PODS) == []
        body = {"addon": {"id": KAFKA_OPERATOR_ADDON}, "parameters": {"items": []}}
        assert world.call("POST", f"/clusters/{cluster}/addons", body)[0] == 201
        world.run.advance_by(120)
        assert len(world.list_items(cluster, KAFKA_PODS)) == 6


def test_logs_name_the_cluster_that_they_are_about():
    with open_clusters() as world, capture_logs(processors=[merge_contextvars]) as logged:
        clusters = [world.order(name) for name in ("mk-1", "mk-2")]
        summaries = [event for event in logged if event.get("controller") == "cloud" and event.get("summary")]
        assert {event[LOGGED_CLUSTER] for event in summaries} == set(clusters)

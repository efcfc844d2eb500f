"""A simulated cluster with broker pods: nodes in three zones, a scheduler, kubelets, and people who write Kafkas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plimsoll.kube.informer.events import Key
from plimsoll.local.components import KUBELET, SCHEDULER
from plimsoll.local.kafka.simulated import SimulatedBrokerPods, SimulatedClusters
from plimsoll.local.kubelet import Kubelet, KubeletSettings
from plimsoll.local.scheduler import Scheduler, SchedulerSettings
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.supervisor import Service
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness
from tests.objects.crds.kafka_definitions import DEFINITIONS, NAMESPACE, list_our_definitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.local.components import Components
    from plimsoll.local.kafka.cluster import SimulatedKafka
    from plimsoll.local.kafka.topic_seeds import TopicSeed

Json = dict[str, Any]

KAFKAS = f"/apis/kafka.strimzi.io/v1/namespaces/{NAMESPACE}/kafkas"
POOLS = f"/apis/kafka.strimzi.io/v1/namespaces/{NAMESPACE}/kafkanodepools"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES = "/api/v1/nodes"
ZONES = ("a", "b", "c")
KEY = Key(NAMESPACE, "c")


class LocalKafkaCluster(LocalClusterHarness):
    """With a node per zone, of 16 cores, in the namespace `kafka`.

    `clusters` survives `kill` and `start`; with `keeps_state` a process has its own, and finds what was stored.
    """

    def __init__(self, *, topics: Mapping[Key, tuple[TopicSeed, ...]] | None = None, keeps_state: bool = False) -> None:
        super().__init__(self._build_parts, kinds=OUR_KINDS)
        self.clusters = SimulatedClusters(self.run.clock, topics=topics)
        self._keeps_state = keeps_state

    def __enter__(self) -> Self:
        self.run.__enter__()
        self.run.run_until(self.application.start())
        for body in list_our_definitions():
            self.made(DEFINITIONS, body)
        self.run.settle()
        self.namespace(NAMESPACE)
        for zone in ZONES:
            self.add_node(f"n-{zone}", zone=zone)
        self.start()
        return self

    def _build_parts(self, components: Components) -> Sequence[Service]:
        scheduler = Scheduler(components.build_component("default-scheduler", manager=SCHEDULER), SchedulerSettings())
        kubelet = Kubelet(
            components.build_component("kubelet", manager=KUBELET), settings=KubeletSettings(selector=""), writes=False
        )
        if self._keeps_state:
            self.clusters = SimulatedClusters(self.run.clock)
        brokers = SimulatedBrokerPods(components, self.clusters, keeps_state=self._keeps_state)
        return [
            Service(name="kubelet", run=kubelet.pods.controller.run),
            scheduler.build_service(),
            *brokers.list_services(),
        ]

    def add_node(self, name: str, *, zone: str) -> None:
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
        self.made(NODES, {"metadata": {"name": name, "labels": labels}})
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        ready = [{"type": "Ready", "status": "True"}]
        status = {"status": {"capacity": amounts, "allocatable": amounts, "conditions": ready}}
        self.ask("PATCH", f"{NODES}/{name}/status", status, content=MERGE)
        self.ask("PATCH", f"{NODES}/{name}", {"spec": {"taints": None}}, content=MERGE)

    # ---- people

    def make_kafka(self, *, topics: str = "", name: str = "c", **kafka: Any) -> None:
        annotations = {"simulated.plimsoll.io/topics": topics} if topics else {}
        body = {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "Kafka",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"kafka": {"version": "4.3.1", **kafka}},
        }
        self.made(KAFKAS, body)
        self.run.settle()

    def make_pool(self, replicas: int, *, storage: Any = None, name: str = "p") -> None:
        body = {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaNodePool",
            "metadata": {"name": name, "labels": {"strimzi.io/cluster": "c"}},
            "spec": {"replicas": replicas, "roles": ["broker"], "storage": storage or {"type": "ephemeral"}},
        }
        self.made(POOLS, body)

    def make_pods(self, *ids: int, node: str = "", **labels: str) -> None:
        """Broker pods in zones by turns, or all on one node; they run after a while."""
        for number in ids:
            body = build_broker_pod(number, node=node or f"n-{ZONES[number % 3]}", **labels)
            self.made(PODS, body)
        self.run.advance_by(30)

    def delete(self, url: str) -> None:
        assert self.ask("DELETE", url).status in {200, 202}
        self.run.settle()

    def patch(self, url: str, body: Json) -> None:
        assert self.ask("PATCH", url, body, content=MERGE).status == 200
        self.run.settle()

    # ---- what is to be seen

    @property
    def kafka(self) -> SimulatedKafka:
        found = self.clusters.find(*KEY)
        assert found is not None
        return found

    @property
    def alive(self) -> dict[int, str]:
        """Racks of the brokers that the controller takes for alive, by id."""
        return {broker.id: broker.rack for broker in self.kafka.catch_up().brokers.values() if broker.is_alive}

    def list_replicas(self, topic: str) -> list[tuple[int, ...]]:
        return [tuple(partition.replicas) for partition in self.kafka.catch_up().topics[topic].partitions.values()]


def build_broker_pod(number: int, *, node: str, **labels: str) -> Json:
    roles = {"strimzi.io/broker-role": "true", "strimzi.io/controller-role": "false"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"c-p-{number}",
            "labels": {"strimzi.io/cluster": "c", "strimzi.io/pool-name": "p", **roles, **labels},
        },
        "spec": {
            "containers": [{"name": "kafka", "image": "kafka:4.3.1"}],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 5,
        },
    }

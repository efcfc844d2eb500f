"""The whole chain in virtual time: service, simulated OCM, and a cluster per order with agent and Kafka operator.

What happens is seen from outside only: by requests to the service, to OCM, and to the Kubernetes API of each cluster.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plimsoll.app.fleet.addons import KAFKA_OPERATOR_ADDON, KafkaOperatorAddon
from plimsoll.app.fleet.agent_addon import AGENT_ADDON, AgentAddon
from plimsoll.app.fleet.cluster_stores import MemoryStores
from plimsoll.app.fleet.embedded_clusters import EmbeddedClusters, EmbeddedClustersSettings
from plimsoll.fleet.config.policy_documents import DYNAMIC_SCALING, NODE_PREWARMING
from plimsoll.fleet.providers.ocm.provider import OcmProvider
from plimsoll.fleet.providers.ocm.settings import OcmClientSettings
from plimsoll.local.apiserver.transport.in_process import InProcessTransport
from plimsoll.local.cluster import ClusterSettings
from plimsoll.local.kubelet.settings import KubeletSettings
from plimsoll.local.ocm.application import TOKEN_PATH
from plimsoll.local.ocm.service import SimulatedOcm
from plimsoll.local.ocm.settings import OcmDelays, OcmSettings
from plimsoll.nodes.plan_runner import run_inline
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.web.asgi_client import AsgiClient
from tests.fleet.ocm_service import ACCOUNT, OCM_URL
from tests.fleet.service import FleetScenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plimsoll.app.fleet.embedded_clusters import RunningCluster
    from plimsoll.web.client import Request, RequestFailed, Response

Json = dict[str, Any]

DELAYS = OcmDelays(pending_s=60.0, installing_s=600.0, addon_s=120.0, uninstalling_s=120.0)
MANAGED = "/apis/managedkafka.bf2.org/v1alpha1/managedkafkas"
GROUPS = "/apis/cloud.plimsoll.io/v1alpha1/nodegroups"
MACHINES = "/apis/cloud.plimsoll.io/v1alpha1/machines"
POOL = "kafka-standard"


class _ServiceClient:
    """The service, which is started after the clusters."""

    def __init__(self, chain: ChainWorld) -> None:
        self._chain = chain

    async def send(self, request: Request) -> Response | RequestFailed:
        return await AsgiClient(self._chain.service.application).send(request)


class ChainWorld(FleetScenario):
    """Standard instances in aws us-east-1; the pool has three to `most` nodes."""

    def __init__(self, folder: Path, *, most: int = 6, reserved: int = 0) -> None:
        super().__init__(folder)
        machines = self.documents[DYNAMIC_SCALING]["compute_machine_per_cloud_provider"]["aws"]
        wide = {"min_compute_nodes": 3, "max_compute_nodes": 18}
        pool = {"min_compute_nodes": 3, "max_compute_nodes": most}
        self.documents[DYNAMIC_SCALING]["compute_machine_per_cloud_provider"]["aws"] = {
            "cluster_wide_workload": {
                **machines["cluster_wide_workload"],
                "compute_machine_type": "m5.2xlarge",
                "compute_node_autoscaling": wide,
            },
            "kafka_workload_per_instance_type": {
                "standard": {"compute_machine_type": "r5.xlarge", "compute_node_autoscaling": pool}
            },
        }
        if reserved:
            reserve = {"base_streaming_unit_size": "x1", "num_reserved_instances": reserved}
            self.documents[NODE_PREWARMING] = {"standard": reserve}
        self.offer(standard={})
        self.stores = MemoryStores(clock=self.clock, entropy=SeededEntropy("stores"))
        self.embedded = EmbeddedClusters(
            self.stores,
            clock=self.clock,
            entropy=SeededEntropy("clusters"),
            addons={KAFKA_OPERATOR_ADDON: KafkaOperatorAddon(), AGENT_ADDON: AgentAddon(_ServiceClient(self))},
            settings=EmbeddedClustersSettings(
                machine_boot_s=60.0,
                cluster=ClusterSettings(
                    plays_tidb=False,
                    writes_heartbeats=False,
                    kubelet=KubeletSettings(start_s=5.0, emits_events=False, reports_ends=False, resync_s=0.0),
                ),
            ),
            run_planner=run_inline,
        )
        self.ocm = SimulatedOcm(
            clock=self.clock,
            entropy=SeededEntropy("simulated OCM"),
            data_plane=self.embedded,
            settings=OcmSettings(delays=DELAYS, **ACCOUNT),
        )
        client = OcmClientSettings(base_url=OCM_URL, token_url=f"{OCM_URL}{TOKEN_PATH}", **ACCOUNT)
        self.providers = (OcmProvider(client, web=AsgiClient(self.ocm.application), clock=self.clock),)
        self.further_services = [*self.embedded.list_services(), *self.ocm.list_services()]

    # ---- time

    def pass_until(self, is_so: Callable[[], Any], *, minutes: float, step_s: float = 15.0) -> Any:
        """Let time pass until something is so; gives what was found."""
        for _ in range(int(minutes * 60 / step_s) + 1):
            if found := is_so():
                return found
            self.pass_by(step_s)
        raise AssertionError(f"not within {minutes} minutes: {self.describe()}")

    def describe(self) -> str:
        rows = [(item["id"], item["status"], item.get("dynamic_capacity_info")) for item in self.list_clusters()]
        instances = {
            cluster_id: [
                (item["metadata"]["name"], item.get("status", {}).get("conditions", [{}])[0])
                for item in self.list_items(cluster_id, MANAGED)
            ]
            for cluster_id in self.embedded.list_ids()
        }
        return f"{rows} {self.list_kafkas()} {instances}"

    # ---- the service

    def list_kafkas(self) -> dict[str, Json]:
        """By name."""
        answer = self.call("GET", "/kafkas")
        assert answer.status == 200, answer
        return {item["name"]: item for item in answer.document["items"]}

    def get_status(self, name: str) -> str:
        return str(self.list_kafkas().get(name, {}).get("status", "gone"))

    def get_row(self, kafka_id: str) -> Json:
        answer = self.call_admin("GET", f"/admin/kafkas/{kafka_id}")
        assert answer.status == 200, answer
        document: Json = answer.document
        return document

    def list_ready(self) -> list[Json]:
        return self.list_clusters("ready")

    def create_and_wait(self, name: str, plan: str = "standard.x1", *, minutes: float = 30) -> Json:
        """The Kafka when it is ready, with its row."""
        assert self.create_kafka(name, plan).status == 202
        self.pass_until(lambda: self.get_status(name) == "ready", minutes=minutes)
        kafka = self.list_kafkas()[name]
        return {**self.get_row(kafka["id"]), **kafka}

    def get_cluster_status(self, row_id: str) -> str:
        found = [row["status"] for row in self.list_clusters() if row["id"] == row_id]
        return str(found[0]) if found else "gone"

    # ---- the clusters

    def get(self, cluster_id: str) -> RunningCluster:
        found = self.embedded.find(cluster_id)
        assert found is not None, f"{cluster_id} does not run"
        return found

    def ask(self, cluster_id: str, method: str, path: str, body: Any = None) -> Any:
        """The document that an administrator of the cluster gets."""
        return self.run.run_until(self._ask(cluster_id, method, path, body))

    async def _ask(self, cluster_id: str, method: str, path: str, body: Any) -> Any:
        server = self.get(cluster_id).server
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"authorization": f"Bearer {server.token}", "content-type": content_type}
        content = b"" if body is None else json.dumps(body).encode()
        answer = await InProcessTransport(server.application).request(method, path, headers=headers, body=content)
        assert isinstance(answer.body, bytes)
        assert answer.status < 400, answer.body
        return json.loads(answer.body)

    def list_items(self, cluster_id: str, path: str) -> list[Json]:
        items: list[Json] = self.ask(cluster_id, "GET", path)["items"]
        return sorted(items, key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))

    def list_pods(self, cluster_id: str, namespace: str, role: str = "broker") -> list[Json]:
        selector = f"plimsoll.io/kafka-role%3D{role}"
        return self.list_items(cluster_id, f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")

    def list_pool_nodes(self, cluster_id: str) -> dict[str, str]:
        """The zone of each node of the pool."""
        label = "bf2.org/kafkaInstanceProfileType"
        nodes = self.list_items(cluster_id, f"/api/v1/nodes?labelSelector={label}%3Dstandard")
        return {node["metadata"]["name"]: node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes}

    def count_pool_machines(self, cluster_id: str) -> int:
        """Nodes that the groups of the pool are to have."""
        groups = {item["metadata"]["name"]: item["spec"] for item in self.list_items(cluster_id, GROUPS)}
        return sum(int(spec["target"]) for name, spec in groups.items() if name.startswith(POOL))

    def get_claims(self, cluster_id: str) -> dict[str, int]:
        path = "/api/v1/namespaces/kube-system/configmaps/plimsoll-agent-claims"
        data = self.ask(cluster_id, "GET", path).get("data", {})
        units = {namespace: json.loads(text).get("units", 0) for namespace, text in data.items()}
        return {namespace: number for namespace, number in units.items() if number}

    def count_replicas(self, cluster_id: str, namespace: str, name: str) -> dict[int, int]:
        """Replicas of partitions by broker."""
        kafkas = self.get(cluster_id).cluster.local.kafka
        assert kafkas is not None
        kafka = kafkas.clusters.find(namespace, name)
        assert kafka is not None
        found: dict[int, int] = {}
        for partition in kafka.catch_up().iterate_partitions():
            for broker in partition.replicas:
                found[broker] = found.get(broker, 0) + 1
        return found

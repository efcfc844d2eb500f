"""The whole chain in virtual time: service, simulated OCM, and a cluster per order with agent and Kafka operator.

What happens is seen from outside only: by requests to the service, to OCM, and to the Kubernetes API of each cluster.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final, Self, cast

from plimsoll.app.fleet.addons import KAFKA_OPERATOR_ADDON, KafkaOperatorAddon
from plimsoll.app.fleet.agent_addon import AGENT_ADDON, AgentAddon
from plimsoll.app.fleet.embedded_clusters import EmbeddedClusters, EmbeddedClustersSettings
from plimsoll.fleet.config.policy_documents import DYNAMIC_SCALING, NODE_PREWARMING
from plimsoll.fleet.providers.ocm.provider import OcmProvider
from plimsoll.fleet.providers.ocm.settings import OcmClientSettings
from plimsoll.journal.memory import MemoryJournal
from plimsoll.local.apiserver.in_process_server import open_in_memory
from plimsoll.local.apiserver.transport.in_process import InProcessTransport
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cluster import ClusterSettings
from plimsoll.local.kubelet.settings import KubeletSettings
from plimsoll.local.ocm.application import TOKEN_PATH
from plimsoll.local.ocm.service import SimulatedOcm
from plimsoll.local.ocm.settings import OcmDelays, OcmSettings
from plimsoll.nodes.plan_runner import run_inline
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.web.client import Request, Response
from tests.fleet.agent.chain_processes import (
    CLUSTERS,
    FLEET,
    RESTART_S,
    ApiServerWay,
    BrokerWay,
    MortalAddon,
    OcmWay,
    Program,
    RepeatingDataPlane,
    ServiceWay,
    count_row_writes,
)
from tests.fleet.ocm_service import ACCOUNT, OCM_URL
from tests.fleet.service import URL, FleetScenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plimsoll.app.fleet.embedded_clusters import RunningCluster
    from plimsoll.core.clock import Clock
    from plimsoll.local.kafka.simulated import SimulatedClusters
    from plimsoll.web.client import RequestFailed
    from tests.faults import Fault
    from tests.fleet.agent.chain_processes import Process

Json = dict[str, Any]

DELAYS = OcmDelays(pending_s=60.0, installing_s=600.0, addon_s=120.0, uninstalling_s=120.0)
MANAGED = "/apis/managedkafka.bf2.org/v1alpha1/managedkafkas"
GROUPS = "/apis/cloud.plimsoll.io/v1alpha1/nodegroups"
MACHINES = "/apis/cloud.plimsoll.io/v1alpha1/machines"
POOL = "kafka-standard"
_TRIES: Final = 30


class _Server:
    """The API server of a cluster. It goes on while the process that runs the cluster is away."""

    def __init__(self, cluster_id: str, clock: Clock) -> None:
        self._server = open_in_memory(clock=clock, entropy=SeededEntropy(f"server of {cluster_id}"))
        self.application = self._server.application
        self.token = self._server.token
        self.list_services = self._server.list_services
        self.end = self._server.aclose
        self.transport: ApiServerWay

    def open(self, host: Process | None) -> Self:
        """The way to it for another process."""
        self.transport = ApiServerWay(EmbeddedTransport(self.application, token=self.token), host)
        return self

    async def aclose(self) -> None:
        await self.transport.aclose()


class _Journal:
    """A journal that is closed by a process, and opened by the next one."""

    def __init__(self, journal: MemoryJournal) -> None:
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def close(self) -> None:
        """It is a file that stays."""


class _Stores:
    """`get_host` gives the process that runs the clusters."""

    def __init__(self, clock: Clock, get_host: Callable[[], Process | None]) -> None:
        self._clock = clock
        self._get_host = get_host
        self._servers: dict[str, _Server] = {}
        self.journals: dict[str, MemoryJournal] = {}

    def open_server(self, cluster_id: str) -> Any:
        if cluster_id not in self._servers:
            self._servers[cluster_id] = _Server(cluster_id, self._clock)
        return self._servers[cluster_id].open(self._get_host())

    def open_journal(self, cluster_id: str) -> Any:
        return _Journal(self.journals.setdefault(cluster_id, MemoryJournal()))

    async def remove(self, cluster_id: str) -> None:
        if (server := self._servers.pop(cluster_id, None)) is not None:
            await server.end()


class _Operator(KafkaOperatorAddon):
    """Its calls to brokers are counted."""

    def build_connector(self, clusters: SimulatedClusters) -> Any:
        return _Connector(super().build_connector(clusters))


class _Connector:
    def __init__(self, connector: Any) -> None:
        self._connector = connector

    async def connect(self, kafka: Any) -> Any:
        return _Connection(await self._connector.connect(kafka))


class _Connection:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.admin = BrokerWay(connection.admin)
        self.refresh = connection.refresh
        self.close = connection.close


class ChainWorld(FleetScenario):
    """Standard instances in aws us-east-1; the pool has three to `most` nodes. `fault` counts what programs write."""

    def __init__(self, folder: Path, *, most: int = 6, reserved: int = 0, fault: Fault | None = None) -> None:
        super().__init__(folder)
        self._fault = fault
        self._lives = 0
        self.are_agents_lost = False
        """Whether nothing that they send arrives."""
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
            self.set_reserve(reserved)
        self.offer(standard={})
        self._fleet = self._build_program(FLEET, self._live_as_fleet)
        self._host = self._build_program(CLUSTERS, self._live_as_clusters)
        count_row_writes(self.database)
        self.stores = _Stores(self.clock, lambda: self._host.process)
        service = self._service = ServiceWay(
            lambda: self.service.application, lambda: self._fleet, is_cut=lambda: self.are_agents_lost
        )
        self.embedded = EmbeddedClusters(
            self.stores,
            clock=self.clock,
            entropy=SeededEntropy("clusters"),
            addons={
                KAFKA_OPERATOR_ADDON: self._build_addon("Kafka operator", _Operator()),
                AGENT_ADDON: self._build_addon("agent", AgentAddon(service)),
            },
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
            data_plane=RepeatingDataPlane(self.embedded, lambda: self._host, self.clock),
            settings=OcmSettings(delays=DELAYS, **ACCOUNT),
        )
        client = OcmClientSettings(base_url=OCM_URL, token_url=f"{OCM_URL}{TOKEN_PATH}", **ACCOUNT)
        self.providers = (OcmProvider(client, web=OcmWay(self.ocm.application), clock=self.clock),)

    # ---- programs

    def start(self) -> Self:
        self.run.spawn(self._host.run(), name=CLUSTERS)
        self.run.spawn(self.ocm.run(), name="simulated OCM")
        self._start_service()
        return self

    def restart_service(self) -> Self:
        """The service ends in an orderly way, and begins with the configuration as it is now."""
        assert self._running is not None
        self._running.cancel()
        self.run.run_until(asyncio.wait((self._running,)))
        self._start_service()
        return self

    def set_reserve(self, instances: int) -> None:
        """For the next start of the service."""
        reserve = {"base_streaming_unit_size": "x1", "num_reserved_instances": instances}
        self.documents[NODE_PREWARMING] = {"standard": reserve}

    def _start_service(self) -> None:
        self._running = self.run.spawn(self._fleet.run(), name=FLEET)
        self.pass_by(1)

    async def _live_as_fleet(self, _process: Process) -> None:
        self._lives += 1
        services = self.build_service(f"process-{self._lives}").list_services()
        await Supervisor(services, clock=self.clock, entropy=SeededEntropy("supervisor")).run()

    async def _live_as_clusters(self, _process: Process) -> None:
        await self.embedded.run()

    def _build_program(self, name: str, live: Any) -> Program:
        return Program(name, live, fault=self._fault, clock=self.clock)

    def _build_addon(self, name: str, addon: Any) -> MortalAddon:
        return MortalAddon(name, addon, fault=self._fault, clock=self.clock, entropy=SeededEntropy(name))

    def exchange(self, method: str, path: str, **parts: Any) -> Response | RequestFailed:
        """As a user who tries again while nothing answers."""
        query = f"?{parts['query']}" if parts.get("query") else ""
        content_type = "application/json" if parts["body"] else ""
        request = Request(
            method=cast("Any", method),
            url=f"{URL}{path}{query}",
            headers=parts["headers"],
            body=parts["body"],
            content_type=content_type,
        )
        for _ in range(_TRIES):
            answer = self.run.run_until(self._service.send(request))
            if isinstance(answer, Response):
                return answer
            self.pass_by(RESTART_S / 2)
        return answer

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
        """It may have to begin again first."""
        for _ in range(_TRIES):
            if (found := self.embedded.find(cluster_id)) is not None:
                return found
            self.pass_by(RESTART_S / 2)
        raise AssertionError(f"{cluster_id} does not run")

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

"""A cluster with agents in virtual time. The Kafka operator is played: pod sets become ready when a test says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from plimsoll.fleet.agent.builder import AgentParts, BuiltAgent
from plimsoll.fleet.agent.settings import NAME, AgentSettings
from plimsoll.fleet.agent.wire.claims_map import CLAIMS_MAP
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kube.client import Client
from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.kube.recorder import EventRecorder
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.controller_manager.services import build_namespace_services
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.objects.validation import list_shipped_definitions
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Service, Supervisor
from tests.fleet.agent.control_planes import PARAMETERS, VERSIONS, PlayedControlPlane
from tests.local.apiserver.builders import ADMIN, MERGE
from tests.local.local_cluster import LocalClusterHarness
from tests.objects.crds.kafka_definitions import DEFINITIONS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.agent.settings import AgentParameters
    from plimsoll.kube.transport import Transport
    from plimsoll.web.client import HttpClient

Json = dict[str, Any]

KAFKA_API = "/apis/kafka.strimzi.io/v1/namespaces"
HOME = "kube-system"
POLL_S = PARAMETERS.poll_interval_s
_GROUPS = {"kafka.strimzi.io", "core.strimzi.io", "managedkafka.bf2.org"}
OPERATOR: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "plimsoll-kafka",
        "namespace": HOME,
        "labels": {"app.kubernetes.io/component": "kafka-operator", "app.kubernetes.io/version": "0.1.0"},
    },
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "plimsoll-kafka"}},
        "template": {
            "metadata": {"labels": {"app": "plimsoll-kafka"}},
            "spec": {
                "containers": [
                    {
                        "name": "kafka",
                        "image": "plimsoll",
                        "env": [{"name": "STRIMZI_KAFKA_IMAGES", "value": "4.2.0=kafka:4.2.0\n4.3.0=kafka:4.3.0"}],
                    }
                ]
            },
        },
    },
}


class RunningAgent:
    """An agent process."""

    def __init__(
        self,
        world: AgentWorld,
        name: str,
        *,
        parameters: AgentParameters = PARAMETERS,
        through: Callable[[Any], Any] = lambda port: port,
        clock: Clock | None = None,
        settings: AgentSettings | None = None,
        token: str = ADMIN,
    ) -> None:
        self._world = world
        self.clock = clock or world.run.clock
        entropy = SeededEntropy(name)
        transport: Transport = through(EmbeddedTransport(world.application, token=token))
        client = Client(
            transport,
            clock=self.clock,
            entropy=entropy,
            settings=ClientSettings(user_agent=NAME, field_manager=NAME, qps=0),
            kinds=OUR_KINDS,
        )
        self.informers = SharedInformerFactory(client, clock=self.clock, entropy=entropy)
        self.journal = MemoryJournal()
        recorder = EventRecorder(client, EventSource(component=NAME), clock=self.clock, entropy=entropy)
        web: HttpClient = through(world.control_plane)
        self.built = BuiltAgent(
            AgentParts(
                client=client,
                informers=self.informers,
                clock=self.clock,
                web=web,
                parameters=parameters,
                settings=settings or AgentSettings(),
                recorder=recorder,
                journal=self.journal,
            )
        )
        services = [
            *self.informers.list_services(),
            Service(name="events", run=recorder.run),
            *self.built.list_services(),
        ]
        supervisor = Supervisor(services, clock=self.clock, entropy=entropy)
        self._task: asyncio.Task[None] = world.run.spawn(supervisor.run(), name=name)

    def kill(self) -> None:
        self._task.cancel()
        self._task.cancel()
        self._world.run.settle()


class AgentWorld(LocalClusterHarness):
    """`with AgentWorld() as world:`. `start_agent` starts one; several may run."""

    def __init__(self) -> None:
        super().__init__(build_namespace_services, kinds=OUR_KINDS)
        self.control_plane = PlayedControlPlane(self.run.clock)
        self._agents = 0

    def __enter__(self) -> Self:
        self.run.__enter__()
        self.run.run_until(self.application.start())
        for manifest in list_shipped_definitions():
            if manifest.body["spec"]["group"] in _GROUPS:
                self.made(DEFINITIONS, manifest.body)
        self.run.settle()
        if self.ask("GET", f"/api/v1/namespaces/{HOME}").status == 404:
            self.namespace(HOME)
        self.made(f"/apis/apps/v1/namespaces/{HOME}/deployments", OPERATOR)
        self.set_operator_available(is_available=True)
        self.start()
        return self

    def start_agent(self, **options: Any) -> RunningAgent:
        self._agents += 1
        agent = RunningAgent(self, f"agent {self._agents}", **options)
        self.run.advance_by(1)
        return agent

    def pass_polls(self, number: int = 1) -> Self:
        self.run.advance_by(number * POLL_S)
        return self

    # ---- the control plane

    def list_items(self, *items: Json) -> Self:
        self.control_plane.items = list(items)
        return self

    # ---- the Kafka operator

    def set_operator_available(self, *, is_available: bool) -> None:
        condition = {"type": "Available", "status": str(is_available), "reason": "x", "message": ""}
        self._patch(
            f"/apis/apps/v1/namespaces/{HOME}/deployments/plimsoll-kafka/status",
            {"status": {"conditions": [condition]}},
        )

    def operate(self, *, ready: bool = True) -> Self:
        """The operator brings every Kafka to what its pools say. Brokers leave at once."""
        for kafka in self.list_kafkas():
            metadata = kafka["metadata"]
            for pool in self.list_pools(metadata["namespace"]):
                self._set_pods(metadata["namespace"], metadata["name"], pool, ready=ready)
            self.report_kafka(metadata["namespace"], metadata["name"], ready=ready)
        return self.settle()

    def report_kafka(
        self, namespace: str, name: str, *, ready: bool = True, reason: str = "", message: str = ""
    ) -> None:
        url = f"{KAFKA_API}/{namespace}/kafkas/{name}"
        generation = self.ask("GET", url).body["metadata"]["generation"]
        condition: Json = {"type": "Ready" if ready else "NotReady", "status": "True"}
        if not ready:
            condition |= {"reason": reason or "Creating", "message": message}
        status: Json = {"conditions": [condition], "observedGeneration": generation}
        if ready:
            status |= {"kafkaVersion": VERSIONS["kafka"], "kafkaMetadataVersion": "4.3-IV0"}
        self._patch(f"{url}/status", {"status": status})

    def _set_pods(self, namespace: str, cluster: str, pool: Json, *, ready: bool) -> None:
        count, name = pool["spec"]["replicas"], f"{cluster}-{pool['metadata']['name']}"
        url = f"/apis/core.strimzi.io/v1/namespaces/{namespace}/strimzipodsets"
        spec = {"selector": {"matchLabels": {}}, "pods": [{"metadata": {"name": f"{name}-{n}"}} for n in range(count)]}
        body = {"apiVersion": "core.strimzi.io/v1", "kind": "StrimziPodSet", "metadata": {"name": name}, "spec": spec}
        if self.ask("GET", f"{url}/{name}").status == 404:
            self.made(url, body)
        else:
            self._patch(f"{url}/{name}", {"spec": spec})
        status = {"pods": count, "currentPods": count, "readyPods": count if ready else 0}
        self._patch(f"{url}/{name}/status", {"status": status})

    def run_reserved(self) -> Self:
        """The pods of all Deployments of reserved instances run."""
        for deployment in self.list_all("/apis/apps/v1/deployments", labels="bf2.org/deployment=reserved"):
            metadata, count = deployment["metadata"], deployment["spec"]["replicas"]
            self._patch(
                f"/apis/apps/v1/namespaces/{metadata['namespace']}/deployments/{metadata['name']}/status",
                {"status": {"replicas": count, "readyReplicas": count}},
            )
        return self.settle()

    def settle(self) -> Self:
        """The agent has noticed what changed."""
        self.run.advance_by(2)
        return self

    # ---- what is to be seen

    def list_all(self, path: str, *, labels: str = "") -> list[Json]:
        reply = self.ask("GET", f"{path}?labelSelector={labels}" if labels else path)
        assert reply.status == 200, reply
        items: list[Json] = reply.body["items"]
        return items

    def list_managed(self) -> dict[str, Json]:
        """By namespace."""
        found = self.list_all("/apis/managedkafka.bf2.org/v1alpha1/managedkafkas")
        return {item["metadata"]["namespace"]: item for item in found}

    def list_kafkas(self) -> list[Json]:
        return self.list_all("/apis/kafka.strimzi.io/v1/kafkas")

    def list_pools(self, namespace: str) -> list[Json]:
        return self.list_all(f"{KAFKA_API}/{namespace}/kafkanodepools")

    def count_replicas(self, namespace: str) -> dict[str, int]:
        return {pool["metadata"]["name"]: pool["spec"]["replicas"] for pool in self.list_pools(namespace)}

    def list_namespaces(self) -> list[str]:
        """Those of the agent."""
        found = self.list_all("/api/v1/namespaces", labels="bf2.org/managedkafka-id")
        return [item["metadata"]["name"] for item in found]

    def get_claims(self) -> dict[str, int]:
        """The units that are held, by namespace."""
        reply = self.ask("GET", f"/api/v1/namespaces/{HOME}/configmaps/{CLAIMS_MAP}")
        if reply.status == 404:
            return {}
        read = {namespace: json.loads(text) for namespace, text in reply.body.get("data", {}).items()}
        return {namespace: claim["units"] for namespace, claim in read.items() if claim.get("units")}

    def get_condition(self, namespace: str, name: str = "Ready") -> Json:
        conditions = self.list_managed()[namespace].get("status", {}).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == name), {})

    def get_last(self, kafka_id: str) -> Json:
        return self.control_plane.get_last(kafka_id)

    def _patch(self, url: str, body: Json) -> None:
        reply = self.ask("PATCH", url, body, content=MERGE)
        assert reply.status == 200, reply

"""The Kafka operator in virtual time: pod sets, simulated brokers and our engine; reconciles are single steps.

`step` reconciles the cluster once. `run_rebalances` reconciles all KafkaRebalances once. `run_to_the_end` alternates
both while time passes. Nothing runs pods: `make_ready` reports what a kubelet would.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.core.errors import PlimsollError
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.kafka.builder import KafkaOperatorParts, OperatorDependencies
from plimsoll.kafka.controllers.pod_set_controller import PodSetController
from plimsoll.kafka.cruise_control.client.client import CruiseControlClient
from plimsoll.kafka.engine.engine import run_inline
from plimsoll.kafka.executor.record_stores import MemoryExecutionStore
from plimsoll.kafka.settings import KafkaSettings, RebalanceEngine
from plimsoll.kube.client import Client
from plimsoll.kube.errors import AnswerLost, Status, build_error
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.kafka.simulated import SimulatedBrokerPods, SimulatedClusters
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.web.client import RequestFailed, Response
from tests.faults import Crashed, translate_strikes
from tests.kafka.controllers.pod_set_cluster import PodSetCluster
from tests.kafka.controllers.recorded_cruise_control import RecordedCruiseControl
from tests.kube.leases.stolen_leases import StolenLease
from tests.local.apiserver.builders import ADMIN
from tests.objects.crds.kafka_definitions import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.executor.record import ExecutionRecord, ExecutionStore, RecordedPlan, RecordedState
    from plimsoll.kafka.reporting.cluster_reporter import ClusterResult
    from plimsoll.local.components import Components
    from plimsoll.local.kafka.cluster import SimulatedKafka
    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.runtime.supervisor import Service
    from plimsoll.web.client import HttpClient, Request
    from tests.faults.ports import Fault

Json = dict[str, Any]

API = f"/apis/kafka.strimzi.io/v1/namespaces/{NAMESPACE}"
BOTH_MODES = [{"mode": "add-brokers"}, {"mode": "remove-brokers"}]
LISTENER = {"name": "plain", "port": 9092, "type": "internal", "tls": False}
CRUISE_CONTROL_URL = "http://c-cruise-control:9090/kafkacruisecontrol"
MB = 1_000_000
ENGINE = "plimsoll"
"""What plans and moves: our engine, or "cruise-control", which answers with recorded bodies. Tests set it."""


def _fail(error: Exception) -> Any:
    raise error


STRIKES: dict[str, dict[str, Callable[[], Any]]] = {
    "kubernetes": {
        "lost": lambda: _fail(AnswerLost("the answer was lost")),
        "refused": lambda: _fail(build_error(Status(code=500, reason="InternalError"))),
    },
    "engine": {
        "lost": lambda: RequestFailed(problem="the connection broke"),
        "refused": lambda: Response(status=503, body=b"unavailable"),
    },
    "brokers": {
        "lost": lambda: _fail(KafkaUnavailable("the connection broke")),
        "refused": lambda: _fail(KafkaUnavailable("no broker answered")),
    },
}
"""What the caller of a port gets when its call is struck."""


class RecordingClient:
    """What is sent to the engine, as "add_broker dryrun=true brokerid=3"."""

    def __init__(self, web: HttpClient, sent: list[str]) -> None:
        self._web = web
        self._sent = sent

    async def send(self, request: Request) -> Response | RequestFailed:
        path, _, query = request.url.partition("?")
        endpoint = path.rpartition("/")[2]
        kept = [part for part in query.split("&") if part.startswith(("dryrun", "brokerid"))]
        if request.method == "POST":
            self._sent.append(" ".join([endpoint, *kept]))
        return await self._web.send(request)


class OperatorBench(PodSetCluster):
    """A Kafka `c` with the pool `p`, unless a test makes others."""

    def __init__(
        self,
        *,
        fault: Fault | None = None,
        settings: KafkaSettings | None = None,
        definitions: Iterable[Json] | None = None,
    ) -> None:
        """`fault` strikes the calls of the operator: to Kubernetes, the engine and the brokers."""
        super().__init__(parts=self._build_parts, definitions=definitions)
        has_no_engine = ENGINE == "cruise-control" and settings is None
        self.settings = settings or KafkaSettings(
            engine=RebalanceEngine.CRUISE_CONTROL if has_no_engine else RebalanceEngine.PLIMSOLL
        )
        self.cruise_control = RecordedCruiseControl(lambda: self.clusters.find(NAMESPACE, "c"))
        self.fault = fault
        self.executions: dict[str, str] = {}
        """The requests of executions that were begun, by their ids."""
        self.sent: list[str] = []
        self.journal = MemoryJournal()
        self.lease = StolenLease(self.run.clock)
        self._stores: dict[str, ExecutionStore] = {}
        self._starts_of_operator = 0

    def _build_parts(self, components: Components) -> Sequence[Service]:
        part = components.build_component("cluster", manager="cluster")
        if not hasattr(self, "clusters"):
            self.clusters = SimulatedClusters(self.run.clock)
        brokers = SimulatedBrokerPods(components, self.clusters)
        pod_sets = PodSetController(part.client, part.informers, part.recorder, clock=part.clock, entropy=part.entropy)
        self.start_operator()
        return [*pod_sets.list_services(), *brokers.list_services()]

    def start_operator(self) -> None:
        """A new process. One that crashed leaves the brokers, the objects and the record as they are."""
        self._starts_of_operator += 1
        if self.fault is not None and self.fault.struck is not None:
            self.fault = None
        transport = self.wrap(EmbeddedTransport(self.application, token=ADMIN), "kubernetes")
        settings = ClientSettings(user_agent="kafka-operator", field_manager="kafka-operator", qps=0)
        entropy = SeededEntropy(f"operator {self._starts_of_operator}")
        clock = self.get_operator_clock()
        client = Client(
            transport,
            clock=clock,
            entropy=entropy,
            settings=settings,
            kinds=OUR_KINDS,
            guard=self.lease,
        )
        connector = SimulatedBrokers(self.clusters.find)
        self.parts = KafkaOperatorParts(
            OperatorDependencies(
                client=client,
                clock=clock,
                entropy=entropy,
                connector=_WrappedConnector(connector, lambda admin: self.wrap(admin, "brokers")),
                open_store=lambda kafka: self.open_store(client, kafka),
                settings=self.settings,
                web=self.cruise_control,
                journal=self.journal,
                keeps_last_plans=False,
                run_blocking=run_inline,
                wrap_web=lambda web: self.wrap(RecordingClient(web, self.sent), "engine"),
            )
        )

    def get_operator_clock(self) -> Clock:
        return self.run.clock

    def wrap(self, port: Any, kind: str) -> Any:
        if self.fault is None:
            return port
        return translate_strikes(self.fault.wrap(port), **STRIKES[kind])

    def open_store(self, _client: Client, kafka: Kafka) -> ExecutionStore:
        """The record, which outlives the operator."""
        return RecordingStore(self._stores.setdefault(kafka.metadata.uid, MemoryExecutionStore()), self)

    @property
    def accepted(self) -> list[str]:
        """The requests whose executions were begun, as "add_broker 3"."""
        return [*self.executions.values(), *self.cruise_control.accepted]

    def spoil_proposals(self) -> None:
        """No proposal can be made: replication factor 3 and two racks."""
        self.cruise_control.fails = True
        for broker in self.brokers.catch_up().brokers.values():
            broker.rack = f"r{broker.id % 2}"

    def stop_with_another_client(self) -> None:
        """What is executed is stopped at the engine itself: its task ends as CompletedWithError."""
        engines = [engine.client for _, engine in self.parts.connections.list_engines()]
        client = engines[0] if engines else CruiseControlClient(CRUISE_CONTROL_URL, web=self.cruise_control)
        self.run.run_until(client.stop_execution())

    def mend_proposals(self) -> None:
        self.cruise_control.fails = False
        for broker in self.brokers.catch_up().brokers.values():
            broker.rack = f"r{broker.id}"

    # ---- objects

    def make_kafka(
        self, *, modes: Any = BOTH_MODES, replicas: int | None = None, version: str = "v1", **more: Any
    ) -> None:
        """A Kafka with `autoRebalance`; None: without it."""
        cruise_control: Json = {} if modes is None else {"autoRebalance": modes}
        if self.settings.engine is RebalanceEngine.CRUISE_CONTROL:
            cruise_control["config"] = {"webserver.security.enable": bool(self.cruise_control.password)}
            security = {"encryption": {"type": "none"}, "authentication": {"type": "none"}}
            more["annotations"] = {
                **more.get("annotations", {}),
                "strimzi.io/internal-cluster-security": json.dumps(security),
            }
        kafka: Json = {"version": "4.3.1", "config": {}, "listeners": [LISTENER]}
        if replicas is not None:
            kafka["replicas"] = replicas
        body = {
            "apiVersion": f"kafka.strimzi.io/{version}",
            "kind": "Kafka",
            "metadata": {"name": "c", **more},
            "spec": {"kafka": kafka, "cruiseControl": cruise_control},
        }
        self.made(f"/apis/kafka.strimzi.io/{version}/namespaces/{NAMESPACE}/kafkas", body)

    def read_pool(self, name: str = "p") -> Json:
        """The pool; empty: there is none."""
        found = self.ask("GET", f"{API}/kafkanodepools/{name}")
        return {} if found.status == 404 else found.body

    def make_pool(
        self, name: str = "p", *, replicas: int = 3, ids: str = "", roles: Sequence[str] = ("broker",)
    ) -> None:
        annotations = {"strimzi.io/next-node-ids": ids} if ids else {}
        body = {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaNodePool",
            "metadata": {"name": name, "labels": {"strimzi.io/cluster": "c"}, "annotations": annotations},
            "spec": {"replicas": replicas, "roles": list(roles), "storage": {"type": "ephemeral"}},
        }
        self.made(f"{API}/kafkanodepools", body)

    def scale(self, replicas: int, pool: str = "p", **annotations: str) -> None:
        marks = {f"strimzi.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
        body = {"metadata": {"annotations": marks}, "spec": {"replicas": replicas}}
        self.patch(f"{API}/kafkanodepools/{pool}", body)

    def annotate(self, kind: str, name: str, **annotations: str | None) -> None:
        marks = {f"strimzi.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.patch(f"{API}/{kind}/{name}", {"metadata": {"annotations": marks}})

    def make_cluster(
        self, *, partitions: int = 30, pools: Sequence[str] = ("p",), brokers: int = 3, topic: bool = True, **more: Any
    ) -> None:
        """A cluster that runs: brokers registered, one topic of replication factor 3 on those of the first pool."""
        self.make_kafka(**more)
        if more.get("replicas") is None:
            for number, pool in enumerate(pools):
                ids = f"[{10 * number}-{10 * number + 9}]" if number else ""
                self.make_pool(pool, ids=ids, replicas=3 if number else brokers)
        self.step()
        self.make_all_ready()
        if topic:
            running = sorted(self.brokers.catch_up().brokers)[:brokers]
            replicas = [[running[(number + offset) % brokers] for offset in range(3)] for number in range(partitions)]
            self.brokers.create_topic("orders", replicas, size_bytes=5 * MB)
        self.step()

    # ---- time

    def step(self, times: int = 1) -> ClusterResult | None:
        """Reconcile the cluster. It may wait until pods are gone: they go as soon as the kubelet sees the deletion."""
        result = None
        for _ in range(times):
            try:
                result = self._run_cluster()
            except Crashed:
                self.start_operator()
            except PlimsollError:  # the controller would try again
                result = None
            self.run.settle()
            self._restart_if_crashed()
        return result

    def _run_cluster(self) -> ClusterResult | None:
        running = self.run.spawn(self.parts.clusters.run(NAMESPACE, "c"))
        while not running.done():
            self.run.settle()
            self._end_deleted_pods()
            if not running.done():
                self.run.advance_by(1)
        return running.result()

    def run_rebalances(self) -> None:
        try:
            self.run.run_until(self.parts.rebalances.run_all())
        except Crashed:
            self.start_operator()
        except PlimsollError:  # the controller would try again
            pass
        self.run.settle()
        self._restart_if_crashed()

    def _restart_if_crashed(self) -> None:
        """The call of a task in the background may have been the last of the process."""
        if self.fault is not None and self.fault.has_crashed:
            self.start_operator()

    def run_to_the_end(self, *, at_most: int = 300) -> list[str]:
        """Reconcile everything again and again; gives the states in the order in which they were seen."""
        states: list[str] = []
        for _ in range(at_most):
            self.step()
            if not states or self.state != states[-1]:
                states.append(self.state)
            if self.state in {"Ready", "Idle", ""} and not self.rebalances and not self.lists[0] and not self.lists[1]:
                return states
            self.run_rebalances()
            if not states or self.state != states[-1]:
                states.append(self.state)
            self.run.advance_by(5)
        raise AssertionError(f"did not end: {states}, {self.status_of_kafka}, {self.rebalances}")

    def make_ready(self, *ids: int, pool: str = "p") -> None:
        for node_id in ids:
            self.report(f"c-{pool}-{node_id}")
        self.run.settle()

    def make_all_ready(self) -> None:
        self.make_ready_except(())

    def make_ready_except(self, down: Collection[str]) -> None:
        for name, pod in self.pods.items():
            conditions = pod.get("status", {}).get("conditions", ())
            is_ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
            if not is_ready and "deletionTimestamp" not in pod["metadata"] and name not in down:
                self.report(name)
        self.run.settle()

    def _end_deleted_pods(self) -> None:
        for name, pod in self.pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                self.end(name)

    # ---- what is to be seen

    @property
    def brokers(self) -> SimulatedKafka:
        found = self.clusters.find(NAMESPACE, "c")
        assert found is not None
        return found

    @property
    def kafka(self) -> Json:
        found: Json = self.ask("GET", f"{API}/kafkas/c").body
        return found

    @property
    def status_of_kafka(self) -> Json:
        found: Json = self.kafka.get("status", {})
        return found

    @property
    def view(self) -> Json:
        """The design's view; empty: absent."""
        return self.status_of_kafka.get("cruiseControl", {}).get("autoRebalance") or {}

    @property
    def shipped(self) -> Json:
        """Strimzi's view; empty: absent."""
        return self.status_of_kafka.get("autoRebalance") or {}

    @property
    def state(self) -> str:
        return str(self.view.get("state", ""))

    @property
    def lists(self) -> tuple[list[int], list[int]]:
        return self.view.get("add-brokers", []), self.view.get("remove-brokers", [])

    @property
    def conditions(self) -> dict[str, list[str]]:
        """The reasons of conditions by type; Ready has none."""
        found: dict[str, list[str]] = {}
        for condition in self.status_of_kafka.get("conditions", []):
            found.setdefault(condition["type"], []).append(condition.get("reason", ""))
        return found

    @property
    def rebalances(self) -> dict[str, Json]:
        items = self.ask("GET", f"{API}/kafkarebalances").body["items"]
        return {item["metadata"]["name"]: item for item in items}

    def rebalance_state(self, name: str) -> str:
        return self.list_rebalance_states()[name]

    def list_rebalance_states(self) -> dict[str, str]:
        return {name: read_rebalance_state(body) for name, body in self.rebalances.items()}

    def pool_ids(self, pool: str = "p") -> list[int]:
        found: list[int] = self.read_pool(pool).get("status", {}).get("nodeIds", [])
        return found

    def count_replicas(self, broker: int) -> int:
        return sum(broker in replicas for replicas in self.list_replicas().values())

    def list_replicas(self) -> dict[tuple[str, int], set[int]]:
        """The brokers of each partition."""
        return {partition.key: set(partition.replicas) for partition in self.brokers.catch_up().iterate_partitions()}


def read_rebalance_state(rebalance: Json) -> str:
    conditions = rebalance.get("status", {}).get("conditions", [])
    states = [condition["type"] for condition in conditions if condition["type"] != "Warning"]
    return states[0] if states else "New"


class RecordingStore:
    """Remembers the executions that were begun, with the last request for one."""

    def __init__(self, store: ExecutionStore, bench: OperatorBench) -> None:
        self._store = store
        self._bench = bench

    async def read(self) -> ExecutionRecord | None:
        return await self._store.read()

    async def write_plan(self, plan: RecordedPlan) -> None:
        await self._store.write_plan(plan)

    async def write_state(self, state: RecordedState) -> None:
        await self._store.write_state(state)
        self.remember(state)

    def remember(self, state: RecordedState) -> None:
        requests = [request for request in self._bench.sent if "dryrun=false" in request]
        if state.execution_id and requests:
            request = requests[-1].replace("dryrun=false brokerid=", "")
            self._bench.executions.setdefault(state.execution_id, request)


class _WrappedConnector:
    """Connections whose admin is wrapped."""

    def __init__(self, connector: SimulatedBrokers, wrap: Callable[[Any], Any]) -> None:
        self._connector = connector
        self._wrap = wrap

    async def connect(self, kafka: Kafka) -> Any:
        connection = await self._connector.connect(kafka)
        return _WrappedConnection(connection, self._wrap(connection.admin))


class _WrappedConnection:
    def __init__(self, connection: Any, admin: Any) -> None:
        self._connection = connection
        self.admin = admin

    async def refresh(self, kafka: Kafka) -> None:
        await self._connection.refresh(kafka)

    async def close(self) -> None:
        await self._connection.close()

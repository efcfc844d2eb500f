"""Reconciles of 500 Kafkas with 3,000 brokers where nothing is to be done: calls, writes, and time against a list.

The API server is in this process, so a call costs what the server needs for it and no network. The list has the same
objects: Kafkas, node pools and pod sets.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import structlog

from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.kafka.builder import KafkaOperatorParts, OperatorDependencies
from plimsoll.kafka.engine.engine import run_inline
from plimsoll.kafka.executor.record_stores import MemoryExecutionStore
from plimsoll.kafka.settings import KafkaSettings
from plimsoll.kube.client import Client
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.kafka.cluster import SimulatedKafka
from plimsoll.objects.api.kafka import Kafka, KafkaNodePool, StrimziPodSet
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.web.client import RequestFailed
from tests.local.apiserver.builders import ADMIN
from tests.objects.crds.kafka_definitions import NAMESPACE, DefinedKafka, list_our_definitions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kube.transport import Request, Response

CLUSTERS = 500
BROKERS = 6
_PASSES = 3


def rows() -> Iterator[dict[str, Any]]:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    with DefinedKafka(list_our_definitions()) as server:
        fleet = _Fleet(server)
        fleet.make()
        listing_s = min(fleet.list_all() for _ in range(_PASSES))
        passes = [fleet.reconcile_all() for _ in range(_PASSES)]
        pass_s, calls, writes = min(passes)
    shape = f"{CLUSTERS} Kafkas, {CLUSTERS * BROKERS:,} brokers"
    yield _row("quiet pass over all Kafkas", pass_s, "s CPU", None, shape)
    yield _row("calls per Kafka in a quiet pass", calls / CLUSTERS, "calls", None)
    yield _row("writes in a quiet pass", writes, "writes", 0)
    yield _row("quiet pass / one list of the same objects", pass_s / listing_s, "x", None, f"list {listing_s:.2f} s")


class _CountingTransport:
    """Counts calls and writes."""

    def __init__(self, transport: EmbeddedTransport) -> None:
        self._transport = transport
        self.calls = 0
        self.writes = 0

    async def send(self, request: Request) -> Response:
        self.calls += 1
        self.writes += request.method != "GET"
        return await self._transport.send(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


class _NoServer:
    async def send(self, request: Any) -> RequestFailed:
        return RequestFailed(problem=f"there is no server at {request.url}")


class _Fleet:
    """The operator and its clusters."""

    def __init__(self, server: DefinedKafka) -> None:
        self._server = server
        self._run = server.run
        self._transport = _CountingTransport(EmbeddedTransport(server.application, token=ADMIN))
        self._brokers: dict[str, SimulatedKafka] = {}
        entropy = SeededEntropy("benchmark")
        settings = ClientSettings(qps=0)
        self._client = Client(
            self._transport, clock=self._run.clock, entropy=entropy, settings=settings, kinds=OUR_KINDS
        )
        self._parts = KafkaOperatorParts(
            OperatorDependencies(
                client=self._client,
                clock=self._run.clock,
                entropy=entropy,
                connector=SimulatedBrokers(lambda _namespace, name: self._brokers[name]),
                open_store=lambda _kafka: MemoryExecutionStore(),
                settings=KafkaSettings(),
                web=_NoServer(),
                keeps_last_plans=False,
                run_blocking=run_inline,
            )
        )

    def make(self) -> None:
        """Clusters that run: their pods are ready and their brokers are registered."""
        for number in range(CLUSTERS):
            name = f"c{number:03}"
            kafka = self._brokers[name] = SimulatedKafka(self._run.clock)
            for broker in range(BROKERS):
                kafka.add_broker(broker, rack=f"r{broker % 3}")
            self._create_objects(name)
            self._reconcile(name)
            self._make_ready(name)
            self._reconcile(name)

    def _create_objects(self, name: str) -> None:
        modes = [{"mode": "add-brokers"}, {"mode": "remove-brokers"}]
        kafka = {"metadata": {"name": name}, "spec": {"kafka": {}, "cruiseControl": {"autoRebalance": modes}}}
        pool = {
            "metadata": {"name": f"{name}-brokers", "labels": {"strimzi.io/cluster": name}},
            "spec": {"replicas": BROKERS, "roles": ["broker"], "storage": {"type": "ephemeral"}},
        }
        self._run.run_until(self._client.create(Kafka, kafka, namespace=NAMESPACE))
        self._run.run_until(self._client.create(KafkaNodePool, pool, namespace=NAMESPACE))

    def _make_ready(self, name: str) -> None:
        counts = {"pods": BROKERS, "readyPods": BROKERS, "currentPods": BROKERS, "observedGeneration": 1}
        pod_set = f"{name}-{name}-brokers"
        status = {"status": counts}
        self._run.run_until(
            self._client.merge_patch(StrimziPodSet, pod_set, status, namespace=NAMESPACE, subresource="status")
        )

    def _reconcile(self, name: str) -> None:
        self._run.run_until(self._parts.clusters.run(NAMESPACE, name))

    def list_all(self) -> float:
        """Processor time of one list of each kind."""
        began = time.process_time()
        for kind in (Kafka, KafkaNodePool, StrimziPodSet):
            self._run.run_until(self._client.list(kind))
        return time.process_time() - began

    def reconcile_all(self) -> tuple[float, int, int]:
        """Processor time, calls and writes."""
        calls, writes, began = self._transport.calls, self._transport.writes, time.process_time()
        for name in self._brokers:
            self._reconcile(name)
        return time.process_time() - began, self._transport.calls - calls, self._transport.writes - writes


def _row(name: str, value: float, unit: str, target: float | None, note: str = "") -> dict[str, Any]:
    met = None if target is None else value <= target
    shown = None if target is None else f"<= {target:g}"
    return {"name": name, "value": value, "unit": unit, "target": shown, "met": met, "note": note}

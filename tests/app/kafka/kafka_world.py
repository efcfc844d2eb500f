"""Pods of Kafka clusters as simulated brokers in virtual time, with any number of operator processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.app.kafka.kafka_operator import KafkaProgram
from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.kafka.builder import KafkaOperatorParts, OperatorDependencies
from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
from plimsoll.kafka.engine.engine import run_inline
from plimsoll.kafka.settings import LEASE, NAME, KafkaSettings
from plimsoll.kube.leases import LeaseSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.kafka.simulated import SimulatedBrokerPods, SimulatedClusters
from plimsoll.web.client import FailureKind, RequestFailed
from tests.app.elected_nodes import PAGES
from tests.app.elected_processes import ElectedProcess
from tests.kafka.controllers.operator_bench import OperatorBench
from tests.local.apiserver.builders import ADMIN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service
    from plimsoll.web.client import Request

KAFKA_LEASE = LeaseSettings(name=LEASE, namespace="kube-system", field_manager=NAME)


class NoServer:
    """There is no Cruise Control."""

    async def send(self, request: Request) -> RequestFailed:
        return RequestFailed(problem=f"there is no server at {request.url}", kind=FailureKind.UNCONNECTED)


class KafkaWorld(OperatorBench):
    """Without an operator of its own. Pods become ready when `follow_pods` says so."""

    def _build_parts(self, components: Components) -> Sequence[Service]:
        if not hasattr(self, "clusters"):
            self.clusters = SimulatedClusters(self.run.clock)
        return SimulatedBrokerPods(components, self.clusters).list_services()

    def start_process(self, name: str, settings: KafkaSettings | None = None, *, token: str = ADMIN) -> KafkaProcess:
        return KafkaProcess(self, name, settings or KafkaSettings(resync_s=30), token=token)

    def advance_until(self, is_so: Callable[[], bool], *, within_s: float) -> None:
        """Let time pass; pods run as soon as they exist, and end as soon as they are deleted."""
        began_s = self.run.clock.monotonic_s()
        while not is_so():
            assert self.run.clock.monotonic_s() - began_s < within_s, (self.status_of_kafka, sorted(self.pods))
            self.follow_pods()
            self.run.advance_by(1)

    def follow_pods(self) -> None:
        for name, pod in self.pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                self.end(name)
            elif pod.get("status", {}).get("phase") != "Running":
                self.report(name)


class KafkaProcess:
    """An operator process with its program."""

    def __init__(self, world: KafkaWorld, name: str, settings: KafkaSettings, *, token: str) -> None:
        self.process = process = ElectedProcess(
            name, EmbeddedTransport(world.application, token=token), lease=KAFKA_LEASE, run=world.run
        )
        client, clock = process.client, process.clock
        parts = KafkaOperatorParts(
            OperatorDependencies(
                client=client,
                clock=clock,
                entropy=process.entropy,
                connector=SimulatedBrokers(world.clusters.find),
                open_store=lambda kafka: ConfigMapExecutionStore(client, kafka, clock=clock),
                settings=settings,
                web=NoServer(),
                recorder=None if settings.dry_run else process.recorder,
                run_blocking=run_inline,
            )
        )
        self.controllers = parts.build_controllers(process.informers)
        self.program = KafkaProgram(
            parts=parts,
            controllers=self.controllers,
            informers=process.informers,
            recorder=process.recorder,
            journal=None,
            pages=PAGES,
        )
        process.start(self.program)

    def get_metrics(self) -> str:
        return self.controllers.reconciling.expose_metrics().decode()

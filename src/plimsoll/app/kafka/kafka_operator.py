"""The Kafka operator against a cluster: `plimsoll run kafka`.

Puts together the cluster that a kubeconfig names with the brokers of each Kafka and, where chosen, their Cruise
Controls. A dry run takes no lease.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from plimsoll.app.kafka.cruise_control_router import CruiseControlRouter
from plimsoll.kafka.brokers.access import KubernetesBrokers
from plimsoll.kafka.builder import KafkaOperatorParts, OperatorDependencies
from plimsoll.kafka.cruise_control.client.client import MAX_RESPONSE_BYTES, TIMEOUT_S
from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
from plimsoll.kafka.rivals import find_rivals, refuse_rivals
from plimsoll.kafka.settings import LEASE, NAME, KafkaMode
from plimsoll.kube.requests.options import Selection
from plimsoll.kube.secret_tls import ClusterSecrets
from plimsoll.objects.api.kafka import Kafka
from plimsoll.operator.process import ControllerProcess, ProcessOwner
from plimsoll.operator.reconcile_all import reconcile_all
from plimsoll.runtime.supervisor import Service
from plimsoll.web.client import AiohttpClient
from plimsoll.web.serving import check_address, serve

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.lazy import LazyJournal
    from plimsoll.kafka.builder import KafkaOperatorControllers
    from plimsoll.kafka.cruise_control.server.authentication import Authentication
    from plimsoll.kafka.reporting.cluster_reporter import ClusterResult
    from plimsoll.kafka.reporting.rebalance_reporter import RebalanceResult
    from plimsoll.kafka.settings import KafkaSettings
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.kube.transport import Guard
    from plimsoll.operator.process import ControllerOptions
    from plimsoll.operator.reconcile_all import FailedReconcile
    from plimsoll.web.serving import TlsFiles

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CruiseControlServing:
    """How the engines are served as Cruise Controls. `address`: HOST:PORT; `tls` None: plain http."""

    address: str
    authentication: Authentication
    tls: TlsFiles | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOperatorSettings:
    """What a user chose."""

    process: ControllerOptions
    settings: KafkaSettings
    serving: CruiseControlServing | None = None
    """Where other programs reach the engines; None: nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledOnce:
    """The results of one reconcile of every object."""

    clusters: tuple[ClusterResult | FailedReconcile, ...]
    rebalances: tuple[RebalanceResult | FailedReconcile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaProgram:
    """The Kafka operator as a process runs it."""

    parts: KafkaOperatorParts
    controllers: KafkaOperatorControllers
    informers: SharedInformerFactory
    recorder: EventRecorder
    journal: LazyJournal | None
    pages: ASGIApp
    serving: CruiseControlServing | None = None

    def list_standby_services(self) -> list[Service]:
        return self.informers.list_services()

    def list_services(self) -> list[Service]:
        served = [Service(name="cruise-control", run=self._serve)] if self.serving is not None else []
        return [Service(name="events", run=self.recorder.run), *self.controllers.list_services(), *served]

    async def _serve(self) -> None:
        """Only the leader serves: its engines execute."""
        assert self.serving is not None
        router = CruiseControlRouter(self.parts.connections, self.serving.authentication)
        await serve(router, self.serving.address, tls=self.serving.tls)

    async def leave(self) -> None:
        await self.parts.close()
        if self.journal is not None:
            await self.journal.close()


class KafkaOperatorProcess(ProcessOwner):
    """A Kafka operator and its connections, for as long as the block lasts."""

    def __init__(self, settings: KafkaOperatorSettings, *, clock: Clock, entropy: Entropy) -> None:
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._process = ControllerProcess(
            settings.process.build_settings(
                NAME,
                lease=LEASE,
                namespace=settings.settings.controller_namespace,
                dry_run=settings.settings.dry_run,
            ),
            clock=clock,
            entropy=entropy,
        )
        self._journal = self._process.make_journal(settings.process.data)

    async def _open(self) -> None:
        self._web = await self._process.stack.enter_async_context(
            AiohttpClient(timeout_s=TIMEOUT_S, max_bytes=MAX_RESPONSE_BYTES)
        )

    async def run(self) -> None:
        """Runs until cancelled, or until leadership is lost. Raises `RivalFound` beside another operator."""
        self._process.check_address()
        if self._settings.serving is not None:
            check_address(self._settings.serving.address)
        await self._check_cluster()
        await self._process.run(self._build)

    async def run_once(self) -> ReconciledOnce:
        """Reconciles every Kafka and every KafkaRebalance once, while leading. Pods are not made.

        Raises `LeaseNotAcquired` beside a process that leads: two would go on with the same execution.
        """
        await self._check_cluster()
        try:
            return await self._process.run_once(self._reconcile_once)
        finally:
            if self._journal is not None:
                await self._journal.close()

    async def _reconcile_once(self, client: Client, _guard: Guard | None) -> ReconciledOnce:
        async with self._process.record_events() as recorder:
            return await self._reconcile(self._build_parts(client, recorder=recorder, keeps_last_plans=False))

    async def _reconcile(self, parts: KafkaOperatorParts) -> ReconciledOnce:
        try:
            clusters = await self._reconcile_clusters(parts)
            is_operator = self._settings.settings.mode is KafkaMode.OPERATOR
            rebalances = await parts.rebalances.run_all() if is_operator else ()
            return ReconciledOnce(clusters=clusters, rebalances=rebalances)
        finally:
            await parts.close()

    async def _check_cluster(self) -> None:
        # A server without the definitions, or one that refuses us, is an error now; an informer would only retry.
        settings = self._settings.settings
        place = f"namespaces/{settings.namespace}/" if settings.namespace else ""
        for plural in ("kafkas", "kafkarebalances"):
            await self.client.get_json(f"/apis/kafka.strimzi.io/v1/{place}{plural}", [("limit", "1")])
        if settings.mode is not KafkaMode.OPERATOR:
            return
        if not settings.dry_run:
            await refuse_rivals(self.client, settings.namespace)
            return
        for rival in await find_rivals(self.client, settings.namespace):
            log.warning("rival.found", problem=str(rival))

    async def _reconcile_clusters(self, parts: KafkaOperatorParts) -> tuple[ClusterResult | FailedReconcile, ...]:
        """Reconcile every Kafka. A failure of one does not stop the others."""
        listed = await self.client.list(Kafka, Selection(namespace=self._settings.settings.namespace))
        names = [(kafka.metadata.namespace, kafka.metadata.name) for kafka in listed.items]
        unreadable = [(bad.namespace, bad.name) for bad in listed.bad]
        return await reconcile_all((*names, *unreadable), parts.clusters.run, what="cluster")

    # ---- parts

    def _build(self, client: Client, _guard: Guard | None) -> KafkaProgram:
        informers = self._process.make_informers(client)
        # Without the lease's guard: an Event about what was done may still be written after the lease is lost.
        recorder = self._process.make_recorder(self.client)
        parts = self._build_parts(client, recorder=recorder, keeps_last_plans=True)
        controllers = parts.build_controllers(informers)
        return KafkaProgram(
            parts=parts,
            controllers=controllers,
            informers=informers,
            recorder=recorder,
            journal=self._journal,
            pages=self._process.make_pages(controllers.list_controllers(), controllers.reconciling.expose_metrics),
            serving=self._settings.serving,
        )

    def _build_parts(self, client: Client, *, recorder: EventRecorder, keeps_last_plans: bool) -> KafkaOperatorParts:
        settings = self._settings.settings
        return KafkaOperatorParts(
            OperatorDependencies(
                client=client,
                clock=self._clock,
                entropy=self._entropy,
                connector=KubernetesBrokers(ClusterSecrets(client)),
                open_store=lambda kafka: ConfigMapExecutionStore(client, kafka, clock=self._clock),
                settings=settings,
                web=self._web,
                recorder=None if settings.dry_run else recorder,
                journal=self._journal,
                # `--once` reports on stdout and writes no more than it has to.
                keeps_last_plans=keeps_last_plans,
            )
        )

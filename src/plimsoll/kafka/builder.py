"""Puts the Kafka operator together: connections to brokers, engines, reconcilers and controllers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plimsoll.journal.last_plans_config_map import LastPlansWriter
from plimsoll.kafka.controllers.cluster_reconciler import ClusterReconciler
from plimsoll.kafka.controllers.companion_reconciler import CompanionReconciler
from plimsoll.kafka.controllers.kafka_controllers import KafkaControllers
from plimsoll.kafka.controllers.pod_set_controller import PodSetController
from plimsoll.kafka.controllers.ports import ClusterDependencies
from plimsoll.kafka.controllers.rebalance_reconciler import RebalanceDependencies, RebalanceReconciler
from plimsoll.kafka.cruise_control.client.access import CruiseControlAccess
from plimsoll.kafka.engine.broker_view import ConnectedBrokerView
from plimsoll.kafka.engine.engine import EngineDependencies, run_in_thread
from plimsoll.kafka.engine.engines import BrokerConnections, Engines, NoEngines
from plimsoll.kafka.reporting.cluster_reporter import ClusterReporter
from plimsoll.kafka.reporting.rebalance_reporter import RebalanceReporter
from plimsoll.kafka.settings import LAST_PLANS_MAP, KafkaMode, KafkaSettings
from plimsoll.kafka.wire.names import PAUSE_ANNOTATION, is_annotated
from plimsoll.kube.secret_tls import ClusterSecrets
from plimsoll.operator.pause import ActionGuard, read_pause, read_pause_annotation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.brokers.ports import BrokerConnector
    from plimsoll.kafka.engine.engines import OpenStore
    from plimsoll.kube.client import Client
    from plimsoll.kube.controller.controller import Controller
    from plimsoll.kube.informer.events import Key
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.runtime.supervisor import Service
    from plimsoll.web.client import HttpClient


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDependencies:
    """What the operator is made from. `recorder`, `journal` None: nothing is reported there."""

    client: Client
    clock: Clock
    entropy: Entropy
    connector: BrokerConnector
    open_store: OpenStore
    settings: KafkaSettings
    web: HttpClient
    """To the Cruise Controls of clusters."""
    recorder: EventRecorder | None = None
    journal: Journal | None = None
    keeps_last_plans: bool = True
    run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]] = run_in_thread
    wrap_web: Callable[[HttpClient], HttpClient] = lambda web: web


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOperatorControllers:
    """The controllers of an operator. `pod_sets` None: pods are made by another program, or by none."""

    reconciling: KafkaControllers
    pod_sets: PodSetController | None = None

    def list_services(self) -> list[Service]:
        return [*self.reconciling.list_services(), *(self.pod_sets.list_services() if self.pod_sets else ())]

    def list_controllers(self) -> list[Controller[Key]]:
        pods = [self.pod_sets.controller] if self.pod_sets else []
        return [*self.reconciling.list_controllers(), *pods]


class KafkaOperatorParts:
    """The reconcilers and what they share."""

    def __init__(self, dependencies: OperatorDependencies) -> None:
        self._dependencies = dependencies
        client, settings, clock = dependencies.client, dependencies.settings, dependencies.clock
        last_plans = LastPlansWriter(client, LAST_PLANS_MAP) if dependencies.keeps_last_plans else None
        reported: dict[str, Any] = {
            "recorder": dependencies.recorder,
            "journal": dependencies.journal,
            "last_plans": last_plans,
            "namespace": settings.controller_namespace,
        }
        self.cluster_reporter = ClusterReporter(**reported)
        self.rebalance_reporter = RebalanceReporter(**reported)
        self.connections = BrokerConnections(dependencies.connector, clock=clock, guard=client.guard)
        has_engine = settings.has_engines
        self._engines = engines = Engines(
            self.connections,
            EngineDependencies(
                clock=clock,
                entropy=dependencies.entropy,
                run_blocking=dependencies.run_blocking,
                journal=dependencies.journal,
                wrap_web=dependencies.wrap_web,
            ),
            dependencies.open_store,
            self._read_pause_of,
        )
        access = CruiseControlAccess(
            dependencies.wrap_web(dependencies.web), ClusterSecrets(client), guard=client.guard
        )
        running = NoEngines() if settings.dry_run else engines
        cruise_controls = running if has_engine else access
        self.rebalances = RebalanceReconciler(
            RebalanceDependencies(
                client=client,
                clock=clock,
                cruise_controls=cruise_controls,
                reporter=self.rebalance_reporter,
                namespace=settings.namespace,
                read_guard=self._read_guard,
            )
        )
        cluster_dependencies = ClusterDependencies(
            client=client,
            clock=clock,
            brokers=ConnectedBrokerView(
                self.connections,
                clock=clock,
                engines=engines if has_engine else None,
                cruise_controls=None if has_engine else access,
                journal=dependencies.journal,
            ),
            cruise_controls=cruise_controls,
            reporter=self.cluster_reporter,
            read_guard=self._read_guard,
        )
        self.clusters: ClusterReconciler | CompanionReconciler = (
            ClusterReconciler(cluster_dependencies)
            if settings.mode is KafkaMode.OPERATOR
            else CompanionReconciler(cluster_dependencies)
        )

    def build_controllers(self, informers: SharedInformerFactory) -> KafkaOperatorControllers:
        """The controllers. Called before the informers run."""
        dependencies, settings = self._dependencies, self._dependencies.settings
        reconciling = KafkaControllers(
            self.clusters,
            self.rebalances,
            informers,
            clock=dependencies.clock,
            entropy=dependencies.entropy,
            settings=settings,
        )
        self._engines.on_execution_ended = reconciling.look_at_rebalances
        # Pods are not planned: a dry run makes and deletes none.
        has_pods = settings.mode is KafkaMode.OPERATOR and not settings.dry_run and dependencies.recorder is not None
        pod_sets = self._build_pod_set_controller(informers) if has_pods else None
        return KafkaOperatorControllers(reconciling=reconciling, pod_sets=pod_sets)

    def _build_pod_set_controller(self, informers: SharedInformerFactory) -> PodSetController:
        dependencies = self._dependencies
        assert dependencies.recorder is not None
        return PodSetController(
            dependencies.client,
            informers,
            dependencies.recorder,
            clock=dependencies.clock,
            entropy=dependencies.entropy,
            namespace=dependencies.settings.namespace,
        )

    async def close(self) -> None:
        """A clean exit: executions go on at the brokers, and the next process finds them in their record."""
        await self.connections.close()
        await self.cluster_reporter.close()
        await self.rebalance_reporter.close()

    async def _read_guard(self) -> ActionGuard:
        settings = self._dependencies.settings
        paused = "" if settings.dry_run else await read_pause(self._dependencies.client, settings.controller_namespace)
        return ActionGuard(dry_run=settings.dry_run, paused=paused)

    async def _read_pause_of(self, kafka: Kafka) -> ActionGuard:
        """What forbids new movements of a cluster."""
        guard = await self._read_guard()
        if guard.reason is not None:
            return guard
        annotations = kafka.metadata.annotations
        paused = read_pause_annotation(annotations)
        if not paused and is_annotated(annotations, PAUSE_ANNOTATION):
            paused = f"{PAUSE_ANNOTATION}: true"
        return ActionGuard(paused=paused)

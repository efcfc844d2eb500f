"""Builds a node autoscaler from its dependencies: the same for scenarios, `plimsoll up` and a real cluster.

The caller provides a client, informers, a provider and a configuration. A supervisor runs `list_services()`; a scenario
calls `autoscaler.run_once()` itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.journal.last_plans_config_map import LastPlansWriter
from plimsoll.nodes.actuation.cleanup import TaintCleaner
from plimsoll.nodes.actuation.deletion_controller import ActuationDependencies, NodeDeletionController
from plimsoll.nodes.actuation.deletion_guard import DeletionGuard
from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter
from plimsoll.nodes.actuation.node_pods import CachedPods, ListedPods
from plimsoll.nodes.actuation.node_writer import NodeWriter
from plimsoll.nodes.actuation.taints import SoftTaints
from plimsoll.nodes.actuation.timing import Pacing
from plimsoll.nodes.autoscaler import Autoscaler, AutoscalerDependencies
from plimsoll.nodes.loop_timer import LoopTimer, build_health_timeouts
from plimsoll.nodes.observing.listers import ClusterListers
from plimsoll.nodes.observing.other_autoscalers import OtherAutoscalers
from plimsoll.nodes.observing.scheduler_profile_pods import SchedulerProfilePods
from plimsoll.nodes.permissions import LAST_PLANS_MAP
from plimsoll.nodes.planning.scaledown.drainability import DrainRules
from plimsoll.nodes.planning.scaledown.pdbs import RemainingPdbs
from plimsoll.nodes.reporting.events.emitter import EventEmitter
from plimsoll.nodes.reporting.reporter import Reporter
from plimsoll.nodes.reporting.status.configmap import StatusConfigMapWriter
from plimsoll.nodes.requests.classes import load_registered_classes, map_condition_types
from plimsoll.nodes.requests.controller import RequestController, RequestDependencies
from plimsoll.nodes.requests.lister import RequestLister
from plimsoll.nodes.requests.rollback.rollback import RollbackExecutor
from plimsoll.nodes.requests.status_writer import RequestStatusWriter
from plimsoll.nodes.scaledown.orchestrator import NodeActuators
from plimsoll.nodes.scaledown.removal_rate import RemovalLimit
from plimsoll.operator.health import Health
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.nodes.config.scheduler_profiles import SchedulerProfile
    from plimsoll.nodes.config.source import ConfigSource
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.scaleup.orchestrator import ExternalExpander
    from plimsoll.objects.api.pods import Pod

log = structlog.get_logger(__name__)

_EXIT_TIMEOUT_S: Final = 5.0
"""How long a clean exit may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What the caller provides."""

    client: Client
    informers: SharedInformerFactory
    recorder: EventRecorder
    provider: Provider
    configuration: ConfigSource
    clock: Clock
    run_planner: PlanRunner
    journal: Journal | None = None
    expander: ExternalExpander | None = None
    stopwatch_clock: Clock | None = None
    """Measures durations for metrics, if not `clock`."""
    stepped: bool = False
    profiles: Sequence[SchedulerProfile] = ()
    """Profiles of the cluster's scheduler, if it does not use the default one."""
    knows_owner: Callable[[str], bool] = lambda _uid: True
    """Whether caches would show the owner with this uid if it existed."""


class NodeAutoscaler:
    """A node autoscaler with its services. Create it before the informers run."""

    def __init__(self, dependencies: Dependencies) -> None:
        policy = dependencies.configuration.get_current().policy
        as_scheduled = SchedulerProfilePods(dependencies.profiles).apply if dependencies.profiles else None
        self.listers = ClusterListers(
            dependencies.informers, knows_owners=dependencies.knows_owner, as_scheduled=as_scheduled
        )
        pacing = Pacing.STEPPED if dependencies.stepped else Pacing.from_policy(policy)
        self._dependencies = dependencies
        self._others = (
            None
            if dependencies.stepped
            else OtherAutoscalers(dependencies.client, self.listers.pods, clock=dependencies.clock)
        )
        informer = self.listers.pods
        self._pods = CachedPods(informer) if dependencies.stepped else ListedPods(dependencies.client, informer)
        guard = DeletionGuard(dependencies.client, self._pods, clock=dependencies.clock, informer=self.listers.nodes)
        self._deleter = InstanceDeleter(guard)
        self._writer = NodeWriter(dependencies.client, clock=dependencies.clock, pacing=pacing)
        self._classes = load_registered_classes() if policy.requests.enabled else {}
        self.requests = self._build_request_lister(as_scheduled) if policy.requests.enabled else None
        self._deletions = NodeDeletionController(self._build_actuation_dependencies(), pacing)
        self.reporter = Reporter(
            emitter=EventEmitter(dependencies.recorder),
            status=StatusConfigMapWriter(dependencies.client),
            journal=dependencies.journal,
            last_plans=None if dependencies.stepped else LastPlansWriter(dependencies.client, LAST_PLANS_MAP),
        )
        self.health = Health(build_health_timeouts(policy.operation))
        self._cleaner = TaintCleaner(self._writer, dependencies.provider, clock=dependencies.clock)
        namespace = policy.operation.namespace
        self.autoscaler = Autoscaler(
            AutoscalerDependencies(
                listers=self.listers,
                provider=dependencies.provider,
                configuration=dependencies.configuration,
                actuators=NodeActuators(
                    deletions=self._deletions,
                    soft_taints=SoftTaints(self._writer, clock=dependencies.clock),
                    deleter=self._deleter,
                    rate=RemovalLimit(dependencies.client, clock=dependencies.clock, namespace=namespace),
                ),
                cleaner=self._cleaner,
                reporter=self.reporter,
                clock=dependencies.clock,
                stopwatch_clock=dependencies.stopwatch_clock or dependencies.clock,
                run_planner=dependencies.run_planner,
                expander=dependencies.expander,
                requests=self._build_request_controller(),
                other_autoscalers=self._others,
                stepped=dependencies.stepped,
            )
        )

    def _build_actuation_dependencies(self) -> ActuationDependencies:
        dependencies = self._dependencies
        return ActuationDependencies(
            client=dependencies.client,
            provider=dependencies.provider,
            deleter=self._deleter,
            pods=self._pods,
            rules=self._build_drain_rules,
            clock=dependencies.clock,
        )

    def _build_request_lister(self, as_scheduled: Callable[[Pod], Pod] | None) -> RequestLister:
        dependencies = self._dependencies
        registered = map_condition_types(self._classes)
        return RequestLister(
            dependencies.informers, clock=dependencies.clock, registered=registered, as_scheduled=as_scheduled
        )

    def _build_request_controller(self) -> RequestController | None:
        """The controller of ProvisioningRequests, if they are enabled."""
        if self.requests is None:
            return None
        dependencies = self._dependencies
        return RequestController(
            RequestDependencies(
                lister=self.requests,
                status_writer=RequestStatusWriter(dependencies.client),
                rollback_executor=RollbackExecutor(
                    dependencies.provider,
                    self._deleter,
                    pods=self._pods,
                    writer=self._writer,
                    clock=dependencies.clock,
                ),
                run_planner=dependencies.run_planner,
                classes=self._classes,
            )
        )

    def list_services(self) -> list[Service]:
        """The loop timer and the removals. A stepped scenario runs neither."""
        if self._dependencies.stepped:
            return []
        timer = LoopTimer(
            self.autoscaler,
            self.listers,
            self.health,
            clock=self._dependencies.clock,
            report_progress=self._report_progress,
        )
        return [
            Service(name="node removals", run=self._deletions.run),
            Service(name="node autoscaler", run=timer.run),
        ]

    async def _report_progress(self, started_at: datetime) -> None:
        policy = self._dependencies.configuration.get_current().policy
        await self.reporter.report_progress(policy, started_at, self._dependencies.clock.now())

    async def wait_until_idle(self) -> None:
        """Return when every started removal has finished."""
        await self._deletions.wait_until_idle()

    async def shut_down(self) -> None:
        """A clean exit: the status and soft taints are removed, because this process no longer updates them."""
        policy = self._dependencies.configuration.get_current().policy
        await self.reporter.close(policy)
        if policy.operation.dry_run or self.reporter.last is None:
            return
        try:
            async with asyncio.timeout(_EXIT_TIMEOUT_S):
                await self._cleaner.remove_soft_taints(self.listers.read().nodes, policy.scale_down)
        except TimeoutError:
            log.warning("exit.overdue", problem="soft taints are left; the next start removes them")

    def _build_drain_rules(self) -> DrainRules:
        """The current drain rules: budgets and owners may have changed since a removal was planned."""
        known = self.listers.read_owners()
        return DrainRules(
            options=self._dependencies.configuration.get_current().policy.scale_down,
            now=self._dependencies.clock.now(),
            pdbs=RemainingPdbs(self.listers.list_budgets()),
            controllers=known,
        )

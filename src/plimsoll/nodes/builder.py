"""The parts of a node autoscaler put together: the same for scenarios, `plimsoll up` and a real cluster.

Who runs it gives a client, informers, a provider and a configuration; `services()` go to a supervisor, and `autoscaler`
is there for whoever takes turns by hand. Nothing here decides.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.journal.last_plans_map import LastPlansWriter
from plimsoll.nodes.actuation.cleanup import TaintCleaner
from plimsoll.nodes.actuation.deletion_controller import ActuationDependencies, NodeDeletionController
from plimsoll.nodes.actuation.node_pods import CachedPods, ListedPods
from plimsoll.nodes.actuation.node_writer import NodeWriter
from plimsoll.nodes.actuation.taints import SoftTaints
from plimsoll.nodes.actuation.timing import Pacing
from plimsoll.nodes.autoscaler import Autoscaler, AutoscalerDependencies
from plimsoll.nodes.controller import LoopTimer, health_timeouts
from plimsoll.nodes.observing.listers import ClusterListers
from plimsoll.nodes.observing.profiled_pods import ProfiledPods
from plimsoll.nodes.permissions import LAST_PLANS_MAP
from plimsoll.nodes.planning.scaledown.drainability import DrainRules
from plimsoll.nodes.planning.scaledown.pdbs import RemainingPdbs
from plimsoll.nodes.reporting.events.emitter import EventEmitter
from plimsoll.nodes.reporting.reporter import Reporter
from plimsoll.nodes.reporting.status.configmap import StatusConfigMapWriter
from plimsoll.nodes.requests.classes import condition_types_by_class, registered_classes
from plimsoll.nodes.requests.controller import RequestController, RequestDependencies
from plimsoll.nodes.requests.lister import RequestLister
from plimsoll.nodes.requests.rollback.rollback import RollbackExecutor
from plimsoll.nodes.requests.status_writer import RequestStatusWriter
from plimsoll.nodes.scaledown.orchestrator import NodeActuators
from plimsoll.nodes.scaledown.removal_rate import RemovalLimit
from plimsoll.operator.health import Health
from plimsoll.runtime.services import Service

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.nodes.config.scheduler_profiles import Profile
    from plimsoll.nodes.config.source import ConfigSource
    from plimsoll.nodes.model.plan_runner import PlanRunner
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.scaleup.orchestrator import ExternalExpander
    from plimsoll.objects.api.pods import Pod

log = structlog.get_logger(__name__)

_FAREWELL_S: Final = 5.0
"""A process that is told to end is not waited for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What an autoscaler lives in."""

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
    """What measures how long things take, where that is another one than `clock`."""
    stepped: bool = False
    profiles: Sequence[Profile] = ()
    """Of the cluster's scheduler, where it is not the default one."""
    knows_owner: Callable[[str], bool] = lambda _uid: True
    """Whether the owner of this uid would be seen if it were there."""


class NodeAutoscaler:
    """Made before the informers run."""

    def __init__(self, around: Dependencies) -> None:
        policy = around.configuration.current().policy
        as_scheduled = ProfiledPods(around.profiles).of if around.profiles else None
        self.listers = ClusterListers(around.informers, knows_owners=around.knows_owner, as_scheduled=as_scheduled)
        pacing = Pacing.STEPPED if around.stepped else Pacing.of(policy)
        self._around = around
        self._pods = CachedPods(self.listers.pods) if around.stepped else ListedPods(around.client)
        self._classes = registered_classes() if policy.requests.enabled else {}
        self.requests = self._requests(as_scheduled) if policy.requests.enabled else None
        self._remover = NodeDeletionController(self._removal_tools(), pacing)
        writer = NodeWriter(around.client, clock=around.clock, pacing=pacing)
        self.reporter = Reporter(
            emitter=EventEmitter(around.recorder),
            status=StatusConfigMapWriter(around.client),
            journal=around.journal,
            last_plans=None if around.stepped else LastPlansWriter(around.client, LAST_PLANS_MAP),
        )
        self.health = Health(health_timeouts(policy.operation))
        self._cleaner = TaintCleaner(writer, around.provider, clock=around.clock)
        namespace = policy.operation.namespace
        self.autoscaler = Autoscaler(
            AutoscalerDependencies(
                listers=self.listers,
                provider=around.provider,
                configuration=around.configuration,
                actuators=NodeActuators(
                    deletions=self._remover,
                    soft_taints=SoftTaints(writer, clock=around.clock),
                    rate=RemovalLimit(around.client, clock=around.clock, namespace=namespace),
                ),
                cleaner=self._cleaner,
                reporter=self.reporter,
                clock=around.clock,
                stopwatch_clock=around.stopwatch_clock or around.clock,
                run_planner=around.run_planner,
                expander=around.expander,
                requests=self._desk(),
                stepped=around.stepped,
            )
        )

    def _removal_tools(self) -> ActuationDependencies:
        around = self._around
        return ActuationDependencies(
            client=around.client,
            provider=around.provider,
            pods=self._pods,
            rules=self._drain_rules,
            clock=around.clock,
        )

    def _requests(self, as_scheduled: Callable[[Pod], Pod] | None) -> RequestLister:
        around = self._around
        registered = condition_types_by_class(self._classes)
        return RequestLister(around.informers, clock=around.clock, registered=registered, as_scheduled=as_scheduled)

    def _desk(self) -> RequestController | None:
        """Where requests are served, if they are."""
        if self.requests is None:
            return None
        around = self._around
        return RequestController(
            RequestDependencies(
                lister=self.requests,
                status_writer=RequestStatusWriter(around.client),
                rollback_executor=RollbackExecutor(around.provider, self._pods),
                provider=around.provider,
                run_planner=around.run_planner,
                classes=self._classes,
            )
        )

    def services(self) -> list[Service]:
        """Its own timer and its removals. A stepped world runs neither: it takes turns."""
        if self._around.stepped:
            return []
        timer = LoopTimer(self.autoscaler, self.listers, self.health, clock=self._around.clock)
        return [
            Service(name="node removals", run=self._remover.run),
            Service(name="node autoscaler", run=timer.run),
        ]

    async def wait_until_idle(self) -> None:
        """Until every removal that was begun has come to its end."""
        await self._remover.wait_until_idle()

    async def shutdown(self) -> None:
        """A clean exit: from now on nobody looks after the status, nor after marks of nodes that may be needed."""
        policy = self._around.configuration.current().policy
        await self.reporter.close(policy)
        if policy.operation.dry_run or self.reporter.last is None:
            return
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await self._cleaner.remove_soft_taints(self.listers.read().nodes, policy.scale_down)
        except TimeoutError:
            log.warning("leaving.overdue", problem="soft taints are left; the next start takes them off")

    def _drain_rules(self) -> DrainRules:
        """As of now: budgets and owners may have changed since a removal was planned."""
        known = self.listers.read_owners()
        return DrainRules(
            options=self._around.configuration.current().policy.scale_down,
            now=self._around.clock.now(),
            pdbs=RemainingPdbs(self.listers.budgets()),
            controllers=known,
        )

"""The node autoscaler of `plimsoll up`: it acts only while it holds the lease that `plimsoll run nodes` takes too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.app.embedded_election import EmbeddedElection
from plimsoll.kube.leases import LeaseSettings
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.policy import AUTOSCALER_LEASE, AUTOSCALER_NAME
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.app.embedded_dependencies import EmbeddedDependencies
    from plimsoll.local.components import Components
    from plimsoll.operator.metrics import ControllerMetrics

LEASE: Final = LeaseSettings(name=AUTOSCALER_LEASE, namespace=KUBE_SYSTEM, field_manager=AUTOSCALER_NAME)


class EmbeddedNodeAutoscaler:
    """The autoscaler and its candidacies. Created before the informers run."""

    def __init__(
        self,
        components: Components,
        dependencies: EmbeddedDependencies,
        options: Mapping[str, str],
    ) -> None:
        component = components.build_component(AUTOSCALER_NAME, manager=AUTOSCALER_NAME)
        self._clock = clock = dependencies.clock
        self._election = EmbeddedElection(
            LEASE,
            dependencies.transport,
            component.client,
            clock=dependencies.clock,
            entropy=dependencies.entropy,
        )
        client = component.client.with_guard(self._election)
        provider = SimulatedProvider(SimulatedCloud(client, clock=clock))
        self.parts = NodeAutoscaler(
            Dependencies(
                client=client,
                informers=component.informers,
                recorder=component.recorder,
                provider=provider,
                configuration=ConfigMapConfig(options, component.informers, naming=provider.naming),
                clock=clock,
                run_planner=dependencies.run_planner,
                journal=dependencies.journal,
            )
        )
        self._services = self.parts.list_services()

    def describe_role(self) -> str:
        """Whether it leads, for the health page."""
        return self._election.describe_role()

    def add_metrics(self, metrics: ControllerMetrics) -> None:
        metrics.add_loop(self.parts.health, self._clock)
        self._election.add_metrics(metrics)

    def list_services(self) -> list[Service]:
        return [Service(name="node autoscaler", run=self._run)]

    async def _run(self) -> None:
        await self._election.run(self._services, on_end=self._forget)

    async def _forget(self) -> None:
        # Another one may lead meanwhile: what was unneeded before says nothing then.
        self.parts.autoscaler.forget_timers()

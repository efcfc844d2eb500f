"""The node autoscaler of `plimsoll up`: it acts only while it holds the lease that `plimsoll run nodes` takes too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.app.embedded_election import EmbeddedElection
from plimsoll.app.node_autoscaling import NAME, run_in_thread
from plimsoll.kube.leases import LeaseSettings
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.policy import AUTOSCALER_LEASE
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.transport import Transport
    from plimsoll.local.components import Components
    from plimsoll.operator.metrics import ControllerMetrics

LEASE: Final = LeaseSettings(name=AUTOSCALER_LEASE, namespace=KUBE_SYSTEM, field_manager=NAME)


class EmbeddedNodeAutoscaler:
    """The autoscaler and its candidacies. Created before the informers run."""

    def __init__(
        self,
        components: Components,
        transport: Transport,
        *,
        options: Mapping[str, str],
        journal: Journal,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        component = components.build_component(NAME, manager=NAME)
        self._clock = clock
        self._election = EmbeddedElection(LEASE, transport, component.client, clock=clock, entropy=entropy)
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
                run_planner=run_in_thread,
                journal=journal,
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

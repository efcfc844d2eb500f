"""The node autoscaler of `plimsoll up`: it acts only while it holds the lease that `plimsoll run nodes` takes too.

So an autoscaler that is started beside it, against the same API server, and this one never act at the same time: the
later one is on standby. The election is a task of the common event loop, because the API server is in this process too.
After a loss of the lease it contends again; the other parts of `plimsoll up` go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.app.node_autoscaling import NAME, run_in_thread
from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.kube.leases import (
    LeaderElector,
    LeadershipLost,
    LeaseHolder,
    LeaseLock,
    LeaseSettings,
    NotLeading,
    generate_identity,
    run_while_leading,
    start_elector,
)
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.policy import AUTOSCALER_LEASE
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.objects.api.coordination import Lease
from plimsoll.operator.program import describe_role
from plimsoll.runtime.supervisor import Service, Supervisor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.transport import Transport
    from plimsoll.local.components import Components
    from plimsoll.operator.metrics import ControllerMetrics

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

HOST: Final = "plimsoll-up"
"""The first part of its identity in the lease."""
LEASE: Final = LeaseSettings(name=AUTOSCALER_LEASE, namespace=KUBE_SYSTEM, field_manager=NAME)


class CurrentLease:
    """The guard of a client whose process contends for a lease more than once."""

    def __init__(self) -> None:
        self.holder: LeaseHolder | None = None

    def limit_duration_s(self, wanted_s: float) -> float:
        if self.holder is None:
            raise NotLeading(f"lease {LEASE.namespace}/{LEASE.name}: not contended for yet")
        return self.holder.limit_duration_s(wanted_s)


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
        self._transport = transport
        self._clock = clock
        self._entropy = entropy
        self._current = CurrentLease()
        self._client = component.client
        client = component.client.with_guard(self._current)
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
        return "standby" if self._current.holder is None else describe_role(self._current.holder)

    def add_metrics(self, metrics: ControllerMetrics) -> None:
        metrics.add_loop(self.parts.health, self._clock)
        metrics.add_current_lease(LEASE.name, lambda: self._current.holder)

    def list_services(self) -> list[Service]:
        return [Service(name="node autoscaler", run=self._run)]

    async def _run(self) -> None:
        await self._release_dead_lease()
        while True:
            identity = generate_identity(HOST, self._entropy)
            holder = self._current.holder = LeaseHolder(LEASE, identity=identity, clock=self._clock)
            port = LeaseLock(self._transport, LEASE, clock=self._clock)
            try:
                async with start_elector(LeaderElector(holder, port, entropy=self._entropy)):
                    await run_while_leading(holder, self._lead)
            except LeadershipLost as error:
                log.warning("autoscaler.on_standby", why=str(error))
                # Another one may have led: what was unneeded before says nothing now.
                self.parts.autoscaler.forget_timers()

    async def _lead(self) -> None:
        await Supervisor(self._services, clock=self._clock, entropy=self._entropy).run()

    async def _release_dead_lease(self) -> None:
        """Empty the lease that an earlier `plimsoll up` left: it is dead, because the data directory is ours."""
        try:
            lease = await self._client.get(Lease, LEASE.name, namespace=LEASE.namespace)
            if (lease.spec.holder_identity or "").startswith(f"{HOST}_"):
                patch = {
                    "metadata": {"resourceVersion": lease.metadata.resource_version},
                    "spec": {"holderIdentity": ""},
                }
                await self._client.merge_patch(Lease, LEASE.name, patch, namespace=LEASE.namespace)
        except NotFound:
            return
        except ApiCallFailed as error:
            log.warning("autoscaler.lease_not_released", problem=str(error))

"""A simulated cluster in virtual time with any number of node autoscaler processes, of which one leads."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from plimsoll.app.node_autoscaling import NAME, NodeProgram
from plimsoll.kube.leases import LeaseSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.configure import RuntimeConfig
from plimsoll.nodes.config.policy import AUTOSCALER_LEASE
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.nodes.reporting.status.reader import build_status_report
from plimsoll.objects.api.core import ConfigMap
from plimsoll.operator.pages import check_health
from plimsoll.operator.program import describe_role
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.runner import ScenarioRun
from plimsoll.simulation.worlds.world import World
from plimsoll.web.responses import build_text_response
from tests.app.elected_processes import ElectedProcess
from tests.nodes.autoscaler.loop_scenarios import scenario_of, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

NODE_LEASE = LeaseSettings(name=AUTOSCALER_LEASE, namespace="kube-system", field_manager=NAME)
TO_LEAD_S = NODE_LEASE.duration_s + NODE_LEASE.retry_period_s
PAGES = build_text_response("ok")


async def _inline(plan: Callable[[], T]) -> T:
    return plan()


class SlowProvider(SimulatedProvider):
    """Refreshing takes `refresh_s`."""

    refresh_s = 0.0

    async def refresh(self) -> None:
        await asyncio.sleep(self.refresh_s)
        await super().refresh()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProcess:
    """A node autoscaler that takes part in the election."""

    process: ElectedProcess
    provider: SlowProvider
    autoscaler: NodeAutoscaler

    def get_health(self) -> str:
        """The text of the health page."""
        holder, clock = self.process.holder, self.process.clock
        response = check_health(self.autoscaler.health, clock, lambda: describe_role(holder))()
        return bytes(response.body).decode()

    def get_metrics(self) -> str:
        return self.process.metrics.expose().decode()


class NodeWorld(World):
    """A live cluster with any number of autoscaler processes."""

    def __init__(self, **scenario: Any) -> None:
        super().__init__(scenario_of((), {"world": "live", **scenario}))
        self._story = ScenarioRun(self, Plugins())

    def start_autoscaler(self, name: str, *, list_s: float = 0.0) -> NodeProcess:
        """`list_s`: how long each list of the cluster takes."""
        transport = EmbeddedTransport(self._application, token=self._token)
        process = ElectedProcess(name, transport, lease=NODE_LEASE, run=self.run)
        provider = SlowProvider(SimulatedCloud(process.client, clock=self.run.clock, log=self.log))
        autoscaler = NodeAutoscaler(
            Dependencies(
                client=process.client,
                informers=process.informers,
                recorder=process.recorder,
                provider=provider,
                configuration=ConfigMapConfig(self.options, process.informers, naming=provider.naming),
                clock=self.run.clock,
                run_planner=_inline,
            )
        )
        process.transport.list_s = list_s
        process.metrics.add_loop(autoscaler.health, self.run.clock)
        process.start(
            NodeProgram(autoscaler=autoscaler, informers=process.informers, recorder=process.recorder, pages=PAGES)
        )
        return NodeProcess(process=process, provider=provider, autoscaler=autoscaler)

    def apply(self, *manifests: dict[str, Any]) -> None:
        for step in steps_of([{"apply": list(manifests)}], world=self.scenario.world):
            self._story.take_step(step, path="test")

    def get_target(self) -> int:
        found = self.run_now(self.client.get_json("/apis/cloud.plimsoll.io/v1alpha1/nodegroups/g"))
        return int(found["spec"]["target"])

    def get_status(self) -> dict[str, Any]:
        """What `plimsoll nodes status` shows."""
        found = self.run_now(self.client.get(ConfigMap, "cluster-autoscaler-status", namespace="kube-system"))
        return build_status_report(found, RuntimeConfig(), now=self.run.clock.now())

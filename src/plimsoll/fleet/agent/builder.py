"""Puts the agent together: caches, control plane, claims, actuator, reporter and loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plimsoll.fleet.agent.actuator import AgentActuator
from plimsoll.fleet.agent.agent import Agent, AgentDependencies, Intervals
from plimsoll.fleet.agent.claims_store import ClaimsStore
from plimsoll.fleet.agent.control_plane import ControlPlane
from plimsoll.fleet.agent.metrics import AgentMetrics
from plimsoll.fleet.agent.observer import ClusterView
from plimsoll.fleet.agent.reporter import AgentReporter
from plimsoll.fleet.agent.settings import LAST_PLANS_MAP, AgentSettings
from plimsoll.journal.last_plans_config_map import LastPlansWriter
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.agent.instance_reconciler import InstanceResult
    from plimsoll.fleet.agent.intake_executor import IntakeResult
    from plimsoll.fleet.agent.settings import AgentParameters
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.web.client import HttpClient


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """What an agent is made from. `recorder`, `journal` None: nothing is reported there."""

    client: Client
    informers: SharedInformerFactory
    clock: Clock
    web: HttpClient
    """To the control plane and its issuer."""
    parameters: AgentParameters
    settings: AgentSettings
    recorder: EventRecorder | None = None
    journal: Journal | None = None
    keeps_last_plans: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCycle:
    """What one cycle did. `taken` None: the control plane did not answer."""

    instances: tuple[InstanceResult, ...]
    taken: IntakeResult | None


class BuiltAgent:
    """The loop with its reporter. Made before the informers run."""

    def __init__(self, parts: AgentParts) -> None:
        settings, parameters = parts.settings, parts.parameters
        view = ClusterView(parts.informers)
        last_plans = LastPlansWriter(parts.client, LAST_PLANS_MAP) if parts.keeps_last_plans else None
        self.reporter = AgentReporter(
            recorder=parts.recorder, journal=parts.journal, last_plans=last_plans, namespace=settings.namespace
        )
        self._metrics = AgentMetrics()
        self._agent = Agent(
            AgentDependencies(
                client=parts.client,
                clock=parts.clock,
                control_plane=ControlPlane(parameters, parts.web, parts.clock),
                view=view,
                claims=ClaimsStore(parts.client, settings.namespace),
                actuator=AgentActuator(parts.client, view),
                reporter=self.reporter,
                metrics=self._metrics,
                settings=settings,
                intervals=Intervals(poll_s=parameters.poll_interval_s, resync_s=parameters.resync_interval_s),
            )
        )
        self._view = view

    def list_services(self) -> list[Service]:
        return [Service(name="agent", run=self._agent.run)]

    async def run_once(self, informing: Coroutine[Any, Any, None]) -> AgentCycle:
        """Run a cycle when the caches are complete; `informing` runs the informers. Raises `ApiCallFailed`."""
        task = asyncio.create_task(informing, name="informers")
        try:
            await self._view.wait_until_synced()
            instances = await self._agent.run_cycle()
            return AgentCycle(instances=instances, taken=self._agent.taken)
        finally:
            task.cancel()
            await asyncio.wait((task,))

    def expose_metrics(self) -> bytes:
        return self._metrics.format_exposition()

    async def close(self) -> None:
        """A clean exit."""
        await self.reporter.close()

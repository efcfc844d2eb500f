"""The node autoscaler against a cluster: `plimsoll run nodes`.

Puts together the provider that the flags name and the cluster that a kubeconfig names. A dry run takes no lease, so
that it can run together with another autoscaler.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from plimsoll.journal.memory import MemoryJournal
from plimsoll.kube.diagnosis.findings import Level
from plimsoll.kube.diagnosis.held_leases import check_lease
from plimsoll.kube.errors import Forbidden
from plimsoll.kube.leases import LeaseSettings
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.config.policy import AUTOSCALER_NAME
from plimsoll.nodes.config.price_overlays import read_overlay_file
from plimsoll.nodes.config.scheduler_profiles import load_profiles
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.nodes.plan_runner import run_in_thread
from plimsoll.nodes.providers.builder import ProviderDependencies, make_provider
from plimsoll.nodes.providers.cleanup import clean_up
from plimsoll.nodes.reporting.http.debug import DebugViews
from plimsoll.nodes.reporting.http.pages import build_pages
from plimsoll.nodes.rivals import build_lease_check
from plimsoll.nodes.scaleup.grpc_expander_builder import make_expander
from plimsoll.operator.debug_access import AccessReviewer
from plimsoll.operator.pages import check_health
from plimsoll.operator.process import ControllerProcess, ProcessOwner, ProcessSettings
from plimsoll.operator.profiler import StackSampler
from plimsoll.runtime.supervisor import Service, Supervisor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.types import ASGIApp

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.kube.transport import Guard
    from plimsoll.nodes.config.policy import Operation, Policy
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.providers.simulated.cloud_ports import CloudPort
    from plimsoll.nodes.scaleup.grpc_expander import GrpcExpander

log = structlog.get_logger(__name__)

T = TypeVar("T")

NAME: Final = AUTOSCALER_NAME
"""The name in field managers and Events, as of the program whose place it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAutoscalingSettings:
    """What the operator chose. `data` None: the journal ends with the process."""

    access: Access
    options: Mapping[str, Any]
    data: Path | None = None
    host: str = "localhost"
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProgram:
    """The node autoscaler as a process runs it."""

    autoscaler: NodeAutoscaler
    informers: SharedInformerFactory
    recorder: EventRecorder
    pages: ASGIApp

    def list_standby_services(self) -> list[Service]:
        return self.informers.list_services()

    def list_services(self) -> list[Service]:
        return [self.recording, *self.autoscaler.list_services()]

    @property
    def recording(self) -> Service:
        """Writes Events."""
        return Service(name="events", run=self.recorder.run)

    async def leave(self) -> None:
        await self.autoscaler.shut_down()


class NodeAutoscalerProcess(ProcessOwner):
    """A node autoscaler and its connections, for as long as the block lasts."""

    def __init__(self, settings: NodeAutoscalingSettings, *, clock: Clock, entropy: Entropy) -> None:
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self.policy: Policy = read_options(settings.options)
        self._overlay = read_overlay_file(self.policy.planning.price_overlay, path="price-overlay")
        self._profiles = load_profiles(self.policy.pods.scheduler_config_file, path="scheduler-config-file")
        self._process = ControllerProcess(self._build_process_settings(), clock=clock, entropy=entropy)

    def _build_process_settings(self) -> ProcessSettings:
        operation = self.policy.operation
        must_lead = operation.leader_elect and not operation.dry_run
        return ProcessSettings(
            name=NAME,
            access=self._settings.access,
            client=ClientSettings(
                user_agent=NAME, field_manager=NAME, qps=operation.client_qps, burst=operation.client_burst
            ),
            host=self._settings.host,
            address=operation.address,
            lease=_build_lease_settings(operation) if must_lead else None,
        )

    async def _open(self) -> None:
        await self.client.get_json("/api/v1/nodes", [("limit", "1")])

    async def run(self) -> None:
        """Runs until cancelled, or until leadership is lost."""
        self._process.check_address()
        await self._warn_of_rival()
        await self._process.run(self._build)

    async def run_once(self) -> LoopResult:
        """Runs a single loop iteration to its end. It leads while it does, unless it is a dry run."""
        return await self._process.run_once(self._iterate)

    async def _iterate(self, client: Client, guard: Guard | None) -> LoopResult:
        program = self._build(client, guard)
        parts = program.autoscaler
        ended: asyncio.Future[LoopResult] = asyncio.get_running_loop().create_future()

        async def iterate() -> None:
            await parts.autoscaler.wait_until_synced()
            result = await parts.autoscaler.run_once()
            await parts.wait_until_idle()
            ended.set_result(result)

        async with asyncio.TaskGroup() as group:
            needed = [program.recording, *program.list_standby_services()]
            supervisor = Supervisor(needed, clock=self._clock, entropy=self._entropy)
            background = group.create_task(supervisor.run())
            await group.create_task(iterate())
            background.cancel()
        return ended.result()

    async def _warn_of_rival(self) -> None:
        """Warns of a process that holds the lease: another of these, or the autoscaler whose place this one takes."""
        operation = self.policy.operation
        namespace = operation.lease_namespace or operation.namespace
        try:
            looked_at = build_lease_check(operation.lease_name, namespace)
            found = await check_lease(self.client, looked_at, now=self._clock.now())
        except Forbidden as error:
            log.warning("rival.unknown", problem=str(error))
            return
        if found.level is Level.WARN:
            log.warning("rival.found", problem=found.message, fix=found.fix)

    # ---- parts

    def _build(self, client: Client, guard: Guard | None) -> NodeProgram:
        """`guard` is the client's: another cluster, too, is changed only by the process that leads."""
        informers = self._process.make_informers(client)
        recorder = self._process.make_recorder(client)
        provider = self._build_provider(client, guard)
        autoscaler = NodeAutoscaler(
            Dependencies(
                client=client,
                informers=informers,
                recorder=recorder,
                provider=provider,
                configuration=ConfigMapConfig(
                    self._settings.options, informers, naming=provider.naming, overlay=self._overlay
                ),
                clock=self._clock,
                run_planner=run_in_thread,
                profiles=self._profiles,
                expander=self._build_expander(),
                journal=self._process.make_journal(self._settings.data) or MemoryJournal(),
            )
        )
        self._process.metrics.add_loop(autoscaler.health, self._clock)
        return NodeProgram(
            autoscaler=autoscaler, informers=informers, recorder=recorder, pages=self._build_pages(autoscaler)
        )

    def _build_pages(self, autoscaler: NodeAutoscaler) -> ASGIApp:
        return build_pages(
            DebugViews(lambda: autoscaler.reporter.last, run_in_thread),
            metrics=(autoscaler.reporter.metrics.render, self._process.metrics.expose),
            health=check_health(autoscaler.health, self._clock, self._process.describe_role),
            reviewer=AccessReviewer(self.client),
            profiler=StackSampler() if self.policy.operation.profiling else None,
        )

    def _build_expander(self) -> GrpcExpander | None:
        expander = make_expander(self.policy.planning)
        if expander is not None:
            self._process.stack.push_async_callback(expander.close)
        return expander

    def _build_provider(self, client: Client, guard: Guard | None) -> Provider:
        dependencies = ProviderDependencies(
            workload=client,
            clock=self._clock,
            simulated_cloud=self._build_simulated_cloud,
            connect=lambda access: self._process.connect(access).with_guard(guard),
            environment=self._settings.environment,
        )
        provider = make_provider(self.policy, dependencies)
        self._process.stack.push_async_callback(clean_up, provider)
        return provider

    def _build_simulated_cloud(self, client: Client) -> CloudPort:
        from plimsoll.local.cloud.api import SimulatedCloud  # noqa: PLC0415 - only the simulated provider loads it

        return SimulatedCloud(client, clock=self._clock)


def _build_lease_settings(operation: Operation) -> LeaseSettings:
    return LeaseSettings(
        name=operation.lease_name,
        namespace=operation.lease_namespace or operation.namespace,
        duration_s=int(operation.lease_s),
        renew_deadline_s=operation.lease_renew_s,
        retry_period_s=operation.lease_retry_s,
        field_manager=NAME,
    )

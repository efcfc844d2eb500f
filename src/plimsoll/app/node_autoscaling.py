"""The node autoscaler against a cluster: `plimsoll run nodes`, and one of the services of `plimsoll up`.

Here the provider that flags name meets the cluster that a kubeconfig names. Who leads acts; a dry run takes no lease,
so that it can watch beside another autoscaler. Nothing is decided here.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

import structlog

from plimsoll.journal.lazy import LazyJournal
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kube.client import Client
from plimsoll.kube.diagnosis.findings import Level
from plimsoll.kube.diagnosis.rivals import autoscaler as rival_autoscaler
from plimsoll.kube.errors import Forbidden
from plimsoll.kube.http import HttpTransport
from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.kube.leases import (
    LeaseHolder,
    LeaseSettings,
    LeaseThread,
    SuspendAwareClock,
    run_while_leading,
    unique_identity,
)
from plimsoll.kube.recorder import EventRecorder
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.config.price_overlays import overlay_from
from plimsoll.nodes.config.scheduler_profiles import profiles_from
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.nodes.providers.builder import ProviderDependencies, make_expander, make_provider
from plimsoll.nodes.reporting.http.debug import Insights
from plimsoll.nodes.reporting.http.pages import TellingPages
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.operator.debug_access import Reviewer
from plimsoll.operator.profiler import StackSampler
from plimsoll.runtime.services import Service
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.web.serving import check_address, serve_in_background

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.access import Access
    from plimsoll.kube.transport import Guard, Transport
    from plimsoll.nodes.config.policy import Operation, Policy
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.scaleup.grpc_expander import GrpcExpander

log = structlog.get_logger(__name__)

T = TypeVar("T")

NAME = "cluster-autoscaler"
"""Whom it writes and tells events as, like the program whose place it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a person chose. `data` None: the journal ends with the process."""

    access: Access
    options: Mapping[str, Any]
    data: Path | None = None
    host: str = "localhost"
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


async def in_thread(plan: Callable[[], T]) -> T:
    """Plans are made beside the event loop: kernels and the solver let it go on meanwhile."""
    return await asyncio.to_thread(plan)


class Running:
    """One autoscaler and what it needs, for as long as the block lasts."""

    def __init__(self, settings: Settings, *, clock: Clock, entropy: Entropy) -> None:
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self.policy: Policy = read_options(settings.options)
        self._overlay = overlay_from(self.policy.planning.price_overlay, path="price-overlay")
        self._profiles = profiles_from(self.policy.pods.scheduler_config_file, path="scheduler-config-file")
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._settings.access.credentials.current()
        self._transport = await self._stack.enter_async_context(HttpTransport(self._settings.access, user_agent=NAME))
        self.client = self._connected(self._transport)
        await self.client.get_json("/api/v1/nodes", [("limit", "1")])
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def run(self) -> None:
        """Until cancelled, or until leadership is lost. Pages are served all the time: who waits to lead is well."""
        operation = self.policy.operation
        check_address(operation.address)
        await self._warn_of_rival()
        if operation.dry_run or not operation.leader_elect:
            parts, services = self._parts(self.client)
            async with self._serving(parts):
                await self._act(parts, services)
            return
        holder = self._candidate()
        parts, services = self._parts(self.client.guarded(holder), holder)
        async with self._serving(parts), LeaseThread(holder, self._another_transport, entropy=self._entropy):
            await run_while_leading(holder, lambda: self._act(parts, services))

    def _candidate(self) -> LeaseHolder:
        identity = unique_identity(self._settings.host, self._entropy)
        return LeaseHolder(_lease_settings(self.policy.operation), clock=SuspendAwareClock(), identity=identity)

    async def run_once(self) -> LoopResult:
        """A single turn, to its end. Only a dry run is free to take it without leading."""
        operation = self.policy.operation
        if operation.dry_run or not operation.leader_elect:
            return await self._turn(self.client, None)
        holder = self._candidate()
        async with LeaseThread(holder, self._another_transport, entropy=self._entropy):
            return await run_while_leading(holder, lambda: self._turn(self.client.guarded(holder), holder))

    async def _turn(self, client: Client, guard: Guard | None) -> LoopResult:
        parts, services = self._parts(client, guard)
        ended: asyncio.Future[LoopResult] = asyncio.get_running_loop().create_future()

        async def turn() -> None:
            await parts.autoscaler.synced()
            told = await parts.autoscaler.run_once()
            await parts.wait_until_idle()
            ended.set_result(told)

        async with asyncio.TaskGroup() as group:
            background = group.create_task(Supervisor(services, clock=self._clock, entropy=self._entropy).run())
            await group.create_task(turn())
            background.cancel()
        return ended.result()

    async def _act(self, parts: NodeAutoscaler, services: list[Service]) -> None:
        try:
            await Supervisor([*services, *parts.services()], clock=self._clock, entropy=self._entropy).run()
        finally:
            await parts.shutdown()

    def _serving(self, parts: NodeAutoscaler) -> AbstractAsyncContextManager[None]:
        pages = TellingPages(
            metrics=parts.reporter.metrics,
            health=parts.health,
            insights=Insights(lambda: parts.reporter.last, in_thread),
            clock=self._clock,
            reviewer=Reviewer(self.client),
            profiler=StackSampler() if self.policy.operation.profiling else None,
        )
        return serve_in_background(pages, self.policy.operation.address, clock=self._clock, entropy=self._entropy)

    async def _warn_of_rival(self) -> None:
        """Whoever holds the lease that we want: another of us, or the autoscaler whose place we are to take."""
        operation = self.policy.operation
        namespace = operation.lease_namespace or operation.namespace
        try:
            found = await rival_autoscaler(
                self.client, now=self._clock.now(), name=operation.lease_name, namespace=namespace
            )
        except Forbidden as error:
            log.warning("rival.unknown", problem=str(error))
            return
        if found.level is Level.WARN:
            log.warning("rival.found", problem=found.message, fix=found.fix)

    def _parts(self, client: Client, guard: Guard | None = None) -> tuple[NodeAutoscaler, list[Service]]:
        """`guard` is the client's: another cluster is changed by who leads here, and by nobody else."""
        informers = SharedInformerFactory(client, clock=self._clock, entropy=self._entropy)
        recorder = EventRecorder(client, EventSource(component=NAME), clock=self._clock, entropy=self._entropy)
        provider = self._provider(client, guard)
        parts = NodeAutoscaler(
            Dependencies(
                client=client,
                informers=informers,
                recorder=recorder,
                provider=provider,
                configuration=ConfigMapConfig(
                    self._settings.options, informers, naming=provider.naming, overlay=self._overlay
                ),
                clock=self._clock,
                run_planner=in_thread,
                profiles=self._profiles,
                expander=self._expander(),
                journal=MemoryJournal() if self._settings.data is None else LazyJournal(self._settings.data),
            )
        )
        return parts, [Service(name="events", run=recorder.run), *informers.services()]

    def _expander(self) -> GrpcExpander | None:
        expander = make_expander(self.policy.planning)
        if expander is not None:
            self._stack.push_async_callback(expander.close)
        return expander

    def _provider(self, client: Client, guard: Guard | None) -> Provider:
        around = ProviderDependencies(
            workload=client,
            clock=self._clock,
            simulated_cloud=lambda one: SimulatedCloud(one, clock=self._clock),
            connect=lambda access: self._connected_to(access).guarded(guard),
            environment=self._settings.environment,
        )
        return make_provider(self.policy, around)

    def _connected(self, transport: Transport) -> Client:
        operation = self.policy.operation
        settings = ClientSettings(
            user_agent=NAME, field_manager=NAME, qps=operation.client_qps, burst=operation.client_burst
        )
        return Client(transport, clock=self._clock, entropy=self._entropy, settings=settings, kinds=OUR_KINDS)

    def _connected_to(self, access: Access) -> Client:
        """To another cluster, for as long as this runs."""
        transport = HttpTransport(access, user_agent=NAME)
        self._stack.push_async_exit(transport)
        return self._connected(transport)

    def _another_transport(self) -> HttpTransport:
        return HttpTransport(self._settings.access, user_agent=NAME)


def _lease_settings(operation: Operation) -> LeaseSettings:
    return LeaseSettings(
        name=operation.lease_name,
        namespace=operation.lease_namespace or operation.namespace,
        duration_s=int(operation.lease_s),
        renew_deadline_s=operation.lease_renew_s,
        retry_period_s=operation.lease_retry_s,
        field_manager=NAME,
    )

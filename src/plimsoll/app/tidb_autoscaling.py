"""The TiDB autoscaler against a cluster: `plimsoll run tidb`.

Puts together the cluster that a kubeconfig names with PD, Prometheus and a planner over HTTP. A dry run takes no lease,
and neither does `--once`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.operator.process import ControllerProcess, ProcessOwner
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.supervisor import Service
from plimsoll.tidb.builder import Dependencies, TidbAutoscalerParts
from plimsoll.tidb.external.recommender import LARGEST_ANSWER_BYTES
from plimsoll.tidb.reporting.metrics import ReconcileMetrics
from plimsoll.tidb.settings import LEASE, NAME
from plimsoll.web.client import AiohttpClient, PinnedHttpClient

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.types import ASGIApp

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.lazy import LazyJournal
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.kube.transport import Guard
    from plimsoll.operator.process import ControllerOptions
    from plimsoll.operator.reconcile_all import FailedReconcile
    from plimsoll.tidb.controller import TidbController
    from plimsoll.tidb.model.reconcile_result import ReconcileResult
    from plimsoll.tidb.settings import TidbSettings
    from plimsoll.web.bearer_token import BearerToken


@dataclass(frozen=True, slots=True, kw_only=True)
class TidbAutoscalingSettings:
    """What a user chose. `token`: for PD, planner and Prometheus."""

    process: ControllerOptions
    settings: TidbSettings
    token: BearerToken | None = None


class FixedClock(RealClock):
    """A clock that stands at a moment; waits take as long as on any other."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def now(self) -> datetime:
        return self._moment


@dataclass(frozen=True, slots=True, kw_only=True)
class TidbProgram:
    """The TiDB autoscaler as a process runs it."""

    parts: TidbAutoscalerParts
    controller: TidbController
    informers: SharedInformerFactory
    recorder: EventRecorder
    journal: LazyJournal | None
    pages: ASGIApp

    def list_standby_services(self) -> list[Service]:
        return self.informers.list_services()

    def list_services(self) -> list[Service]:
        return [Service(name="events", run=self.recorder.run), *self.controller.list_services()]

    async def leave(self) -> None:
        await self.parts.reporter.close()
        if self.journal is not None:
            await self.journal.close()


class TidbAutoscalerProcess(ProcessOwner):
    """A TiDB autoscaler and its connections, for as long as the block lasts."""

    def __init__(self, settings: TidbAutoscalingSettings, *, clock: Clock, entropy: Entropy) -> None:
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._metrics = ReconcileMetrics()
        self._process = ControllerProcess(
            settings.process.build_settings(
                NAME,
                lease=LEASE,
                namespace=settings.settings.controller_namespace,
                dry_run=settings.settings.dry_run,
            ),
            clock=clock,
            entropy=entropy,
        )
        self._journal = self._process.make_journal(settings.process.data)

    async def _open(self) -> None:
        self._web = await self._process.stack.enter_async_context(AiohttpClient(token=self._settings.token))

    async def run(self) -> None:
        """Runs until cancelled, or until leadership is lost."""
        self._process.check_address()
        # A server without the definitions, or one that refuses us, is an error now; an informer would only retry.
        await self.client.get_json("/apis/pingcap.com/v1alpha1/tidbclusterautoscalers", [("limit", "1")])
        await self._process.run(self._build)

    async def run_once(self) -> tuple[ReconcileResult | FailedReconcile, ...]:
        """Reconciles every autoscaler once, without a lease."""
        try:
            async with self._process.record_events() as recorder:
                return await self._build_parts(self.client, recorder=recorder).reconciler.run_all()
        finally:
            if self._journal is not None:
                await self._journal.close()

    # ---- parts

    def _build(self, client: Client, _guard: Guard | None) -> TidbProgram:
        informers = self._process.make_informers(client)
        # Without the lease's guard: an Event about what was done may still be written after the lease is lost.
        recorder = self._process.make_recorder(self.client)
        parts = self._build_parts(client, recorder=recorder, informers=informers)
        controller = parts.build_controller(self._entropy)
        return TidbProgram(
            parts=parts,
            controller=controller,
            informers=informers,
            recorder=recorder,
            journal=self._journal,
            pages=self._process.make_pages([controller.controller], self._metrics.format_exposition),
        )

    def _build_parts(
        self, client: Client, *, recorder: EventRecorder, informers: SharedInformerFactory | None = None
    ) -> TidbAutoscalerParts:
        settings = self._settings.settings
        return TidbAutoscalerParts(
            Dependencies(
                client=client,
                web=self._web,
                caller=PinnedHttpClient(max_bytes=LARGEST_ANSWER_BYTES),
                clock=self._clock,
                settings=settings,
                informers=informers,
                recorder=None if settings.dry_run else recorder,
                journal=self._journal,
                metrics=self._metrics,
                # `--once` reports on stdout and writes no more than it has to.
                keeps_last_plans=informers is not None,
            )
        )

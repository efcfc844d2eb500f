"""The TiDB autoscaler against a cluster: `plimsoll run tidb`.

Here the cluster that a kubeconfig names meets PD, Prometheus and a planner over HTTP. Who leads acts; a dry run takes
no lease, and neither does a single pass. Nothing is decided here.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from plimsoll.journal.lazy import LazyJournal
from plimsoll.kube.client import Client
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
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.services import Service
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.tidb.builder import Dependencies, TidbParts
from plimsoll.tidb.external.recommender import LARGEST_ANSWER_BYTES
from plimsoll.tidb.reporting.metrics import PassMetrics
from plimsoll.tidb.settings import LEASE, NAME
from plimsoll.web.client import AiohttpClient, PinnedHttpClient
from plimsoll.web.serving import check_address, serve_in_background

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.access import Access
    from plimsoll.kube.transport import Transport
    from plimsoll.tidb.model.reconcile_result import ReconcileResult
    from plimsoll.tidb.reconciler import Failed
    from plimsoll.tidb.settings import TidbSettings
    from plimsoll.web.bearer_token import BearerToken

_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a person chose. `data` None: no journal is kept. `token`: for PD, planner and Prometheus."""

    access: Access
    settings: TidbSettings
    data: Path | None = None
    host: str = "localhost"
    address: str = ":8087"
    leader_elect: bool = True
    token: BearerToken | None = None


class FixedClock(RealClock):
    """The moment that a single pass is told it is; waits are as long as ever."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def now(self) -> datetime:
        return self._moment


class Pages:
    """`/metrics` and `/healthz`, as ASGI."""

    def __init__(self, metrics: PassMetrics) -> None:
        self._metrics = metrics

    async def __call__(self, scope: dict[str, Any], _receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        status, kind, body = self._page(scope["method"], scope["path"])
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _page(self, method: str, path: str) -> tuple[int, str, bytes]:
        text = "text/plain; charset=utf-8"
        if method not in {"GET", "HEAD"}:
            return 405, text, b"only GET\n"
        if path == "/metrics":
            return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics.exposition()
        return (200, text, b"ok\n") if path == "/healthz" else (404, text, b"no such page\n")


class Running:
    """One autoscaler and what it needs, for as long as the block lasts."""

    def __init__(self, chosen: Chosen, *, clock: Clock, entropy: Entropy) -> None:
        self._chosen = chosen
        self._clock = clock
        self._entropy = entropy
        self._metrics = PassMetrics()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._chosen.access.credentials.current()
        transport = await self._stack.enter_async_context(self._another_transport())
        self._web = await self._stack.enter_async_context(AiohttpClient(token=self._chosen.token))
        self.client = self._connected(transport)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def run_once(self) -> tuple[ReconcileResult | Failed, ...]:
        """A pass over every autoscaler; whoever asks for that leads for as long."""
        recorder = self._recorder()
        parts = self._parts(self.client, recorder=recorder)
        telling = asyncio.create_task(recorder.run())
        # A task that is cancelled before it began writes nothing.
        await asyncio.sleep(0)
        try:
            return await parts.autoscaler.run_all()
        finally:
            telling.cancel()
            await asyncio.wait((telling,))
            await self._close_journal()

    async def run(self) -> None:
        """Until cancelled, or until leadership is lost. Pages are served all the time: who waits to lead is well."""
        chosen = self._chosen
        check_address(chosen.address)
        # A server without the definitions, or one that refuses us, is told now and not by an informer again and again.
        await self.client.get_json("/apis/pingcap.com/v1alpha1/tidbclusterautoscalers", [("limit", "1")])
        pages = Pages(self._metrics)
        async with serve_in_background(pages, chosen.address, clock=self._clock, entropy=self._entropy):
            await self._led()

    async def _led(self) -> None:
        chosen = self._chosen
        if chosen.settings.dry_run or not chosen.leader_elect:
            await self._lead(self.client)
            return
        settings = LeaseSettings(name=LEASE, namespace=chosen.settings.home, field_manager=NAME)
        identity = unique_identity(chosen.host, self._entropy)
        holder = LeaseHolder(settings, clock=SuspendAwareClock(), identity=identity)
        async with LeaseThread(holder, self._another_transport, entropy=self._entropy):
            await run_while_leading(holder, lambda: self._lead(self.client.guarded(holder)))

    async def _lead(self, client: Client) -> None:
        informers = SharedInformerFactory(client, clock=self._clock, entropy=self._entropy)
        recorder = self._recorder()
        parts = self._parts(client, recorder=recorder, informers=informers)
        services = [
            Service(name="events", run=recorder.run),
            *parts.controller(self._entropy).services(),
            *informers.services(),
        ]
        try:
            await Supervisor(services, clock=self._clock, entropy=self._entropy).run()
        finally:
            await parts.teller.leave()
            await self._close_journal()

    def _parts(
        self, client: Client, *, recorder: EventRecorder, informers: SharedInformerFactory | None = None
    ) -> TidbParts:
        chosen = self._chosen
        self._journal = None if chosen.data is None else LazyJournal(chosen.data)
        return TidbParts(
            Dependencies(
                client=client,
                web=self._web,
                caller=PinnedHttpClient(max_bytes=LARGEST_ANSWER_BYTES),
                clock=self._clock,
                settings=chosen.settings,
                informers=informers,
                recorder=None if chosen.settings.dry_run else recorder,
                journal=self._journal,
                metrics=self._metrics,
                # A single pass tells on stdout: it writes no more than it has to.
                keeps_last_plans=informers is not None,
            )
        )

    async def _close_journal(self) -> None:
        if self._journal is not None:
            await self._journal.close()

    def _recorder(self) -> EventRecorder:
        """Without the guard of who leads: what was done may still be told afterwards."""
        return EventRecorder(self.client, EventSource(component=NAME), clock=self._clock, entropy=self._entropy)

    def _connected(self, transport: Transport) -> Client:
        settings = ClientSettings(
            user_agent=NAME, field_manager=NAME, timeout_s=_TIMEOUT_S, deadline_s=2 * _TIMEOUT_S + 1
        )
        return Client(transport, clock=self._clock, entropy=self._entropy, settings=settings, kinds=OUR_KINDS)

    def _another_transport(self) -> HttpTransport:
        return HttpTransport(self._chosen.access, user_agent=NAME)

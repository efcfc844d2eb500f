"""A leader-elected controller process: connection, lease, services, pages and a clean exit.

The process that holds the lease acts; the others keep their caches warm and wait, and their pages answer all the same.
Without a lease (a dry run, or `--leader-elect=false`) the process acts at once. It ends when it is cancelled or loses
the lease.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, TypeVar

from plimsoll.journal.lazy import LazyJournal
from plimsoll.kube.client import Client
from plimsoll.kube.http import HttpTransport
from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.kube.leases import (
    ElectorThread,
    LeaseHolder,
    LeaseSettings,
    SuspendAwareClock,
    generate_identity,
    run_while_leading,
)
from plimsoll.kube.recorder import EventRecorder
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.operator.metrics import ControllerMetrics
from plimsoll.operator.pages import OperatorPages, show_work
from plimsoll.operator.program import describe_role, run_program
from plimsoll.web.serving import check_address, serve_in_background

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path
    from typing import Any

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.access import Access
    from plimsoll.kube.controller.controller import Controller
    from plimsoll.kube.transport import Guard, Transport
    from plimsoll.operator.pages import Exposition
    from plimsoll.operator.program import Program

T = TypeVar("T")

_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """What a process is. `name` is its user agent and the source of its Events; `lease` None: it need not lead."""

    name: str
    access: Access
    client: ClientSettings
    host: str
    address: str
    """Where the pages are served, HOST:PORT."""
    lease: LeaseSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """What a user chose for a process of controllers. `data` None: no journal is kept."""

    access: Access
    address: str
    data: Path | None = None
    host: str = "localhost"
    leader_elect: bool = True

    def build_settings(self, name: str, *, lease: str, namespace: str, dry_run: bool) -> ProcessSettings:
        """The settings of the process. It leads before it acts; a dry run does not act."""
        must_lead = self.leader_elect and not dry_run
        return ProcessSettings(
            name=name,
            access=self.access,
            client=ClientSettings(
                user_agent=name, field_manager=name, timeout_s=_TIMEOUT_S, deadline_s=2 * _TIMEOUT_S + 1
            ),
            host=self.host,
            address=self.address,
            lease=LeaseSettings(name=lease, namespace=namespace, field_manager=name) if must_lead else None,
        )


class ProcessOwner:
    """The base of the processes of subsystems: opened and closed with their `ControllerProcess`."""

    _process: ControllerProcess

    @property
    def client(self) -> Client:
        return self._process.client

    async def __aenter__(self) -> Self:
        await self._process.__aenter__()
        await self._open()
        return self

    async def _open(self) -> None:
        """Opens what the subsystem needs besides the connection."""

    async def __aexit__(self, *error: object) -> None:
        await self._process.__aexit__(*error)


class ControllerProcess:
    """Connected for as long as its block lasts. `metrics` shows the parts that this process made."""

    def __init__(self, settings: ProcessSettings, *, clock: Clock, entropy: Entropy) -> None:
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self.metrics = ControllerMetrics()
        self._holder: LeaseHolder | None = None
        self.stack = AsyncExitStack()
        """What else is to be closed with the connection."""

    async def __aenter__(self) -> Self:
        await self._settings.access.credentials.get_current()
        transport = await self.stack.enter_async_context(self._open_transport(self._settings.access))
        self.client = self._make_client(transport)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stack.aclose()

    def check_address(self) -> None:
        """Raises `InvalidInput` unless the pages can be served."""
        check_address(self._settings.address)

    async def run(self, build: Callable[[Client, Guard | None], Program]) -> None:
        """Runs a program until cancelled, or until leadership is lost. Pages are served all the time."""
        holder = self._build_candidate()
        program = build(self.client if holder is None else self.client.with_guard(holder), holder)
        async with (
            serve_in_background(program.pages, self._settings.address, clock=self._clock, entropy=self._entropy),
            self._take_part(holder),
        ):
            await run_program(program, holder, clock=self._clock, entropy=self._entropy)

    async def run_once(self, work: Callable[[Client, Guard | None], Coroutine[Any, Any, T]]) -> T:
        """Do some work while leading, and return its result. No pages are served.

        Raises `LeaseNotAcquired` beside a process that leads.
        """
        holder = self._build_candidate()
        client = self.client if holder is None else self.client.with_guard(holder)
        async with self._take_part(holder):
            if holder is None:
                return await work(client, holder)
            return await run_while_leading(holder, lambda: work(client, holder), waits=False)

    def _take_part(self, holder: LeaseHolder | None) -> AbstractAsyncContextManager[object]:
        """The election, for as long as the block lasts."""
        if holder is None:
            return nullcontext()
        return ElectorThread(holder, lambda: self._open_transport(self._settings.access), entropy=self._entropy)

    # ---- parts

    def connect(self, access: Access) -> Client:
        """A client of another cluster, for as long as the process is connected."""
        transport = self._open_transport(access)
        self.stack.push_async_exit(transport)
        return self._make_client(transport)

    def make_informers(self, client: Client) -> SharedInformerFactory:
        informers = SharedInformerFactory(client, clock=self._clock, entropy=self._entropy)
        self.metrics.add_informers(informers)
        return informers

    def make_recorder(self, client: Client) -> EventRecorder:
        source = EventSource(component=self._settings.name)
        recorder = EventRecorder(client, source, clock=self._clock, entropy=self._entropy)
        self.metrics.add_recorder(recorder)
        return recorder

    def make_journal(self, data: Path | None) -> LazyJournal | None:
        """The journal of a data directory; None without one."""
        if data is None:
            return None
        journal = LazyJournal(data)
        self.metrics.add_journal(journal)
        return journal

    @asynccontextmanager
    async def record_events(self) -> AsyncIterator[EventRecorder]:
        """A recorder that writes Events for as long as the block lasts."""
        recorder = self.make_recorder(self.client)
        recording = asyncio.create_task(recorder.run())
        # A task that is cancelled before it began writes nothing.
        await asyncio.sleep(0)
        try:
            yield recorder
        finally:
            recording.cancel()
            await asyncio.wait((recording,))

    def make_pages(self, controllers: Sequence[Controller[Any]], exposition: Exposition) -> OperatorPages:
        """The pages of a process of controllers: `/metrics` with their own exposition first, and `/healthz`."""
        for controller in controllers:
            self.metrics.add_controller(controller)
        return OperatorPages(
            metrics=(exposition, self.metrics.expose), health={"/healthz": show_work(controllers, self.describe_role)}
        )

    def describe_role(self) -> str:
        """Whether this process leads, for its health page."""
        return describe_role(self._holder)

    def _build_candidate(self) -> LeaseHolder | None:
        lease = self._settings.lease
        if lease is None:
            return None
        identity = generate_identity(self._settings.host, self._entropy)
        holder = LeaseHolder(lease, clock=SuspendAwareClock(), identity=identity, get_json=self.client.get_json)
        self.metrics.add_lease(lease.name, holder)
        self._holder = holder
        return holder

    def _make_client(self, transport: Transport) -> Client:
        settings = self._settings.client
        return Client(transport, clock=self._clock, entropy=self._entropy, settings=settings, kinds=OUR_KINDS)

    def _open_transport(self, access: Access) -> HttpTransport:
        return HttpTransport(access, user_agent=self._settings.name)

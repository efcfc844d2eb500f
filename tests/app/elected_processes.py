"""Controller processes in virtual time that compete for a lease, each with a connection of its own to one server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plimsoll.kube.client import Client
from plimsoll.kube.errors import NotSent
from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.kube.leases import LeaderElector, LeaseHolder, LeaseLock, start_elector
from plimsoll.kube.recorder import EventRecorder
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.operator.metrics import ControllerMetrics
from plimsoll.operator.program import run_program
from plimsoll.runtime.entropy import SeededEntropy

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kube.leases import LeaseSettings
    from plimsoll.kube.transport import Request, Response, Transport
    from plimsoll.operator.program import Program
    from plimsoll.runtime.virtual_run import VirtualRun

CLOUD = "cloud.plimsoll.io"


class RecordingTransport:
    """Remembers what was sent. A dead process sends nothing more."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.sent: list[Request] = []
        self.answered: list[tuple[str, int]] = []
        """Calls with the status of their answers."""
        self.is_dead = False
        self.list_s = 0.0
        """How long a list of a large cluster takes."""

    async def send(self, call: Request) -> Response:
        if self.is_dead:
            raise NotSent("the process is dead")
        self.sent.append(call)
        if _is_list(call):
            await asyncio.sleep(self.list_s)
        answer = await self._inner.send(call)
        self.answered.append((f"{call.method} {call.path}", answer.status))
        return answer

    async def aclose(self) -> None:
        await self._inner.aclose()

    @property
    def writes(self) -> list[str]:
        return [f"{call.method} {call.path}" for call in self.sent if call.method != "GET"]

    @property
    def lists(self) -> list[str]:
        """The paths of complete lists of the cluster, in order. A provider's reads are not kept in caches."""
        return [call.path for call in self.sent if _is_list(call)]


def _is_list(call: Request) -> bool:
    is_page = call.method == "GET" and not call.is_stream and ("limit", "500") in call.query
    return is_page and CLOUD not in call.path


class ElectedProcess:
    """A process that takes part in the election from its start."""

    def __init__(self, name: str, inner: Transport, *, lease: LeaseSettings, run: VirtualRun) -> None:
        self.run = run
        self.clock = run.clock
        self.entropy = SeededEntropy(name)
        self.transport = RecordingTransport(inner)
        self.lease_transport = RecordingTransport(inner)
        settings = ClientSettings(user_agent=lease.field_manager, field_manager=lease.field_manager, qps=0)
        client = Client(self.transport, clock=run.clock, entropy=self.entropy, settings=settings, kinds=OUR_KINDS)
        self.holder = LeaseHolder(lease, identity=name, clock=run.clock, get_json=client.get_json)
        self.metrics = ControllerMetrics()
        self.metrics.add_lease(lease.name, self.holder)
        self.client = client.with_guard(self.holder)
        self.informers = SharedInformerFactory(self.client, clock=run.clock, entropy=self.entropy)
        source = EventSource(component=lease.field_manager)
        self.recorder = EventRecorder(self.client, source, clock=run.clock, entropy=self.entropy)
        self._task: asyncio.Task[None] | None = None

    def start(self, program: Program) -> None:
        self._task = self.run.spawn(self._live(program), name=self.holder.identity)

    async def _live(self, program: Program) -> None:
        port = LeaseLock(self.lease_transport, self.holder.settings, clock=self.clock)
        async with start_elector(LeaderElector(self.holder, port, entropy=self.entropy)):
            await run_program(program, self.holder, clock=self.clock, entropy=self.entropy)

    def kill(self) -> None:
        """As `kill -9`: the lease is not given back."""
        self.transport.is_dead = self.lease_transport.is_dead = True
        assert self._task is not None
        self._task.cancel()

    def advance_until(self, is_so: Callable[[], bool], *, within_s: float, step_s: float = 0.25) -> float:
        """Let time pass until it is so; how long that took. Fails when it takes longer."""
        begin_s = self.clock.monotonic_s()
        while not is_so():
            assert self.clock.monotonic_s() - begin_s < within_s
            self.run.advance_by(step_s)
        return self.clock.monotonic_s() - begin_s

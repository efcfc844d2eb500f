"""The programs of a chain, each of which may be killed right after a write, and begins again with nothing in memory.

A program is the fleet manager, the agent or the Kafka operator of one cluster, or the process that runs the clouds and
the node autoscalers of all clusters (with everything else in them, as `plimsoll up` does). API servers, databases and
OCM are other processes: they go on. Leases and Events do not count as writes: nothing is decided by what they say.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from plimsoll.fleet.errors import DatabaseUnreachable
from plimsoll.kube.errors import Closed
from plimsoll.local.cluster import CLOUD
from plimsoll.local.ocm.ports import DataPlaneFailed
from plimsoll.nodes.config.policy import AUTOSCALER_NAME
from plimsoll.runtime.supervisor import Service, Supervisor
from plimsoll.web.asgi_client import AsgiClient
from plimsoll.web.client import FailureKind, RequestFailed
from tests.faults import Crashed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from plimsoll.app.fleet.addons import Addon, AddonHost
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.store.database import FleetDatabase
    from plimsoll.kube.transport import Request, Response
    from plimsoll.local.ocm.ports import ClusterSpec, DataPlane, PoolSpec
    from plimsoll.web import client as web
    from tests.faults import Fault

FLEET: Final = "fleet"
CLUSTERS: Final = "clusters"
RESTART_S: Final = 20.0
"""How long a program is away after a crash."""
_PROGRAMS_OF_CLUSTERS: Final = {AUTOSCALER_NAME: "node autoscaler", CLOUD: "cloud"}
_UNCOUNTED: Final = frozenset({"leases", "events"})


class Process:
    """One life of a program."""

    def __init__(self, name: str, fault: Fault | None) -> None:
        self.name = name
        self.is_dead = False
        self.death: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._fault = fault

    async def record_write(self, what: str, *, program: str = "") -> None:
        """A write took effect. If the process dies of it, the call never returns."""
        if self._fault is None or self._fault.struck is not None:
            return
        try:
            self._fault.complete(f"{program or self.name}: {what}")
        except Crashed:
            self.is_dead = True
            self.death.set_result(None)
            await asyncio.get_running_loop().create_future()


RUNNING: ContextVar[Process | None] = ContextVar("the process that a task belongs to", default=None)


def find_process(name: str = "") -> Process | None:
    """The process of the running task, if it has this name."""
    process = RUNNING.get()
    return process if process is not None and name in {"", process.name} else None


class Program:
    """Runs lives of a program, one after the other. `live` builds what a life consists of, and runs it."""

    def __init__(
        self, name: str, live: Callable[[Process], Coroutine[Any, Any, None]], *, fault: Fault | None, clock: Clock
    ) -> None:
        self._name = name
        self._live = live
        self._fault = fault
        self._clock = clock
        self.process: Process | None = None
        """The life that runs; None while there is none."""

    async def run(self) -> None:
        while True:
            self.process = process = Process(self._name, self._fault)
            task = asyncio.create_task(self._live_in(process), name=self._name)
            try:
                await asyncio.wait((task, process.death), return_when=asyncio.FIRST_COMPLETED)
            finally:
                self.process = None
                task.cancel()
                await asyncio.wait((task,))
            if not process.is_dead:
                task.result()
                return
            await self._clock.sleep(RESTART_S)

    async def _live_in(self, process: Process) -> None:
        RUNNING.set(process)
        await self._live(process)


class MortalAddon:
    """An add-on whose program may be killed."""

    def __init__(self, name: str, addon: Addon, *, fault: Fault | None, clock: Clock, entropy: Entropy) -> None:
        self._name = name
        self._addon = addon
        self._fault = fault
        self._clock = clock
        self._entropy = entropy

    def build_services(self, host: AddonHost, parameters: Mapping[str, str]) -> Sequence[Service]:
        async def live(_process: Process) -> None:
            services = [*self._addon.build_services(host, parameters)]
            await Supervisor(services, clock=self._clock, entropy=self._entropy).run()

        program = Program(self._name, live, fault=self._fault, clock=self._clock)
        return [Service(name=self._name, run=program.run)]


# ---- ways by which writes leave


class ApiServerWay:
    """The calls of all programs of one cluster to its API server. `host`: the process that runs the clusters."""

    def __init__(self, transport: Any, host: Process | None) -> None:
        self._transport = transport
        self._host = host

    async def send(self, call: Request) -> Response:
        process = find_process()
        own = None if process is None or process.name in {FLEET, CLUSTERS} else process
        _check_alive(own, self._host)
        answer: Response = await self._transport.send(call)
        _check_alive(own, self._host)
        if not call.is_safe and answer.is_success and _UNCOUNTED.isdisjoint(call.path.split("/")):
            what = f"{call.method} {call.path}"
            manager = str(call.headers.get("User-Agent", "")).partition("/")[0]
            if own is not None:
                await own.record_write(what)
            elif self._host is not None and manager in _PROGRAMS_OF_CLUSTERS:
                await self._host.record_write(what, program=_PROGRAMS_OF_CLUSTERS[manager])
        return answer

    async def aclose(self) -> None:
        await self._transport.aclose()


def _check_alive(*processes: Process | None) -> None:
    for process in processes:
        if process is not None and process.is_dead:
            raise Closed(f"{process.name} is dead")


class BrokerWay:
    """The calls of a Kafka operator to brokers."""

    def __init__(self, admin: Any) -> None:
        self._admin = admin

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._admin, name)
        if not name.startswith(("alter_", "elect_", "unregister_")):
            return method

        async def call(*arguments: Any, **options: Any) -> Any:
            answer = await method(*arguments, **options)
            if (process := find_process()) is not None:
                await process.record_write(name)
            return answer

        return call


def count_row_writes(database: FleetDatabase) -> None:
    """From now on the writes of the fleet's processes count, but for those of leases."""
    write = database.transactions.write

    async def write_and_count(work: Callable[[Any], Any]) -> Any:
        process = find_process(FLEET)
        if process is not None and process.is_dead:
            raise DatabaseUnreachable("the process is dead", may_have_committed=False)
        result = await write(work)
        if process is not None and not work.__qualname__.startswith("DatabaseLeases"):
            await process.record_write(work.__qualname__.partition(".<locals>")[0])
        return result

    database.transactions.write = write_and_count  # type: ignore[method-assign]


class OcmWay:
    """The requests of the fleet manager to OCM, which answers them though the sender dies."""

    def __init__(self, application: Any) -> None:
        self._client = AsgiClient(application)

    async def send(self, request: web.Request) -> web.Response | RequestFailed:
        process = find_process(FLEET)
        if process is not None and process.is_dead:
            return RequestFailed(problem="the process is dead")
        answer = await asyncio.shield(_start_outside(self._client.send(request)))
        if process is not None and not request.is_safe and not isinstance(answer, RequestFailed):
            await process.record_write(f"{request.method} {request.url}")
        return answer


class ServiceWay:
    """Requests to the fleet manager. Without one, or when it dies of a request, there is no answer.

    `is_cut`: whether requests of other programs get lost.
    """

    def __init__(
        self, get_application: Callable[[], Any], program: Callable[[], Program], *, is_cut: Callable[[], bool]
    ) -> None:
        self._get_application = get_application
        self._get_program = program
        self._is_cut = is_cut

    async def send(self, request: web.Request) -> web.Response | RequestFailed:
        sender = find_process()
        if sender is not None and sender.is_dead:
            return RequestFailed(problem="the process is dead")
        fleet = self._get_program().process
        if fleet is None or fleet.is_dead or (sender is not None and self._is_cut()):
            return RequestFailed(problem="connection refused", kind=FailureKind.UNCONNECTED)
        task = asyncio.create_task(self._answer(request, fleet))
        await asyncio.wait((task, fleet.death), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
            return RequestFailed(problem="the connection was lost", kind=FailureKind.LOST)
        answer = task.result()
        if sender is not None and not request.is_safe and not isinstance(answer, RequestFailed):
            await sender.record_write(f"{request.method} {request.url}")
        return answer

    async def _answer(self, request: web.Request, fleet: Process) -> web.Response | RequestFailed:
        RUNNING.set(fleet)
        return await AsgiClient(self._get_application()).send(request)


class RepeatingDataPlane:
    """What OCM asks of clusters. What fails because their process is dead is asked of the next one."""

    def __init__(self, data_plane: DataPlane, program: Callable[[], Program], clock: Clock) -> None:
        self._data_plane = data_plane
        self._get_program = program
        self._clock = clock

    async def make(self, cluster: ClusterSpec) -> None:
        await self._repeat(lambda: self._data_plane.make(cluster))

    async def set_pools(self, cluster_id: str, pools: tuple[PoolSpec, ...]) -> None:
        await self._repeat(lambda: self._data_plane.set_pools(cluster_id, pools))

    async def install(self, cluster_id: str, addon_id: str, parameters: Mapping[str, str]) -> None:
        await self._repeat(lambda: self._data_plane.install(cluster_id, addon_id, parameters))

    async def delete(self, cluster_id: str) -> None:
        await self._repeat(lambda: self._data_plane.delete(cluster_id))

    async def _repeat(self, call: Callable[[], Awaitable[None]]) -> None:
        while True:
            process = self._get_program().process
            try:
                await call()
            except DataPlaneFailed:
                if process is not None and not process.is_dead:
                    raise
            else:
                return
            await self._clock.sleep(1)


def _start_outside(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A task that belongs to no process of the chain."""

    async def run() -> Any:
        RUNNING.set(None)
        return await work

    return asyncio.create_task(run())

"""An API server in memory, and electors whose network and processes misbehave as configured, in virtual time."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from plimsoll.kube.errors import AnswerLost, NotSent
from plimsoll.kube.leases import LeaderElector, LeaseHolder, LeaseLock, LeaseSettings, NotLeading
from plimsoll.kube.requests.status_errors import build_api_error
from plimsoll.kube.transport import JSON, MERGE_PATCH, Request, Response
from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.runtime.entropy import SeededEntropy
from tests.local.apiserver.builders import ADMIN, new_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.transport import Transport

    Spawn = Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]

NAMESPACE, NAME = "kube-system", "cluster-autoscaler"
COLLECTION = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
PATH = f"{COLLECTION}/{NAME}"
SETTINGS = LeaseSettings(name=NAME, namespace=NAMESPACE)


class SkewedClock:
    """The world's clock with a wall clock that is off by some time and may jump."""

    def __init__(self, clock: Clock, *, off_by_s: float = 0.0) -> None:
        self._clock = clock
        self.off_by_s = off_by_s

    def now(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self.off_by_s)

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


@dataclass
class ProcessFreezer:
    """Whether a process is stopped: whatever it does next happens when it goes on."""

    thawed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.thawed.set()

    def freeze(self) -> None:
        self.thawed.clear()

    def thaw(self) -> None:
        self.thawed.set()

    async def passes(self) -> None:
        await self.thawed.wait()


@dataclass(frozen=True)
class CallOutcome:
    """What becomes of one call."""

    to_server_s: float = 0.0
    to_us_s: float = 0.0
    outcome: str = "ok"
    """`ok`, `lost` (done, not answered), `unsent`, `failed` (500, not done), `failed-late` (done, answered 500)"""


class FaultyTransport:
    """Between one process and the server: delays, losses and failures by `fate`, and the process's own freezing.

    A call that is given up by its sender still reaches the server, as on a real network.
    """

    def __init__(self, transport: Transport, *, clock: Clock, freezer: ProcessFreezer, spawn: Spawn) -> None:
        self._transport = transport
        self._clock = clock
        self._freezer = freezer
        self._spawn = spawn
        self.fate: Callable[[Request], CallOutcome] = lambda _: CallOutcome()
        self.calls: list[Request] = []

    async def send(self, call: Request) -> Response:
        await self._freezer.passes()
        self.calls.append(call)
        fate = self.fate(call)
        if fate.outcome == "unsent":
            raise NotSent("no route")
        under_way = self._spawn(self._carried(call, fate))
        try:
            async with asyncio.timeout(call.timeout_s):
                reply = await asyncio.shield(under_way)
                await self._clock.sleep(fate.to_us_s)
        except TimeoutError:
            await self._freezer.passes()
            raise AnswerLost("no answer in time") from None
        await self._freezer.passes()
        if fate.outcome == "lost":
            raise AnswerLost("connection reset")
        return reply

    async def _carried(self, call: Request, fate: CallOutcome) -> Response:
        await self._clock.sleep(fate.to_server_s)
        if fate.outcome == "failed":
            return Response(500, body=b"{}")
        reply = await self._transport.send(call)
        return Response(500, body=b"{}") if fate.outcome == "failed-late" else reply

    async def aclose(self) -> None:
        await self._transport.aclose()


@dataclass
class Contender:
    """One process: its elector's world, and when it acted."""

    holder: LeaseHolder
    elector: LeaderElector
    network: FaultyTransport
    freezer: ProcessFreezer
    clock: SkewedClock
    acted: list[tuple[float, float]] = field(default_factory=list)

    async def act(self, *, call_s: float = 0.4, pause_s: float = 0.1) -> None:
        """Act whenever the guard lets it. A call that was sent goes on while its sender is frozen."""
        while True:
            await self.freezer.passes()
            try:
                allowed_s = self.holder.limit_duration_s(call_s)
            except NotLeading:
                await self.clock.sleep(pause_s)
                continue
            now_s = self.clock.monotonic_s()
            self.acted.append((now_s, now_s + allowed_s))
            await self.clock.sleep(allowed_s)


class LeaseCluster:
    """The server, and processes by name. `spawn` starts what goes on by itself."""

    def __init__(self, clock: Clock, spawn: Spawn) -> None:
        self.clock = clock
        self._application = Application(new_server(clock))
        self.spawn = spawn
        self.admin = EmbeddedTransport(self._application, token=ADMIN)
        self.reads: list[str] = []
        """What processes read of the Lease before they remove something."""

    def contender(self, identity: str = "a", *, settings: LeaseSettings = SETTINGS, off_by_s: float = 0.0) -> Contender:
        clock, freezer = SkewedClock(self.clock, off_by_s=off_by_s), ProcessFreezer()
        transport = EmbeddedTransport(self._application, token=ADMIN)
        network = FaultyTransport(transport, clock=self.clock, freezer=freezer, spawn=self.spawn)
        holder = LeaseHolder(settings, identity=identity, clock=clock, get_json=self.read)
        port = LeaseLock(network, settings, clock=clock)
        elector = LeaderElector(holder, port, entropy=SeededEntropy(identity))
        return Contender(holder, elector, network, freezer, clock)

    def start(self, contender: Contender) -> asyncio.Task[None]:
        return self.spawn(contender.elector.run())

    # -- what an administrator does

    async def open(self) -> None:
        namespace = json.dumps({"metadata": {"name": NAMESPACE}}).encode()
        reply = await self.admin.send(
            Request("POST", "/api/v1/namespaces", headers={"content-type": JSON}, body=namespace)
        )
        assert reply.status in (201, 409), reply

    async def ask(self, call: Request) -> Any:
        reply = await self.admin.send(call)
        assert reply.is_success, reply
        return json.loads(reply.body)

    async def read(self, path: str) -> Any:
        """The JSON at a path, or the error of a client."""
        call = Request("GET", path)
        self.reads.append(path)
        reply = await self.admin.send(call)
        if not reply.is_success:
            raise build_api_error(reply, call, now=self.clock.now())
        return json.loads(reply.body)

    async def spec(self) -> dict[str, Any]:
        return (await self.ask(Request("GET", PATH))).get("spec", {})

    async def put_record(self, **spec: Any) -> None:
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME}, "spec": spec}
        headers = {"content-type": JSON}
        await self.ask(Request("POST", COLLECTION, headers=headers, body=json.dumps(lease).encode()))

    async def patch(self, patch: Any) -> None:
        """As kubectl patch does it: with the version that stands there."""
        version = (await self.ask(Request("GET", PATH)))["metadata"]["resourceVersion"]
        whole = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}
        headers = {"content-type": MERGE_PATCH}
        await self.ask(Request("PATCH", PATH, headers=headers, body=json.dumps(whole).encode()))

    async def delete(self) -> None:
        await self.ask(Request("DELETE", PATH))


@asynccontextmanager
async def lease_world(clock: Clock) -> AsyncIterator[LeaseCluster]:
    """A world whose processes end with it."""
    async with asyncio.TaskGroup() as group:
        world = LeaseCluster(clock, group.create_task)
        await world.open()
        try:
            yield world
        finally:
            for task in list(group._tasks):
                task.cancel()


def overlapping(contenders: list[Contender]) -> list[tuple[str, str, float, float]]:
    """Every moment at which two processes acted."""
    spans = sorted(
        (begin, end, contender.holder.identity) for contender in contenders for begin, end in contender.acted
    )
    return [
        (who, other, begin, end_before)
        for (_, end_before, who), (begin, _, other) in pairwise(spans)
        if who != other and begin < end_before
    ]

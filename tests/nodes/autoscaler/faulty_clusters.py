"""Worlds in which the autoscaler's lines to the API server and to the cloud can be cut, and its clock be set.

Only the autoscaler's own: schedulers, kubelets, workload controllers and the cloud go on.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from plimsoll.kube.errors import AnswerLost, NotSent
from plimsoll.local.apiserver.storage.store import Put
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.components import Components
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.runner import ScenarioRun
from plimsoll.simulation.worlds.autoscaler import ScenarioLoop
from plimsoll.simulation.worlds.crashes import CrashingTransport
from plimsoll.simulation.worlds.world import World
from tests.nodes.autoscaler.loop_scenarios import AUTOSCALER, scenario_of, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.kube.transport import Request, Response, Stream, Transport
    from plimsoll.local.apiserver.storage.objects import Key, Stored
    from plimsoll.runtime.supervisor import Service
    from plimsoll.simulation.ports import Loop, LoopDependencies
    from tests.nodes.autoscaler.loop_scenarios import Json


class NetworkLink:
    """Cut, it carries nothing, and what was under way on it breaks."""

    def __init__(self) -> None:
        self._broken = asyncio.Event()
        self.sends_bookmarks = True
        """Servers need not send any."""

    @property
    def is_cut(self) -> bool:
        return self._broken.is_set()

    def cut(self) -> None:
        self._broken.set()

    def mend(self) -> None:
        self._broken = asyncio.Event()

    async def broken(self) -> None:
        await self._broken.wait()


class LinkTransport:
    """The calls of one client, as far as its line carries them."""

    def __init__(self, transport: Transport, line: NetworkLink) -> None:
        self._transport = transport
        self._line = line

    async def send(self, call: Request) -> Response:
        if self._line.is_cut:
            raise NotSent("nobody answers")
        if not self._line.sends_bookmarks:
            call = call._replace(query=[pair for pair in call.query if pair[0] != "allowWatchBookmarks"])
        reply = await self._transport.send(call)
        return reply if reply.stream is None else reply._replace(stream=LinkStream(reply.stream, self._line))

    async def aclose(self) -> None:
        await self._transport.aclose()


class LinkStream:
    """A watch that breaks with its line."""

    def __init__(self, stream: Stream, line: NetworkLink) -> None:
        self._stream = stream
        self._line = line

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        async with asyncio.TaskGroup() as group:
            chunk = group.create_task(_next_of(self._stream))
            broken = group.create_task(self._line.broken())
            await asyncio.wait((chunk, broken), return_when=asyncio.FIRST_COMPLETED)
            chunk.cancel()
            broken.cancel()
        if chunk.cancelled():
            raise AnswerLost("the connection broke")
        found = chunk.result()
        if found is None:
            raise StopAsyncIteration
        return found

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _next_of(stream: Stream) -> bytes | None:
    return await anext(stream, None)


class AdjustableClock:
    """A wall clock that is set, beside a steady one that goes on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead = timedelta()

    def now(self) -> datetime:
        return self._clock.now() + self.ahead

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class FaultyLoop:
    """An autoscaler with informers of its own."""

    def __init__(self, inner: Loop, components: Components) -> None:
        self._inner = inner
        self._components = components

    def list_services(self) -> Sequence[Service]:
        return [*self._components.list_services(whose="troubled"), *self._inner.list_services()]

    async def run_loop(self) -> dict[str, Any]:
        return await self._inner.run_loop()

    def get_metrics(self) -> dict[str, float]:
        return self._inner.get_metrics()


class FaultyCluster(World):
    """`with FaultyCluster(…) as world:`, then `world.take_step({…})` step by step."""

    def __init__(self, **scenario: Any) -> None:
        self.api = NetworkLink()
        self.cloud_line = NetworkLink()
        self._plugged = Plugins(make_loop=self._make_loop)
        super().__init__(scenario_of((), scenario), plugs=self._plugged)
        self.clock = AdjustableClock(self.run.clock)
        self._scenario_run = ScenarioRun(self, self._plugged)

    def take(self, *steps: Json) -> None:
        for step in steps_of(steps, world=self.scenario.world):
            self._scenario_run.take_step(step, path="test")

    def outcome(self) -> Json:
        return self._scenario_run.finish().outcome

    def calls(self, *names: str) -> list[Json]:
        return [call for call in self.outcome()["providerCalls"] if call["call"] in names]

    def change_body(self, key: Key, change: Callable[[Json], None]) -> None:
        """Write past the API server's checks."""

        def decide(found: Stored | None) -> Put:
            assert found is not None
            body = found.decode_body()
            change(body)
            return Put(body)

        self.run_now(self._application.server.store.update(key, decide))

    def _make_loop(self, tools: LoopDependencies) -> FaultyLoop:
        entropy = SeededEntropy("troubled")
        components = Components(lambda name: self._lined(name, self.api), clock=tools.clock, entropy=entropy)
        cloud = SimulatedCloud(self._lined(AUTOSCALER, self.cloud_line), clock=tools.clock, log=self.log)
        return FaultyLoop(
            ScenarioLoop(replace(tools, components=components, cloud=cloud, clock=self.clock)), components
        )

    def _lined(self, manager: str, line: NetworkLink) -> Client:
        mortal = CrashingTransport(
            EmbeddedTransport(self._application, token=self._token), component=manager, life=self._life
        )
        return self._build_client(LinkTransport(mortal, line), manager)  # type: ignore[arg-type]

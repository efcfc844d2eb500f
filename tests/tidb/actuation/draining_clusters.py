"""The whole autoscaler on an API server, with a PD that takes its time and an operator that checks for itself.

Pods go as soon as `replicas` falls or their TidbCluster is gone, with whatever they hold: `lost` are those whose store
was not buried. With a fault every write counts, to Kubernetes and to PD; events do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.faults import Crashed
from tests.tidb.autoscaled_clusters import AUTO, PLANNER, AutoscaledCluster
from tests.tidb.pd.simulated_pd import SimulatedPd, SimulatedStore

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.transport import Request, Response, Transport
    from plimsoll.web.client import Request as Asked
    from plimsoll.web.client import RequestFailed
    from plimsoll.web.client import Response as Answered
    from tests.faults import CrashAfter


class StickyPd(SimulatedPd):
    """A pod that runs keeps the store it has, buried or not: only one that starts anew gets another."""

    def __init__(self, clock: Clock, **speeds: float) -> None:
        super().__init__(clock, **speeds)
        self.running: dict[str, SimulatedStore] = {}

    def register(self, pod: str, **more: Any) -> SimulatedStore:
        if pod not in self.running:
            self.running[pod] = super().register(pod, **more)
        return self.running[pod]


class DrainingCluster(AutoscaledCluster):
    """`crash` None: nothing goes wrong."""

    def __init__(self, server: Any, *, crash: CrashAfter | None = None, **settings: Any) -> None:
        super().__init__(server, drains_actively=True, **settings)
        self.pd: StickyPd = StickyPd(self.run.clock, leaders_per_s=5, regions_per_s=1)
        self.lost: list[str] = []
        self.crash = crash

    @property
    def stores(self) -> list[SimulatedStore]:
        """Of the group, in the order of their pods."""
        return [
            breathing_store
            for breathing_store in self.pd.stores.values()
            if breathing_store.pod.startswith(f"{AUTO}-tikv-")
        ]

    @property
    def policy(self) -> dict[str, Any]:
        return self.tac()["metadata"].get("annotations", {})

    def pass_by(self, seconds: int, *, every_s: int = 10) -> None:
        """Passes until so much later; one that dies is followed by those of another process."""
        for _ in range(0, seconds, every_s):
            self.run.advance_by(every_s)
            self.operate()
            try:
                self.once(transport=self._transport())
            except Crashed:
                self.crash = None

    def operate(self) -> None:
        super().operate()
        there = set(self.server.names("tidbclusters"))
        self._stop([pod for pod in self.pd.running if pod.rsplit("-", 2)[0] not in there])

    def _bury_beyond(self, name: str, count: int) -> None:
        """It buries nothing: that is the drainer's part."""
        pods = [pod for pod in self.pd.running if pod.startswith(f"{name}-tikv-")]
        self._stop([pod for pod in pods if int(pod.rpartition("-")[2]) >= count])

    def _stop(self, pods: list[str]) -> None:
        """With whatever they hold."""
        self.lost += [pod for pod in pods if self.pd.running.pop(pod).state != 2]

    # ---- writes that may be the last

    def _transport(self) -> Transport:
        transport = self.server.transport()
        return transport if self.crash is None else _CrashingTransport(transport, self.crash)

    async def send(self, asked: Asked) -> Answered | RequestFailed:
        if self.crash is None or asked.url.startswith(PLANNER):
            return await super().send(asked)
        if asked.method == "GET":
            _breathe(self.crash)
            return await super().send(asked)
        return await self.crash.wrap(self.pd).send(asked)


class _CrashingTransport:
    """A connection of a process that dies after one of its writes."""

    def __init__(self, inner: Transport, crash: CrashAfter) -> None:
        self._inner = inner
        self._crash = crash

    async def send(self, call: Request) -> Response:
        if "/events" in call.path:
            # Reported by a task of its own, which is not stopped here; nothing is ever decided by an event.
            return await self._inner.send(call)
        if call.is_safe:
            _breathe(self._crash)
            return await self._inner.send(call)
        return await self._crash.wrap(self._inner).send(call)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _breathe(crash: CrashAfter) -> None:
    """The dead do not."""
    if crash.struck is not None:
        raise Crashed(f"asked by a process that died after {crash.struck.method}")

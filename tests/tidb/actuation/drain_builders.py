"""A cluster `db` of three stores with a group `auto-x` beside it, a PD that breathes, and a drainer, in virtual time.

The TidbCluster of the group is a value here: `replicas` and the mark, as they would stand in Kubernetes. Every pass
reads them anew, and lowers `replicas` when a store left. `lost` are pods that went too early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.tidb.actuation.drain import Drainer
from plimsoll.tidb.pd.client import PdClient, PdFailed
from plimsoll.tidb.planning.drain.types import Blocked, Drained, DrainInProgress, DrainSettings, StoreDrain, Unknown
from tests.tidb.pd.simulated_pd import SimulatedPd, SimulatedStore

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.tidb.model.reconcile_types import DrainRecord
    from plimsoll.web.client import Request, RequestFailed, Response
    from tests.faults import Fault

GROUP = "auto-x"
HOT = {"group": "pd-auto-scaling-tikv-small", "resource-type": "small", "specialUse": "hotRegion"}
Outcome = Drained | DrainInProgress | Blocked | Unknown


class DrainHarness:
    """`is_active` may be changed between passes, as by a restart with another flag; `fault` strikes at writes."""

    def __init__(self, *, replicas: int = 1, base: int = 3, is_active: bool = True, **speeds: float) -> None:
        self.run = VirtualRun()
        self.pd = SimulatedPd(self.run.clock, **speeds)
        self.is_active = is_active
        self.settings = DrainSettings()
        self.mark: DrainRecord | None = None
        self.replicas = 0
        self.pods: set[str] = set()
        self.lost: list[str] = []
        self.fault: Fault | None = None
        self.known_stores: frozenset[int] = frozenset()
        self.ready_pods: frozenset[str] = frozenset()
        for ordinal in range(base):
            self.pd.register(f"db-tikv-{ordinal}")
        self.scale(replicas)

    def store(self, ordinal: int) -> SimulatedStore:
        """Of the group: the latest of that pod."""
        return [
            breathing_store
            for breathing_store in self.pd.stores.values()
            if breathing_store.pod == f"{GROUP}-tikv-{ordinal}"
        ][-1]

    def scale(self, replicas: int, *, registers: bool = True) -> None:
        """What an operator does when `replicas` changes: pods come, and pods go with whatever they hold."""
        self.replicas = replicas
        wanted = {f"{GROUP}-tikv-{ordinal}" for ordinal in range(replicas)}
        self.lost += [pod for pod in sorted(self.pods - wanted) if self.pd.of_pod(pod) is not None]
        self.pods = wanted
        if registers:
            for pod in sorted(wanted):
                self.pd.register(pod, labels=HOT, regions=20, leaders=5, capacity_gib=10, used_gib=2)

    @property
    def leaving(self) -> StoreDrain:
        return StoreDrain(
            namespace="prod",
            cluster=GROUP,
            replicas=self.replicas,
            record=self.mark,
            known_stores=self.known_stores,
            ready_pods=self.ready_pods,
        )

    @property
    def now(self) -> datetime:
        return self.run.clock.now()

    @property
    def drainer(self) -> Drainer:
        return Drainer(PdClient("http://pd.test", web=self), is_active=self.is_active, settings=self.settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.run.close(after_error=error is not None)

    # ---- what the drainer writes and reads

    async def send(self, asked: Request) -> Response | RequestFailed:
        """A `Web`; reading is never struck by the fault."""
        return await (self.pd.send(asked) if asked.method == "GET" else self._writes.send_to_pd(asked))

    async def remember(self, mark: DrainRecord | None, /) -> None:
        await self._writes.write_mark(mark)

    @property
    def _writes(self) -> _DrainWrites:
        writes = _DrainWrites(self)
        return writes if self.fault is None else self.fault.wrap(writes)

    # ---- passes

    def take_out(self) -> Outcome:
        """One pass that wants a store less."""
        outcome = self.do(self.drainer.take_out(self.leaving, now=self.now, write_record=self.remember))
        if isinstance(outcome, Drained):
            self._lower()
        return outcome

    def bring_back(self, *, wanted: int | None = None) -> Drained | PdFailed | None:
        wanted = self.replicas if wanted is None else wanted
        outcome = self.do(self.drainer.bring_back(self.leaving, wanted=wanted, write_record=self.remember))
        if isinstance(outcome, Drained):
            self._lower()
        return outcome

    def clear(self) -> Outcome:
        return self.do(self.drainer.drain_all(self.leaving, now=self.now, write_record=self.remember))

    def take_out_all(self, *, at_most_s: int = 3600) -> None:
        """Pass after pass, every ten seconds, until no replica is left."""
        for _ in range(0, at_most_s, 10):
            if self.replicas == 0:
                return
            self.take_out()
            self.run.advance_by(10)
        raise AssertionError(f"{self.replicas} replicas are left")

    def do(self, coroutine: Any) -> Any:
        return self.run.run_until(coroutine)

    def _lower(self) -> None:
        """One write, as the acting half makes it."""
        self.mark = None
        self.scale(self.replicas - 1)


class _DrainWrites:
    """All that a drainer changes in the world, for faults to count."""

    def __init__(self, world: DrainHarness) -> None:
        self._world = world

    async def send_to_pd(self, asked: Request) -> Response | RequestFailed:
        return await self._world.pd.send(asked)

    async def write_mark(self, mark: DrainRecord | None) -> None:
        self._world.mark = mark

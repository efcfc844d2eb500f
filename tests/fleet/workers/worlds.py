"""Workers on a database in memory, in virtual time: rows in, passes, rows out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plimsoll.fleet.model.access import AccessPolicy
from plimsoll.fleet.model.clusters import Cluster
from plimsoll.fleet.model.statuses import KafkaStatus
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.reporting.metrics import FleetMetrics
from plimsoll.fleet.reporting.reporter import FleetReporter
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.workers.builder import build_workers
from plimsoll.fleet.workers.leases import LeaseTimes, WorkerLeases
from plimsoll.fleet.workers.runner import RunnerParts, WorkerRunner
from plimsoll.journal.memory import MemoryJournal
from plimsoll.operator.health import Health, HealthTimeouts
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.testing import run_virtual
from tests.fleet.fleet_rows import NOW, make_policy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.model.kafkas import KafkaRequest
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.ports import FleetStore
    from plimsoll.fleet.workers.builder import ClusterParts
    from plimsoll.fleet.workers.passes import PassResult

WORKERS = tuple(
    worker
    for worker in Worker
    if worker not in {Worker.CLUSTER, Worker.DEPROVISIONING_CLUSTERS, Worker.CLEANUP_CLUSTERS}
)


@dataclass(kw_only=True)
class Instance:
    """The workers of one process. Only the chosen ones run."""

    runner: WorkerRunner
    leases: WorkerLeases
    metrics: FleetMetrics
    journal: MemoryJournal

    async def run_pass(self) -> tuple[PassResult, ...]:
        await self.leases.renew()
        return await self.runner.run_once()

    async def settle(self, passes: int = 3) -> None:
        """Passes until nothing is left to do."""
        for _ in range(passes):
            await self.run_pass()


class FleetWorld:
    """A database in memory, and what makes processes of it."""

    def __init__(
        self, clock: Clock, policy: FleetPolicy | None = None, access: AccessPolicy | None = None, seed: int = 1
    ) -> None:
        self.clock = clock
        self.policy = policy or make_policy()
        self.access = access or AccessPolicy()
        self.database = open_database("sqlite://", clock=clock)
        self.store: FleetStore = self.database.store
        self._entropy = SeededEntropy(seed)
        self._started = 0

    async def insert(self, *rows: Cluster | KafkaRequest) -> None:
        for row in rows:
            if isinstance(row, Cluster):
                assert await self.store.insert_cluster(row)
            else:
                assert (await self.store.insert_kafka(row, None)).value == "done"

    def start(
        self,
        *workers: Worker,
        through: Callable[[Any], Any] = lambda port: port,
        dry_run: bool = False,
        holder: str = "",
        clusters: ClusterParts | None = None,
    ) -> Instance:
        """A process. `through` wraps the store of its workers."""
        self._started += 1
        metrics, journal = FleetMetrics(self.policy), MemoryJournal()
        planners = build_workers(self.policy, self.access, observer=metrics, entropy=self._entropy, clusters=clusters)
        chosen = [planner for planner in planners if not workers or planner.name in workers]
        leases = WorkerLeases(
            self.database.leases,
            [planner.name for planner in chosen],
            holder=holder or f"process-{self._started}",
            times=LeaseTimes(),
            clock=self.clock,
        )
        parts = RunnerParts(
            store=_ThroughLease(self.store, through),
            pause=self.database.leases,
            leases=leases,
            reporter=FleetReporter(metrics, journal=journal),
            health=Health(HealthTimeouts(inactivity_s=600, failing_s=900, startup_s=600)),
            clock=self.clock,
        )
        runner = WorkerRunner(chosen, parts, dry_run=dry_run)
        return Instance(runner=runner, leases=leases, metrics=metrics, journal=journal)

    async def list_clusters(self) -> tuple[Cluster, ...]:
        return await self.store.list_clusters()

    async def list_kafkas(self) -> tuple[KafkaRequest, ...]:
        return await self.store.list_kafkas(tuple(KafkaStatus))

    async def get_kafka(self, row_id: str) -> KafkaRequest:
        kafka = await self.store.get_kafka(row_id)
        assert kafka is not None
        return kafka

    async def get_cluster(self, row_id: str) -> Cluster:
        cluster = await self.store.get_cluster(row_id)
        assert cluster is not None
        return cluster


class _ThroughLease:
    """A store whose view under a lease passes through a fault."""

    def __init__(self, store: FleetStore, through: Callable[[Any], Any]) -> None:
        self._store = store
        self._through = through

    def with_lease(self, worker: str, holder: str) -> Any:
        return self._through(self._store.with_lease(worker, holder))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def play(
    story: Callable[[FleetWorld], Awaitable[None]],
    policy: FleetPolicy | None = None,
    access: AccessPolicy | None = None,
) -> None:
    """Runs a story in virtual time, which begins at NOW."""

    async def run(clock: Clock) -> None:
        world = FleetWorld(clock, policy, access)
        try:
            await story(world)
        finally:
            world.database.close()

    run_virtual(run, start=NOW)

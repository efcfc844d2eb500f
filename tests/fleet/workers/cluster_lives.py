"""Lives of clusters: the workers of clusters, a database in memory, and the world of one provider, in virtual time.

A process ends when a fault says so; the next one starts without faults, and waits for the leases of the first. Agents
report to the database directly, so that only the calls of the workers are struck.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, Self

from msgspec import structs

from plimsoll.fleet.errors import DatabaseUnreachable
from plimsoll.fleet.model.statuses import KafkaStatus, ProviderType
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.terraforming import SetupSettings, build_cluster_order
from plimsoll.fleet.ports import ClusterReport, UnitReport
from plimsoll.fleet.providers.ocm.provider import OcmProvider
from plimsoll.fleet.providers.ocm.settings import OcmClientSettings
from plimsoll.fleet.workers.builder import ClusterParts
from plimsoll.kube.errors import Status, TimedOut, build_error
from plimsoll.local.ocm.application import TOKEN_PATH
from plimsoll.local.ocm.requests import AddonBody, Autoscaling, ClusterBody, PoolBody, read_body
from plimsoll.local.ocm.service import SimulatedOcm
from plimsoll.local.ocm.settings import OcmDelays, OcmSettings
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.web.asgi_client import AsgiClient
from plimsoll.web.client import FailureKind, RequestFailed, Response
from tests.faults import translate_strikes
from tests.fleet.fleet_rows import NOW, make_cluster, make_kafka, make_policy
from tests.fleet.providers.capi_worlds import CapiWorld
from tests.fleet.providers.test_standalone import CONTEXT, StandaloneWorld
from tests.fleet.workers.worlds import FleetWorld

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.providers.port import ClusterProvider
    from plimsoll.runtime.clocks import VirtualClock
    from tests.faults import Fault
    from tests.fleet.workers.worlds import Instance

TICK_S: Final = 30
UNITS: Final = 6
ROW_A: Final = "aaaaaaaaaaaaaaaaaaaa"
ROW_B: Final = "bbbbbbbbbbbbbbbbbbbb"
WORKERS: Final = (
    Worker.DYNAMIC_SCALE_UP,
    Worker.DYNAMIC_SCALE_DOWN,
    Worker.DEPROVISIONING_CLUSTERS,
    Worker.CLUSTER,
    Worker.CLEANUP_CLUSTERS,
)
SETUP: Final = SetupSettings(control_plane_url="http://fleet.test", agent_issuer_url="http://fleet.test/auth/agent")
SHORT: Final = OcmDelays(pending_s=30.0, installing_s=30.0, addon_s=30.0, uninstalling_s=30.0)


class ProviderWorld(Protocol):
    """What outlives the processes at one provider."""

    type: ProviderType
    deletes: bool
    """Whether a deletion ends the cluster, and not only its row."""

    def build_provider(self, through: Callable[[Any], Any]) -> ClusterProvider:
        """Of a new process. `through` wraps what its calls leave by."""
        ...

    async def advance(self, seconds: float) -> None: ...

    async def list_ids(self) -> list[str]:
        """The clusters that the provider has now."""
        ...

    async def add_cluster(self, row_id: str) -> str:
        """A cluster that is complete, as if a worker had made it for this row; returns its id."""
        ...

    def count_created(self) -> int:
        """The clusters that were ever made, and the pools if that can be counted."""
        ...


class OcmWorld:
    """A simulated OCM over HTTP in this process."""

    type = ProviderType.OCM
    deletes = True

    def __init__(self, run: VirtualRun, *, has_unique_names: bool = True) -> None:
        self.clock = run.clock
        settings = OcmSettings(delays=SHORT, client_id="fleet", client_secret="hush", has_unique_names=has_unique_names)
        self.ocm = SimulatedOcm(clock=run.clock, entropy=SeededEntropy("simulated OCM"), settings=settings)
        run.spawn(self.ocm.run(), name="simulated OCM")

    def build_provider(self, through: Callable[[Any], Any]) -> OcmProvider:
        settings = OcmClientSettings(
            base_url="http://ocm.test",
            token_url=f"http://ocm.test{TOKEN_PATH}",
            client_id="fleet",
            client_secret="hush",
        )
        web = translate_strikes(
            through(AsgiClient(self.ocm.application)),
            lost=lambda: RequestFailed(problem="the answer was lost", kind=FailureKind.TIMED_OUT),
            refused=lambda: Response(status=503, body=b"later"),
        )
        return OcmProvider(settings, web=web, clock=self.clock)

    async def advance(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def list_ids(self) -> list[str]:
        return [cluster.id for cluster in self.ocm.clusters.list_clusters()]

    async def add_cluster(self, row_id: str) -> str:
        body = {
            "name": f"mk-{row_id}"[:15],
            "cloud_provider": {"id": "aws"},
            "region": {"id": "us-east-1"},
            "multi_az": True,
            "nodes": {
                "compute_machine_type": {"id": "r5.xlarge"},
                "autoscale_compute": {"min_replicas": 3, "max_replicas": 18},
            },
        }
        cluster_id = self.ocm.clusters.create(read_body(body, ClusterBody)).id
        await self.clock.sleep(90)
        key = "bf2.org/kafkaInstanceProfileType"
        self.ocm.clusters.add_pool(
            cluster_id,
            PoolBody(
                id="kafka-standard",
                instance_type="r5.xlarge",
                autoscaling=Autoscaling(min_replicas=3, max_replicas=18),
                labels={key: "standard"},
            ),
        )
        self.ocm.clusters.install(cluster_id, read_body({"addon": {"id": "managed-kafka"}}, AddonBody))
        return cluster_id

    def count_created(self) -> int:
        pools = [call for call in self.ocm.list_calls("machine_pools.create") if call.status == 201]
        return max(sum(self.ocm.clusters.created.values()), len(pools))


class ClusterApiWorld:
    """A management cluster with a simulated Cluster API."""

    type = ProviderType.CLUSTER_API
    deletes = True

    def __init__(self, run: VirtualRun) -> None:
        self.world: CapiWorld = run.run_until(CapiWorld.build(run.clock))

    def build_provider(self, through: Callable[[Any], Any]) -> ClusterProvider:
        return self.world.build_provider(lambda port: _translate_transport(through(port)))

    async def advance(self, seconds: float) -> None:
        await self.world.advance(seconds)

    async def list_ids(self) -> list[str]:
        return [body["metadata"]["uid"] for body in await self.world.list_clusters()]

    async def add_cluster(self, row_id: str) -> str:
        """By the provider itself, without faults."""
        provider = self.world.build_provider()
        row = make_cluster(row_id, cluster_id="", provider_type=self.type)
        order = build_cluster_order(row, build_policy(self.type))
        assert not isinstance(order, str)
        made: Any = await provider.create_cluster(order)
        await self.world.advance(300)
        return str(made.cluster_id)

    def count_created(self) -> int:
        return len(self.world.data_planes.made)


class OwnersWorld:
    """A cluster that its owner made, known by a context."""

    type = ProviderType.STANDALONE
    deletes = False

    def __init__(self, run: VirtualRun) -> None:
        self.world: StandaloneWorld = run.run_until(StandaloneWorld.build(run.clock))

    def build_provider(self, through: Callable[[Any], Any]) -> ClusterProvider:
        return self.world.build_provider(lambda port: _translate_transport(through(port)))

    async def advance(self, seconds: float) -> None:
        await self.world.data_planes.mark_deployments_available()
        await self.world.clock.sleep(seconds)

    async def list_ids(self) -> list[str]:
        return [f"cid-{ROW_A}", f"cid-{ROW_B}"]

    async def add_cluster(self, row_id: str) -> str:
        return f"cid-{row_id}"

    def count_created(self) -> int:
        return 1


WORLDS: Final[Mapping[str, Callable[[VirtualRun], ProviderWorld]]] = {
    "ocm": OcmWorld,
    "cluster_api": ClusterApiWorld,
    "standalone": OwnersWorld,
}


class Lives:
    """One fleet with one provider."""

    def __init__(self, build_world: Callable[[VirtualRun], ProviderWorld], fault: Fault | None = None) -> None:
        self.run = VirtualRun(start=NOW)
        self.clock: VirtualClock = self.run.clock
        self.provider = build_world(self.run)
        self.fleet = FleetWorld(self.get_fleet_clock(), build_policy(self.provider.type))
        self.fault = fault
        self.process: Instance | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.run.close(after_error=error[0] is not None)
        self.fleet.database.close()

    def get_fleet_clock(self) -> Clock:
        """The clock of the workers and of their database."""
        return self.clock

    # ---- rows and requests

    def add_ready(self, row_id: str, used: int = 0) -> Cluster:
        """A ready cluster that the provider has as well, with so many Kafkas of one unit."""
        cluster_id = self.run.run_until(self.provider.add_cluster(row_id))
        cluster = make_cluster(
            row_id,
            UNITS,
            cluster_id=cluster_id,
            client_id=f"agent-{row_id}",
            client_secret="hush",
            cluster_dns="apps.example.com",
            provider_type=self.provider.type,
            provider_spec=self.get_provider_spec(),
            last_report_at=self.clock.now(),
        )
        self.run.run_until(self.fleet.insert(cluster))
        for number in range(used):
            self.add_kafka(cluster, f"{row_id}-{number}")
        return cluster

    def get_provider_spec(self) -> dict[str, str]:
        return {"name": CONTEXT} if self.provider.type is ProviderType.STANDALONE else {}

    def add_kafka(self, cluster: Cluster, row_id: str) -> None:
        kafka = make_kafka(
            row_id, cluster_id=cluster.cluster_id, status=KafkaStatus.READY, bootstrap_server_host="host"
        )
        self.run.run_until(self.fleet.insert(kafka))

    def register(self, row_id: str) -> None:
        """What `POST /admin/clusters` stores for a cluster that exists."""
        cluster = make_cluster(
            row_id,
            {"standard": UNITS},
            status="cluster_accepted",
            cluster_dns="apps.edge.example.com",
            provider_type=self.provider.type,
            provider_spec=self.get_provider_spec(),
            available_strimzi_versions=(),
        )
        self.run.run_until(self.fleet.insert(cluster))

    def list_rows(self) -> tuple[Cluster, ...]:
        return self.run.run_until(self.fleet.list_clusters())

    def find_row(self, row_id: str) -> Cluster | None:
        return next((row for row in self.list_rows() if row.id == row_id), None)

    def list_ids(self) -> list[str]:
        return self.run.run_until(self.provider.list_ids())

    # ---- time

    def tick(self, number: int = 1) -> None:
        """Passes of a process, and the time between them. A process that ended has a successor in the next tick."""
        for _ in range(number):
            if self.process is None:
                self.process = self._start_process()
            try:
                self.run.run_until(self.process.run_pass())
            except BaseException:  # Crashed, or a group of it: nothing else ends a process.
                if self.fault is None or not self.fault.has_crashed:
                    raise
                self.process = self._start_process()
            self.run.run_until(self._pass_time())

    def run_workers(self, *workers: Worker, dry_run: bool = False, **options: Any) -> list[str]:
        """A pass of each, in this order and each in a process of its own; the reasons that they gave."""
        reasons: list[str] = []
        for worker in workers:
            process = self.fleet.start(worker, holder=worker, dry_run=dry_run, clusters=self.build_parts(**options))
            for result in self.run.run_until(process.run_pass()):
                assert result.plan is not None, result.errors
                reasons += [action.reason.code for action in result.plan.actions]
                reasons += [left.reason.code for left in result.plan.not_done]
        return reasons

    def pass_time(self, ticks: int = 1) -> None:
        """Nothing works but the provider and the agents."""
        for _ in range(ticks):
            self.run.run_until(self._pass_time())

    def tick_until(self, is_done: Callable[[], bool], *, most: int = 60) -> None:
        for _ in range(most):
            if is_done():
                return
            self.tick()
        raise AssertionError(f"not done after {most} ticks: {self.list_rows()}")

    async def _pass_time(self) -> None:
        await self.provider.advance(TICK_S)
        ids = set(await self.provider.list_ids())
        for row in await self.fleet.list_clusters():
            if row.cluster_id in ids:
                units = {"standard": UnitReport(max_units=UNITS, remaining_units=UNITS)}
                report = ClusterReport(is_ready=True, at=self.fleet.clock.now(), units=units)
                await self.fleet.store.store_report(row.cluster_id, report)

    def _start_process(self) -> Instance:
        """The faults are those of the first process; its successor has none."""
        is_first = self.process is None and self.fault is not None
        wrap = self.fault.wrap if is_first and self.fault is not None else _keep

        def wrap_store(port: Any) -> Any:
            return translate_strikes(
                wrap(port), lost=lambda: _fail(may_have_committed=True), refused=lambda: _fail(may_have_committed=False)
            )

        return self.fleet.start(*WORKERS, through=wrap_store if is_first else _keep, clusters=self.build_parts(wrap))

    def build_parts(self, through: Callable[[Any], Any] | None = None, **options: Any) -> ClusterParts:
        provider = self.provider.build_provider(through or _keep)
        return ClusterParts(providers={provider.type: provider}, setup=SETUP, clock=self.clock, **options)


def build_policy(provider: ProviderType) -> FleetPolicy:
    policy = make_policy()
    if provider is not ProviderType.CLUSTER_API:
        return policy
    (cloud,) = policy.providers
    (region,) = cloud.regions
    regions = (structs.replace(region, cluster_class="classes/data-plane"),)
    return structs.replace(policy, providers=(structs.replace(cloud, regions=regions),))


def _keep(port: Any) -> Any:
    return port


def _fail(*, may_have_committed: bool) -> NoReturn:
    raise DatabaseUnreachable("the database does not answer", may_have_committed=may_have_committed)


def _translate_transport(port: Any) -> Any:
    def lose() -> NoReturn:
        raise TimedOut("the answer was lost")

    def refuse() -> NoReturn:
        raise build_error(Status(code=503, message="later"))

    return translate_strikes(port, lost=lose, refused=refuse)

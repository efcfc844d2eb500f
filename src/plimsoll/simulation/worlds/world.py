"""The world of a scenario: an API server in memory, a simulated cluster and cloud on it, and their virtual time.

`World` builds what the file describes and holds what survives a crash: the server's store, the clock, the cloud's call
log, the simulated Kafka brokers, and the loops of a live autoscaler. Everything else runs as one process, which is
rebuilt from the world after each crash.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from msgspec.structs import replace

from plimsoll.kafka.settings import NAME as KAFKA_OPERATOR
from plimsoll.kube.client import Client
from plimsoll.kube.informer.settings import InformerSettings
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.authentication import build_administrator
from plimsoll.local.apiserver.bootstrap.namespace_defaults import NamespaceDefaults
from plimsoll.local.apiserver.event_expiry import EventExpiry
from plimsoll.local.apiserver.run import Credentials, build_application
from plimsoll.local.apiserver.storage import MemoryDriver, Store
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.cloud.controller import CloudSettings
from plimsoll.local.cloud.faults.call_log import CallLog
from plimsoll.local.cluster import CLOUD, ClusterSettings, LocalCluster
from plimsoll.local.components import CONTROLLER_MANAGER, KUBELET, SCHEDULER, Components
from plimsoll.local.controller_manager.pod_gc import PodGcSettings
from plimsoll.local.kafka.simulated import SimulatedClusters
from plimsoll.local.kubelet import KubeletSettings
from plimsoll.local.tidb.instances import OPERATOR as TIDB_OPERATOR
from plimsoll.objects.api.managed_kafkas import MANAGED_KAFKA_GROUP
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.objects.validation import list_shipped_definitions
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.simulation.document import Problems
from plimsoll.simulation.files.cloud_manifests import build_cloud_manifests, build_initial_nodes, label_nodes
from plimsoll.simulation.kafka.scenario import KAFKA_GROUPS, build_kafka_services, has_kafka_objects
from plimsoll.simulation.ports import LoopDependencies, Plugins
from plimsoll.simulation.scenario import WorldKind
from plimsoll.simulation.tidb.scenario import build_tidb_services, has_tidb_objects, needs_tidb
from plimsoll.simulation.worlds.crashes import CrashingTransport, PlannedCrashes, ProcessLife, run_until_crash
from plimsoll.simulation.worlds.group_names import GroupNames
from plimsoll.simulation.worlds.loop_log import LoopLog
from plimsoll.simulation.worlds.request_history import RequestHistory
from plimsoll.simulation.worlds.seeding import SCENARIO, WORLD, Seeder
from plimsoll.tidb.settings import NAME as TIDB_AUTOSCALER

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from plimsoll.local.apiserver.resources.registry import ServedResource
    from plimsoll.runtime.supervisor import Service
    from plimsoll.simulation.ports import Loop
    from plimsoll.simulation.scenario import Scenario

T = TypeVar("T")

AUTOSCALER: Final = "cluster-autoscaler"
COMPONENTS: Final = (
    CONTROLLER_MANAGER,
    SCHEDULER,
    KUBELET,
    CLOUD,
    AUTOSCALER,
    TIDB_OPERATOR,
    TIDB_AUTOSCALER,
    KAFKA_OPERATOR,
)

_EVERY_NODE: Final = ""

_DAY_S: Final = 86_400

# In one process no watch breaks unnoticed, so there is no need to reopen it every few minutes.
_INFORMERS: Final = InformerSettings(shortest_watch_s=7 * _DAY_S, longest_watch_s=7 * _DAY_S)
# Bookmarks every minute are only for the autoscaler, which removes nothing based on old state.
_OF_THE_CLUSTER: Final = replace(_INFORMERS, wants_bookmarks=False, silence_s=8 * _DAY_S)
# A scenario's pods are not observed every second: one write when a pod runs, one when it is gone.
_KUBELET: Final = KubeletSettings(
    selector=_EVERY_NODE, start_s=0.0, stop_s=0.0, emits_events=False, reports_ends=False, resync_s=0.0
)

STEPPED: Final = ClusterSettings(
    schedules=False,
    plays_nodes=False,
    writes_heartbeats=False,
    kubelet=_KUBELET,
    informers=_OF_THE_CLUSTER,
    cloud=CloudSettings(nodes_come_ready=True),
    pod_collection=PodGcSettings(missing_s=0.0),
)
LIVE: Final = ClusterSettings(writes_heartbeats=False, kubelet=_KUBELET, informers=_OF_THE_CLUSTER, patience_s=0.1)


class World:
    """`with World(scenario) as world:`; then `world.run` advances time."""

    def __init__(self, scenario: Scenario, *, plugs: Plugins | None = None, is_timed: bool = False) -> None:
        self.scenario = scenario
        self.group_names = GroupNames(group_entry.id for group_entry in scenario.node_groups)
        self.options: dict[str, Any] = dict(scenario.options)
        self.log = CallLog(most=None)
        self.loop_log = LoopLog()
        self.run = VirtualRun(start=scenario.start)
        self._plugs = plugs or Plugins()
        self._is_timed = is_timed
        self._entropy = SeededEntropy(scenario.seed)
        self._token = self._entropy.spawn_child("administrator").generate_token()
        credentials = Credentials(
            users={self._token: build_administrator()},
            signing_key=self._entropy.spawn_child("signing").generate_token().encode(),
        )
        store = Store.open(MemoryDriver(), clock=self.run.clock)
        self._application = build_application(
            store, clock=self.run.clock, entropy=self._entropy.spawn_child("server"), credentials=credentials
        )
        self.client = self._build_client(EmbeddedTransport(self._application, token=self._token), SCENARIO)
        self.cloud = SimulatedCloud(self.client, clock=self.run.clock, log=self.log)
        self.requests = RequestHistory(self._application.server.store, clock=self.run.clock)
        self.seeder = Seeder(self._application.server, self.client, entropy=self._entropy.spawn_child("seeds"))
        self.kafka_clusters = SimulatedClusters(
            self.run.clock, topics={entry.key: entry.topics for entry in scenario.kafka}
        )
        self._starts = 0
        self.planned_crashes = PlannedCrashes()
        self._life = ProcessLife(lambda: None, self.planned_crashes)
        self._running: list[asyncio.Task[None]] = []
        self.loop: Loop | None = None
        self.cluster: LocalCluster | None = None

    def __enter__(self) -> Self:
        with ExitStack() as if_it_fails:
            if_it_fails.enter_context(self.run)
            self._begin()
            if_it_fails.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.run.close(after_error=error[0] is not None)

    def run_now(self, doing: Coroutine[Any, Any, T]) -> T:
        """Run something that takes no virtual time, from outside the world."""
        return self.run.run_until(doing)

    def find_resource(self, kind: str, *, api_version: str = "") -> ServedResource | None:
        """The resource of a kind; without an apiVersion the first one of that kind."""
        served = self._application.server.registry
        return next(
            (resource for resource in served if resource.kind == kind and api_version in {"", resource.api_version}),
            None,
        )

    # ---- the world at the start

    def _begin(self) -> None:
        self.run_now(self._build())
        self.run.spawn(NamespaceDefaults(self._application.server, ca_certificate="").run(), name="namespace contents")
        self.run.spawn(EventExpiry(self._application.server).run(), name="event expiry")
        self.run.spawn(self.requests.run(), name="request histories")
        self._start_process()
        self.run.settle()

    async def _build(self) -> None:
        scenario = self.scenario
        await self._application.start()
        for definition in list_shipped_definitions():
            # A world has the definitions that it needs: its random numbers do not depend on others.
            group = definition.body["spec"]["group"]
            if group == MANAGED_KAFKA_GROUP or (group in KAFKA_GROUPS and not has_kafka_objects(scenario)):
                continue
            await self.seeder.put(definition.body, path=definition.source, manager=WORLD)
        problems = Problems()
        for path, manifest in build_cloud_manifests(scenario):
            with problems.collect_errors():
                await self.seeder.put_spec(self.group_names.rename(manifest), path=path, manager=WORLD)
        objects = [
            self.group_names.rename(with_group) for with_group in label_nodes(scenario.objects, scenario.node_groups)
        ]
        await self.seeder.put_all(objects, path="objects", problems=problems)
        # What the cloud refuses has no nodes that could be made.
        problems.raise_if_any()
        for node in build_initial_nodes(scenario):
            await self.seeder.put(self.group_names.rename(node), path="nodeGroups", manager=WORLD)
        for index, entry in enumerate(scenario.pods):
            with problems.collect_errors():
                await self.seeder.put_pods(entry, path=f"pods[{index}].template")
        problems.raise_if_any()

    # ---- the process that runs on it

    def _start_process(self) -> None:
        """Build everything that runs, from the world alone."""
        self._starts += 1
        self._life = ProcessLife(self._replace_process, self.planned_crashes)
        connect = partial(self._connect, life=self._life)
        is_live = self.scenario.world == WorldKind.LIVE
        has_kafka = has_kafka_objects(self.scenario)
        kind_of_cluster = replace(
            LIVE if is_live else STEPPED, plays_tidb=has_tidb_objects(self.scenario), plays_kafka=has_kafka
        )
        entropy = self._entropy.spawn_child(f"process {self._starts}")
        clock = self.run.clock
        self.cluster = LocalCluster(
            connect,
            clock=clock,
            entropy=entropy,
            settings=kind_of_cluster,
            spared_owners=self.seeder.absent_owners,
            kafka_clusters=self.kafka_clusters,
        )
        scaling = self._build_tidb_scaling(self.cluster, entropy) if is_live else []
        if has_kafka and is_live:
            scaling += build_kafka_services(
                self.cluster.components,
                self.kafka_clusters,
                clock=clock,
                entropy=entropy.spawn_child("kafka operator"),
            )
        services = [*self.cluster.list_services(), *scaling]
        if self._plugs.make_loop is not None:
            components = Components(
                connect, clock=clock, entropy=entropy.spawn_child("autoscaler"), informers=_INFORMERS
            )
            tools = LoopDependencies(
                components=components,
                cloud=SimulatedCloud(connect(AUTOSCALER), clock=clock, log=self.log),
                clock=clock,
                options=self.options,
                is_live=is_live,
                is_timed=self._is_timed,
                knows_owner=lambda uid: uid not in self.seeder.absent_owners,
                on_loop=self.loop_log.add,
            )
            self.loop = self._plugs.make_loop(tools)
            services += [*components.list_services(whose="autoscaler"), *self.loop.list_services()]
        supervisor = Supervisor(services, clock=clock, entropy=entropy.spawn_child("supervisor"))
        self.spawn_inside(supervisor.run(), name=f"process {self._starts}")

    def _build_tidb_scaling(self, cluster: LocalCluster, entropy: SeededEntropy) -> list[Service]:
        if cluster.tidb is None or not needs_tidb(self.scenario):
            return []
        return build_tidb_services(
            cluster.components, cluster.tidb, clock=self.run.clock, entropy=entropy.spawn_child("tidb autoscaler")
        )

    def spawn_inside(self, doing: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Start a task of the process; it ends with the process."""
        task = self.run.spawn(run_until_crash(doing, self._life), name=name)
        self._running = [running for running in self._running if not running.done()] + [task]
        return task

    def crash(self, component: str, *, after_calls: int, path: str) -> None:
        """Crash the process now, or after this many further writes of the component; another one starts."""
        if after_calls == 0:
            self._life.crash(component, path=path)
        else:
            self.planned_crashes.add(component, after_calls=after_calls, path=path)

    def _replace_process(self) -> None:
        """Start a new process at once. What is left of the dead one is cancelled and reaches nothing any more."""
        dead, self._running = self._running, []
        for task in dead:
            task.cancel()
            # The first cancellation asks it to stop in order; the second, after it began to stop, ends it at once.
            self.run.loop.call_soon(task.cancel)
        self._start_process()

    def _connect(self, manager: str, *, life: ProcessLife) -> Client:
        embedded_transport = EmbeddedTransport(self._application, token=self._token)
        return self._build_client(CrashingTransport(embedded_transport, component=manager, life=life), manager)

    def _build_client(self, transport: EmbeddedTransport | CrashingTransport, manager: str) -> Client:
        settings = ClientSettings(user_agent=f"{manager}/v1.34", field_manager=manager, qps=0)
        entropy = self._entropy.spawn_child(f"client {manager}")
        return Client(transport, clock=self.run.clock, entropy=entropy, settings=settings, kinds=OUR_KINDS)

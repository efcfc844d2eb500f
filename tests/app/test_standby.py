"""A warm standby: its caches are complete before it leads, and its first act follows within one scan of leading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from plimsoll.app.node_autoscaling import NAME as NODES
from plimsoll.app.node_autoscaling import NodeProgram
from plimsoll.app.tidb_autoscaling import TidbProgram
from plimsoll.kube.leases import LeaseSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.tidb.load.cluster_loads import LOAD
from plimsoll.local.tidb.simulated import route_to_simulated
from plimsoll.nodes.autoscaler_lease import AUTOSCALER_LEASE
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.runner import ScenarioRun
from plimsoll.simulation.tidb.scenario import SETTINGS, NoExternalServices
from plimsoll.simulation.worlds.world import World
from plimsoll.tidb.builder import Dependencies as TidbDependencies
from plimsoll.tidb.builder import TidbAutoscalerParts
from plimsoll.tidb.settings import LEASE as TIDB_LEASE
from plimsoll.tidb.settings import NAME as TIDB
from plimsoll.web.in_memory import InMemoryClient
from plimsoll.web.responses import text_response
from tests.app.elected_processes import ElectedProcess
from tests.local.apiserver.builders import ADMIN
from tests.local.tidb.builders import CLUSTERS, LocalTidbCluster, base_cluster
from tests.nodes.autoscaler.loop_scenarios import group, replica_set, scenario_of, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.tidb.simulated import SimulatedTidb

T = TypeVar("T")

SCAN_S = 10.0
NODE_LEASE = LeaseSettings(name=AUTOSCALER_LEASE, namespace="kube-system", field_manager=NODES)
TIDB_LEASE_SETTINGS = LeaseSettings(name=TIDB_LEASE, namespace="kube-system", field_manager=TIDB)
SCALERS = "/apis/pingcap.com/v1alpha1/namespaces/prod/tidbclusterautoscalers"
TO_LEAD_S = NODE_LEASE.duration_s + NODE_LEASE.retry_period_s
PAGES = text_response("ok")


async def _inline(plan: Callable[[], T]) -> T:
    return plan()


class NodeWorld(World):
    """A live cluster with any number of autoscaler processes."""

    def __init__(self, **scenario: Any) -> None:
        super().__init__(scenario_of((), {"world": "live", **scenario}))
        self._story = ScenarioRun(self, Plugins())

    def start_autoscaler(self, name: str) -> ElectedProcess:
        transport = EmbeddedTransport(self._application, token=self._token)
        process = ElectedProcess(name, transport, lease=NODE_LEASE, run=self.run)
        provider = SimulatedProvider(SimulatedCloud(process.client, clock=self.run.clock, log=self.log))
        autoscaler = NodeAutoscaler(
            Dependencies(
                client=process.client,
                informers=process.informers,
                recorder=process.recorder,
                provider=provider,
                configuration=ConfigMapConfig(self.options, process.informers, naming=provider.naming),
                clock=self.run.clock,
                run_planner=_inline,
            )
        )
        process.transport.list_s = 2 * SCAN_S
        process.start(
            NodeProgram(autoscaler=autoscaler, informers=process.informers, recorder=process.recorder, pages=PAGES)
        )
        return process

    def apply(self, *manifests: dict[str, Any]) -> None:
        for step in steps_of([{"apply": list(manifests)}], world=self.scenario.world):
            self._story.take_step(step, path="test")

    def get_target(self) -> int:
        found = self.run_now(self.client.get_json("/apis/cloud.plimsoll.io/v1alpha1/nodegroups/g"))
        return int(found["spec"]["target"])


def test_a_standby_of_the_node_autoscaler_has_listed_before_it_leads_and_acts_within_one_scan():
    with NodeWorld(nodeGroups=[group("g", target=1)], options={"scan-interval": "10s"}) as world:
        leader = world.start_autoscaler("leader")
        leader.advance_until(lambda: leader.holder.is_leading, within_s=5)
        standby = world.start_autoscaler("standby")
        world.run.advance_by(60)
        assert not standby.holder.is_leading
        assert {"/api/v1/nodes", "/api/v1/pods"} <= set(standby.transport.lists)
        assert standby.transport.writes == []

        leader.kill()
        world.apply(replica_set("more", 4, cpu="2"))
        listed = len(standby.transport.lists)
        assert standby.advance_until(lambda: standby.holder.is_leading, within_s=TO_LEAD_S) > 0
        standby.advance_until(lambda: world.get_target() > 1, within_s=SCAN_S)
        assert standby.transport.lists[listed:] == []


class TidbWorld(LocalTidbCluster):
    """A simulated TiDB with any number of autoscaler processes."""

    def start_autoscaler(self, name: str) -> ElectedProcess:
        transport = EmbeddedTransport(self.application, token=ADMIN)
        process = ElectedProcess(name, transport, lease=TIDB_LEASE_SETTINGS, run=self.run)
        parts = _tidb_parts(process, self.tidb)
        controller = parts.controller(process.entropy)
        process.start(
            TidbProgram(
                parts=parts,
                controller=controller,
                informers=process.informers,
                recorder=process.recorder,
                journal=None,
                pages=PAGES,
            )
        )
        return process


def _tidb_parts(process: ElectedProcess, tidb: SimulatedTidb) -> TidbAutoscalerParts:
    return TidbAutoscalerParts(
        TidbDependencies(
            client=process.client,
            web=InMemoryClient(tidb.answer, route=route_to_simulated),
            caller=NoExternalServices(),
            clock=process.clock,
            settings=SETTINGS,
            informers=process.informers,
            recorder=process.recorder,
        )
    )


def test_a_standby_of_the_tidb_autoscaler_has_listed_before_it_leads_and_acts_within_one_scan():
    with TidbWorld() as world:
        world.load("seconds,tikv_cores\n0,10.8\n")
        world.make(base_cluster(annotations={LOAD: "load"}))
        world.after(240)
        leader = world.start_autoscaler("leader")
        leader.advance_until(lambda: leader.holder.is_leading, within_s=5)
        standby = world.start_autoscaler("standby")
        world.after(60)
        assert {f"/apis/pingcap.com/v1alpha1/{kind}" for kind in ("tidbclusters", "tidbclusterautoscalers")} <= set(
            standby.transport.lists
        )
        assert standby.transport.writes == []

        leader.kill()
        rules = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
        kind = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbClusterAutoScaler"}
        spec = {"cluster": {"name": "db"}, "tikv": {"rules": rules}}
        world.made(SCALERS, {**kind, "metadata": {"name": "as1", "namespace": "prod"}, "spec": spec})
        standby.advance_until(lambda: standby.holder.is_leading, within_s=TO_LEAD_S)
        replicas = lambda: int(world.get(f"{CLUSTERS}/db")["spec"]["tikv"]["replicas"])  # noqa: E731
        standby.advance_until(lambda: replicas() == 6, within_s=SETTINGS.resync_s)

"""A warm standby: its caches are complete before it leads, and its first act follows within one scan of leading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.app.tidb_autoscaling import TidbProgram
from plimsoll.cli.nodes.nodes import _format_status
from plimsoll.kube.leases import LeaseSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.tidb.load.cluster_loads import LOAD
from plimsoll.local.tidb.simulated import route_to_simulated
from plimsoll.simulation.tidb.scenario import SETTINGS, NoExternalServices
from plimsoll.tidb.builder import Dependencies, TidbAutoscalerParts
from plimsoll.tidb.settings import LEASE, NAME
from plimsoll.web.in_memory import InMemoryClient
from tests.app.elected_nodes import PAGES, TO_LEAD_S, NodeWorld
from tests.app.elected_processes import ElectedProcess
from tests.local.apiserver.builders import ADMIN
from tests.local.tidb.builders import CLUSTERS, LocalTidbCluster, base_cluster
from tests.nodes.autoscaler.loop_scenarios import group, replica_set

if TYPE_CHECKING:
    from plimsoll.local.tidb.simulated import SimulatedTidb
    from tests.golden.reviewed_sentences import ReviewedSentences

SCAN_S = 10.0
TIDB_LEASE = LeaseSettings(name=LEASE, namespace="kube-system", field_manager=NAME)
SCALERS = "/apis/pingcap.com/v1alpha1/namespaces/prod/tidbclusterautoscalers"


def test_a_standby_of_the_node_autoscaler_has_listed_before_it_leads_and_acts_within_one_scan():
    with NodeWorld(nodeGroups=[group("g", target=1)], options={"scan-interval": "10s"}) as world:
        leader = world.start_autoscaler("first").process
        leader.advance_until(lambda: leader.holder.is_leading, within_s=5)
        standby = world.start_autoscaler("second", list_s=2 * SCAN_S).process
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


def test_health_and_metrics_of_leader_and_standby_show_which_they_are():
    with NodeWorld(nodeGroups=[group("g", target=1)]) as world:
        leader = world.start_autoscaler("first")
        leader.process.advance_until(lambda: leader.process.holder.is_leading, within_s=5)
        standby = world.start_autoscaler("second")
        world.run.advance_by(5)
        assert leader.get_health().splitlines()[:2] == ["OK", "leader"]
        assert standby.get_health() == "OK\nstandby: first leads\n"
        metric = 'leader_election_master_status{name="cluster-autoscaler"}'
        assert f"{metric} 1.0" in leader.get_metrics()
        assert f"{metric} 0.0" in standby.get_metrics()


def test_a_long_loop_iteration_is_under_way_in_health_metrics_and_status(reviewed: ReviewedSentences):
    with NodeWorld(nodeGroups=[group("g", target=1)]) as world:
        leader = world.start_autoscaler("first")
        world.run.advance_by(15)
        assert world.get_status()["loopUnderWaySeconds"] is None
        leader.provider.refresh_s = 600.0
        leader.process.advance_until(lambda: "under way" in leader.get_health(), within_s=15)
        world.run.advance_by(38)
        assert leader.get_health() == "OK\nleader\na loop iteration is under way (38s)\n"
        assert "plimsoll_loop_under_way_seconds 38." in leader.get_metrics()
        status = world.get_status()
        assert status["loopUnderWaySeconds"] == 38
        shown = str(next(iter(_format_status(status))))
        assert "Running, a loop iteration is under way (38s), before it Healthy; reported" in shown
        assert not status["stale"]
        world.run.advance_by(400)
        assert not world.get_status()["stale"]
        leader.provider.refresh_s = 0.0
        world.run.advance_by(200)
        assert world.get_status()["loopUnderWaySeconds"] is None
        reviewed(leader.get_health())


def test_a_leader_that_died_during_a_loop_iteration_leaves_a_status_that_becomes_stale():
    with NodeWorld(nodeGroups=[group("g", target=1)]) as world:
        leader = world.start_autoscaler("first")
        world.run.advance_by(15)
        leader.provider.refresh_s = 600.0
        world.run.advance_by(60)
        leader.process.kill()
        world.run.advance_by(100)
        assert world.get_status()["stale"]


class TidbWorld(LocalTidbCluster):
    """A simulated TiDB with any number of autoscaler processes."""

    def start_autoscaler(self, name: str) -> ElectedProcess:
        transport = EmbeddedTransport(self.application, token=ADMIN)
        process = ElectedProcess(name, transport, lease=TIDB_LEASE, run=self.run)
        parts = _tidb_parts(process, self.tidb)
        controller = parts.build_controller(process.entropy)
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
        Dependencies(
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

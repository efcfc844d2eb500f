"""When the controller looks: at changes that matter, every 30 seconds, sooner after trouble or while a store leaves."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from tests.tidb.autoscaled_clusters import AUTO, AutoscaledCluster, EmbeddedServer, group, homogeneous

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def living() -> Iterator[AutoscaledCluster]:
    """The controller runs, and there is a cluster with its autoscaler."""
    with AutoscaledCluster(EmbeddedServer, drains_actively=True) as world:
        entropy = SeededEntropy("controller")
        client = world.client(world.server.transport())
        informers = SharedInformerFactory(client, clock=world.run.clock, entropy=entropy)
        parts = world.parts(client, informers=informers)
        services = [*parts.build_controller(entropy).list_services(), *informers.list_services()]
        world.run.spawn(Supervisor(services, clock=world.run.clock, entropy=entropy).run())
        world.cluster().operate()
        world.autoscaler()
        world.run.advance_by(1)
        yield world


def test_a_new_autoscaler_is_looked_at_once() -> None:
    with living() as world:
        assert len(world.planner.asked) == 1
        world.run.advance_by(20)
        assert len(world.planner.asked) == 1, "the status that we wrote is no reason to look again"


def test_every_thirty_seconds() -> None:
    with living() as world:
        world.run.advance_by(300)
        assert 10 <= len(world.planner.asked) <= 12


def test_a_changed_specification_is_looked_at_now() -> None:
    with living() as world:
        world.server.edit("tidbclusterautoscalers", "as1", {"spec": {"tikv": {"scaleOutIntervalSeconds": 60}}})
        world.run.advance_by(1)
        assert len(world.planner.asked) == 2


def test_a_changed_cluster_is_looked_at_now_but_not_its_heartbeats() -> None:
    with living() as world:
        stores = {"1": {"lastHeartbeatTime": "2026-01-01T00:00:10Z", "leaderCount": 7}}
        world.server.edit("tidbclusters", "db", {"status": {"tikv": {"stores": stores}}})
        world.run.advance_by(1)
        assert len(world.planner.asked) == 1
        world.server.edit("tidbclusters", "db", {"status": {"tikv": {"phase": "Upgrade"}}})
        world.run.advance_by(1)
        assert len(world.planner.asked) == 2
        assert world.condition("Ready") == ("True", "ScaleHeld")


def test_trouble_is_tried_again_with_a_back_off() -> None:
    with living() as world:
        world.planner.says_body(None)
        world.server.edit("tidbclusterautoscalers", "as1", {"spec": {"tikv": {"scaleOutIntervalSeconds": 60}}})
        world.run.advance_by(8)
        assert 4 <= len(world.planner.asked) <= 6, "after 1, 2 and 4 seconds"
        world.planner.says(homogeneous(5))
        world.run.advance_by(60)
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 5


def test_a_group_comes_and_goes_by_itself() -> None:
    with living() as world:
        world.planner.says(group(2))
        world.run.advance_by(40)
        assert world.tc()["spec"]["tikv"]["replicas"] == 2
        world.operate()
        world.run.advance_by(700)
        world.planner.says()
        for _ in range(60):
            world.run.advance_by(30)
            world.operate()
        assert world.clusters == ["db"]
        assert [breathing_store.state for breathing_store in world.pd.stores.values()] == [0, 0, 0, 2, 2]
        assert AUTO not in world.clusters


def test_a_deleted_autoscaler_goes_when_its_groups_are_gone() -> None:
    with living() as world:
        world.planner.says(group(1))
        world.run.advance_by(40)
        world.operate()
        world.server.delete("tidbclusterautoscalers", "as1")
        for _ in range(6):
            world.run.advance_by(15)
            world.operate()
        assert world.server.names("tidbclusterautoscalers") == []
        assert world.clusters == ["db"]

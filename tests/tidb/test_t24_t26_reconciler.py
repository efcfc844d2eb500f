"""T24 to T26 of the specification, pass by pass: external advice, stores that may not leave, an autoscaler deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.tidb.autoscaled_clusters import AUTO, AutoscaledCluster, EmbeddedServer, FakeServer, group

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTERNAL = "db-tikv-external"


@pytest.fixture(params=[FakeServer, EmbeddedServer], ids=["played", "embedded"])
def world(request: pytest.FixtureRequest) -> Iterator[AutoscaledCluster]:
    with AutoscaledCluster(request.param, drains_actively=True) as made:
        yield made.cluster()


class TestT24External:
    @pytest.fixture(autouse=True)
    def _external(self, world: AutoscaledCluster) -> None:
        endpoint = {"host": "advice.test", "port": 8080, "path": "/size"}
        world.autoscaler(tikv={"external": {"endpoint": endpoint, "maxReplicas": 3}})
        self.says(world, 5)

    def says(self, world: AutoscaledCluster, replicas: int, **more: str) -> None:
        asked = {"name": "db", "namespace": "prod", "type": "tikv", **more}
        world.advice = {**asked, "recommendedReplicas": replicas}

    def test_it_is_cut_to_the_most_there_may_be(self, world: AutoscaledCluster) -> None:
        world.once()
        made = world.tc(EXTERNAL)
        assert made["spec"]["tikv"]["replicas"] == 3
        assert made["spec"]["tikv"]["config"]["server"]["labels"] == {"specialUse": "hotRegion"}
        assert "tidb.pingcap.com/autoscaling-group" not in made["metadata"]["labels"]
        assert world.called == ["http://advice.test:8080/size?name=db&namespace=prod&type=tikv"]
        assert world.planner.asked == []

    def test_an_answer_about_another_cluster_changes_nothing(self, world: AutoscaledCluster) -> None:
        world.once()
        self.says(world, 1, name="other")
        world.once(700)
        assert world.tc(EXTERNAL)["spec"]["tikv"]["replicas"] == 3
        assert world.condition("PlannerReachable") == ("False", "ExternalFailed")

    def test_zero_twice_drains_and_deletes_it(self, world: AutoscaledCluster) -> None:
        world.once()
        self.says(world, 0)
        world.once(700)
        assert world.tc(EXTERNAL)["spec"]["tikv"]["replicas"] == 3
        for number in range(1, 5):
            world.once(700 + 600 * number)
        assert world.clusters == ["db"]
        assert world.pd.together == 1
        assert [request for request in world.pd.wrote if "store/" in request] == [
            f"DELETE /store/{store_id}" for store_id in (6, 5, 4)
        ]


class TestT25MaxReplicasGuard:
    @pytest.fixture(autouse=True)
    def _group_that_goes(self, world: AutoscaledCluster) -> None:
        world.autoscaler()
        world.planner.says(group(1))
        world.once()
        world.planner.says()
        world.once(700)

    def test_three_normal_stores_are_left(self, world: AutoscaledCluster) -> None:
        world.once(730)
        assert world.tc()["spec"]["tikv"]["replicas"] == 0
        assert world.condition("ScaleInBlocked") == ("False", "NotBlocked")

    def test_one_of_them_is_down(self, world: AutoscaledCluster) -> None:
        world.pd.stores[1].heard = "Down"
        world.once(730)
        assert world.tc()["spec"]["tikv"]["replicas"] == 1
        assert world.pd.wrote == []
        assert world.condition("ScaleInBlocked")[0] == "True"
        assert {"2", "3"} <= set(world.message("ScaleInBlocked").split())

    @pytest.mark.parametrize(("tolerated", "left"), [(0, 1), (2, 0)])
    def test_bad_regions_are_tolerated_as_far_as_configured(
        self, world: AutoscaledCluster, tolerated: int, left: int
    ) -> None:
        world.settings = replace(world.settings, peer_tolerance=tolerated)
        world.pd.wrong["miss-peer"] = 2
        world.once(730)
        assert world.tc()["spec"]["tikv"]["replicas"] == left

    def test_five_are_needed(self, world: AutoscaledCluster) -> None:
        world.pd.max_replicas = 5
        world.once(730)
        assert world.pd.wrote == []
        assert world.condition("ScaleInBlocked")[0] == "True"
        assert {"3", "5"} <= set(world.message("ScaleInBlocked").split())

    def test_being_blocked_is_reported_once(self, world: AutoscaledCluster) -> None:
        world.pd.max_replicas = 5
        world.once(730)
        assert [event["type"] for event in world.sent.events] == ["Warning"]
        world.once(760)
        assert (world.sent.wrote, world.sent.events) == ([], [])


class TestT26AutoscalerDeleted:
    @pytest.fixture(autouse=True)
    def _deleted(self, world: AutoscaledCluster) -> None:
        world.autoscaler()
        world.planner.says(group(2))
        world.once()
        world.once(30)
        world.server.delete("tidbclusterautoscalers", "as1")

    def test_it_stays_until_every_store_has_left(self, world: AutoscaledCluster) -> None:
        sizes = []
        for number in range(6):
            world.once(60 + 30 * number)
            there = world.server.get("tidbclusters", AUTO)
            buried = [breathing_store.pod for breathing_store in world.pd.stores.values() if breathing_store.state == 2]
            if there is None:
                break
            sizes.append((there["spec"]["tikv"]["replicas"], len(buried)))
            assert world.tac()["metadata"]["finalizers"]
        assert sizes == [(1, 1), (0, 2)]
        assert world.server.names("tidbclusterautoscalers") == []
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 3

    def test_without_pd_nothing_is_touched(self, world: AutoscaledCluster) -> None:
        world.pd.is_silent = True
        before = world.tc()["spec"]
        world.once(60)
        world.once(90)
        assert world.tc()["spec"] == before
        assert world.tac()["metadata"]["finalizers"]
        assert world.condition("ScaleInBlocked") == ("True", "PdUnknown")


def test_orphans_stay_without_an_owner() -> None:
    with AutoscaledCluster(EmbeddedServer, drains_actively=True) as world:
        world.cluster().autoscaler()
        world.planner.says(group(2))
        world.once()
        policy = {"autoscaler.tidb.pingcap.com/deletion-policy": "orphan"}
        world.server.edit("tidbclusterautoscalers", "as1", {"metadata": {"annotations": policy}})
        world.server.delete("tidbclusterautoscalers", "as1")
        world.once(60)
        assert world.server.names("tidbclusterautoscalers") == []
        assert world.tc()["spec"]["tikv"]["replicas"] == 2
        assert not world.tc()["metadata"].get("ownerReferences")

"""T25 and T26 of the specification, and what else becomes of stores when their autoscaler goes: the whole of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tidb.actuation.draining_clusters import DrainingCluster
from tests.tidb.autoscaled_clusters import AUTO, EmbeddedServer, FakeServer, group

if TYPE_CHECKING:
    from collections.abc import Iterator

POLICY = "autoscaler.tidb.pingcap.com/deletion-policy"


@pytest.fixture(params=[FakeServer, EmbeddedServer], ids=["played", "embedded"])
def world(request: pytest.FixtureRequest) -> Iterator[DrainingCluster]:
    with DrainingCluster(request.param) as made:
        yield made.autoscaler().cluster()


def with_group(world: DrainingCluster, count: int) -> None:
    world.planner.says(group(count))
    world.once()
    world.operate()
    assert len(world.stores) == count


class TestT25MaxReplicasGuard:
    """700 s later the group is old enough, its cooldown is over, and no answer names it any more."""

    def begin(self, world: DrainingCluster) -> None:
        with_group(world, 1)
        world.run.advance_by(700)
        world.planner.says()

    def test_three_normal_stores_remain(self, world: DrainingCluster) -> None:
        self.begin(world)
        world.pass_by(120)
        assert (world.clusters, world.lost, world.pd.evicting) == (["db"], [], set())
        assert world.stores[0].state == 2

    def test_one_base_store_is_down(self, world: DrainingCluster) -> None:
        self.begin(world)
        world.pd.stores[2].heard = "Down"
        world.pass_by(120)
        assert world.condition("ScaleInBlocked")[0] == "True"
        assert "2 normal stores are Up and 3 are needed" in world.message("ScaleInBlocked")
        assert world.pd.wrote == []
        assert world.tc()["spec"]["tikv"]["replicas"] == 1

    def test_five_replicas_are_needed(self, world: DrainingCluster) -> None:
        self.begin(world)
        world.pd.max_replicas = 5
        world.pass_by(120)
        assert world.condition("ScaleInBlocked")[0] == "True"
        assert world.pd.wrote == []

    def test_it_goes_on_when_nothing_is_in_its_way_any_more(self, world: DrainingCluster) -> None:
        self.begin(world)
        world.pd.stores[2].heard = "Down"
        world.pass_by(60)
        world.pd.stores[2].heard = "Up"
        world.pass_by(120)
        assert (world.clusters, world.lost) == (["db"], [])
        assert world.condition("ScaleInBlocked")[0] == "False"


class TestT26DeletionOfTheAutoscaler:
    def test_stores_leave_one_after_the_other_then_the_cluster_then_the_autoscaler(
        self, world: DrainingCluster
    ) -> None:
        with_group(world, 2)
        world.server.delete("tidbclusterautoscalers", "as1")
        seen: list[int] = []
        for _ in range(20):
            world.pass_by(10)
            if world.server.get("tidbclusterautoscalers", "as1") is None:
                break
            replicas = world.tc()["spec"]["tikv"]["replicas"] if AUTO in world.clusters else -1
            if not seen or seen[-1] != replicas:
                seen.append(replicas)
        assert [count for count in seen if count >= 0] == [2, 1, 0]
        assert (world.clusters, world.lost, world.pd.together) == (["db"], [], 1)
        assert (world.pd.evicting, [breathing_store.state for breathing_store in world.stores]) == (set(), [2, 2])
        assert world.server.names("tidbclusterautoscalers") == []
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 3

    def test_nothing_is_touched_while_pd_does_not_answer(self, world: DrainingCluster) -> None:
        with_group(world, 2)
        world.pd.is_silent = True
        world.server.delete("tidbclusterautoscalers", "as1")
        before = world.tc()
        world.pass_by(600, every_s=60)
        assert world.tac()["metadata"]["finalizers"] == ["autoscaler.tidb.pingcap.com/drain"]
        assert world.tc() == before
        world.pd.is_silent = False
        world.pass_by(200)
        assert (world.clusters, world.lost) == (["db"], [])

    def test_a_group_that_is_leaving_already_goes_on(self, world: DrainingCluster) -> None:
        with_group(world, 2)
        world.run.advance_by(700)
        world.planner.says(group(1))
        world.pass_by(10)
        assert world.pd.evicting
        world.server.delete("tidbclusterautoscalers", "as1")
        world.pass_by(200)
        assert (world.clusters, world.lost, world.pd.together) == (["db"], [], 1)

    def test_a_store_that_registered_when_its_pod_was_going_is_taken_out_too(self, world: DrainingCluster) -> None:
        with_group(world, 1)
        world.silent_stores = True
        world.server.delete("tidbclusterautoscalers", "as1")
        world.server.edit("tidbclusters", AUTO, {"spec": {"tikv": {"replicas": 0}}})
        world.pass_by(20)
        assert AUTO in world.clusters
        world.pass_by(100)
        assert (world.clusters, world.pd.evicting, world.stores[0].state) == (["db"], set(), 2)
        assert world.server.names("tidbclusterautoscalers") == []

    def test_without_a_base_cluster_there_is_nothing_to_drain_into(self, world: DrainingCluster) -> None:
        with_group(world, 1)
        world.server.delete("tidbclusters", "db")
        world.server.delete("tidbclusterautoscalers", "as1")
        world.pass_by(20)
        assert (world.clusters, world.server.names("tidbclusterautoscalers")) == ([], [])


class TestDeletionPolicies:
    def test_orphans_stay_and_have_no_owner(self, world: DrainingCluster) -> None:
        with_group(world, 1)
        labels = world.tc()["metadata"]["labels"]
        world.server.edit("tidbclusterautoscalers", "as1", {"metadata": {"annotations": {POLICY: "orphan"}}})
        world.server.delete("tidbclusterautoscalers", "as1")
        world.pass_by(20)
        assert world.server.names("tidbclusterautoscalers") == []
        assert not world.tc()["metadata"].get("ownerReferences")
        assert world.tc()["metadata"]["labels"] == labels
        assert world.pd.wrote == []

    def test_an_orphan_is_not_left_half_drained(self, world: DrainingCluster) -> None:
        with_group(world, 2)
        world.run.advance_by(700)
        world.planner.says(group(1))
        world.pass_by(20)
        assert world.pd.offline
        world.server.edit("tidbclusterautoscalers", "as1", {"metadata": {"annotations": {POLICY: "orphan"}}})
        world.server.delete("tidbclusterautoscalers", "as1")
        world.pass_by(20)
        assert (world.pd.offline, world.pd.evicting) == ([], set())
        assert world.tc()["spec"]["tikv"]["replicas"] == 2

    def test_by_force_they_go_as_they_are(self, world: DrainingCluster) -> None:
        with_group(world, 1)
        world.server.edit("tidbclusterautoscalers", "as1", {"metadata": {"annotations": {POLICY: "force"}}})
        world.server.delete("tidbclusterautoscalers", "as1")
        world.pass_by(20)
        assert (world.clusters, world.server.names("tidbclusterautoscalers")) == (["db"], [])

    def test_what_is_no_policy_loses_nothing(self, world: DrainingCluster) -> None:
        with_group(world, 1)
        world.server.edit("tidbclusterautoscalers", "as1", {"metadata": {"annotations": {POLICY: "now!"}}})
        world.server.delete("tidbclusterautoscalers", "as1")
        world.pass_by(200)
        assert (world.clusters, world.lost) == (["db"], [])

    def test_one_that_names_another_cluster_now_is_kept_from_taking_its_stores_along(
        self, world: DrainingCluster
    ) -> None:
        with_group(world, 1)
        world.server.edit("tidbclusterautoscalers", "as1", {"spec": {"cluster": {"name": "other"}}})
        world.server.delete("tidbclusterautoscalers", "as1")
        world.pass_by(60)
        assert (world.clusters, world.tac()["metadata"]["name"]) == ([AUTO, "db"], "as1")
        world.server.edit("tidbclusterautoscalers", "as1", {"spec": {"cluster": {"name": "db"}}})
        world.pass_by(200)
        assert (world.clusters, world.lost) == (["db"], [])


class TestChangesOfMind:
    def test_a_group_that_is_wanted_again_keeps_its_store(self, world: DrainingCluster) -> None:
        with_group(world, 2)
        world.run.advance_by(700)
        world.planner.says(group(1))
        world.pass_by(20)
        assert world.pd.offline == [world.stores[1].id]
        world.planner.says(group(2))
        world.pass_by(10)
        assert (world.pd.offline, world.pd.evicting) == ([], set())
        assert world.tc()["spec"]["tikv"]["replicas"] == 2
        assert "autoscaler.tidb.pingcap.com/drain" not in world.tc()["metadata"]["annotations"]

    def test_a_component_that_is_no_longer_scaled_is_drained(self, world: DrainingCluster) -> None:
        with_group(world, 2)
        world.server.edit("tidbclusterautoscalers", "as1", {"spec": {"tikv": None}})
        world.pass_by(1800, every_s=20)
        assert (world.clusters, world.lost, world.pd.together) == (["db"], [], 1)
        assert world.pd.evicting == set()

"""Groups that the autoscaler did not make itself, as older operators did, or that stand beside a cluster before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.tidb.actuation.draining_clusters import DrainingCluster
from tests.tidb.autoscaled_clusters import AUTO, GROUP, LABELS, EmbeddedServer, FakeServer, group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden.reviewed_sentences import ReviewedSentences

LAST_CHANGE = "tidb.pingcap.com/last-autoscaling-timestamp"
FINALIZER = "autoscaler.tidb.pingcap.com/drain"


class TwoClusters(DrainingCluster):
    """`db` is as ever; `other` is another cluster, with a PD that is not asked here."""

    def other(self) -> None:
        spec = {**self.tc("db")["spec"], "tikv": {**self.tc("db")["spec"]["tikv"], "replicas": 0}}
        self.server.make("tidbclusters", {"metadata": {"name": "other"}, "spec": spec})

    def name(self, cluster: str) -> None:
        self.server.edit("tidbclusterautoscalers", "as1", {"spec": {"cluster": {"name": cluster}}})


@pytest.fixture(params=[FakeServer, EmbeddedServer], ids=["played", "embedded"])
def world(request: pytest.FixtureRequest) -> Iterator[TwoClusters]:
    with TwoClusters(request.param) as made:
        yield made.autoscaler().cluster()


def adopted(world: DrainingCluster, **tac: Any) -> None:
    """As TiDB Operator 1.1 made it."""
    metadata = world.tac()["metadata"]
    owner = {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbClusterAutoScaler",
        "name": "as1",
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    labels = {
        "tidb.pingcap.com/auto-instance": "as1",
        "tidb.pingcap.com/auto-component": "tikv",
        "tidb.pingcap.com/autoscaling-group": GROUP,
    }
    tikv = {
        "replicas": 1,
        "baseImage": "pingcap/tikv",
        "requests": {"cpu": "1", "memory": "2Gi", "storage": "10Gi"},
        "config": {"server": {"labels": LABELS}},
    }
    spec = {"version": "v8.5.0", "cluster": {"name": "db", "namespace": "prod"}, "tikv": tikv}
    body = {"metadata": {"name": AUTO, "ownerReferences": [owner], "labels": labels, **tac}, "spec": spec}
    world.server.make("tidbclusters", body)


class TestAdopted:
    def test_its_autoscaler_is_kept_though_nothing_is_to_be_done(self, world: TwoClusters) -> None:
        adopted(world)
        world.planner.says(group(1))
        world.once()
        assert world.tac()["metadata"]["finalizers"] == [FINALIZER]
        assert [path.rpartition("/")[2] for _, path in world.sent.wrote] == ["as1", "status"]

    def test_a_second_pass_writes_nothing(self, world: TwoClusters) -> None:
        adopted(world)
        world.planner.says(group(1))
        world.once()
        world.once(30)
        assert (world.sent.wrote, world.sent.events) == ([], [])

    @pytest.mark.parametrize("reported", [b"[", None], ids=["nonsense", "silence"])
    def test_whatever_a_planner_says(self, world: TwoClusters, reported: bytes | None) -> None:
        adopted(world)
        world.planner.says_body(reported)
        world.once()
        assert world.tac()["metadata"]["finalizers"] == [FINALIZER]

    def test_without_a_cluster_to_scale(self, world: TwoClusters) -> None:
        adopted(world)
        world.server.delete("tidbclusters", "db")
        world.once()
        assert world.tac()["metadata"]["finalizers"] == [FINALIZER]

    def test_not_in_a_dry_run(self, world: TwoClusters) -> None:
        adopted(world)
        world.settings = msgspec.structs.replace(world.settings, dry_run=True)
        world.once()
        assert world.sent.wrote == []

    def test_its_stores_leave_before_it_does(self, world: TwoClusters) -> None:
        adopted(world)
        world.planner.says(group(1))
        world.pass_by(20)
        world.server.delete("tidbclusterautoscalers", "as1")
        world.pass_by(120)
        assert (world.clusters, world.lost) == (["db"], [])


class TestOfAClusterBefore:
    def begin(self, world: TwoClusters) -> None:
        world.planner.says(group(2))
        world.once()
        world.operate()
        world.run.advance_by(700)
        world.planner.says()
        world.other()
        world.name("other")

    def test_its_stores_are_emptied_there_and_it_goes(self, world: TwoClusters) -> None:
        self.begin(world)
        world.pass_by(1800, every_s=20)
        assert (world.clusters, world.lost, world.pd.together) == (["db", "other"], [], 1)
        assert [breathing_store.state for breathing_store in world.stores] == [2, 2]
        assert world.tac()["status"].get("tikv", {}) == {}

    def test_it_is_reported_until_then(self, world: TwoClusters) -> None:
        self.begin(world)
        (result,) = world.once()
        (tikv,) = result.components
        assert [(held.key, held.reason.code) for held in tikv.decision.held if held.key == GROUP] == [
            (GROUP, "NotManaged")
        ]
        assert [act_done.cluster for act_done in tikv.done] == [AUTO]
        assert world.entry()["replicas"] == 2

    def test_so_it_is_while_it_waits_for_its_time(self, world: TwoClusters) -> None:
        self.begin(world)
        world.server.edit("tidbclusters", AUTO, {"metadata": {"annotations": {LAST_CHANGE: "2026-01-01T00:11:40Z"}}})
        (result,) = world.once()
        assert [held.reason.code for held in result.components[0].decision.held] == ["CoolingDown", "NotManaged"]
        world.once(730)
        assert (world.sent.wrote, world.sent.events) == ([], [])

    def test_a_group_of_the_same_name_is_made_beside_the_cluster_that_is_named(self, world: TwoClusters) -> None:
        self.begin(world)
        world.planner.says(group(1))
        world.once(1500)
        made = [cluster for cluster in world.clusters if cluster not in {AUTO, "db", "other"}]
        assert [world.tc(name)["metadata"]["labels"]["tidb.pingcap.com/base-tc"] for name in made] == ["other"]
        assert world.entry()["replicas"] == 1

    def test_without_the_cluster_it_stays_and_blocks(self, world: TwoClusters, reviewed: ReviewedSentences) -> None:
        self.begin(world)
        world.server.delete("tidbclusters", "db")
        world.pass_by(60)
        assert world.tc()["spec"]["tikv"]["replicas"] == 2
        assert world.condition("ScaleInBlocked") == ("True", "NotManaged")
        reviewed(world.message("ScaleInBlocked"))
        assert (world.sent.wrote, world.sent.events, world.lost) == ([], [], ["db-tikv-0", "db-tikv-1", "db-tikv-2"])

    def test_with_a_pd_of_another_it_stays_too(self, world: TwoClusters, reviewed: ReviewedSentences) -> None:
        self.begin(world)
        world.settings = msgspec.structs.replace(world.settings, pd="http://other-pd.prod:2379")
        world.pass_by(1800, every_s=60)
        assert world.tc()["spec"]["tikv"]["replicas"] == 2
        reviewed(world.message("ScaleInBlocked"))

    def test_a_name_that_no_cluster_has_moves_nothing(self, world: TwoClusters) -> None:
        self.begin(world)
        world.name("typo")
        world.pass_by(600, every_s=60)
        assert (world.tc()["spec"]["tikv"]["replicas"], world.pd.wrote) == (2, [])
        assert world.condition("Ready") == ("False", "ClusterNotFound")

    def test_what_a_namesake_elsewhere_may_have_made_is_left_to_it(self, world: TwoClusters) -> None:
        self.begin(world)
        uid = "11111111-2222-3333-4444-555555555555"
        (owner,) = world.tc()["metadata"]["ownerReferences"]
        world.server.edit("tidbclusters", AUTO, {"metadata": {"ownerReferences": [{**owner, "uid": uid}]}})
        world.pass_by(600, every_s=60)
        assert (world.tc()["spec"]["tikv"]["replicas"], world.pd.wrote) == (2, [])

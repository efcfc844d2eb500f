"""What keeps a pass from acting, and how it is reported: no cluster, mistakes, older autoscalers, brakes, strangers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.tidb.reporting.messages import build_sentences
from tests.tidb.autoscaled_clusters import (
    AUTO,
    GROUP,
    AutoscaledCluster,
    EmbeddedServer,
    FakeServer,
    group,
    homogeneous,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}


@pytest.fixture
def world() -> Iterator[AutoscaledCluster]:
    with AutoscaledCluster(FakeServer, drains_actively=True) as made:
        yield made


class TestWithoutACluster:
    def test_it_is_reported_and_is_no_error(self, world: AutoscaledCluster) -> None:
        (result,) = world.autoscaler().once()
        assert world.condition("Ready") == ("False", "ClusterNotFound")
        assert build_sentences(result) == ["prod/as1: nothing to do, TidbCluster prod/db does not exist"]
        assert world.planner.asked == []

    def test_again_nothing_is_written(self, world: AutoscaledCluster) -> None:
        world.autoscaler().once()
        world.once(30)
        assert (world.sent.wrote, world.sent.events) == ([], [])

    def test_it_goes_on_when_there_is_one(self, world: AutoscaledCluster) -> None:
        world.autoscaler().once()
        world.cluster().once(30)
        assert world.condition("Ready") == ("True", "Scaling")


class TestMistakes:
    def test_all_of_t17_in_one_object_write_no_cluster(self, world: AutoscaledCluster) -> None:
        tikv = {
            "rules": {"cpu": {"max_threshold": 2}, "storage": {"max_threshold": 0.8, "min_threshold": 0.8}},
            "resources": {"bare": {"cpu": "1", "memory": "1Gi"}},
        }
        tidb = {"rules": {"storage": {"max_threshold": 0.8, "resource_types": ["nope"]}}}
        world.autoscaler(tikv=tikv, tidb=tidb).cluster().once()
        assert world.clusters == ["db"]
        assert world.condition("Valid") == ("False", "Invalid")
        assert world.message("Valid").startswith("spec.tidb.rules.storage: unknown resource type storage")
        assert "and 6 more" in world.message("Valid")
        assert [(event["type"], event["reason"]) for event in world.sent.events] == [("Warning", "Invalid")]
        assert world.planner.asked == []

    def test_a_mended_one_is_valid(self, world: AutoscaledCluster) -> None:
        world.autoscaler(tikv={"rules": {"cpu": {"max_threshold": 2}}}).cluster().once()
        world.server.edit("tidbclusterautoscalers", "as1", {"spec": {"tikv": {"rules": RULES}}})
        world.once(30)
        assert world.condition("Valid") == ("True", "Valid")

    def test_the_stored_spec_stays_as_it_was_written(self, world: AutoscaledCluster) -> None:
        """T16: defaults are never written back."""
        world.autoscaler(tikv={"rules": {"cpu": {"max_threshold": 0.8}}}).cluster()
        before = world.tac()["spec"]
        world.once()
        assert world.tac()["spec"] == before
        assert {resource["resource_type"] for resource in world.planner.asked[0]["resources"]} == {
            "default_homogeneous_tikv",
            "default_tikv",
        }

    def test_resources_in_the_wrong_place_are_a_warning(self, world: AutoscaledCluster) -> None:
        world.autoscaler(resources={"big": {"cpu": "8"}}).cluster().once()
        assert world.condition("Valid") == ("True", "ValidWithWarnings")


class TestConfigurationsThatCannotBeRead:
    def test_no_group_is_made_and_the_field_is_named(self, world: AutoscaledCluster) -> None:
        world.autoscaler().cluster(config="[server\n").planner.says(group(1))
        world.operates = False
        (result,) = world.once()
        assert (world.clusters, result.failures) == (["db"], ())
        assert "finalizers" not in world.tac()["metadata"]
        assert world.condition("Ready") == ("True", "ScaleHeld")
        assert "spec.tikv.config: is not valid TOML" in world.message("Ready")

    def test_again_nothing_is_written(self, world: AutoscaledCluster) -> None:
        world.autoscaler().cluster(config="[server\n").planner.says(group(1))
        world.operates = False
        world.once()
        world.once(30)
        assert (world.sent.wrote, world.sent.events) == ([], [])

    def test_labels_that_are_no_table_are_one_too(self, world: AutoscaledCluster) -> None:
        world.autoscaler().cluster(config={"server": {"labels": "zone=a"}}).planner.says(group(1))
        world.operates = False
        world.once()
        assert "spec.tikv.config.server.labels: is not a table" in world.message("Ready")

    @pytest.mark.parametrize("whose", ["db", AUTO], ids=["of the cluster", "of the group"])
    def test_a_group_that_stands_is_left_with_its_own(self, world: AutoscaledCluster, whose: str) -> None:
        world.autoscaler().cluster().planner.says(group(1))
        world.once()
        world.operates = False
        world.server.edit("tidbclusters", whose, {"spec": {"tikv": {"config": "[server\n"}}})
        before = world.tc()
        (result,) = world.once(30)
        assert (world.tc(), result.failures) == (before, ())


class TestTwoAutoscalers:
    def test_the_older_one_acts(self, world: AutoscaledCluster) -> None:
        world.autoscaler("zzz").cluster()
        world.run.advance_by(60)
        world.autoscaler("aaa")
        world.planner.says(homogeneous(5))
        world.once(120)
        assert world.condition("Conflict", "aaa") == ("True", "OlderAutoscaler")
        assert world.condition("Conflict", "zzz") == ("False", "NoConflict")
        assert len(world.planner.asked) == 1

    def test_of_the_same_age_the_first_by_name(self, world: AutoscaledCluster) -> None:
        world.autoscaler("b").autoscaler("a").cluster().once()
        assert world.condition("Conflict", "a")[0] == "False"
        assert world.condition("Conflict", "b")[0] == "True"

    def test_other_components_do_not_collide(self, world: AutoscaledCluster) -> None:
        world.autoscaler("a").autoscaler("b", tikv=None, tidb={"rules": RULES}).cluster().once()
        assert world.condition("Conflict", "b")[0] == "False"
        assert [request["rules"][0]["component"] for request in world.planner.asked] == ["tikv", "tidb"]


class TestOtherNamespaces:
    def test_a_cluster_elsewhere_is_not_touched(self, world: AutoscaledCluster) -> None:
        world.cluster()
        body = {
            "metadata": {"name": "as1", "namespace": "evil"},
            "spec": {"cluster": {"name": "db", "namespace": "prod"}, "tikv": {"rules": RULES}},
        }
        made = world.server
        assert isinstance(made, FakeServer)
        made.played.put("tidbclusterautoscalers", body)
        world.planner.says(homogeneous(9))
        (result,) = world.once()
        assert [field_problem.code for field_problem in result.problems] == ["V16"]
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 3

    def test_nor_can_it_stand_in_the_way_of_those_at_home(self, world: AutoscaledCluster) -> None:
        made = world.server
        assert isinstance(made, FakeServer)
        body = {
            "metadata": {"name": "as0", "namespace": "evil", "creationTimestamp": "2020-01-01T00:00:00Z"},
            "spec": {"cluster": {"name": "db", "namespace": "prod"}, "tikv": {"rules": RULES}},
        }
        made.played.put("tidbclusterautoscalers", body)
        world.autoscaler().cluster()
        world.planner.says(homogeneous(5))
        world.once()
        assert world.condition("Conflict") == ("False", "NoConflict")
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 5

    def test_nor_remove_what_a_namesake_made(self, world: AutoscaledCluster) -> None:
        world.autoscaler().cluster()
        world.planner.says(group(1))
        world.once()
        made = world.server
        assert isinstance(made, FakeServer)
        body = {
            "metadata": {
                "name": "as1",
                "namespace": "evil",
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["autoscaler.tidb.pingcap.com/drain"],
            },
            "spec": {"cluster": {"name": "db", "namespace": "prod"}},
        }
        made.played.put("tidbclusterautoscalers", body)
        world.once(60)
        assert world.clusters == [AUTO, "db"]
        assert world.tc()["spec"]["tikv"]["replicas"] == 1


class TestBrakes:
    @pytest.mark.parametrize("kind", ["tidbclusterautoscalers", "tidbclusters"])
    def test_a_paused_object_is_left_alone(self, world: AutoscaledCluster, kind: str) -> None:
        world.autoscaler().cluster()
        name = "as1" if kind == "tidbclusterautoscalers" else "db"
        world.server.edit(kind, name, {"metadata": {"annotations": {"plimsoll.io/paused": "night shift"}}})
        world.planner.says(group(1))
        (result,) = world.once()
        assert world.clusters == ["db"]
        assert world.condition("Ready") == ("False", "Paused")
        assert build_sentences(result) == [f"prod/as1 tikv: {GROUP} created with 1, but not now: paused: night shift"]

    def test_the_brake_of_all_controllers(self) -> None:
        with AutoscaledCluster(EmbeddedServer) as world:
            assert isinstance(world.server, EmbeddedServer)
            annotations = {"plimsoll.io/paused": "true"}
            body = {"metadata": {"name": "plimsoll", "annotations": annotations}}
            world.server.world.made("/api/v1/namespaces/kube-system/configmaps", body)
            world.autoscaler().cluster()
            world.planner.says(homogeneous(9))
            world.once()
            assert world.tc("db")["spec"]["tikv"]["replicas"] == 3

    def test_a_dry_run_writes_nothing_at_all(self) -> None:
        with AutoscaledCluster(FakeServer, dry_run=True) as world:
            world.autoscaler().cluster()
            world.planner.says(group(1))
            (result,) = world.once()
            assert (world.sent.wrote, world.sent.events) == ([], [])
            assert [type(act_done.act).__name__ for act_done in result.done] == ["CreateGroup"]

    def test_pausing_runs_no_clock(self, world: AutoscaledCluster) -> None:
        world.autoscaler().cluster()
        paused: dict[str, Any] = {"metadata": {"annotations": {"plimsoll.io/paused": "true"}}}
        world.server.edit("tidbclusters", "db", paused)
        world.planner.says(homogeneous(6))
        world.once()
        paused["metadata"]["annotations"]["plimsoll.io/paused"] = None
        world.server.edit("tidbclusters", "db", paused)
        world.once(30)
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 6


class TestComponents:
    def test_tidb_is_asked_about_first(self, world: AutoscaledCluster) -> None:
        world.autoscaler(tidb={"rules": RULES}).cluster().once()
        assert [request["rules"][0]["component"] for request in world.planner.asked] == ["tidb", "tikv"]

    def test_trouble_with_one_does_not_stop_the_other(self, world: AutoscaledCluster) -> None:
        world.autoscaler(tidb={"rules": RULES}).cluster()
        # The same answer to both questions: wrong about the one, right about the other.
        world.planner.says(homogeneous(5))
        world.once()
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 5
        assert world.condition("PlannerReachable") == ("False", "BadAnswer")

    def test_a_component_that_is_no_longer_named_loses_its_groups(self, world: AutoscaledCluster) -> None:
        world.autoscaler().cluster()
        world.planner.says(group(1))
        world.once()
        world.server.edit("tidbclusterautoscalers", "as1", {"spec": {"tikv": None, "tidb": {"rules": RULES}}})
        world.planner.says()
        for number in range(4):
            world.once(700 + 600 * number)
        assert world.clusters == ["db"]
        assert "tikv" not in world.tac()["status"] or not world.tac()["status"]["tikv"]

    def test_groups_follow_the_version_of_the_cluster(self, world: AutoscaledCluster) -> None:
        world.autoscaler().cluster()
        world.planner.says(group(1))
        world.once()
        world.server.edit("tidbclusters", "db", {"spec": {"version": "v8.5.1"}})
        world.once(30)
        assert world.tc()["spec"]["version"] == "v8.5.1"
        assert world.tc()["spec"]["tikv"]["replicas"] == 1
        world.once(60)
        assert world.sent.wrote == []

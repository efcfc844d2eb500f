"""T19 to T23 of the specification, through the same pass that `plimsoll run tidb --once` makes, on two servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tidb.autoscaled_clusters import (
    AUTO,
    GROUP,
    LABELS,
    AutoscaledCluster,
    EmbeddedServer,
    FakeServer,
    group,
    homogeneous,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=[FakeServer, EmbeddedServer], ids=["played", "embedded"])
def world(request: pytest.FixtureRequest) -> Iterator[AutoscaledCluster]:
    with AutoscaledCluster(request.param, drains_actively=True) as made:
        yield made.autoscaler().cluster()


class TestT19Create:
    def test_a_group_becomes_a_cluster(self, world: AutoscaledCluster) -> None:
        world.planner.says(group(1))
        world.once()
        made = world.tc()
        assert made["spec"]["cluster"] == {"namespace": "prod", "name": "db"}
        assert {"pd", "tidb"}.isdisjoint(made["spec"])
        tikv = made["spec"]["tikv"]
        assert tikv["replicas"] == 1
        assert {key: str(value) for key, value in tikv["requests"].items()} == {
            "cpu": "1",
            "memory": "2Gi",
            "storage": "10Gi",
        }
        assert {key: str(value) for key, value in tikv["limits"].items()} == {"cpu": "1", "memory": "2Gi"}
        assert tikv["config"]["server"]["labels"] == LABELS
        assert made["metadata"]["labels"] == {
            "tidb.pingcap.com/base-tc": "db",
            "tidb.pingcap.com/auto-instance": "as1",
            "tidb.pingcap.com/auto-component": "tikv",
            "tidb.pingcap.com/autoscaling-group": GROUP,
            "app.kubernetes.io/auto-instance": "as1",
            "app.kubernetes.io/auto-component": "tikv",
        }
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("TidbClusterAutoScaler", "as1")
        assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, True)
        assert owner["uid"] == world.tac()["metadata"]["uid"]

    def test_its_clock_starts_and_the_autoscaler_is_kept(self, world: AutoscaledCluster) -> None:
        world.planner.says(group(1))
        world.once()
        assert world.entry()["lastAutoScalingTimestamp"] == "2026-01-01T00:00:00Z"
        assert world.entry()["replicas"] == 1
        assert world.tac()["metadata"]["finalizers"] == ["autoscaler.tidb.pingcap.com/drain"]
        assert world.condition("Ready") == ("True", "Scaling")
        assert world.condition("PlannerReachable") == ("True", "Answered")

    def test_a_second_pass_writes_nothing(self, world: AutoscaledCluster) -> None:
        world.planner.says(group(1))
        world.once()
        assert [event["reason"] for event in world.sent.events] == ["ScaledOut"]
        world.once(30)
        assert world.sent.wrote == []
        assert world.sent.events == []

    def test_nodes_are_counted_for_the_planner(self, world: AutoscaledCluster) -> None:
        world.once()
        assert [question["node_count"] for question in world.planner.asked] == [10]


class TestT20CoolDown:
    def test_out_after_300_seconds_in_after_500(self, world: AutoscaledCluster) -> None:
        replicas = {}
        for at_s, count in [(0, 1), (299, 2), (300, 2), (799, 1), (800, 1)]:
            world.planner.says(group(count))
            world.once(at_s)
            replicas[at_s] = world.tc()["spec"]["tikv"]["replicas"], world.entry()["lastAutoScalingTimestamp"][11:19]
        assert replicas == {
            0: (1, "00:00:00"),
            299: (1, "00:00:00"),
            300: (2, "00:05:00"),
            799: (2, "00:05:00"),
            800: (1, "00:13:20"),
        }

    def test_waiting_is_reported_once(self, world: AutoscaledCluster) -> None:
        world.planner.says(group(1))
        world.once()
        world.planner.says(group(2))
        world.once(30)
        assert [event["reason"] for event in world.sent.events] == ["ScaleHeld"]
        world.once(60)
        assert (world.sent.wrote, world.sent.events) == ([], [])


class TestT21HomogeneousApply:
    def test_only_the_replicas_of_the_component_change(self, world: AutoscaledCluster) -> None:
        before = world.tc("db")
        world.planner.says(homogeneous(6))
        world.once()
        after = world.tc("db")
        assert after["spec"]["tikv"].pop("replicas") == 6
        assert before["spec"]["tikv"].pop("replicas") == 3
        assert after["spec"] == before["spec"]
        assert after["metadata"].get("annotations") == before["metadata"].get("annotations")
        assert world.entry("default_homogeneous_tikv")["lastAutoScalingTimestamp"] == "2026-01-01T00:00:00Z"

    def test_it_never_falls(self, world: AutoscaledCluster) -> None:
        world.planner.says(homogeneous(6))
        world.once()
        world.planner.says(homogeneous(2))
        world.once(3600)
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 6


class TestT22NullAnswer:
    @pytest.fixture(autouse=True)
    def _group(self, world: AutoscaledCluster) -> None:
        world.planner.says(group(1))
        world.once()

    def test_one_null_is_not_enough(self, world: AutoscaledCluster) -> None:
        world.planner.says_body(b"null")
        world.once(700)
        assert world.tc()["spec"]["tikv"]["replicas"] == 1
        assert world.entry()["omittedCount"] == 1

    def test_a_list_in_between_starts_anew(self, world: AutoscaledCluster) -> None:
        world.planner.says_body(b"null")
        world.once(700)
        world.planner.says(group(1))
        world.once(730)
        assert "omittedCount" not in world.entry()
        world.planner.says_body(b"null")
        world.once(760)
        assert world.tc()["spec"]["tikv"]["replicas"] == 1

    def test_an_answer_that_is_refused_counts_for_nothing(self, world: AutoscaledCluster) -> None:
        world.planner.says_body(b"null")
        world.once(700)
        world.planner.says_body(b"<html>")
        world.once(730)
        assert world.entry()["omittedCount"] == 1

    def test_two_in_a_row_let_it_drain(self, world: AutoscaledCluster) -> None:
        world.planner.says_body(b"null")
        world.once(700)
        world.once(730)
        assert "DELETE /store/4" in world.pd.wrote
        assert world.tc()["spec"]["tikv"]["replicas"] == 0
        for at_s in (760, 790, 820):
            world.once(at_s)
        assert world.clusters == ["db"]
        assert GROUP not in world.tac()["status"].get("tikv", {})


BAD_ANSWERS = {
    "html": (200, b"<html><body>welcome</body></html>"),
    "negative count": (200, b'[{"component":"tikv","count":-1,"resource_type":"s","labels":{"group":"g"}}]'),
    "fraction": (200, b'[{"component":"tikv","count":1.5,"resource_type":"s","labels":{"group":"g"}}]'),
    "other component": (200, b'[{"component":"tidb","count":1,"resource_type":"s","labels":{"group":"g"}}]'),
    "group twice": (
        200,
        b"[%s,%s]" % ((b'{"component":"tikv","count":1,"resource_type":"s","labels":{"group":"g"}}',) * 2),
    ),
    "no group": (200, b'[{"component":"tikv","count":1,"resource_type":"storage_small","labels":{}}]'),
    "not an array": (200, b"{}"),
    "huge": (200, b"[" + b" " * 2**20 + b"]"),
    "huge count": (200, b'[{"component":"tikv","count":2147483648,"resource_type":"s","labels":{"group":"g"}}]'),
    "trailing comma": (200, b'[{"component":"tikv","count":1,"resource_type":"s","labels":{"group":"g"}},]'),
    "key twice": (200, b'[{"component":"tikv","count":1,"count":2,"resource_type":"s","labels":{"group":"g"}}]'),
    "redirect": (302, b""),
    "refused": (400, b'"bad strategy"'),
}


class TestT23BadAnswers:
    @pytest.mark.parametrize("case", BAD_ANSWERS)
    def test_nothing_changes_and_it_is_reported(self, world: AutoscaledCluster, case: str) -> None:
        world.planner.says(group(1))
        world.once()
        before = [world.tc(name)["spec"] for name in world.clusters]
        status, body = BAD_ANSWERS[case]
        world.planner.says_body(body, status)
        world.once(700)
        assert [world.tc(name)["spec"] for name in world.clusters] == before
        assert world.condition("PlannerReachable")[0] == "False"
        assert world.condition("Ready")[0] == "False"
        assert world.condition("Valid")[0] == "True"

    def test_all_in_turn_and_then_a_good_one(self, world: AutoscaledCluster) -> None:
        for number, (status, body) in enumerate(BAD_ANSWERS.values()):
            world.planner.says_body(body, status)
            world.once(30 * number)
            assert world.clusters == ["db"]
        world.planner.says(group(1))
        world.once(1000)
        assert world.clusters == [AUTO, "db"]
        assert world.condition("PlannerReachable") == ("True", "Answered")

    def test_no_server_answers(self, world: AutoscaledCluster) -> None:
        world.planner.says_body(None)
        world.once()
        assert world.condition("PlannerReachable") == ("False", "PlannerUnreachable")
        assert world.condition("MetricsAvailable") == ("Unknown", "NotPlanned")

    def test_too_little_is_known(self, world: AutoscaledCluster) -> None:
        world.planner.says_body(b'{"error":"insufficient_metrics","detail":"1 of 3"}', 500)
        world.once()
        assert world.condition("MetricsAvailable") == ("False", "InsufficientMetrics")

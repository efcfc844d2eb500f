"""Wrong and absurd objects: a condition names the field, nothing is removed, and the rest of the cluster goes on.

The definitions are without schemas: an object may be older than the definition that would refuse it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.kafka.controllers.operator_bench import API, BOTH_MODES, OperatorBench
from tests.kafka.controllers.pod_set_cluster import SETS
from tests.kafka.controllers.test_k11_k31_automatic_rebalancing import ADD, make_settings, scale_up
from tests.objects.crds.kafka_definitions import list_our_definitions


def list_open_definitions() -> list[dict[str, Any]]:
    """Ours, without what they check."""
    found = []
    for definition in list_our_definitions():
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        versions = [
            {**version, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
            for version in definition["spec"]["versions"]
        ]
        found.append({**definition, "spec": {**definition["spec"], "versions": versions}})
    return found


OPEN_DEFINITIONS = list_open_definitions()


def list_messages(bench: OperatorBench) -> str:
    return " ".join(condition.get("message", "") for condition in bench.status_of_kafka["conditions"])


@pytest.mark.parametrize(
    ("modes", "field"),
    [
        ({"modes": ["add-brokers"]}, "spec.cruiseControl.autoRebalance"),
        ([], "spec.cruiseControl.autoRebalance"),
        ([{"mode": "add-brokers"}, {"mode": "add-brokers"}], "spec.cruiseControl.autoRebalance[1].mode"),
        ([{"mode": "grow"}, {"mode": "add-brokers"}], "spec.cruiseControl.autoRebalance[0].mode"),
        ([{"mode": "add-brokers", "goals": ["RackAwareGoal"]}], "spec.cruiseControl.autoRebalance[0].goals"),
        ([{"mode": "add-brokers", "settings": 7}], "spec.cruiseControl.autoRebalance[0].settings"),
        ([["add-brokers"]], "spec.cruiseControl.autoRebalance[0]"),
        ("add-brokers", "spec.cruiseControl.autoRebalance"),
        ([{"mode": "add-brokers"}] * 10_000, "spec.cruiseControl.autoRebalance"),
    ],
    ids=["object", "empty", "twice", "unknown", "inline", "settings", "list", "text", "many"],
)
def test_a_wrong_configuration_is_named_and_the_cluster_scales_all_the_same(modes: Any, field: str):
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster(modes=modes)
        assert "Ready" in bench.conditions
        assert field in list_messages(bench)
        assert len(bench.status_of_kafka["conditions"]) <= 21
        bench.scale(4)
        bench.step()
        assert len(bench.live) == 4


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"goals": ["NoSuchGoal"]}, "spec.goals"),
        ({"excludedTopics": "("}, "spec.excludedTopics"),
        ({"replicationThrottle": -1}, "spec.replicationThrottle"),
        ({"concurrentLeaderMovements": 10**30}, "spec.concurrentLeaderMovements"),
        ({"goals": "RackAwareGoal"}, "spec.goals"),
        ("settings", "spec"),
    ],
    ids=["goal", "pattern", "negative", "huge", "type", "text"],
)
def test_invalid_settings_hold_the_rebalance(spec: Any, field: str):
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        make_settings(bench)
        bench.ask("DELETE", f"{API}/kafkarebalancesettings/s")
        body = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalanceSettings", "metadata": {"name": "s"}}
        bench.made(f"{API}/kafkarebalancesettings", {**body, "spec": spec})
        bench.make_cluster(modes=[{"mode": "add-brokers", "settings": "s"}])
        scale_up(bench)
        assert bench.rebalances == {}
        assert (bench.state, bench.lists) == ("NotReady", ([3], []))
        assert bench.conditions["Warning"] == ["AutoRebalanceSettingsInvalid"]
        assert "kafkarebalancesettings/kafka/s" in list_messages(bench)
        assert f"{field}:" in list_messages(bench)


@pytest.mark.parametrize(
    ("kind", "reference"), [("KafkaRebalance", "template"), ("KafkaRebalanceSettings", "settings")]
)
def test_a_mode_and_brokers_in_settings_are_ignored_with_a_warning(kind: str, reference: str):
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        make_settings(bench, kind=kind)
        spec = {"mode": "remove-brokers", "brokers": [0, 1]}
        bench.patch(f"{API}/{kind.lower().removesuffix('s')}s/s", {"spec": spec})
        bench.make_cluster(
            modes=[{"mode": mode, reference: {"name": "s"}} for mode in ("add-brokers", "remove-brokers")]
        )
        for field in ("mode", "brokers"):
            message = f"{kind.lower()}/kafka/s: spec.{field}: has no meaning in settings and is ignored"
            assert list_messages(bench).count(message) == 1
        scale_up(bench)
        assert bench.rebalances[ADD]["spec"]["mode"] == "add-brokers"
        assert "spec.brokers: has no meaning in settings" in list_messages(bench)


def test_a_template_needs_its_annotation():
    with OperatorBench() as bench:
        make_settings(bench, kind="KafkaRebalance")
        bench.annotate("kafkarebalances", "s", rebalance_template=None)
        bench.make_cluster(modes=[{"mode": "add-brokers", "template": {"name": "s"}}])
        scale_up(bench)
        assert ADD not in bench.rebalances
        assert bench.conditions["Warning"] == ["AutoRebalanceSettingsInvalid"]
        assert "strimzi.io/rebalance-template" in list_messages(bench)


@pytest.mark.parametrize(
    ("ranges", "expected", "problem"),
    [
        ("[5-3]", [5], "5-3 ends before it begins, so 5 is taken first"),
        ("[0-1000000000]", [3], "0-1000000000 has 1000000001 ids, and a pool has at most 10000 nodes"),
        ("[7-9, 8-12]", [7], "7-9 and 8-12 overlap, and each id is taken once"),
        ("[x]", [3], "is ignored"),
        ("[3", [3], "is ignored"),
        ("[-1]", [3], "is ignored"),
        ("[99999999999999999999]", [3], "is ignored"),
    ],
)
def test_ranges_of_node_ids(ranges: str, expected: list[int], problem: str):
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(4, next_node_ids=ranges)
        bench.step()
        assert bench.lists == (expected, [])
        assert "metadata.annotations[strimzi.io/next-node-ids]" in list_messages(bench)
        assert problem in list_messages(bench)
        (condition,) = bench.read_pool()["status"]["conditions"]
        assert problem in condition["message"]


def test_usual_ranges_of_node_ids_have_no_condition():
    with OperatorBench() as bench:
        bench.make_cluster(pools=("p", "q"))
        bench.scale(4, next_node_ids="[20-29, 31]")
        bench.scale(4, "q", next_node_ids="[30, 32-40]")
        bench.step()
        assert "node-ids" not in list_messages(bench)


def test_two_pools_with_one_range_share_it_and_say_so():
    with OperatorBench() as bench:
        bench.make_cluster(pools=("p", "q"))
        for pool in ("p", "q"):
            bench.scale(4, pool, next_node_ids="[20-29]")
        bench.step()
        assert bench.lists == ([20, 21], [])
        message = "20-29 overlaps 20-29 of pool p, which is served first"
        assert f"kafkanodepool/kafka/q: metadata.annotations[strimzi.io/next-node-ids]: {message}" in list_messages(
            bench
        )
        assert not bench.read_pool()["status"].get("conditions")


def test_two_pools_with_one_id_change_nothing():
    with OperatorBench() as bench:
        bench.make_cluster(pools=("p", "q"))
        ids = bench.pool_ids("q")
        bench.patch(f"{API}/kafkanodepools/q/status", {"status": {"nodeIds": [*ids[:-1], 0]}})
        before = bench.live
        bench.scale(2)
        bench.scale(5, "q")
        bench.step()
        assert bench.live == before
        assert "NotReady" in bench.conditions
        assert "status.nodeIds" in list_messages(bench)


@pytest.mark.parametrize("replicas", [-1, 10**9, 10**30])
def test_an_absurd_number_of_nodes_changes_nothing(replicas: int):
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster()
        before = bench.live
        bench.scale(replicas)
        bench.step()
        assert bench.live == before
        assert "NotReady" in bench.conditions
        assert "kafkanodepool/kafka/p" in list_messages(bench)


@pytest.mark.parametrize("pods", [[{"metadata": {}}], ["c-p-0"], [None], [{"metadata": {"name": "c-p-0"}, "spec": 5}]])
def test_a_pod_set_that_cannot_be_read_removes_nothing(pods: list[Any]):
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster(modes=BOTH_MODES)
        before = bench.live
        bench.patch(f"{SETS}/c-p", {"spec": {"pods": pods}})
        bench.scale(2)
        bench.step(2)
        assert bench.live == before
        assert "NotReady" in bench.conditions
        assert "strimzipodset/kafka/c-p" in list_messages(bench)


@pytest.mark.parametrize("status", [{"nodeIds": "0"}, {"nodeIds": [0, 1, 2], "replicas": "x"}])
def test_a_pool_status_that_cannot_be_decoded_removes_nothing(status: dict[str, Any]):
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster()
        before = bench.live
        bench.patch(f"{API}/kafkanodepools/p/status", {"status": status})
        bench.scale(2)
        bench.step(2)
        assert bench.live == before
        assert "NotReady" in bench.conditions
        assert "kafkanodepool/kafka/p" in list_messages(bench)


@pytest.mark.parametrize(
    "spec",
    [{"mode": "add-brokers", "brokers": ["3"]}, {"mode": "add-brokers", "brokers": list(range(100_000))}, [], "x"],
    ids=["strings", "many", "list", "text"],
)
def test_an_automatic_rebalance_that_a_user_edits_is_restored(spec: Any):
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster()
        scale_up(bench)
        bench.patch(f"{API}/kafkarebalances/{ADD}", {"spec": spec})
        bench.run_rebalances()
        bench.step()
        bench.run_rebalances()
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.count_replicas(3) >= 20

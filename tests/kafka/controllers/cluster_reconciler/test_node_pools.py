"""Node pools that are deleted, lose a role, or are missing (docs/design/kafka.md 4.3 and D18)."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from plimsoll.kafka.controllers.cluster_actuator import ClusterActuator
from plimsoll.kafka.settings import KafkaSettings
from tests.kafka.controllers.operator_bench import API, OperatorBench
from tests.kafka.controllers.pod_set_cluster import SETS
from tests.kafka.controllers.swept_bench import SweptBench
from tests.kafka.controllers.test_bad_input import OPEN_DEFINITIONS, list_messages

FINALIZER = "plimsoll.io/node-pool"
POOLS = f"{API}/kafkanodepools"


def make_two_pools(bench: OperatorBench, **more: Any) -> None:
    """Pools p (0 to 2) and q (10 to 12); q holds replicas too."""
    bench.make_cluster(pools=("p", "q"), **more)
    bench.brokers.create_topic("more", [[10, 0, 1], [11, 1, 2], [12, 2, 0]], size_bytes=1_000_000)


def list_pool_conditions(bench: OperatorBench, name: str = "p") -> list[tuple[str, str]]:
    conditions = bench.read_pool(name)["status"].get("conditions", [])
    return [(condition["type"], condition["reason"]) for condition in conditions]


# ---- roles


def test_a_pool_whose_brokers_hold_replicas_keeps_the_broker_role():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.patch(f"{POOLS}/p", {"spec": {"roles": ["controller"]}})
        bench.step()
        assert bench.conditions == {"Ready": [""], "Warning": ["ScaleDownPreventionCheck"]}
        assert "pool p keeps the role broker: brokers 0, 1, 2 hold replicas" in list_messages(bench)
        assert bench.read_pool()["status"]["roles"] == ["broker"]
        assert list_pool_conditions(bench) == [("Warning", "ScaleDownPreventionCheck")]
        assert bench.read_pool()["spec"]["roles"] == ["controller"], "the spec is the user's"
        assert len(bench.live) == 3
        del bench.brokers.catch_up().topics["orders"]
        bench.step()
        assert bench.conditions == {"Ready": [""]}
        assert bench.read_pool()["status"]["roles"] == ["controller"]
        assert list_pool_conditions(bench) == []


def test_a_mistake_in_a_pool_is_a_condition_of_the_pool():
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster(pools=("p", "q"))
        bench.scale(-1)
        bench.step()
        before = bench.read_pool()
        assert before["status"]["nodeIds"] == [0, 1, 2]
        assert list_pool_conditions(bench) == [("NotReady", "InvalidResourceException")]
        assert list_pool_conditions(bench, "q") == []
        bench.run.advance_by(60)
        bench.step(2)
        assert bench.read_pool() == before, "not a single write"
        bench.scale(3)
        bench.step()
        assert list_pool_conditions(bench) == []


def test_a_pool_that_keeps_its_role_scales_up_with_brokers():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.patch(f"{POOLS}/p", {"spec": {"roles": ["controller"], "replicas": 4}})
        bench.step()
        assert bench.lists == ([3], [])
        bench.make_ready(3)
        assert 3 in bench.brokers.catch_up().brokers


@pytest.mark.usefixtures("engine")
def test_pods_that_run_as_brokers_are_checked_whatever_their_pool_has_become():
    with SweptBench() as bench:
        bench.make_cluster(topic=False)
        bench.patch(f"{POOLS}/p", {"spec": {"roles": ["controller"]}})
        bench.step()
        assert bench.read_pool()["status"]["roles"] == ["controller"]
        bench.brokers.create_topic("late", [[0, 1], [1, 2]], size_bytes=1_000_000)
        bench.scale(2)
        bench.step()
        assert len(bench.live) == 3
        assert bench.lists == ([], [2])
        bench.settle()
        assert bench.live == ["c-p-0", "c-p-1"]


# ---- deletion


@pytest.mark.usefixtures("engine")
def test_a_deleted_pool_goes_when_its_brokers_are_empty():
    with SweptBench() as bench:
        make_two_pools(bench)
        assert bench.read_pool("q")["metadata"]["finalizers"] == [FINALIZER]
        bench.delete(f"{POOLS}/q")
        bench.step()
        assert "deletionTimestamp" in bench.read_pool("q")["metadata"]
        assert bench.lists == ([], [10, 11, 12])
        assert len(bench.live) == 6
        assert bench.run_to_the_end()[-1] == "Ready"
        bench.step()
        assert bench.read_pool("q") == {}
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]
        assert bench.ask("GET", f"{SETS}/c-q").status == 404
        assert bench.conditions == {"Ready": [""]}
        assert bench.read_pool("p")["metadata"]["finalizers"] == [FINALIZER]
        pool = Ref(kind="kafkanodepool", namespace="kafka", name="q")
        entries = bench.run.run_until(bench.journal.list_entries(Query(ref=pool)))
        reasons = [str(action.reason) for entry in entries for action in entry.plan.actions]
        assert reasons[0].startswith("c-q-10, c-q-11, c-q-12 leave: kafkanodepool/kafka/q is being deleted, and no ")


def test_a_deleted_pool_without_the_feature_stays_with_a_warning():
    with SweptBench() as bench:
        make_two_pools(bench, modes=None)
        bench.delete(f"{POOLS}/q")
        bench.step()
        assert len(bench.live) == 6
        assert bench.conditions == {"Ready": [""], "Warning": ["ScaleDownPreventionCheck"]}
        assert "pool q, which is being deleted, keeps 3 nodes: brokers 10, 11, 12 hold" in list_messages(bench)
        del bench.brokers.catch_up().topics["more"]
        bench.step(2)
        assert bench.read_pool("q") == {}
        assert len(bench.live) == 3


def test_a_pool_without_our_finalizer_that_is_gone_keeps_its_pods():
    with OperatorBench() as bench:
        make_two_pools(bench)
        bench.patch(f"{POOLS}/q", {"metadata": {"finalizers": []}})
        bench.delete(f"{POOLS}/q")
        bench.step()
        assert len(bench.live) == 6
        assert bench.conditions == {"Ready": [""], "Warning": ["KafkaNodePoolMissing"]}


@pytest.mark.parametrize("is_kafka_first", [True, False])
def test_pools_are_let_go_with_their_kafka(is_kafka_first: bool):
    with OperatorBench() as bench:
        bench.make_cluster()
        urls = [f"{API}/kafkas/c", f"{POOLS}/p"]
        for url in urls if is_kafka_first else reversed(urls):
            bench.delete(url)
            bench.step()
        assert bench.read_pool() == {}


def test_a_pool_that_belongs_to_no_cluster_is_let_go():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.patch(f"{POOLS}/p", {"metadata": {"labels": {"strimzi.io/cluster": None}}})
        bench.delete(f"{POOLS}/p")
        bench.run.run_until(bench.parts.clusters.run("kafka", ""))
        assert bench.read_pool() == {}
        bench.step()
        assert len(bench.live) == 3


def test_a_dry_run_changes_neither_pools_nor_rebalances_of_a_kafka_that_is_gone():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(4)
        bench.step()
        bench.make_ready(3)
        bench.step()
        bench.settings = KafkaSettings(dry_run=True)
        bench.start_operator()
        rebalances = bench.rebalances
        assert rebalances
        bench.patch(f"{API}/kafkarebalances/{next(iter(rebalances))}", {"metadata": {"ownerReferences": []}})
        before = bench.rebalances, bench.read_pool()
        bench.delete(f"{API}/kafkas/c")
        bench.step()
        assert (bench.rebalances, bench.read_pool()) == before


def test_a_pool_whose_kafka_does_not_exist_says_so():
    with OperatorBench() as bench:
        bench.make_pool()
        for _ in range(2):
            bench.step()
            (condition,) = bench.read_pool()["status"]["conditions"]
            assert (condition["type"], condition["reason"]) == ("Warning", "KafkaNotFound")
            assert condition["message"] == (
                "metadata.labels[strimzi.io/cluster]: kafka/kafka/c does not exist: the pool has no nodes until it does"
            )
        version = bench.read_pool()["metadata"]["resourceVersion"]
        bench.step()
        assert bench.read_pool()["metadata"]["resourceVersion"] == version, "a quiet reconcile writes nothing"
        bench.make_kafka()
        bench.step()
        assert list_pool_conditions(bench) == []
        assert bench.pool_ids() == [0, 1, 2]


def test_a_pool_without_the_label_of_a_cluster_says_so_until_it_has_it():
    with OperatorBench() as bench:
        bench.make_kafka()
        bench.make_pool()
        bench.patch(f"{POOLS}/p", {"metadata": {"labels": None}})
        for _ in range(2):
            bench.run.run_until(bench.parts.clusters.run("kafka", ""))
            (condition,) = bench.read_pool()["status"]["conditions"]
            assert (condition["type"], condition["reason"]) == ("Warning", "KafkaNotFound")
            assert condition["message"] == (
                "metadata.labels[strimzi.io/cluster]: is missing: the pool belongs to no Kafka until it names one"
            )
        bench.patch(f"{POOLS}/p", {"metadata": {"labels": {"strimzi.io/cluster": "c"}}})
        bench.step()
        assert list_pool_conditions(bench) == []
        assert bench.pool_ids() == [0, 1, 2]


# ---- no pool at all


def test_a_kafka_without_pools_and_without_replicas_is_not_ready():
    with OperatorBench() as bench:
        bench.make_kafka()
        bench.step()
        assert bench.conditions == {"NotReady": ["InvalidResourceException"]}
        assert "KafkaNodePool" in list_messages(bench)
        assert "strimzi.io/cluster: c" in list_messages(bench)
        assert "spec.kafka.replicas" in list_messages(bench)
        bench.make_pool()
        bench.step()
        assert bench.conditions == {"NotReady": ["Creating"]}
        bench.make_all_ready()
        bench.step()
        assert bench.conditions == {"Ready": [""]}


# ---- a failed reconcile


def test_a_failed_reconcile_keeps_the_warnings_of_the_last_good_one():
    with OperatorBench() as bench:
        bench.make_cluster(modes=None)
        bench.scale(2)
        bench.step()
        before = bench.status_of_kafka["conditions"]
        assert bench.conditions == {"Ready": [""], "Warning": ["ScaleDownPreventionCheck"]}
        bench.run.advance_by(60)
        for broker in range(3):
            bench.brokers.kill_broker(broker)
        bench.step()
        assert bench.conditions == {"NotReady": ["KafkaUnavailable"], "Warning": ["ScaleDownPreventionCheck"]}
        assert bench.status_of_kafka["conditions"][1] == before[1], "with its time"


def test_a_failed_reconcile_keeps_no_warning_of_an_object_that_was_mended():
    with OperatorBench() as bench:
        bench.make_cluster(modes=None)
        bench.scale(2, next_node_ids="[x]")
        bench.step()
        assert sorted(bench.conditions["Warning"]) == ["NodeIdRangesInvalid", "ScaleDownPreventionCheck"]
        for broker in range(3):
            bench.brokers.kill_broker(broker)
        bench.scale(2, next_node_ids="[5]")
        bench.step()
        assert bench.conditions == {"NotReady": ["KafkaUnavailable"], "Warning": ["ScaleDownPreventionCheck"]}
        bench.scale(2, next_node_ids="[y]")
        bench.step()
        assert sorted(bench.conditions["Warning"]) == ["NodeIdRangesInvalid", "ScaleDownPreventionCheck"]
        assert "'y'" in list_messages(bench)
        assert "'x'" not in list_messages(bench)


# ---- nodes that a status does not name


def test_a_pool_that_lost_its_status_keeps_brokers_with_replicas():
    with SweptBench() as bench:
        bench.make_cluster(modes=None)
        bench.patch(f"{POOLS}/p/status", {"status": None})
        bench.scale(2, next_node_ids="[7-9]")
        bench.step(2)
        assert len(bench.live) == 3
        assert bench.pool_ids() == [0, 1, 2]
        assert bench.conditions == {"Ready": [""], "Warning": ["ScaleDownPreventionCheck"]}


def test_a_pod_set_with_a_pod_that_is_not_its_node_is_not_changed():
    with OperatorBench() as bench:
        bench.make_cluster()
        pods = bench.ask("GET", f"{SETS}/c-p").body["spec"]["pods"]
        odd = {**pods[0], "metadata": {**pods[0]["metadata"], "name": "c-p-03"}}
        bench.patch(f"{SETS}/c-p", {"spec": {"pods": [*pods, odd]}})
        before = bench.live
        bench.scale(4)
        bench.step(2)
        assert bench.live == before
        assert bench.conditions == {"NotReady": ["UnreadableObject"]}
        assert "strimzipodset/kafka/c-p lists c-p-03" in list_messages(bench)


def test_brokers_that_got_replicas_while_other_pods_went_stay(monkeypatch: pytest.MonkeyPatch):
    with SweptBench() as bench:
        bench.make_cluster(pools=("p", "q"), modes=None, topic=False)
        bench.scale(2)
        bench.scale(2, "q")
        wait = ClusterActuator.wait_until_gone

        async def wait_and_create(*values: Any) -> None:
            await wait(*values)
            if not bench.brokers.catch_up().topics:
                bench.brokers.create_topic("late", [[12, 11]], size_bytes=1_000_000)

        monkeypatch.setattr(ClusterActuator, "wait_until_gone", wait_and_create)
        result = bench.step()
        assert result is not None
        assert [str(change.target) for change in result.pod_set_changes] == ["strimzipodset/kafka/c-p"]
        assert bench.live == ["c-p-0", "c-p-1", "c-q-10", "c-q-11", "c-q-12"]
        assert (bench.pool_ids("p"), bench.pool_ids("q")) == ([0, 1], [10, 11, 12])
        bench.step()
        assert bench.conditions == {"Ready": [""], "Warning": ["ScaleDownPreventionCheck"]}


def test_the_last_broker_pool_that_is_deleted_says_why_it_stays():
    with OperatorBench() as bench:
        bench.make_kafka()
        bench.make_pool("controllers", roles=("controller",))
        bench.make_pool("p", ids="[10-12]")
        bench.step()
        bench.make_all_ready()
        bench.brokers.create_topic("orders", [[10, 11, 12]], size_bytes=1_000_000)
        bench.step()
        assert bench.ask("DELETE", f"{POOLS}/p").status == 200
        for _ in range(3):
            bench.step()
            bench.run_rebalances()
            bench.run.advance_by(5)
        assert bench.state == "NotReady"
        assert bench.conditions == {"Ready": [""], "Warning": ["LastBrokers", "AutoRebalanceRetryScheduled"]}
        assert "pool p keeps 3 nodes: brokers 10, 11, 12 hold replicas, and no other broker" in list_messages(bench)
        refused = "(the engine refuses: [RackAwareGoal] Insufficient number of racks to distribute each replica"
        assert refused in list_messages(bench)
        assert "com.linkedin" not in list_messages(bench)
        assert list_messages(bench).count("Add at least 3 racks with brokers") == 1
        assert list_pool_conditions(bench) == [("Warning", "LastBrokers")]
        pool = Ref(kind="kafkanodepool", namespace="kafka", name="p")
        entries = bench.run.run_until(bench.journal.list_entries(Query(ref=pool)))
        assert {entry.format_sentence().partition(": ")[0] for entry in entries} == {"kafka/kafka/c"}
        found = [entry.filter_by_ref(pool).plan for entry in entries]
        codes = {not_done.reason.code for plan in found for not_done in plan.not_done}
        assert codes == {"LastBrokers"}
        assert {action.verb for plan in found for action in plan.actions} == {"add-pods"}


def test_a_failed_execution_says_which_broker_was_down():
    name = "c-auto-rebalancing-add-brokers"
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(4)
        bench.step()
        bench.make_ready(3)
        for _ in range(5):
            bench.step()
            bench.run_rebalances()
        assert bench.rebalance_state(name) == "Rebalancing"
        bench.brokers.kill_broker(3)
        for _ in range(30):
            bench.run.advance_by(5)
            bench.run_rebalances()
        [condition] = bench.rebalances[name]["status"]["conditions"]
        assert condition["type"] == "NotReady"
        assert "the destination is down: broker 3" in condition["message"]

"""K01 to K10: a cluster scales up and down, through the Kubernetes API, with our engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from tests.kafka.controllers.operator_bench import API, OperatorBench
from tests.kafka.controllers.pod_set_cluster import SETS
from tests.objects.crds.kafka_definitions import NAMESPACE, list_our_definitions, list_strimzi_definitions

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("engine")

ADD = "c-auto-rebalancing-add-brokers"
REMOVE = "c-auto-rebalancing-remove-brokers"


def list_pods_of_set(bench: OperatorBench, name: str = "c-p") -> list[str]:
    pods = bench.ask("GET", f"{SETS}/{name}").body["spec"]["pods"]
    return [pod["metadata"]["name"] for pod in pods]


def test_k01_scale_up_waits_for_the_new_pod():
    with OperatorBench() as bench:
        bench.make_cluster()
        assert bench.state == ""
        assert bench.status_of_kafka["kafkaVersion"] == "4.3.1"
        assert bench.shipped == {}
        bench.scale(4)
        bench.step()
        assert bench.state == "ScalingUp"
        assert bench.lists == ([3], [])
        assert bench.rebalances == {}
        assert list_pods_of_set(bench) == ["c-p-0", "c-p-1", "c-p-2", "c-p-3"]
        assert (bench.shipped["state"], bench.shipped["modes"]) == ("Idle", [{"mode": "add-brokers", "brokers": [3]}])
        assert bench.conditions == {"Ready": [""]}


def test_k02_nothing_changes_until_the_pod_is_ready():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(4)
        bench.step()
        before = bench.kafka
        bench.run.advance_by(60)
        bench.step(5)
        assert bench.kafka == before, "not a single write"
        assert bench.rebalances == {}


def test_k03_a_stale_status_of_the_pod_set_is_not_believed():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(4)
        bench.step()
        stale = {"pods": 3, "readyPods": 3, "currentPods": 3, "observedGeneration": 1}
        bench.kill()
        bench.patch(f"{SETS}/c-p/status", {"status": stale})
        bench.step()
        assert bench.state == "ScalingUp"
        assert bench.rebalances == {}


def test_k04_ready_pods_start_the_rebalance():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(4)
        bench.step()
        bench.make_ready(3)
        bench.step()
        assert bench.state == "PendingProposal"
        assert (bench.shipped["state"], bench.shipped["modes"]) == (
            "RebalanceOnScaleUp",
            [{"mode": "add-brokers", "brokers": [3]}],
        )
        rebalance = bench.rebalances[ADD]
        assert rebalance["spec"] == {"mode": "add-brokers", "brokers": [3]}
        assert rebalance["metadata"]["labels"] == {"strimzi.io/cluster": "c"}
        assert rebalance["metadata"]["annotations"] == {"strimzi.io/rebalance-auto-approval": "true"}
        assert rebalance["metadata"]["finalizers"] == ["strimzi.io/auto-rebalancing"]
        [owner] = rebalance["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner.get("controller", False)) == ("Kafka", "c", False)


def test_k05_the_rebalance_fills_the_new_broker():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(4)
        bench.step()
        bench.make_ready(3)
        before = bench.list_replicas()
        states = bench.run_to_the_end()
        order = ["ScalingUp", "PendingProposal", "ProposalReady", "Rebalancing", "Ready"]
        assert [state for state in order if state in states] == states, "no going back"
        assert states[-1] == "Ready"
        assert bench.count_replicas(3) >= 20
        assert sum(bench.count_replicas(broker) for broker in range(4)) == 90
        added = {broker for key, replicas in bench.list_replicas().items() for broker in replicas - before[key]}
        assert added == {3}, "no replica moves between old brokers"
        assert bench.rebalances == {}
        assert bench.lists == ([], [])
        assert (bench.shipped["state"], bench.shipped.get("modes")) == ("Idle", None)


def test_k06_scale_down_empties_the_broker_before_its_pod_goes():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(4)
        bench.step()
        bench.make_ready(3)
        bench.run_to_the_end()
        bench.scale(3)
        bench.step()
        assert bench.conditions == {"Ready": [""]}
        assert bench.ask("GET", f"{API}/kafkanodepools/p").body["spec"]["replicas"] == 3
        assert len(bench.live) == 4
        assert bench.rebalances[REMOVE]["spec"]["brokers"] == [3]
        assert bench.state == "PendingProposal"
        assert bench.lists == ([], [3])
        states = bench.run_to_the_end()
        assert states[-1] == "Ready"
        assert bench.count_replicas(3) == 0
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]
        assert bench.pool_ids() == [0, 1, 2]
        assert bench.rebalances == {}


def test_k07_an_empty_broker_goes_at_once():
    with OperatorBench() as bench:
        bench.make_cluster(modes=[{"mode": "remove-brokers"}])
        bench.scale(4)
        bench.step()
        bench.make_ready(3)
        bench.step()
        assert bench.view == {}
        bench.scale(3)
        bench.step()
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]
        assert bench.pool_ids() == [0, 1, 2]
        assert bench.rebalances == {}
        assert bench.view == {}


@pytest.mark.parametrize("engine", ["plimsoll"], indirect=True)
@pytest.mark.parametrize("definitions", [list_our_definitions, list_strimzi_definitions])
def test_k07_a_broker_that_has_left_is_unregistered(definitions: Callable[[], list[dict[str, Any]]]):
    with OperatorBench(definitions=definitions()) as bench:
        bench.make_cluster(brokers=4, topic=False)
        bench.scale(3)
        bench.step(3)
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]
        assert bench.brokers.catch_up().brokers[3].is_registered, "its last heartbeat is too recent"
        bench.run.advance_by(60)
        bench.step()
        assert not bench.brokers.catch_up().brokers[3].is_registered
        broker = Ref(kind="broker", namespace=NAMESPACE, name="c.3")
        entries = bench.run.run_until(bench.journal.list_entries(Query(ref=broker)))
        codes = [not_done.reason.code for entry in entries for not_done in entry.plan.not_done]
        assert codes == ["BrokerNotFenced"], "once, however often it was tried"
        assert [action.verb for entry in entries for action in entry.plan.actions] == ["unregister"]


def test_k08_without_the_feature_a_broker_with_replicas_stays():
    with OperatorBench() as bench:
        bench.make_cluster(modes=None)
        bench.scale(2)
        bench.step()
        assert len(bench.live) == 3
        assert bench.pool_ids() == [0, 1, 2]
        assert bench.conditions == {"Ready": [""], "Warning": ["ScaleDownPreventionCheck"]}
        assert bench.view == {}
        assert bench.shipped == {}


def test_k09_the_annotation_chooses_the_nodes_that_leave():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(5)
        bench.step()
        bench.make_ready(3, 4)
        bench.run_to_the_end()
        bench.scale(4, remove_node_ids="[1]")
        bench.step()
        assert bench.lists == ([], [1])
        bench.run_to_the_end()
        assert bench.pool_ids() == [0, 2, 3, 4]


def test_k10_the_annotation_chooses_the_next_ids():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(6, next_node_ids="[20-21]")
        bench.step()
        assert bench.lists == ([3, 20, 21], [])
        assert bench.pool_ids() == [0, 1, 2, 3, 20, 21]

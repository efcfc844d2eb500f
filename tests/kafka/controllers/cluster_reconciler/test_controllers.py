"""Controllers that leave or lose their role, and clusters that are down (docs/design/kafka.md 4.3 and S27)."""

from __future__ import annotations

import pytest

from plimsoll.local.kafka.answers import RequestRefused
from tests.kafka.controllers.operator_bench import API, OperatorBench
from tests.kafka.controllers.swept_bench import SweptBench
from tests.kafka.controllers.test_bad_input import list_messages

POOLS = f"{API}/kafkanodepools"
CHECK = "ControllerQuorumCheck"
SKIP = "strimzi.io/skip-broker-scaledown-check"


def make_cluster_with_controllers(bench: OperatorBench, *, voters: int = 3) -> None:
    """Brokers 0 to 2 with a topic, and controllers from 100."""
    bench.make_kafka()
    bench.make_pool("controllers", replicas=voters, ids="[100-109]", roles=["controller"])
    bench.make_pool()
    bench.step()
    bench.make_all_ready()
    bench.brokers.create_topic("orders", [[0, 1, 2]], size_bytes=1_000_000)
    bench.step()
    assert bench.conditions == {"Ready": [""]}


def list_controllers(bench: OperatorBench) -> list[int]:
    return sorted(int(name.rpartition("-")[2]) for name in bench.live if "-controllers-" in name)


def set_voters(bench: OperatorBench, *voters: int) -> None:
    """What kafka-metadata-quorum add-controller and remove-controller do."""
    bench.brokers.catch_up().voters = frozenset(voters)


@pytest.mark.usefixtures("engine")
def test_a_voter_stays_until_it_has_left_the_quorum():
    with SweptBench() as bench:
        make_cluster_with_controllers(bench)
        bench.scale(1, pool="controllers")
        bench.step(2)
        assert list_controllers(bench) == [100, 101, 102]
        assert bench.pool_ids("controllers") == [100, 101, 102]
        assert bench.conditions == {"Ready": [""], "Warning": [CHECK]}
        assert (
            "pool controllers keeps nodes 101, 102: nodes 101, 102 are voters of the metadata quorum (100, 101, 102); "
            "remove them with kafka-metadata-quorum remove-controller, or set its replicas to 3"
        ) in list_messages(bench)
        assert bench.read_pool("controllers")["status"]["conditions"][0]["reason"] == CHECK
        set_voters(bench, 100, 101)
        bench.step(2)
        assert list_controllers(bench) == [100, 101]
        assert "node 101 is a voter of the metadata quorum (100, 101); remove it with" in list_messages(bench)
        set_voters(bench, 100)
        bench.step(2)
        assert list_controllers(bench) == bench.pool_ids("controllers") == [100]
        assert bench.conditions == {"Ready": [""]}


def test_a_controller_that_was_added_is_an_observer_and_may_leave_and_the_voter_may_not():
    with SweptBench() as bench:
        make_cluster_with_controllers(bench, voters=1)
        bench.scale(2, pool="controllers")
        bench.step()
        bench.make_all_ready()
        bench.scale(1, pool="controllers", remove_node_ids="[100]")
        bench.step(2)
        assert list_controllers(bench) == [100, 101]
        assert "pool controllers keeps node 100: node 100 is a voter" in list_messages(bench)
        bench.scale(1, pool="controllers", remove_node_ids="[101]")
        bench.step(2)
        assert list_controllers(bench) == [100]
        assert bench.conditions == {"Ready": [""]}


def test_a_deleted_pool_keeps_its_voters_until_others_have_replaced_them():
    with SweptBench() as bench:
        make_cluster_with_controllers(bench)
        bench.delete(f"{POOLS}/controllers")
        bench.step(2)
        assert list_controllers(bench) == [100, 101, 102]
        assert bench.conditions["Warning"] == [CHECK]
        assert "pool controllers, which is being deleted, keeps nodes 100, 101, 102" in list_messages(bench)
        bench.make_pool("others", ids="[200-202]", roles=["controller"])
        bench.step(2)
        assert list_controllers(bench) == [100, 101, 102], "the others are observers"
        set_voters(bench, 200, 201, 202)
        bench.step(2)
        assert bench.read_pool("controllers") == {}
        assert list_controllers(bench) == []


@pytest.mark.usefixtures("engine")
def test_a_node_with_both_roles_is_not_emptied_while_it_is_a_voter():
    with SweptBench() as bench:
        bench.make_kafka()
        bench.make_pool(replicas=4, roles=["broker", "controller"])
        bench.step()
        bench.make_all_ready()
        bench.brokers.create_topic("orders", [[0, 1, 3], [1, 2, 3]], size_bytes=1_000_000)
        bench.step()
        bench.scale(3)
        bench.step(2)
        assert bench.lists == ([], [])
        assert bench.pool_ids() == [0, 1, 2, 3]
        assert bench.conditions == {"Ready": [""], "Warning": [CHECK]}
        set_voters(bench, 0, 1, 2)
        bench.step()
        assert bench.lists == ([], [3])
        bench.settle()
        assert bench.pool_ids() == [0, 1, 2]
        assert bench.conditions == {"Ready": [""]}


def test_a_pool_does_not_take_the_controller_role_from_voters():
    with OperatorBench() as bench:
        bench.make_kafka()
        bench.make_pool(roles=["broker", "controller"])
        bench.step()
        bench.make_all_ready()
        bench.step()
        bench.patch(f"{POOLS}/p", {"spec": {"roles": ["broker"]}})
        bench.step()
        assert bench.read_pool()["status"]["roles"] == ["broker", "controller"]
        assert bench.conditions == {"Ready": [""], "Warning": [CHECK]}
        assert "pool p keeps the role controller of nodes 0, 1, 2" in list_messages(bench)
        set_voters(bench, 7)
        bench.step()
        assert bench.read_pool()["status"]["roles"] == ["broker"]
        assert bench.conditions == {"Ready": [""]}


@pytest.mark.parametrize("is_refused", [True, False])
def test_no_controller_goes_while_the_quorum_cannot_be_seen(is_refused: bool):
    with OperatorBench() as bench:
        make_cluster_with_controllers(bench)
        set_voters(bench, 100)
        if is_refused:
            bench.brokers.reject("describe_nodes", RequestRefused("CLUSTER_AUTHORIZATION_FAILED"), times=99)
        else:
            bench.brokers.shows_quorum = False
        bench.annotate("kafkas", "c", skip_broker_scaledown_check="true")
        bench.scale(1, pool="controllers")
        bench.step(2)
        assert list_controllers(bench) == [100, 101, 102]
        assert CHECK in bench.conditions["Warning"]
        assert "the voters of the metadata quorum cannot be seen" in list_messages(bench)


def test_the_annotation_that_skips_the_scale_down_check_does_not_let_voters_go():
    with OperatorBench() as bench:
        bench.make_kafka(annotations={SKIP: "true"})
        bench.make_pool("mixed", replicas=4, roles=["broker", "controller"])
        bench.step()
        bench.make_all_ready()
        bench.brokers.create_topic("orders", [[0, 1, 2], [1, 2, 3]], size_bytes=1_000_000)
        bench.step()
        set_voters(bench, 0, 1, 2)
        bench.scale(2, pool="mixed")
        bench.step(2)
        assert bench.pool_ids("mixed") == [0, 1, 2], "broker 3 goes with its replica, voter 2 does not"


# ---- a cluster that is down


@pytest.mark.usefixtures("engine")
def test_a_cluster_without_a_ready_broker_that_does_not_answer_is_not_ready():
    with OperatorBench() as bench:
        make_cluster_with_controllers(bench)
        for broker in range(3):
            bench.report(f"c-p-{broker}", is_ready=False)
        bench.run.settle()
        bench.step()
        assert bench.conditions == {"NotReady": ["KafkaUnavailable"]}
        assert "no broker pod is ready, and the brokers cannot be seen" in list_messages(bench)
        bench.scale(4)
        bench.step()
        assert "c-p-3" in bench.live, "what mends the cluster is carried out"
        bench.make_ready(0)
        bench.step()
        assert "Ready" in bench.conditions


def test_a_cluster_with_a_silent_broker_is_ready():
    with OperatorBench() as bench:
        make_cluster_with_controllers(bench)
        bench.report("c-p-1", is_ready=False)
        bench.run.settle()
        bench.step()
        assert bench.conditions == {"Ready": [""]}

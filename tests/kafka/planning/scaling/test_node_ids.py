"""Which node ids pools get, and which they lose (docs/design/kafka.md section 2.2, K09, K10, K31)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kafka.model.node_ids import MOST_NODES, NodeIdAssignment, NodePool, PoolNodeIds
from plimsoll.kafka.planning.scaling.node_ids import assign_node_ids
from plimsoll.kafka.wire.node_id_ranges import parse_node_id_ranges
from plimsoll.kafka.wire.node_pools import build_virtual_pool, read_node_pool
from plimsoll.objects.api.kafka import Kafka, KafkaClusterSpec, KafkaNodePool, KafkaNodePoolSpec, KafkaSpec
from plimsoll.objects.api.meta import ObjectMeta


def pool(name: str, replicas: int, node_ids: tuple[int, ...] = (), **fields: Any) -> NodePool:
    for annotation in ("next_node_ids", "remove_node_ids"):
        if annotation in fields:
            fields[annotation] = parse_node_id_ranges(fields[annotation])
    fields.setdefault("roles", ("broker",))
    return NodePool(name=name, path=f"kafkanodepool/ns/{name}", replicas=replicas, node_ids=node_ids, **fields)


def assign(*pools: NodePool, cluster_id: str = "id") -> NodeIdAssignment:
    return assign_node_ids(pools, cluster_id=cluster_id)


def assign_one(*pools: NodePool) -> PoolNodeIds:
    return assign(*pools).pools[0]


def test_a_pool_of_the_right_size_stays_as_it_is():
    ids = assign_one(pool("p", 3, (2, 0, 7)))
    assert (ids.current, ids.desired, ids.added, ids.removed) == ((0, 2, 7), (0, 2, 7), (), ())


def test_new_nodes_take_the_lowest_ids_that_no_pool_has():
    ids = assign_one(pool("p", 5, (0, 3)), pool("q", 2, (1, 4)))
    assert ids.added == (2, 5, 6)
    assert ids.desired == (0, 2, 3, 5, 6)


def test_k10_next_node_ids_are_taken_first_and_in_their_order():
    ids = assign_one(pool("p", 6, (0, 1, 2), next_node_ids="[20-21]"))
    assert ids.added == (20, 21, 3)
    assert assign_one(pool("p", 3, (), next_node_ids="[9-0, 1000000000-0]")).added == (9, 8, 7)


def test_next_node_ids_that_another_pool_has_are_passed_over():
    assert assign_one(pool("p", 1, (), next_node_ids="[5-1000000000]"), pool("q", 2, (5, 6))).added == (7,)


def test_ids_that_leave_in_this_step_are_still_in_use():
    assignment = assign(pool("p", 2, (0, 1)), pool("q", 1, (2, 3)), pool("r", 1))
    assert [ids.removed for ids in assignment.pools] == [(), (3,), ()]
    assert assignment.pools[2].added == (4,)


def test_k09_remove_node_ids_choose_the_nodes_that_leave_then_the_highest():
    assert assign_one(pool("p", 4, (0, 1, 2, 3, 4), remove_node_ids="[1]")).removed == (1,)
    ids = assign_one(pool("p", 2, (0, 1, 2, 3, 4), remove_node_ids="[100, 1, 1000000000-900]"))
    assert (ids.removed, ids.desired) == ((1, 3, 4), (0, 2))


def test_remove_node_ids_name_only_ids_of_the_own_pool():
    assert assign_one(pool("p", 1, (0, 1), remove_node_ids="[10]"), pool("q", 2, (10, 11))).removed == (1,)


def test_a_pool_without_node_ids_is_new_and_all_its_ids_are_added():
    assignment = assign(pool("a", 3, (0, 1, 2)), pool("b", 2))
    assert assignment.added_brokers == (3, 4)
    assert not assignment.is_new


def test_the_first_brokers_beside_controllers_that_came_before_them_are_no_addition():
    controllers = pool("controllers", 3, (100, 101, 102), roles=("controller",))
    assert assign(controllers, pool("brokers", 3), cluster_id="").added_brokers == ()
    assert assign(controllers, pool("brokers", 3), cluster_id="abc").added_brokers == (0, 1, 2)


@pytest.mark.parametrize(("cluster_id", "is_new"), [("", True), ("abc", False)])
def test_the_brokers_of_a_new_cluster_are_no_addition(cluster_id: str, is_new: bool):
    assignment = assign(pool("a", 3), pool("b", 2), cluster_id=cluster_id)
    assert assignment.is_new is is_new
    assert assignment.added_brokers == (() if is_new else (0, 1, 2, 3, 4))
    assert assignment.desired_brokers == (0, 1, 2, 3, 4)


def test_controllers_take_no_part():
    assignment = assign(pool("b", 2, (0,)), pool("c", 5, (100, 101, 102), roles=("controller",)))
    assert assignment.added_brokers == (1,)
    assert assignment.pools[1].added == (2, 3)
    assert assignment.desired_brokers == (0, 1)


def test_nodes_that_lose_the_broker_role_are_checked_like_removed_ones():
    dropped = pool("p", 2, (0, 1, 2), roles=("controller",), former_roles=("broker", "controller"))
    assignment = assign(dropped)
    assert assignment.used_to_be_brokers == (0, 1)
    assert assignment.removed_brokers == (2,)
    assert assignment.desired_brokers == ()


def test_a_pool_that_is_being_deleted_loses_all_its_nodes():
    assignment = assign(pool("p", 3, (0, 1, 2)), pool("q", 2, (5, 6), is_deleting=True))
    assert assignment.removed_brokers == (5, 6)


def test_blocked_brokers_stay_in_the_pool_status():
    ids = assign_one(pool("p", 1, (0, 1, 2)))
    assert ids.list_kept(blocked=(1, 2)) == (0, 1, 2)
    assert ids.list_kept(blocked=()) == (0,)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (pool("p", -1, (0, 1)), "spec.replicas"),
        (pool("p", 10**9, (0, 1)), "spec.replicas"),
        (pool("p", MOST_NODES + 1, (0, 1)), "spec.replicas"),
        (pool("p", 1, (0, 1), roles=()), "spec.roles"),
        (pool("p", 1, (0, 1), roles=("broker", "king")), "spec.roles"),
        (pool("p", 1, (0, 1, -4)), "status.nodeIds"),
        (pool("p", 1, (0, 1, 2**31)), "status.nodeIds"),
        (pool("p", 1, (0, 1, 1)), "status.nodeIds"),
    ],
)
def test_a_pool_with_a_mistake_keeps_its_nodes_and_the_others_go_on(wrong: NodePool, field: str):
    assignment = assign(wrong, pool("q", 2, (10,)))
    kept, other = assignment.pools
    assert (kept.desired, kept.added, kept.removed) == ((0, 1), (), ())
    assert other.added == (2,)
    assert [problem.code for problem in assignment.problems] == ["InvalidResourceException"]
    assert assignment.problems[0].facts["field"] == field
    assert field in assignment.problems[0].message
    assert "kafkanodepool/ns/p" in assignment.problems[0].message


def test_a_status_with_very_many_ids_is_refused():
    assert assign(pool("p", 1, tuple(range(MOST_NODES + 1)))).problems[0].facts["field"] == "status.nodeIds"


def test_two_pools_with_one_id_hold_the_whole_cluster():
    assignment = assign(pool("p", 1, (0, 1)), pool("q", 5, (1, 2)), pool("r", 9, (20,)))
    assert assignment.problems[0].facts == {
        "pool": "q",
        "field": "status.nodeIds",
        "nodeId": 1,
        "pools": ["p", "q"],
    }
    assert all(ids.desired == ids.current and not ids.added and not ids.removed for ids in assignment.pools)


def test_k31_a_kafka_without_pools_has_the_pool_kafka():
    kafka = Kafka(metadata=ObjectMeta(name="c", namespace="ns"), spec=KafkaSpec(kafka=KafkaClusterSpec(replicas=4)))
    virtual = build_virtual_pool(kafka, (0, 1, 2))
    assert virtual is not None
    assert virtual.name == "kafka"
    assert assign(virtual).added_brokers == (3,)
    wrong = Kafka(metadata=ObjectMeta(name="c", namespace="ns"), spec=KafkaSpec(kafka=KafkaClusterSpec(replicas=-4)))
    negative = build_virtual_pool(wrong, (0,))
    assert negative is not None
    assert assign(negative).problems[0].message.startswith("kafka/ns/c: spec.kafka.replicas: ")
    assert build_virtual_pool(Kafka(), ()) is None


def test_annotations_of_a_pool_that_cannot_be_read_are_warned_about():
    annotations = {"strimzi.io/next-node-ids": "[7]", "strimzi.io/remove-node-ids": "nonsense"}
    written = KafkaNodePool(
        metadata=ObjectMeta(name="p", namespace="ns", annotations=annotations),
        spec=KafkaNodePoolSpec(replicas=1, roles=("broker",)),
    )
    read, warnings = read_node_pool(written)
    assert [warning.code for warning in warnings] == ["NodeIdRangesInvalid"]
    assert assign(read).added_brokers == (7,)


POOLS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 4), st.sampled_from(["", "[3-7]", "[9-0]", "[0-1000000000]"])),
    min_size=1,
    max_size=4,
)


@given(POOLS)
def test_ids_are_unique_counts_are_right_and_repeating_changes_nothing(drawn: list[tuple[int, int, str]]):
    pools: list[NodePool] = []
    first = 0
    for index, (replicas, held, ranges) in enumerate(drawn):
        held_ids = tuple(range(first, first + held))
        first += held
        pools.append(pool(f"p{index}", replicas, held_ids, next_node_ids=ranges, remove_node_ids=ranges))
    assignment = assign(*pools)
    assert not assignment.problems
    everything = [node_id for ids in assignment.pools for node_id in {*ids.current, *ids.desired}]
    assert len(everything) == len(set(everything))
    for asked, ids in zip(pools, assignment.pools, strict=True):
        assert len(ids.desired) == asked.replicas
        assert set(ids.desired) == (set(ids.current) - set(ids.removed)) | set(ids.added)
        assert not ids.added or not ids.removed
    again = assign(
        *(pool(asked.name, asked.replicas, ids.desired) for asked, ids in zip(pools, assignment.pools, strict=True))
    )
    assert not again.added_brokers
    assert not again.removed_brokers

"""Brokers that leave are cordoned, and no cordon is left on a broker that stays (docs/design/kafka.md D20)."""

from __future__ import annotations

from plimsoll.local.kafka.answers import ItemError
from tests.kafka.controllers.operator_bench import API, OperatorBench
from tests.kafka.controllers.test_k11_k31_automatic_rebalancing import REMOVE


def list_cordoned(bench: OperatorBench) -> set[int]:
    state = bench.brokers.catch_up()
    return {broker.id for broker in state.brokers.values() if broker.is_running and state.list_cordoned(broker)}


def fill(bench: OperatorBench) -> None:
    """A cluster of four brokers with replicas on all of them."""
    bench.make_cluster()
    bench.scale(4)
    bench.step()
    bench.make_ready(3)
    bench.run_to_the_end()


def test_a_broker_that_leaves_is_cordoned_and_one_of_its_id_is_not():
    with OperatorBench() as bench:
        fill(bench)
        bench.scale(3)
        bench.step()
        assert list_cordoned(bench) == {3}
        bench.brokers.place_topic("new", partitions=6, replication_factor=3)
        assert all(3 not in part.replicas for part in bench.brokers.catch_up().topics["new"].partitions.values())
        bench.run_to_the_end()
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]
        bench.scale(4)
        bench.step()
        bench.make_ready(3)
        bench.run_to_the_end()
        assert list_cordoned(bench) == set()


def test_a_broker_of_the_same_id_is_not_cordoned_without_the_mode_add_brokers_either():
    with OperatorBench() as bench:
        bench.make_cluster(modes=[{"mode": "remove-brokers"}])
        bench.scale(4)
        bench.step()
        bench.make_ready(3)
        bench.step()
        bench.brokers.create_topic("x", [[3, 0, 1]])
        bench.scale(3)
        bench.step()
        assert list_cordoned(bench) == {3}
        bench.run_to_the_end()
        bench.scale(4)
        bench.step()
        bench.make_ready(3)
        bench.step(2)
        assert list_cordoned(bench) == set()


def test_a_removal_that_is_withdrawn_leaves_no_cordon():
    with OperatorBench() as bench:
        fill(bench)
        bench.scale(3)
        bench.step()
        assert list_cordoned(bench) == {3}
        bench.scale(4)
        bench.run_to_the_end()
        assert list_cordoned(bench) == set()


def test_a_cordon_that_cannot_be_removed_is_removed_later():
    with OperatorBench() as bench:
        fill(bench)
        bench.scale(3)
        bench.step()
        bench.scale(4)
        bench.brokers.fail_items("alter_configs", ItemError("REQUEST_TIMED_OUT"), times=3)
        bench.step()
        assert bench.conditions == {"Ready": [""], "Warning": ["CordonNotChanged"]}
        bench.run_to_the_end()
        assert list_cordoned(bench) == set()
        assert bench.conditions == {"Ready": [""]}


def test_a_broker_that_returns_while_the_one_before_is_still_registered_does_not_make_the_kafka_not_ready():
    with OperatorBench() as bench:
        fill(bench)
        bench.scale(3)
        bench.step()
        while len(bench.live) == 4:
            bench.run_rebalances()
            bench.run.advance_by(1)
            if bench.count_replicas(3) == 0:
                bench.step()
        assert bench.list_rebalance_states() == {REMOVE: "Rebalancing"}, "it has emptied the broker"
        bench.scale(4)
        bench.step()
        # As after a crash between the status of the pool and that of the Kafka.
        bench.patch(f"{API}/kafkas/c/status", {"status": {"registeredNodeIds": [0, 1, 2, 3]}})
        bench.step()
        assert bench.conditions == {"Ready": [""], "Warning": ["CordonNotChanged"]}
        bench.make_ready(3)
        bench.run_to_the_end()
        assert bench.count_replicas(3) > 0
        assert list_cordoned(bench) == set()
        assert bench.conditions == {"Ready": [""]}


def test_a_broker_that_returns_gets_replicas_once_its_cordon_is_removed():
    with OperatorBench() as bench:
        fill(bench)
        bench.scale(3)
        bench.run_to_the_end()
        bench.scale(4)
        bench.step()
        bench.brokers.fail_items("alter_configs", ItemError("REQUEST_TIMED_OUT"), times=2)
        bench.make_ready(3)
        bench.step(2)
        assert (bench.state, bench.rebalances) == ("ScalingUp", {})
        bench.run_to_the_end()
        assert bench.count_replicas(3) > 0


def test_without_the_feature_nothing_is_cordoned():
    with OperatorBench() as bench:
        bench.make_cluster(modes=None)
        bench.scale(2)
        bench.step()
        assert len(bench.live) == 3
        assert list_cordoned(bench) == set()

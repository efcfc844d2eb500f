"""Specs of rebalances and settings: what is read, what is written, and every mistake by its field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kafka.model.rebalances import RebalanceSpec, VolumesOfBroker
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.wire.rebalance_specs import (
    IGNORED,
    INVALID,
    MAX_BROKERS,
    read_rebalance_spec,
    read_settings_spec,
    write_rebalance_spec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

WHOLE: dict[str, Any] = {
    "mode": "add-brokers",
    "brokers": [4, 3, 3],
    "goals": ["ReplicaCapacityGoal", "com.linkedin.kafka.cruisecontrol.analyzer.goals.RackAwareGoal"],
    "skipHardGoalCheck": True,
    "excludedTopics": "a.*|b",
    "concurrentPartitionMovementsPerBroker": 7,
    "concurrentIntraBrokerPartitionMovements": 2,
    "concurrentLeaderMovements": 9,
    "replicationThrottle": 1_000_000,
    "replicaMovementStrategies": ["BaseReplicaMovementStrategy"],
}


def fields(reasons: tuple[Any, ...]) -> list[str]:
    return [reason.facts["field"] for reason in reasons]


def test_a_whole_spec_is_read():
    reading = read_rebalance_spec(WHOLE)
    assert reading.problems == reading.warnings == ()
    assert reading.spec == RebalanceSpec(
        mode=Mode.ADD_BROKERS,
        brokers=(3, 4),
        goals=("ReplicaCapacityGoal", "com.linkedin.kafka.cruisecontrol.analyzer.goals.RackAwareGoal"),
        skip_hard_goal_check=True,
        excluded_topics="a.*|b",
        concurrent_partition_movements_per_broker=7,
        concurrent_intra_broker_partition_movements=2,
        concurrent_leader_movements=9,
        replication_throttle=1_000_000,
        replica_movement_strategies=("BaseReplicaMovementStrategy",),
    )


@pytest.mark.parametrize("document", [None, {}, {"mode": None, "brokers": None}])
def test_an_empty_spec_is_a_full_rebalance_with_the_defaults_of_the_server(document: Any):
    assert read_rebalance_spec(document).spec == RebalanceSpec()


def test_the_volumes_of_brokers_are_read():
    document = {
        "mode": "remove-disks",
        "moveReplicasOffVolumes": [{"brokerId": 1, "volumeIds": [2, 1]}, {"brokerId": 0, "volumeIds": [1]}],
    }
    reading = read_rebalance_spec(document)
    assert reading.spec == RebalanceSpec(
        mode=Mode.REMOVE_DISKS,
        move_replicas_off_volumes=(
            VolumesOfBroker(broker=0, volumes=(1,)),
            VolumesOfBroker(broker=1, volumes=(1, 2)),
        ),
    )


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "spec"),
        ("full", "spec"),
        ({"mode": "Full"}, "spec.mode"),
        ({"mode": "demote-brokers"}, "spec.mode"),
        ({"mode": 7}, "spec.mode"),
        ({"mode": ["full"]}, "spec.mode"),
        ({"mode": "add-brokers"}, "spec.brokers"),
        ({"mode": "remove-brokers", "brokers": []}, "spec.brokers"),
        ({"mode": "add-brokers", "brokers": "3"}, "spec.brokers"),
        ({"mode": "add-brokers", "brokers": {"3": 4}}, "spec.brokers"),
        ({"mode": "add-brokers", "brokers": [3, "4", 5, "6"]}, "spec.brokers[1]"),
        ({"mode": "add-brokers", "brokers": [True]}, "spec.brokers[0]"),
        ({"mode": "add-brokers", "brokers": [3.5]}, "spec.brokers[0]"),
        ({"mode": "add-brokers", "brokers": [-1]}, "spec.brokers[0]"),
        ({"mode": "add-brokers", "brokers": [2**31]}, "spec.brokers[0]"),
        ({"mode": "add-brokers", "brokers": [10**5000]}, "spec.brokers[0]"),
        ({"mode": "add-brokers", "brokers": list(range(100_000))}, "spec.brokers"),
        ({"mode": "add-brokers", "brokers": list(range(MAX_BROKERS + 1))}, "spec.brokers"),
        ({"goals": "RackAwareGoal"}, "spec.goals"),
        ({"goals": ["RackAwareGoal", "NoSuchGoal"]}, "spec.goals"),
        ({"goals": [7]}, "spec.goals[0]"),
        ({"goals": ["RackAwareGoal,CpuCapacityGoal"]}, "spec.goals[0]"),
        ({"goals": [""]}, "spec.goals[0]"),
        ({"goals": ["x" * 100_000]}, "spec.goals[0]"),
        ({"goals": ["RackAwareGoal"] * 1_000}, "spec.goals"),
        ({"skipHardGoalCheck": "true"}, "spec.skipHardGoalCheck"),
        ({"rebalanceDisk": 1}, "spec.rebalanceDisk"),
        ({"rebalanceDisk": True, "goals": ["RackAwareGoal"]}, "spec.goals"),
        ({"rebalanceDisk": True, "mode": "add-brokers", "brokers": [3]}, "spec.rebalanceDisk"),
        ({"excludedTopics": "a("}, "spec.excludedTopics"),
        ({"excludedTopics": "(?=a)"}, "spec.excludedTopics"),
        ({"excludedTopics": ["a"]}, "spec.excludedTopics"),
        ({"excludedTopics": "a" * 1_001}, "spec.excludedTopics"),
        ({"excludedTopics": "\ud800"}, "spec.excludedTopics"),
        ({"concurrentPartitionMovementsPerBroker": -1}, "spec.concurrentPartitionMovementsPerBroker"),
        ({"concurrentIntraBrokerPartitionMovements": "2"}, "spec.concurrentIntraBrokerPartitionMovements"),
        ({"concurrentLeaderMovements": 10**12}, "spec.concurrentLeaderMovements"),
        ({"replicationThrottle": -5}, "spec.replicationThrottle"),
        ({"replicationThrottle": 1e6}, "spec.replicationThrottle"),
        ({"replicationThrottle": 10**400}, "spec.replicationThrottle"),
        ({"replicaMovementStrategies": [None]}, "spec.replicaMovementStrategies[0]"),
        ({"mode": "remove-disks"}, "spec.moveReplicasOffVolumes"),
        ({"mode": "remove-disks", "moveReplicasOffVolumes": []}, "spec.moveReplicasOffVolumes"),
        ({"mode": "remove-disks", "moveReplicasOffVolumes": [3]}, "spec.moveReplicasOffVolumes[0]"),
        (
            {"mode": "remove-disks", "moveReplicasOffVolumes": [{"volumeIds": [1]}]},
            "spec.moveReplicasOffVolumes[0].brokerId",
        ),
        (
            {"mode": "remove-disks", "moveReplicasOffVolumes": [{"brokerId": 0, "volumeIds": []}]},
            "spec.moveReplicasOffVolumes[0].volumeIds",
        ),
        (
            {"mode": "remove-disks", "moveReplicasOffVolumes": [{"brokerId": 0, "volumeIds": [0, "1"]}]},
            "spec.moveReplicasOffVolumes[0].volumeIds[1]",
        ),
    ],
)
def test_a_mistake_is_named_by_its_field(document: Any, field: str):
    reading = read_rebalance_spec(document)
    assert reading.spec is None
    assert fields(reading.problems) == [field]
    (problem,) = reading.problems
    assert problem.code == INVALID
    assert len(problem.message) < 1_000


def test_all_mistakes_are_named():
    document = {"mode": "add-brokers", "brokers": ["x"], "goals": ["A", "B"], "replicationThrottle": -1}
    found = fields(read_rebalance_spec(document).problems)
    assert found == ["spec.brokers[0]", "spec.goals", "spec.goals", "spec.replicationThrottle"]


def test_goals_of_the_cluster_are_known_too():
    document = {"goals": ["MyGoal", "RackAwareGoal"]}
    assert fields(read_rebalance_spec(document).problems) == ["spec.goals"]
    assert read_rebalance_spec(document, supported_goals=("com.acme.MyGoal", " x")).spec is not None


def test_fields_without_effect_are_ignored_with_a_warning():
    reading = read_rebalance_spec({"brokers": [3], "moveReplicasOffVolumes": [{"brokerId": 0, "volumeIds": [1]}]})
    assert reading.spec is not None
    assert reading.spec.brokers == ()
    assert fields(reading.warnings) == ["spec.brokers", "spec.moveReplicasOffVolumes"]
    assert {warning.code for warning in reading.warnings} == {IGNORED}


def test_settings_hold_no_request():
    reading = read_settings_spec({**WHOLE, "moveReplicasOffVolumes": "x", "rebalanceDisk": True})
    assert reading.problems == ()
    assert reading.spec is not None
    assert (reading.spec.mode, reading.spec.brokers, reading.spec.rebalance_disk) == (Mode.FULL, (), False)
    assert reading.spec.goals
    assert fields(reading.warnings) == [
        "spec.mode",
        "spec.brokers",
        "spec.moveReplicasOffVolumes",
        "spec.rebalanceDisk",
    ]


def test_settings_with_a_mistake_have_no_spec():
    reading = read_settings_spec({"goals": ["NoSuchGoal"], "excludedTopics": "["})
    assert reading.spec is None
    assert fields(reading.problems) == ["spec.goals", "spec.excludedTopics"]


@pytest.mark.parametrize("document", [WHOLE, {"mode": "full", "rebalanceDisk": True}, {"mode": "full"}])
def test_what_is_written_reads_the_same(document: Any):
    reading = read_rebalance_spec(document)
    assert reading.spec is not None
    written = write_rebalance_spec(reading.spec)
    assert read_rebalance_spec(written) == reading
    assert written.keys() == document.keys()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize("read", [read_rebalance_spec, read_settings_spec])
@given(document=st.dictionaries(st.sampled_from([*WHOLE, "moveReplicasOffVolumes", "rebalanceDisk"]), JSON) | JSON)
def test_any_json_is_read_or_named(read: Callable[[Any], Any], document: Any):
    reading = read(document)
    assert (reading.spec is None) == bool(reading.problems)
    for problem in reading.problems:
        assert problem.facts["field"].startswith("spec")

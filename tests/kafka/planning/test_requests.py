"""Requests that make no sense, or that no plan can meet: a refusal names the parameter and the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.model.description import BrokerCapacity, LogDir
from plimsoll.kafka.model.proposals import OptimizationResult, ProvisionStatus, Refusal
from plimsoll.kafka.model.requests import BrokerLogDir, Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.goal_list import DEFAULT_GOALS
from plimsoll.kafka.planning.optimizer import optimize
from plimsoll.kafka.planning.refusals import write_cruise_control_error
from tests.kafka.planning.clusters import GB, build_cluster, describe_broker, describe_topic

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import ClusterModel

SETTINGS = AnalyzerSettings()
EXCEPTION = "com.linkedin.kafka.cruisecontrol.exception"


def build_three_brokers() -> ClusterModel:
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(3)]
    return build_cluster(brokers, [describe_topic("a", [(0, 1, 2)] * 4), describe_topic("b.c", [(0, 1)] * 3)])


def refuse(request: RebalanceRequest, model: ClusterModel | None = None) -> Refusal:
    result = optimize(model or build_three_brokers(), request, SETTINGS)
    assert isinstance(result, Refusal)
    return result


def plan(model: ClusterModel, request: RebalanceRequest, settings: AnalyzerSettings = SETTINGS) -> OptimizationResult:
    result = optimize(model, request, settings)
    assert isinstance(result, OptimizationResult), result
    return result


@pytest.mark.parametrize(
    ("mode", "text"),
    [(Mode.ADD_BROKERS, "Broker [9] does not exist."), (Mode.REMOVE_BROKERS, "Broker 9 does not exist.")],
)
def test_brokers_that_do_not_exist_are_refused_in_the_words_of_cruise_control(mode: Mode, text: str):
    refusal = refuse(RebalanceRequest(mode=mode, brokers=(9,)))
    assert refusal.reason.code == "BrokersDoNotExist"
    assert refusal.reason.facts["brokers"] == [9]
    expected = f"{EXCEPTION}.KafkaCruiseControlException: java.lang.IllegalArgumentException: {text}"
    assert write_cruise_control_error(refusal) == expected


@pytest.mark.parametrize(
    "request_",
    [
        RebalanceRequest(destination_brokers=(0, 77)),
        RebalanceRequest(excluded_for_leadership=(0, 77)),
        RebalanceRequest(excluded_for_replicas=(0, 77)),
    ],
)
def test_every_parameter_that_names_brokers_is_checked(request_: RebalanceRequest):
    assert refuse(request_).reason.facts["brokers"] == [77]


@pytest.mark.parametrize("mode", [Mode.ADD_BROKERS, Mode.REMOVE_BROKERS, Mode.DEMOTE_BROKERS])
def test_modes_over_brokers_need_brokers(mode: Mode):
    assert refuse(RebalanceRequest(mode=mode)).reason.code == "BrokersNotGiven"


def test_a_broker_that_is_down_cannot_be_added():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(3)]
    model = build_cluster([*brokers, describe_broker(3, is_fenced=True)], [describe_topic("a", [(0, 1)])])
    assert refuse(RebalanceRequest(mode=Mode.ADD_BROKERS, brokers=(3,)), model).reason.code == "BrokersTakeNoReplicas"


def test_unknown_goals_are_refused_with_the_list_of_goals():
    refusal = refuse(RebalanceRequest(goals=("NoSuchGoal", "RackAwareGoal"), skip_hard_goal_check=True))
    assert refusal.reason.facts["goals"] == ["NoSuchGoal"]
    text = write_cruise_control_error(refusal)
    assert "IllegalArgumentException: Goals [NoSuchGoal] are not supported. Supported: [BrokerSetAwareGoal, " in text


def test_goals_are_found_in_any_case_and_with_their_java_package():
    names = ("rackawaregoal", "com.linkedin.kafka.cruisecontrol.analyzer.goals.DiskCapacityGoal")
    result = plan(build_three_brokers(), RebalanceRequest(goals=names, skip_hard_goal_check=True))
    assert [goal.goal for goal in result.goals] == ["RackAwareGoal", "DiskCapacityGoal"]


def test_missing_hard_goals_are_refused_unless_the_check_is_skipped():
    refusal = refuse(RebalanceRequest(goals=("ReplicaDistributionGoal",)))
    assert refusal.reason.code == "MissingHardGoals"
    assert write_cruise_control_error(refusal).endswith(
        "in the provided goals: [ReplicaDistributionGoal]. "
        "Add skip_hard_goal_check=true parameter to ignore this sanity check."
    )
    plan(build_three_brokers(), RebalanceRequest(goals=("ReplicaDistributionGoal",), skip_hard_goal_check=True))
    plan(build_three_brokers(), RebalanceRequest(goals=("PreferredLeaderElectionGoal",)))


def test_a_request_without_goals_means_the_default_goals():
    assert tuple(goal.goal for goal in plan(build_three_brokers(), RebalanceRequest()).goals) == DEFAULT_GOALS
    own = AnalyzerSettings(default_goals=("ReplicaCapacityGoal",))
    assert len(plan(build_three_brokers(), RebalanceRequest(), own).goals) == 1


def test_a_pattern_that_is_no_regular_expression_is_refused():
    refusal = refuse(RebalanceRequest(excluded_topics="("))
    assert refusal.reason.code == "InvalidPattern"
    assert refusal.reason.message.startswith("'(' is not")
    assert "IllegalArgumentException: excluded_topics: '(' is not" in write_cruise_control_error(refusal)


def test_a_pattern_that_other_engines_never_end_with_ends():
    brokers = [describe_broker(index) for index in range(2)]
    model = build_cluster(brokers, [describe_topic("a" * 249, [(0, 1)])])
    assert plan(model, RebalanceRequest(excluded_topics="(a+)+b|(a|a)*c")).excluded_topics == ()


def test_excluded_topics_match_by_their_whole_name():
    model = build_three_brokers()
    assert plan(model, RebalanceRequest(excluded_topics="b")).excluded_topics == ()
    assert plan(model, RebalanceRequest(excluded_topics=r"b\.c|x.*")).excluded_topics == ("b.c",)


def test_a_removal_of_excluded_topics_is_refused():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(4)]
    model = build_cluster(brokers, [describe_topic("a", [(0, 1, 2)])])
    refusal = refuse(RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(2,), excluded_topics="a"), model)
    assert refusal.reason.code == "ExcludedTopicsOnLeavingBrokers"
    assert refusal.reason.facts == {
        "parameter": "excluded_topics",
        "topics": ["a"],
        "brokers": [2],
        "partitions": 1,
    }


def test_too_few_racks_are_refused_with_numbers():
    refusal = refuse(RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(2,)))
    assert (refusal.goal, refusal.reason.message) == (
        "RackAwareGoal",
        "topic a has replication factor 3, racks left 2",
    )
    assert refusal.provision.status is ProvisionStatus.UNDER_PROVISIONED
    assert write_cruise_control_error(refusal) == (
        f"{EXCEPTION}.OptimizationFailureException: [RackAwareGoal] Insufficient number of racks to distribute each "
        "replica (Current: 2, Needed: 3). Add at least 1 rack with brokers. Add at least 1 rack with brokers."
    )


def test_partitions_with_more_replicas_than_others_of_their_topic_are_named():
    brokers = [describe_broker(index, rack=f"r{index % 3}") for index in range(4)]
    model = build_cluster(brokers, [describe_topic("a", [(0, 1, 2), (0, 1, 2, 3), (3, 2, 1, 0)])])
    refusal = refuse(RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(3,)), model)
    uneven = (
        "2 of 3 partitions of topic a have 4 replicas, others 3; Kafka gives that many to partitions that are added "
        "while partition 0 moves"
    )
    assert str(refusal.reason.because[0]) == uneven
    assert write_cruise_control_error(refusal).endswith(f"Add at least 1 rack with brokers. {uneven}.")


def test_a_replication_factor_above_the_brokers_left_is_refused():
    request = RebalanceRequest(
        mode=Mode.REMOVE_BROKERS, brokers=(2,), goals=("ReplicaDistributionGoal",), skip_hard_goal_check=True
    )
    refusal = refuse(request)
    assert refusal.reason.message == "topic a has replication factor 3, brokers left 2"


def test_a_rack_without_room_is_refused_with_what_is_missing():
    """Rack b has one broker of 800 GB, at most 80 % full, and needs a replica of all 700 GB."""
    brokers = [
        describe_broker(0, rack="a", disk=2000 * GB),
        describe_broker(1, rack="b", disk=800 * GB),
        describe_broker(2, rack="b", disk=800 * GB),
    ]
    model = build_cluster(brokers, [describe_topic("t", [(0, 1), (0, 2)] * 5, size=70 * GB)])
    refusal = refuse(RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(2,)), model)
    assert refusal.goal == "DiskCapacityGoal"
    assert refusal.reason.message == "rack b may hold 640 GB (80 % of 800 GB), needs 700 GB: 1 broker or 75 GB missing"
    assert refusal.provision.brokers_to_add == 1


def test_a_cluster_without_room_is_refused_in_the_words_of_cruise_control():
    brokers = [describe_broker(index, capacity=BrokerCapacity(disk_mb=100.0)) for index in range(2)]
    model = build_cluster(brokers, [describe_topic("t", [(0,), (1,)], size=90 << 20)])
    refusal = refuse(RebalanceRequest(), model)
    assert write_cruise_control_error(refusal).startswith(
        f"{EXCEPTION}.OptimizationFailureException: [DiskCapacityGoal] Insufficient capacity for disk "
        "(Utilization 180.00, Allowed Capacity 160.00, Threshold: 0.80). Add at least 1 broker."
    )


def test_more_replicas_than_brokers_may_hold_are_refused():
    settings = AnalyzerSettings(max_replicas_per_broker=5)
    result = optimize(build_three_brokers(), RebalanceRequest(), settings)
    assert isinstance(result, Refusal)
    assert (result.goal, result.reason.facts["brokers"]) == ("ReplicaCapacityGoal", 1)


def test_one_rack_is_refused_by_rack_awareness_and_accepted_without_it():
    brokers = [describe_broker(index, rack="only") for index in range(3)]
    model = build_cluster(brokers, [describe_topic("a", [(0, 1)] * 6)])
    assert refuse(RebalanceRequest(), model).reason.facts["racks"] == 1
    goals = ("RackAwareDistributionGoal", "ReplicaDistributionGoal")
    result = plan(model, RebalanceRequest(goals=goals, skip_hard_goal_check=True))
    assert set(result.after.replica_counts.tolist()) <= {3, 4, 5}


def test_log_directories_to_remove_must_exist_and_leave_another_one():
    brokers = [describe_broker(0, log_dirs=(LogDir(path="/d0"), LogDir(path="/d1"))), describe_broker(1)]
    model = build_cluster(brokers, [describe_topic("a", [(0, 1)])])
    for log_dirs in [
        (),
        (BrokerLogDir(broker=7, path="/d0"),),
        (BrokerLogDir(broker=0, path="/d9"),),
        (BrokerLogDir(broker=0, path="/d0"), BrokerLogDir(broker=0, path="/d1")),
        (BrokerLogDir(broker=1, path="/data"),),
    ]:
        assert refuse(RebalanceRequest(mode=Mode.REMOVE_DISKS, log_dirs=log_dirs), model).reason.message


def test_log_directories_are_balanced_by_goals_of_log_directories_only():
    refusal = refuse(RebalanceRequest(rebalance_disk=True, goals=("RackAwareGoal",)))
    assert refusal.reason.code == "UnsupportedGoals"

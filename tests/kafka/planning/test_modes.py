"""What each mode does, on small clusters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.model.description import BrokerCapacity, LogDir, ReplicaDescription, TopicDescription
from plimsoll.kafka.model.proposals import GoalStatus, OptimizationResult, ProvisionStatus, Refusal
from plimsoll.kafka.model.requests import BrokerLogDir, Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.optimizer import optimize
from tests.kafka.planning.clusters import (
    GB,
    apply_proposals,
    build_cluster,
    describe_broker,
    describe_partition,
    describe_topic,
    generate_cluster,
)

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import ClusterModel

SETTINGS = AnalyzerSettings()
RACKS = 3


def build_even_cluster(*, brokers: int = 6, new: int = 0, partitions: int = 60) -> ClusterModel:
    """RF 3 over three racks, evenly."""
    described = [describe_broker(index, rack=f"r{index % RACKS}", disk=1000 * GB) for index in range(brokers + new)]
    rows = [
        tuple((leader + (shift + RACKS * (leader // brokers % 2) if shift else 0)) % brokers for shift in range(3))
        for leader in range(partitions)
    ]
    return build_cluster(described, [describe_topic("t", rows, size=GB)])


def plan(model: ClusterModel, request: RebalanceRequest, settings: AnalyzerSettings = SETTINGS) -> OptimizationResult:
    result = optimize(model, request, settings)
    assert isinstance(result, OptimizationResult), result
    return result


def get_statuses(result: OptimizationResult) -> dict[str, GoalStatus]:
    return {goal.goal: goal.status for goal in result.goals}


def test_a_new_broker_gets_its_part_and_old_brokers_exchange_nothing():
    model = build_even_cluster(new=3)
    result = plan(model, RebalanceRequest(mode=Mode.ADD_BROKERS, brokers=(6, 7, 8)))
    after = apply_proposals(model, result)
    assert all(set(proposal.added) <= {6, 7, 8} for proposal in result.proposals)
    assert min(after.replica_counts[6:]) >= 18
    assert min(after.leader_counts[6:]) >= 6
    assert result.bounds.moves <= 1.1 * result.bounds.least_moves
    assert get_statuses(result)["ReplicaDistributionGoal"] is GoalStatus.FIXED
    assert result.balancedness_after > result.balancedness_before


LEADERS = "LeaderReplicaDistributionGoal"


def build_rack_of_two(*, partitions: int = 18, size: int = GB) -> ClusterModel:
    """Three brokers in three racks lead in turn; broker 3 is new, and in the rack of broker 0."""
    brokers = [describe_broker(index, rack=f"rack-{index % 3}") for index in range(4)]
    rows = [tuple((number + shift) % 3 for shift in range(3)) for number in range(partitions)]
    return build_cluster(brokers, [describe_topic("t", rows, size=size)])


def test_add_brokers_chooses_leaders_and_followers_so_that_leaders_are_even():
    """The replicas that move are as many and as large as any; which of them lead is part of the search."""
    result = plan(build_rack_of_two(), RebalanceRequest(mode=Mode.ADD_BROKERS, brokers=(3,)))
    assert get_statuses(result)[LEADERS] is GoalStatus.FIXED
    assert result.bounds.moves == 9
    assert min(result.after.leader_counts) >= 4
    assert max(result.after.leader_counts) <= 5


@pytest.mark.parametrize(
    ("mode", "brokers", "excluded"),
    [(Mode.ADD_BROKERS, (6, 7, 8), 6), (Mode.REMOVE_BROKERS, (5,), 2), (Mode.FULL, (), 7)],
)
def test_a_broker_excluded_for_leadership_gets_followers_only(mode: Mode, brokers: tuple[int, ...], excluded: int):
    model = build_even_cluster(new=0 if mode is Mode.REMOVE_BROKERS else 3)
    result = plan(model, RebalanceRequest(mode=mode, brokers=brokers, excluded_for_leadership=(excluded,)))
    assert result.after.replica_counts[excluded] > model.replica_counts[excluded]
    assert not [
        proposal
        for proposal in result.proposals
        if proposal.new_replicas[0] == excluded and proposal.old_leader != excluded
    ]


def test_relief_moves_no_leader_onto_a_broker_excluded_for_leadership():
    brokers = [describe_broker(broker, rack="r") for broker in range(5)]
    model = build_cluster(brokers, [describe_topic("a", [[0]]), describe_topic("b", [[0]])])
    request = RebalanceRequest(mode=Mode.ADD_BROKERS, brokers=(2,), excluded_for_leadership=(0, 1), relief=True)
    assert plan(model, request).after.leader_counts[1] == 0


def test_a_leaving_broker_loses_exactly_what_it_has():
    model = build_even_cluster()
    had = int(model.replica_counts[5])
    result = plan(model, RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(5,)))
    assert apply_proposals(model, result).replica_counts[5] == 0
    assert result.bounds.moves == result.bounds.least_moves == had
    assert result.bounds.bytes == result.bounds.least_bytes == had * GB
    assert all(proposal.removed == (5,) for proposal in result.proposals)


def test_leadership_of_a_leaving_broker_goes_to_a_replica_that_is_there():
    model = build_even_cluster()
    result = plan(
        model,
        RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(5,), goals=("RackAwareGoal",), skip_hard_goal_check=True),
    )
    led = [proposal for proposal in result.proposals if proposal.old_leader == 5]
    assert led
    assert all(proposal.new_replicas[0] in proposal.old_replicas for proposal in led)


def test_a_new_replica_has_the_place_of_the_one_it_replaces():
    model = build_even_cluster()
    result = plan(
        model,
        RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(5,), goals=("RackAwareGoal",), skip_hard_goal_check=True),
    )
    for proposal in result.proposals:
        if proposal.old_leader != 5:
            position = proposal.old_replicas.index(5)
            rest = [broker for index, broker in enumerate(proposal.new_replicas) if index != position]
            assert rest == [broker for broker in proposal.old_replicas if broker != 5]


def test_an_even_cluster_needs_nothing():
    model = build_even_cluster()
    result = plan(model, RebalanceRequest())
    assert not [proposal for proposal in result.proposals if proposal.is_replica_move]


def test_network_and_processor_goals_say_why_they_do_nothing_without_rates():
    results = {goal.goal: goal for goal in plan(build_even_cluster(), RebalanceRequest()).goals}
    for name in ("NetworkInboundCapacityGoal", "CpuUsageDistributionGoal", "LeaderBytesInDistributionGoal"):
        reason = results[name].reason
        assert results[name].status is GoalStatus.NO_ACTION
        assert reason is not None
        assert reason.code == "NoRates"


def test_disks_of_unknown_size_are_no_capacity():
    brokers = [describe_broker(index) for index in range(2)]
    result = plan(build_cluster(brokers, [describe_topic("t", [(0,), (1,)], size=GB)]), RebalanceRequest())
    reason = {goal.goal: goal for goal in result.goals}["DiskCapacityGoal"].reason
    assert reason is not None
    assert reason.code == "NoCapacity"


def test_racks_are_repaired_with_one_move_per_partition():
    brokers = [describe_broker(index, rack=f"r{index // 2}") for index in range(6)]
    rows = [(0, 1, 2), (2, 3, 4), (4, 5, 0), (0, 2, 4), (1, 3, 5), (5, 3, 1)]
    model = build_cluster(brokers, [describe_topic("t", rows, size=GB)])
    result = plan(model, RebalanceRequest(goals=("RackAwareGoal",), skip_hard_goal_check=True))
    assert (result.bounds.moves, result.bounds.least_moves) == (3, 3)
    assert result.bounds.bytes == result.bounds.least_bytes == 3 * GB
    after = apply_proposals(model, result)
    for partition in range(model.partition_count):
        assert len({broker // 2 for broker in after.list_replicas(partition)}) == 3


def test_a_full_disk_is_relieved_although_only_hard_goals_are_given():
    brokers = [describe_broker(index, disk=10 * GB) for index in range(3)]
    model = build_cluster(brokers, [describe_topic("t", [(0,)] * 9, size=GB)])
    result = plan(model, RebalanceRequest(goals=("DiskCapacityGoal",), skip_hard_goal_check=True))
    assert result.after.broker_bytes.max() <= 8 * GB
    assert result.bounds.moves == 1


def test_leaders_are_evened_by_reordering_alone():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(4)]
    model = build_cluster(brokers, [describe_topic("t", [(0, 1, 2, 3)] * 40)])
    result = plan(model, RebalanceRequest(goals=("LeaderReplicaDistributionGoal",), skip_hard_goal_check=True))
    assert result.bounds.moves == 0
    assert max(result.after.leader_counts) <= 11
    assert min(result.after.leader_counts) >= 9


def test_leaders_reach_brokers_that_only_a_chain_reaches():
    """Broker 0 leads all it shares with 1; room is on 2, which shares partitions with 1 only."""
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(3)]
    rows = [(0, 1)] * 20 + [(1, 2)] * 10
    model = build_cluster(brokers, [describe_topic("t", rows)])
    result = plan(model, RebalanceRequest(goals=("LeaderReplicaDistributionGoal",), skip_hard_goal_check=True))
    assert result.bounds.moves == 0
    assert get_statuses(result)["LeaderReplicaDistributionGoal"] is GoalStatus.FIXED


def test_a_follower_that_is_not_in_sync_never_leads():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(2)]
    topic = TopicDescription(
        name="t", partitions=tuple(describe_partition(number, (0, 1), isr=(0,)) for number in range(10))
    )
    result = plan(
        build_cluster(brokers, [topic]),
        RebalanceRequest(goals=("LeaderReplicaDistributionGoal",), skip_hard_goal_check=True),
    )
    assert result.proposals == ()
    assert get_statuses(result)["LeaderReplicaDistributionGoal"] is GoalStatus.VIOLATED


def test_demoted_brokers_lead_nothing_and_are_last():
    model = build_even_cluster()
    result = plan(model, RebalanceRequest(mode=Mode.DEMOTE_BROKERS, brokers=(0,)))
    after = apply_proposals(model, result)
    assert after.leader_counts[0] == 0
    assert result.bounds.moves == 0
    assert all(proposal.new_replicas[-1] == 0 for proposal in result.proposals)


def test_a_demoted_broker_keeps_leading_what_no_other_replica_can_lead():
    model = build_cluster([describe_broker(0), describe_broker(1)], [describe_topic("single", [(0,)])])
    result = plan(model, RebalanceRequest(mode=Mode.DEMOTE_BROKERS, brokers=(0,)))
    assert result.proposals == ()
    assert [reason.code for reason in result.held] == ["NoOtherLeader"]


def test_preferred_leaders_are_elected():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(2)]
    topic = TopicDescription(name="t", partitions=(describe_partition(0, (0, 1), leader=1),))
    result = plan(build_cluster(brokers, [topic]), RebalanceRequest(goals=("PreferredLeaderElectionGoal",)))
    assert [(proposal.old_leader, proposal.new_replicas) for proposal in result.proposals] == [(1, (0, 1))]


def test_offline_replicas_move_and_others_stay():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(3)]
    dead = describe_broker(3, rack="r3", is_fenced=True, log_dirs=None)
    topic = TopicDescription(
        name="t",
        partitions=(
            describe_partition(0, (0, 3), isr=(0,), offline=(3,)),
            describe_partition(1, (0, 1)),
            describe_partition(2, (3, 1), leader=1, isr=(1,), offline=(3,)),
        ),
    )
    model = build_cluster([*brokers, dead], [topic])
    result = plan(model, RebalanceRequest(mode=Mode.FIX_OFFLINE_REPLICAS))
    assert [(proposal.partition, proposal.removed) for proposal in result.proposals] == [(0, (3,)), (2, (3,))]
    assert all(set(proposal.added) <= {0, 1, 2} for proposal in result.proposals)
    # A plain rebalance leaves them: the broker may come back.
    held = plan(model, RebalanceRequest()).held
    assert [(reason.code, reason.facts) for reason in held] == [("BrokerIsDown", {"broker": 3, "replicas": 2})]


def test_what_cannot_be_seen_is_present_and_does_not_move():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(4)]
    silent = describe_broker(4, rack="r4", log_dirs=None, problem="timed out")
    topic = TopicDescription(
        name="t",
        partitions=(
            *(describe_partition(number, (4,)) for number in range(6)),
            describe_partition(6, (0, 1), adding=(1,)),
            describe_partition(7, (0,), leader=-1, isr=()),
            *(describe_partition(number, (0,)) for number in range(8, 16)),
        ),
    )
    model = build_cluster([*brokers, silent], [topic])
    result = plan(model, RebalanceRequest())
    touched = {proposal.partition for proposal in result.proposals}
    assert touched <= {6, *range(8, 16)}
    assert sorted(result.after.replica_counts[:4]) == [2, 3, 3, 3]
    assert result.after.replica_counts[4] == 6
    assert [(reason.code) for reason in result.held] == ["ReassignmentUnderWay", "NoLeader", "BrokerDidNotAnswer"]


def test_replicas_move_only_onto_destination_brokers():
    model = build_even_cluster(new=3)
    result = plan(model, RebalanceRequest(destination_brokers=(6,)))
    assert result.bounds.moves
    assert all(set(proposal.added) == {6} for proposal in result.proposals if proposal.added)


def test_a_cordoned_broker_gets_no_replicas():
    cordoned = describe_broker(2, rack="r2", log_dirs=(LogDir(path="/data", is_cordoned=True),))
    brokers = [describe_broker(0, rack="r0"), describe_broker(1, rack="r1"), cordoned]
    result = plan(build_cluster(brokers, [describe_topic("t", [(0,)] * 12)]), RebalanceRequest())
    assert result.after.replica_counts[2] == 0
    assert result.bounds.moves


def test_traffic_is_balanced_where_rates_are_known():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(4)]
    topic = TopicDescription(
        name="t",
        partitions=tuple(
            describe_partition(
                number, (number % 4,), size=10**6, bytes_in_per_s=1e5 if number % 4 == 0 else 1e4, bytes_out_per_s=0.0
            )
            for number in range(80)
        ),
    )
    model = build_cluster(brokers, [topic], rate_source="prometheus")
    result = plan(model, RebalanceRequest())
    statuses = get_statuses(result)
    assert statuses["NetworkInboundUsageDistributionGoal"] is GoalStatus.FIXED
    assert statuses["ReplicaDistributionGoal"] is GoalStatus.NO_ACTION
    assert statuses["DiskUsageDistributionGoal"] is GoalStatus.NO_ACTION


def test_disks_of_different_size_fill_evenly():
    sizes = {0: 1000, 1: 1000, 2: 1100, 3: 900}
    brokers = [describe_broker(index, rack=f"r{index}", disk=size * GB) for index, size in sizes.items()]
    rows = [(number % 2,) for number in range(400)]
    model = build_cluster(brokers, [describe_topic("t", rows, size=GB)])
    result = plan(model, RebalanceRequest())
    statuses = get_statuses(result)
    assert statuses["ReplicaDistributionGoal"] is GoalStatus.FIXED
    assert statuses["DiskUsageDistributionGoal"] is GoalStatus.FIXED


def test_topics_are_spread():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(5)]
    topics = [describe_topic(f"t{index}", [(index,)] * 20) for index in range(5)]
    model = build_cluster(brokers, topics)
    result = plan(model, RebalanceRequest())
    counts: Counter[tuple[int, int]] = Counter()
    after = apply_proposals(model, result)
    for partition in range(after.partition_count):
        counts[int(after.topic_of[partition]), after.list_replicas(partition)[0]] += 1
    assert max(counts.values()) <= 12
    assert get_statuses(result)["TopicReplicaDistributionGoal"] is GoalStatus.FIXED


def test_every_broker_leads_partitions_of_configured_topics():
    settings = AnalyzerSettings(topics_with_min_leaders_per_broker="important")
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(4)]
    model = build_cluster(brokers, [describe_topic("important", [(0, 1)] * 6), describe_topic("other", [(2, 3)] * 6)])
    result = plan(model, RebalanceRequest(), settings)
    after = apply_proposals(model, result)
    leaders = {int(after.leader[partition]) for partition in range(6)}
    assert leaders == {0, 1, 2, 3}
    few = build_cluster(brokers, [describe_topic("important", [(0, 1)] * 3)])
    refusal = optimize(few, RebalanceRequest(), settings)
    assert isinstance(refusal, Refusal)
    assert refusal.goal == "MinTopicLeadersPerBrokerGoal"


def build_disks(*, used: tuple[int, int] = (8, 0)) -> ClusterModel:
    """A broker with two volumes of 20 GB, and replicas of 1 GB."""
    dirs = (LogDir(path="/d0", total_bytes=20 * GB), LogDir(path="/d1", total_bytes=20 * GB))
    partitions = tuple(
        describe_partition(
            number,
            (0,),
            logs=(ReplicaDescription(broker=0, log_dir="/d0" if number < used[0] else "/d1", size_bytes=GB),),
        )
        for number in range(sum(used))
    )
    return build_cluster([describe_broker(0, log_dirs=dirs)], [TopicDescription(name="t", partitions=partitions)])


def test_log_directories_of_a_broker_are_balanced():
    result = plan(build_disks(), RebalanceRequest(rebalance_disk=True))
    assert len(result.proposals) == 4
    for proposal in result.proposals:
        assert [(move.broker, move.source, move.destination) for move in proposal.log_dir_moves] == [(0, "/d0", "/d1")]
        assert not proposal.is_replica_move
        assert not proposal.is_leader_move
    assert get_statuses(result)["IntraBrokerDiskUsageDistributionGoal"] is GoalStatus.FIXED


def test_a_log_directory_is_emptied():
    request = RebalanceRequest(mode=Mode.REMOVE_DISKS, log_dirs=(BrokerLogDir(broker=0, path="/d1"),))
    result = plan(build_disks(used=(5, 3)), request)
    assert len(result.proposals) == 3
    assert set(result.after.log_dir.tolist()) == {0}


def test_a_log_directory_that_does_not_fit_elsewhere_is_not_emptied():
    request = RebalanceRequest(mode=Mode.REMOVE_DISKS, log_dirs=(BrokerLogDir(broker=0, path="/d1"),))
    refusal = optimize(build_disks(used=(12, 6)), request, SETTINGS)
    assert isinstance(refusal, Refusal)
    assert refusal.reason.code == "LogDirCannotBeRemoved"


def test_data_to_move_counts_whole_mebibytes_per_new_replica():
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(3)]
    model = build_cluster(brokers, [describe_topic("t", [(0, 1)] * 4, size=(5 << 20) + 700_000)])
    result = plan(model, RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(0,)))
    assert result.data_to_move_mb == 4 * 5


def test_enough_brokers_are_right_sized_and_many_idle_ones_are_too_many():
    assert plan(build_even_cluster(), RebalanceRequest()).provision.status is ProvisionStatus.RIGHT_SIZED
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(6)]
    many = build_cluster(brokers, [describe_topic("t", [(0, 1, 2)] * 4)])
    assert plan(many, RebalanceRequest()).provision.status is ProvisionStatus.OVER_PROVISIONED


def test_fifty_thousand_replicas_on_one_broker_are_spread():
    model = generate_cluster(partitions=50_000, brokers=1, racks=1, seed=3, rf=1, new=9)
    result = plan(model, RebalanceRequest())
    assert max(result.after.replica_counts) <= 5450
    assert min(result.after.replica_counts) >= 4549


def test_an_empty_cluster_needs_nothing():
    model = build_cluster([describe_broker(0)], [])
    assert plan(model, RebalanceRequest()).proposals == ()


def test_brokers_with_capacities_of_processors_are_relieved():
    brokers = [
        describe_broker(index, rack=f"r{index}", cpu_pct=cpu, capacity=BrokerCapacity(num_cores=4.0))
        for index, cpu in enumerate((95.0, 10.0, 10.0))
    ]
    topic = TopicDescription(
        name="t",
        partitions=tuple(
            describe_partition(
                number,
                (0, 1 + number % 2) if number < 20 else (1 + number % 2, 0),
                bytes_in_per_s=1e5 if number < 20 else 1e2,
                bytes_out_per_s=1e5,
            )
            for number in range(40)
        ),
    )
    result = plan(build_cluster(brokers, [topic], rate_source="prometheus"), RebalanceRequest())
    assert get_statuses(result)["CpuCapacityGoal"] is GoalStatus.FIXED


@pytest.mark.parametrize("seed", [7])
def test_k29_five_of_a_hundred_brokers_leave(seed: int):
    model = generate_cluster(partitions=100_000, brokers=100, racks=5, seed=seed)
    leaving = (95, 96, 97, 98, 99)
    result = plan(model, RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=leaving))
    rows = result.after.broker_of.reshape(-1, 3)
    racks = rows % 5
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert not (rows[:, first] == rows[:, second]).any()
        assert not (racks[:, first] == racks[:, second]).any()
    assert result.after.replica_counts[95:].sum() == 0
    assert result.bounds.moves == model.replica_counts[95:].sum() == result.bounds.least_moves
    assert get_statuses(result)["DiskUsageDistributionGoal"] is GoalStatus.FIXED

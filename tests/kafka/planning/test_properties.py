"""What holds for every plan, whatever the cluster and the request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from plimsoll.kafka.model.cluster import ClusterModel, build_model
from plimsoll.kafka.model.proposals import GoalStatus, OptimizationResult, Refusal
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.goal_list import HARD_GOALS
from plimsoll.kafka.planning.optimizer import optimize
from tests.kafka.planning.clusters import apply_proposals, generate_cluster
from tests.kafka.planning.strategies import MODES, descriptions, requests

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from plimsoll.kafka.model.description import ClusterDescription

SETTINGS = AnalyzerSettings()
RACK_GOALS = frozenset({"RackAwareGoal", "RackAwareDistributionGoal"})


@dataclass(frozen=True)
class Plan:
    description: ClusterDescription
    model: ClusterModel
    request: RebalanceRequest
    result: OptimizationResult

    @cached_property
    def after(self) -> ClusterModel:
        return apply_proposals(self.model, self.result)

    @cached_property
    def held(self) -> set[str]:
        """Partitions that may not change."""
        reasons = [
            reason for reason in self.result.held if reason.code not in {"NoOtherLeader", "ReassignmentUnderWay"}
        ]
        return {name for reason in reasons for name in reason.facts.get("partitions", ())}


def draw_plan(data: st.DataObject, mode: Mode) -> Plan:
    description = data.draw(descriptions())
    request = data.draw(requests(description, mode))
    model = build_model(description)
    result = optimize(model, request, SETTINGS)
    if isinstance(result, Refusal):
        event(f"refused: {result.goal} {result.reason.code}")
        assert result.reason.message
    assume(isinstance(result, OptimizationResult))
    assert isinstance(result, OptimizationResult)
    event("moves" if result.bounds.moves else "no moves")
    return Plan(description, result.before, request, result)


def check_replicas(plan: Plan) -> None:
    """No partition loses a replica, none has two on one broker."""
    ids = {broker.id for broker in plan.model.brokers}
    for proposal in plan.result.proposals:
        assert len(proposal.new_replicas) == len(proposal.old_replicas)
        assert len(set(proposal.new_replicas)) == len(proposal.new_replicas)
        assert ids.issuperset(proposal.new_replicas)


def check_racks(plan: Plan) -> None:
    """Replicas are on different racks wherever there are enough racks."""
    if plan.request.mode is Mode.DEMOTE_BROKERS:
        return
    model = plan.model
    silent = {broker.id for broker in model.brokers if broker.log_dirs is None or broker.is_fenced}
    for partition in range(model.partition_count):
        replicas, name = plan.after.list_replicas(partition), model.name_partition(partition)
        if str(name) in plan.held or name.topic in plan.result.excluded_topics or silent.intersection(replicas):
            continue
        racks = Counter(int(model.rack_of[model.index_of_broker[broker]]) for broker in replicas)
        assert max(racks.values()) == 1, name


def check_goals(plan: Plan) -> None:
    """Hard goals hold, and every violated goal has a reason."""
    violated = [goal for goal in plan.result.goals if goal.status is GoalStatus.VIOLATED]
    assert not [goal for goal in violated if goal.goal in HARD_GOALS]
    assert all(goal.reason is not None for goal in violated)


def check_bounds(plan: Plan) -> None:
    """Moves and bytes are at least their bounds."""
    bounds = plan.result.bounds
    assert 0 <= bounds.least_moves <= bounds.moves
    assert 0 <= bounds.least_bytes <= bounds.bytes


def check_mode(plan: Plan) -> None:
    """Add moves only onto new brokers; remove only off leaving ones, and repairs of hard goals; demote moves none."""
    request = plan.request
    for proposal in plan.result.proposals:
        if request.mode is Mode.DEMOTE_BROKERS:
            assert not proposal.added
            assert proposal.new_replicas[0] not in request.brokers or len(proposal.new_replicas) == 1
        if request.relief is True:
            continue
        if request.mode is Mode.ADD_BROKERS:
            assert set(proposal.added) <= set(request.brokers)
            assert not proposal.is_leader_move or proposal.new_replicas[0] in request.brokers
        if request.mode is Mode.REMOVE_BROKERS and not _repairs_hard_goal(plan, proposal.old_replicas):
            assert set(proposal.removed) <= set(request.brokers)


def _repairs_hard_goal(plan: Plan, replicas: tuple[int, ...]) -> bool:
    """Two replicas in one rack, or a capacity goal that was violated: then other replicas may move, too."""
    racks = [plan.model.rack_of[plan.model.index_of_broker[broker]] for broker in replicas]
    fixed = {goal.goal for goal in plan.result.goals if goal.status is GoalStatus.FIXED}
    return len(set(racks)) < len(racks) or bool((fixed & HARD_GOALS) - RACK_GOALS)


def check_after(plan: Plan) -> None:
    """The cluster after the plan has the replicas of the proposals, in their order, with the same state as before."""
    after, model = plan.result.after, plan.model
    for partition in range(model.partition_count):
        assert after.list_replicas(partition) == plan.after.list_replicas(partition)
        rows = range(model.offsets[partition], model.offsets[partition + 1])
        state = {
            int(model.broker_of[row]): (model.in_sync[row], model.offline[row], model.log_dir[row]) for row in rows
        }
        for row in rows:
            found = (after.in_sync[row], after.offline[row], after.log_dir[row])
            assert found == state.get(int(after.broker_of[row]), (True, False, -1))
    assert (after.leader == plan.after.leader).all()


def check_leaving(plan: Plan) -> None:
    """Leaving brokers keep only what is held."""
    if plan.request.mode is not Mode.REMOVE_BROKERS:
        return
    for partition in range(plan.model.partition_count):
        if set(plan.after.list_replicas(partition)) & set(plan.request.brokers):
            assert str(plan.model.name_partition(partition)) in plan.held


def check_held(plan: Plan) -> None:
    """What is held or excluded does not change, and nothing moves onto brokers that may not receive."""
    request = plan.request
    silent = {broker.id for broker in plan.model.brokers if broker.log_dirs is None or broker.is_fenced}
    for proposal in plan.result.proposals:
        assert f"{proposal.topic}-{proposal.partition}" not in plan.held
        assert proposal.topic not in plan.result.excluded_topics
        assert not silent.intersection(proposal.added)
        assert not set(request.excluded_for_replicas).intersection(proposal.added)
        if request.destination_brokers:
            assert set(proposal.added) <= set(request.destination_brokers)


def check_leaders(plan: Plan) -> None:
    """New leaders were in sync, or are new replicas."""
    partitions = {
        (topic.name, partition.partition): partition
        for topic in plan.description.topics
        for partition in topic.partitions
    }
    for proposal in plan.result.proposals:
        leader, partition = proposal.new_replicas[0], partitions[proposal.topic, proposal.partition]
        if leader != proposal.old_leader and leader not in proposal.added:
            assert leader in partition.isr
            assert leader not in partition.offline
            assert leader not in plan.request.excluded_for_leadership
        if leader != proposal.old_leader and plan.request.mode in {Mode.ADD_BROKERS, Mode.FULL}:
            assert leader not in plan.request.excluded_for_leadership


def check_loads(plan: Plan) -> None:
    """The loads that were kept while moving equal those counted anew."""
    last = plan.result.goals[-1].statistics
    assert last.maximum.replicas == plan.after.replica_counts.max()
    assert last.maximum.leader_replicas == plan.after.leader_counts.max()
    assert np.array_equal(plan.result.after.leader, plan.after.leader)
    assert np.array_equal(plan.result.after.replica_counts, plan.after.replica_counts)


CHECKS: list[Callable[[Plan], None]] = [
    check_replicas,
    check_racks,
    check_goals,
    check_bounds,
    check_mode,
    check_after,
    check_leaving,
    check_held,
    check_leaders,
    check_loads,
]
RELAXED = settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


@pytest.mark.parametrize("mode", MODES)
@RELAXED
@given(st.data())
def test_every_plan_keeps_what_the_analyzer_promises(mode: Mode, data: st.DataObject):
    plan = draw_plan(data, mode)
    for check in CHECKS:
        check(plan)


@pytest.mark.parametrize("mode", [Mode.FULL, Mode.ADD_BROKERS, Mode.REMOVE_BROKERS])
@RELAXED
@given(st.data(), st.randoms(use_true_random=False))
def test_plans_do_not_depend_on_the_order_of_input(mode: Mode, data: st.DataObject, rng: random.Random):
    plan = draw_plan(data, mode)
    again = optimize(build_model(_shuffle(plan.description, rng)), plan.request, SETTINGS)
    assert isinstance(again, OptimizationResult)
    assert again.proposals == plan.result.proposals
    assert again.goals == plan.result.goals


def _shuffle(description: ClusterDescription, rng: random.Random) -> ClusterDescription:
    brokers, topics = list(description.brokers), list(description.topics)
    rng.shuffle(brokers)
    rng.shuffle(topics)
    for index, topic in enumerate(topics):
        partitions = list(topic.partitions)
        rng.shuffle(partitions)
        topics[index] = msgspec.structs.replace(topic, partitions=tuple(partitions))
    return msgspec.structs.replace(description, brokers=tuple(brokers), topics=tuple(topics))


@pytest.mark.parametrize("mode", [Mode.FULL, Mode.ADD_BROKERS, Mode.REMOVE_BROKERS])
@settings(max_examples=20)
@given(st.data())
def test_a_plan_that_was_carried_out_is_followed_by_almost_nothing(mode: Mode, data: st.DataObject):
    """Where a window is wider than a partition; a few brokers with a few large partitions have no stable balance."""
    brokers = data.draw(st.integers(12, 15))
    model = generate_cluster(
        partitions=data.draw(st.integers(600, 900)),
        brokers=brokers,
        racks=data.draw(st.integers(3, 4)),
        seed=data.draw(st.integers(0, 1000)),
        new=2 if mode is Mode.ADD_BROKERS else 0,
        topics=10,
        is_rack_aware=data.draw(st.booleans()) or mode is Mode.ADD_BROKERS,
    )
    given_brokers = {Mode.ADD_BROKERS: (brokers, brokers + 1), Mode.REMOVE_BROKERS: (brokers - 1,)}.get(mode, ())
    request = RebalanceRequest(mode=mode, brokers=given_brokers)
    result = optimize(model, request, SETTINGS)
    assume(isinstance(result, OptimizationResult))  # One large partition may fill a broker beyond its capacity.
    assert isinstance(result, OptimizationResult)
    again = optimize(apply_proposals(model, result), request, SETTINGS)
    assert isinstance(again, OptimizationResult), again
    assert again.bounds.moves <= 1 + result.bounds.moves // 20


@RELAXED
@given(st.data())
def test_the_score_after_a_full_rebalance_is_not_lower(data: st.DataObject):
    description = data.draw(descriptions(has_trouble=False))
    result = optimize(build_model(description), RebalanceRequest(), SETTINGS)
    if isinstance(result, OptimizationResult):
        assert result.balancedness_after >= result.balancedness_before

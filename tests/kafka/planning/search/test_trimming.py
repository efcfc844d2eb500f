"""No plan moves a replica that could as well have stayed (docs/design/kafka.md 8.5, step 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from plimsoll.kafka.model.proposals import OptimizationResult
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning import optimizer
from plimsoll.kafka.planning.goal_list import DEFAULT_GOALS
from plimsoll.kafka.planning.goals.registry import build_goals
from plimsoll.kafka.planning.loads import build_loads
from plimsoll.kafka.planning.optimizer import optimize
from plimsoll.kafka.planning.placement import Placement, RackRule
from plimsoll.kafka.planning.scope import Scope, build_scope
from tests.kafka.planning.clusters import generate_cluster

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import Floats
    from plimsoll.kafka.planning.goals.goal import Goal

SETTINGS = AnalyzerSettings()
ADD = RebalanceRequest(mode=Mode.ADD_BROKERS, brokers=(6, 7, 8))


def plan(seed: int, request: RebalanceRequest) -> OptimizationResult:
    new = 3 if request.mode is Mode.ADD_BROKERS else 0
    model = generate_cluster(partitions=300, brokers=6, racks=3, seed=seed, new=new, has_rates=True)
    result = optimize(model, request, SETTINGS)
    assert isinstance(result, OptimizationResult)
    return result


def measure(goal: Goal) -> Floats:
    """How far each broker is from the range of a goal; for goals without such ranges, how far all are."""
    if goal.limits is None:
        return np.array([goal.measure_violation()])
    return np.abs(goal.limits.measure_excess(goal.placement.load))


def list_needless(result: OptimizationResult) -> list[int]:
    """The moved replicas that could return one by one, found by counting every goal anew."""
    before = result.before
    scope = build_scope(before, result.request)
    assert isinstance(scope, Scope)
    placement = Placement(before, build_loads(before), scope)
    placement.rack_rule = RackRule.ONE_PER_RACK
    goals = [goal for goal in build_goals(DEFAULT_GOALS, placement, SETTINGS) if goal.find_inapplicable() is None]
    kept = {}
    for proposal in result.proposals:
        kept[proposal.topic, proposal.partition] = proposal.new_replicas
    for partition in range(before.partition_count):
        name = before.name_partition(partition)
        rows = np.arange(before.offsets[partition], before.offsets[partition + 1])
        new = kept.get((name.topic, name.partition), before.list_replicas(partition))
        ids = before.broker_ids[before.broker_of[rows]]
        added = [broker for broker in new if broker not in ids]
        for row, broker in zip(rows, ids, strict=True):
            if broker not in new:
                placement.move(int(row), before.index_of_broker[added.pop(0)])
        leader = before.index_of_broker[new[0]]
        placement.lead(int(rows[placement.broker_of[rows] == leader][0]))
    violations = [measure(goal) for goal in goals]
    needless = []
    for row in np.flatnonzero(placement.moved).tolist():
        partition = before.partition_of[row]
        here, there = int(placement.broker_of[row]), int(before.broker_of[row])
        if placement.leading[partition] == row and before.leader[partition] != there:
            continue
        placement.move(row, there)
        now = [measure(goal) for goal in goals]
        if all((after <= violation + 1e-6).all() for after, violation in zip(now, violations, strict=True)):
            needless.append(row)
        placement.move(row, here)
    return needless


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("request_", [ADD, RebalanceRequest()], ids=["add", "full"])
def test_no_move_can_be_undone(seed: int, request_: RebalanceRequest):
    assert list_needless(plan(seed, request_)) == []


def test_plans_without_the_last_pass_have_such_moves(monkeypatch: pytest.MonkeyPatch):
    with_pass = [plan(seed, ADD).bounds for seed in range(3)]
    monkeypatch.setattr(optimizer, "undo_needless_moves", lambda *_arguments: 0)
    without = [plan(seed, ADD) for seed in range(3)]
    assert any(list_needless(result) for result in without)
    assert sum(bounds.bytes for bounds in with_pass) < sum(result.bounds.bytes for result in without)

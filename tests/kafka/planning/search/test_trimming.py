"""No plan moves a replica that could as well have stayed (docs/design/kafka.md 8.5, step 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from plimsoll.kafka.model.proposals import OptimizationResult
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning import optimizer
from plimsoll.kafka.planning.optimizer import optimize
from tests.kafka.planning.clusters import generate_cluster, rebuild_placement

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
    placement, goals = rebuild_placement(result)
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

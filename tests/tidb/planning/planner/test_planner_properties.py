"""What holds for any cluster: no limit is passed, the cluster itself never shrinks, a constant load comes to rest."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.tidb.planning.planner.result import CannotPlan, PlannerResult
from plimsoll.tidb.wire.strategy import read_strategies, write_strategy
from tests.tidb.planning.planner.builders import Json, answer, group_of, instance, snapshot, strategy, thresholds

USAGES = st.one_of(st.floats(0, 1.2), st.sampled_from([0.1, 0.2, 0.5, 0.8, 0.9]))
KINDS = ["a", "b", "c"]
STANDING = st.fixed_dictionaries({kind: st.integers(0, 3) for kind in KINDS})
PASSES = 60
"""More than any draw needs: homogeneous instances only grow up to 16 nodes, groups only shrink or fill up."""


@st.composite
def rules(draw: st.DrawFn) -> Json:
    low = draw(st.integers(0, 90))
    return thresholds(draw(st.integers(low + 1, 99)) / 100, low / 100)


@st.composite
def questions(draw: st.DrawFn) -> Json:
    types: list[Json] = []
    for kind in KINDS[: draw(st.integers(0, 3))]:
        count = draw(st.none() | st.integers(0, 6))
        types.append({"resource_type": kind, "cpu": draw(st.integers(1, 32)) * 500, "count": count})
    return strategy(
        *types,
        cpu=draw(rules()),
        nodes=draw(st.integers(0, 16)),
        limit=draw(st.none() | st.integers(0, 12)),
    )


@st.composite
def clusters(draw: st.DrawFn) -> list[Json]:
    silent = st.one_of(USAGES, USAGES, USAGES, st.none())
    own = [instance(draw(silent), name=f"db-tikv-{i}") for i in range(draw(st.integers(1, 6)))]
    groups = [instance for kind in KINDS for instance in group_of(kind, *draw(st.lists(silent, max_size=3)))]
    foreign = [instance(draw(silent), base=False, name=f"cold-{i}") for i in range(draw(st.integers(0, 2)))]
    return [*own, *groups, *foreign]


def sizes(found: PlannerResult) -> tuple[int | None, dict[str, int]]:
    own = [scaling_plan.count for scaling_plan in found.plans if scaling_plan.is_homogeneous]
    return (own[0] if own else None), {
        scaling_plan.resource_type: scaling_plan.count
        for scaling_plan in found.plans
        if not scaling_plan.is_homogeneous
    }


def standing_groups(instances: list[Json]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in instances:
        kind = row["labels"].get("resource-type")
        if kind:
            found[kind] = found.get(kind, 0) + 1
    return found


@given(questions(), clusters())
@settings(max_examples=150)
def test_a_plan_stays_within_counts_and_nodes_and_never_shrinks_the_cluster_itself(asked: Json, instances: list[Json]):
    found = answer(asked, snapshot(*instances))
    if isinstance(found, CannotPlan):
        assert found.code == "insufficient_metrics"
        return
    own, groups = sizes(found)
    before, standing = standing_groups(instances), sum(instance["base"] for instance in instances)
    limit = asked["resources"][-1].get("count")
    ceilings = {resource["resource_type"]: resource["count"] for resource in asked["resources"][:-1]}
    for kind, number in groups.items():
        assert number > 0
        assert ceilings.get(kind) is None or number <= ceilings[kind]
        assert kind in ceilings or number <= before[kind]
    assert own is None or own > standing
    assert own is None or limit is None or own <= limit
    foreign = len(instances) - standing - sum(before.values())
    total = (own or standing) + sum(groups.values()) + foreign
    assert total <= max(asked["node_count"], len(instances))


@given(questions(), clusters(), st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_the_order_of_instances_and_resources_does_not_matter(asked: Json, instances: list[Json], chance: Any):
    turned = {**asked, "resources": chance.sample(asked["resources"], len(asked["resources"]))}
    shuffled = chance.sample(instances, len(instances))
    assert answer(turned, snapshot(*shuffled)) == answer(asked, snapshot(*instances))


@given(questions(), clusters())
@settings(max_examples=100)
def test_removals_are_one_at_a_time_and_only_of_known_ones(asked: Json, instances: list[Json]):
    for resource in asked["resources"][:-1]:
        resource["count"] = None
    found = answer(asked, snapshot(*instances))
    if isinstance(found, CannotPlan):
        return
    own, groups = sizes(found)
    lost = {kind: number - groups.get(kind, 0) for kind, number in standing_groups(instances).items()}
    total = sum(number for number in lost.values() if number > 0)
    if any(instance["cpu_used_seconds"] is None for instance in instances):
        assert total == 0
    elif own is None:
        assert total <= 1


@given(questions())
def test_a_strategy_is_read_as_it_was_written(asked: Json):
    (first,) = read_strategies(json.dumps(asked).encode())
    assert read_strategies(write_strategy(first)) == (first,)
    turned = {**asked, "resources": asked["resources"][::-1]}
    (same,) = read_strategies(json.dumps(turned).encode())
    assert write_strategy(same) == write_strategy(first)


# ---- a constant load comes to rest


def at_rest(asked: Json, load: Any, *, groups: dict[str, int]) -> list[tuple[int, dict[str, int]]]:
    """Sizes pass by pass until nothing changes; `load(own, groups)` is what the instances then report."""
    own = 3
    history: list[tuple[int, dict[str, int]]] = [(own, groups)]
    for _ in range(PASSES):
        found = answer(asked, snapshot(*load(own, groups)))
        assert isinstance(found, PlannerResult)
        raised, groups = sizes(found)
        own = raised or own
        if history[-1] == (own, groups):
            return history
        history.append((own, groups))
    raise AssertionError(f"no rest: {history[-4:]}")


def known_of(asked: Json, standing: dict[str, int]) -> dict[str, int]:
    """Groups to start with: of types that have a size."""
    return {resource["resource_type"]: standing[resource["resource_type"]] for resource in asked["resources"][:-1]}


def turns(numbers: list[int]) -> int:
    """How often growing became shrinking or the other way round."""
    steps = [after - before for before, after in pairwise(numbers) if after != before]
    return sum((step > 0) != (other > 0) for step, other in pairwise(steps))


def assert_does_not_oscillate(history: list[tuple[int, dict[str, int]]]) -> None:
    assert all(after[0] >= before[0] for before, after in pairwise(history))
    for kind in KINDS:
        assert turns([groups.get(kind, 0) for _, groups in history]) <= 1


@given(questions(), st.floats(0, 60), STANDING)
@settings(max_examples=100)
def test_total_work_spread_evenly_comes_to_rest(asked: Json, work_cores: float, standing: dict[str, int]):
    cores = {resource["resource_type"]: resource["cpu"] / 1000 for resource in asked["resources"]}

    def load(own: int, groups: dict[str, int]) -> list[Json]:
        quota = 4 * own + sum(cores[kind] * number for kind, number in groups.items())
        usage = work_cores / quota
        members = [
            instance for kind, n in groups.items() for instance in group_of(kind, *[usage] * n, quota=cores[kind])
        ]
        return [*(instance(usage, name=f"db-tikv-{i}") for i in range(own)), *members]

    assert_does_not_oscillate(at_rest(asked, load, groups=known_of(asked, standing)))


@given(questions(), st.lists(st.floats(0, 1.5), min_size=3, max_size=3), STANDING)
@settings(max_examples=100)
def test_fixed_hot_instances_whose_excess_moves_to_the_group_come_to_rest(
    asked: Json, usages: list[float], standing: dict[str, int]
):
    rule = asked["rules"][0]["cpu_rule"]
    target = (rule["max_threshold"] + rule["min_threshold"]) / 2
    cores = {resource["resource_type"]: resource["cpu"] / 1000 for resource in asked["resources"]}

    def load(own: int, groups: dict[str, int]) -> list[Json]:
        """Groups take up to the target; what they cannot take stays where it was."""
        room = sum(cores[kind] * number for kind, number in groups.items())
        excess = [max(0.0, usage - target) * 4 if usage > rule["max_threshold"] else 0.0 for usage in usages]
        moved = min(sum(excess), room * target)
        part = moved / sum(excess) if sum(excess) else 0.0
        left = [usage - share * part / 4 for usage, share in zip(usages, excess, strict=True)]
        idle = [0.0] * (own - len(usages))
        each = moved / room if room else 0.0
        members = [
            instance for kind, n in groups.items() for instance in group_of(kind, *[each] * n, quota=cores[kind])
        ]
        return [*(instance(usage, name=f"db-tikv-{i}") for i, usage in enumerate([*left, *idle])), *members]

    assert_does_not_oscillate(at_rest(asked, load, groups=known_of(asked, standing)))

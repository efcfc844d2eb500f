"""Defects of PD's planner that the specification forbids (docs/design/tidb.md 4.7), by number, and its rules of data
quality (docs/design/tidb.md 4.2)."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.tidb.planning.planner.result import CannotPlan
from tests.tidb.planning.planner.builders import (
    BIG,
    SMALL,
    answer,
    base,
    codes,
    counts,
    disks,
    group_of,
    instance,
    planned,
    snapshot,
    strategy,
    thresholds,
)

PARTLY_HOT = base(0.95, 0.3, 0.3)


def test_defect_1_two_instances_of_equal_usage_both_count():
    one, two = counts(strategy(SMALL), *base(0.9, 0.2, 0.2)), counts(strategy(SMALL), *base(0.9, 0.9, 0.2, 0.2))
    assert (one, two) == ({"small": 2}, {"small": 4})


def test_defect_2_cores_and_thousandths_are_not_mixed():
    tiny = {**SMALL, "cpu": 500, "count": 20}
    assert counts(strategy(tiny, nodes=50), *PARTLY_HOT) == {"small": 8}


def test_defect_3_the_plan_of_a_standing_group_is_its_total():
    assert counts(strategy(SMALL), *PARTLY_HOT, *group_of("small", 0.3)) == {"small": 3}


def test_defect_4_plans_for_tidb_are_tidbs():
    asked = strategy(SMALL, component="tidb")
    own = planned(asked, *base(0.9, 0.9)).plans[0]
    group = planned(asked, *base(0.9, 0.1, 0.1)).plans[0]
    assert [(rule.component, rule.resource_type) for rule in (own, group)] == [
        ("tidb", "default_homogeneous_tidb"),
        ("tidb", "small"),
    ]
    assert group.labels["group"] == "pd-auto-scaling-tidb-small"


@pytest.mark.parametrize(
    ("asked", "instances", "expected"),
    [
        (strategy({**SMALL, "count": 1}), [*PARTLY_HOT, *group_of("small", 0.3, 0.3)], {"small": 1}),
        (strategy(SMALL, nodes=2), [*PARTLY_HOT, *group_of("small", 0.3)], {"small": 1}),
        (strategy(BIG, SMALL, nodes=4), PARTLY_HOT, {"big": 1}),
        (strategy(nodes=2), base(0.9, 0.9, 0.9), {}),
        (strategy(limit=2), base(0.9, 0.9, 0.9), {}),
    ],
    ids=["more than count", "fewer nodes than instances", "nodes used up", "own and nodes", "own and limit"],
)
def test_defect_5_nothing_runs_below_zero(asked: Any, instances: Any, expected: dict[str, int]):
    assert counts(asked, *instances) == expected


@pytest.mark.parametrize(("limit", "expected"), [(2, {}), (3, {}), (4, {"own": 4}), (6, {"own": 6}), (7, {"own": 6})])
def test_defect_6_a_storage_limit_that_is_reached_or_passed_holds(limit: int, expected: dict[str, int]):
    assert counts(strategy(storage=thresholds(), limit=limit), *disks(270)) == expected


def test_defect_7_each_component_has_its_own_rule():
    asked = strategy(component="tikv", cpu=thresholds(0.99))
    asked["rules"].append({"component": "tidb", "cpu_rule": thresholds()})
    asked["resources"].append({"resource_type": "default_homogeneous_tidb", "cpu": 4000})
    found = answer(asked, snapshot(*base(0.9, 0.9), component="tidb"))
    assert not isinstance(found, CannotPlan)
    assert [(plan.resource_type, plan.count) for plan in found.plans] == [("default_homogeneous_tidb", 4)]
    assert counts(asked, *base(0.9, 0.9)) == {}


def test_defect_7_a_rule_without_cpu_is_one():
    assert counts(strategy(SMALL, storage=thresholds()), *disks(100)) == {}


def test_defect_8_a_storage_rule_needs_no_lower_threshold():
    """It is 0.1 then: 270 / 0.45 - 300 = 300, exactly three stores, so four."""
    assert counts(strategy(storage=thresholds(low=None)), *disks(270)) == {"own": 7}


@pytest.mark.parametrize("turned", [False, True])
def test_defect_9_the_smallest_instance_goes_first_whatever_the_order(turned: bool):
    twin = {**SMALL, "resource_type": "tiny"}
    instances = [*base(0.1, 0.1), *group_of("big", 0.1), *group_of("tiny", 0.1), *group_of("small", 0.1)]
    found = counts(strategy(BIG, SMALL, twin), *(reversed(instances) if turned else instances))
    assert found == {"big": 1, "tiny": 1}


@pytest.mark.parametrize(
    "silent",
    [
        instance(0.0, quota=None, name="silent"),
        instance(None, name="silent"),
        instance(0.0, quota=0, name="silent"),
        instance(0.0, name="silent", quality="stale"),
        instance(0.0, name="silent", quality="too_young"),
    ],
    ids=["no quota", "no usage", "quota 0", "stale", "young"],
)
def test_defect_10_an_instance_that_reports_nothing_is_not_low(silent: dict[str, Any]):
    idle = [*base(0.05, 0.05), *group_of("small", 0.05)]
    assert counts(strategy(SMALL), *idle) == {}
    assert counts(strategy(SMALL), *idle, silent) == {"small": 1}
    assert codes(strategy(SMALL), *idle, silent) == ["metrics_missing"]


def test_defect_10_an_instance_that_reports_nothing_does_not_hold_back_additions():
    assert counts(strategy(SMALL), *PARTLY_HOT, instance(None, name="silent")) == {"small": 2}
    assert counts(strategy(SMALL), *base(0.9, 0.9, 0.9), instance(None, name="silent")) == {"own": 7}


def test_defect_10_groups_do_not_make_room_while_an_instance_reports_nothing():
    """They would for the cluster's own, if all were known."""
    high = [*base(0.9, 0.9, 0.9), *group_of("small", 0.9)]
    assert counts(strategy(SMALL, nodes=5), *high) == {"own": 5}
    assert counts(strategy(SMALL, nodes=5), *high[:-1], *group_of("small", None)) == {"small": 1, "own": 4}


@pytest.mark.parametrize(
    "instances",
    [[], [instance(0.0, quota=0)], [instance(0.0, quota=None)], [instance(0.9), *base(None, None)]],
    ids=["nobody", "quota 0", "no quota", "one of three"],
)
def test_defect_12_without_enough_metrics_there_is_no_plan(instances: list[Any]):
    found = answer(strategy(SMALL), snapshot(*instances))
    assert isinstance(found, CannotPlan)
    assert (found.code, found.is_for_lack_of_data) == ("insufficient_metrics", True)


def test_half_of_the_instances_with_less_than_half_of_the_cores_are_not_enough():
    silent = [instance(None, quota=16, name="a"), instance(None, quota=16, name="b")]
    assert isinstance(answer(strategy(), snapshot(*base(0.9, 0.9), *silent)), CannotPlan)
    assert counts(strategy(), *base(0.9, 0.9, quota=16), *silent)["own"] > 4


@pytest.mark.parametrize("disk", [{"capacity_bytes": 0, "used_bytes": 0}, {"used_bytes": 5}])
def test_stores_without_capacity_are_an_error(disk: dict[str, int]):
    found = answer(strategy(storage=thresholds()), snapshot(*({**instance, **disk} for instance in base(0.3, 0.3))))
    assert isinstance(found, CannotPlan)
    assert found.is_for_lack_of_data


def test_without_a_size_of_its_own_the_cluster_cannot_grow():
    asked = strategy()
    asked["resources"] = []
    found = answer(asked, snapshot(*base(0.9, 0.9)))
    assert isinstance(found, CannotPlan)
    assert (found.code, found.is_for_lack_of_data) == ("no_homogeneous_size", False)
    assert isinstance(answer(strategy(storage=thresholds(), own_storage=0), snapshot(*disks(270))), CannotPlan)

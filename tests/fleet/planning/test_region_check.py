"""The limit of a region: docs/design/fleet.md 3.2."""

from __future__ import annotations

import pytest

from plimsoll.fleet.model.clusters import Locator
from plimsoll.fleet.model.statuses import ScalingType
from plimsoll.fleet.planning.region_check import (
    Refused,
    build_region_check,
    list_available_sizes,
    sum_region_units,
)
from plimsoll.fleet.ports import RegionCheck
from tests.fleet.fleet_rows import STANDARD, count_kafkas, make_cluster, make_instance_type, make_policy, offer


def test_a_limit_is_checked_with_the_units_of_every_size():
    check = build_region_check(make_policy(offer(limit=5)), STANDARD, owner_limit=1)
    assert check == RegionCheck(limit=5, sizes={"x1": 1, "x2": 2}, unknown_size_units=2, owner_limit=1)


@pytest.mark.parametrize("scaling_type", [ScalingType.AUTO, ScalingType.MANUAL])
def test_without_a_limit_all_are_accepted(scaling_type: ScalingType):
    check = build_region_check(make_policy(offer(), scaling_type=scaling_type), STANDARD)
    assert isinstance(check, RegionCheck)
    assert check.limit is None


@pytest.mark.parametrize(
    ("locator", "reason"),
    [
        (STANDARD, "closed"),
        (Locator("aws", "us-east-1", "developer"), "not_offered"),
        (Locator("aws", "eu-west-1", "standard"), "not_offered"),
        (Locator("aws", "us-east-1", "premium"), "unknown_instance_type"),
    ],
)
def test_what_is_not_offered_is_refused(locator: Locator, reason: str):
    check = build_region_check(make_policy(offer(limit=0)), locator)
    assert isinstance(check, Refused)
    assert check.reason == reason


def test_the_limit_counts_kafkas_without_a_place_and_those_being_deleted():
    cluster = make_cluster("a")
    counts = (
        count_kafkas(cluster, 2, size_id="x2", deleting=3),
        count_kafkas(None, 1),
        count_kafkas(None, 1, size_id="x9"),
    )
    assert sum_region_units(counts, make_policy()) == {STANDARD: 13}


@pytest.mark.parametrize(("used", "expected"), [(0, ("x1", "x2", "x4")), (3, ("x1", "x2")), (4, ("x1",)), (5, ())])
def test_available_sizes_are_the_biggest_that_passes_and_all_smaller_ones(used: int, expected: tuple[str, ...]):
    policy = make_policy(offer(limit=5), types=(make_instance_type("standard", 1, 2, 4),))
    assert list_available_sizes(policy, STANDARD, used=used) == expected


def test_outside_of_auto_mode_sizes_need_a_place():
    policy = make_policy(offer(), types=(make_instance_type("standard", 1, 2, 4),), scaling_type=ScalingType.MANUAL)
    found = list_available_sizes(policy, STANDARD, used=99, has_place=lambda size: size.capacity_consumed == 2)
    assert found == ("x1", "x2")
    assert list_available_sizes(policy, STANDARD, used=0, has_place=lambda _: False) == ()

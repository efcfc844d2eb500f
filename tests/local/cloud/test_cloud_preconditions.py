"""Changes that name the target they start from: done once, and only if nobody else changed it."""

from __future__ import annotations

import pytest

from plimsoll.local.cloud import CloudRefused
from tests.local.cloud.clouds import CloudWorld


def test_growth_from_the_expected_size_happens_once():
    with CloudWorld() as world:
        world.group("g", target=3)
        for _ in range(2):
            world.do(world.cloud.increase_size("g", 2, expected=3))
        assert world.get_group().spec.target == 5


def test_growth_from_another_size_is_refused():
    with CloudWorld() as world:
        world.group("g", target=4)
        with pytest.raises(CloudRefused, match="target of node group g is 4, not 3"):
            world.do(world.cloud.increase_size("g", 2, expected=3))
        assert world.get_group().spec.target == 4


def test_atomic_growth_that_was_done_needs_no_room_again():
    with CloudWorld(stock=[{"name": "s", "machineType": "small", "machines": 2}]) as world:
        world.group("g", atomic=True)
        for _ in range(2):
            world.do(world.cloud.atomic_increase_size("g", 2, expected=0))
        assert world.get_group().spec.target == 2


def test_shrinking_from_the_expected_size_happens_once():
    with CloudWorld() as world:
        world.group("g", target=3, bootSeconds=99)
        for _ in range(2):
            world.do(world.cloud.decrease_target_size("g", -1, expected=3))
        assert world.get_group().spec.target == 2

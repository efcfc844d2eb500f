"""Edited marks: at worst a drain begins anew. No mark makes a pod go, or touches another's store."""

from __future__ import annotations

import pytest

from plimsoll.tidb.model.reconcile_types import DrainRecord
from plimsoll.tidb.planning.drain.types import Drained
from plimsoll.tidb.wire.annotations import DRAIN, read_drain_record
from tests.tidb.actuation.drain_builders import DrainHarness


def mark(world: DrainHarness, store_id: int) -> DrainRecord:
    return DrainRecord(store_id=store_id, evicting_since=world.now, region_count=0, regions_moved_at=world.now)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "null",
        "[]",
        '{"storeID":4}',
        '{"storeID":"4","evictingSince":"now","regionCount":0,"regionsMovedAt":"now"}',
        '{"storeID":4,"evictingSince":"2026-01-01T00:00:00","regionCount":0,"regionsMovedAt":"2026-01-01T00:00:00"}',
    ],
)
def test_what_is_no_mark_is_none(text: str) -> None:
    assert read_drain_record({DRAIN: text}) is None


@pytest.mark.parametrize("store_id", [1, 4, 5, 99], ids=["of the base", "its own", "of a sibling", "of nobody"])
def test_whatever_a_mark_names_the_last_store_is_drained(store_id: int) -> None:
    with DrainHarness(replicas=2) as world:
        world.mark = mark(world, store_id)
        world.take_out_all()
        assert (world.lost, world.pd.evicting, world.pd.together) == ([], set(), 1)
        assert [breathing_store.state for breathing_store in world.pd.stores.values()] == [0, 0, 0, 2, 2]


def test_a_store_of_the_base_that_is_leaving_is_not_brought_back() -> None:
    with DrainHarness(base=4, regions_per_s=0) as world:
        world.pd.stores[1].state = 1
        world.mark = mark(world, 1)
        world.take_out()
        assert world.pd.stores[1].state == 1
        world.bring_back()
        assert world.pd.stores[1].state == 1


def test_a_mark_that_was_taken_away_is_written_again() -> None:
    with DrainHarness() as world:
        world.take_out()
        world.mark = None
        world.take_out()
        assert world.mark is not None
        assert world.pd.evicting == {4}
        world.take_out_all()
        assert (world.lost, world.pd.evicting) == ([], set())


def test_a_mark_of_a_buried_store_does_not_take_the_next_pod_along() -> None:
    with DrainHarness(replicas=2) as world:
        world.store(1).state = 2
        world.replicas, world.mark = 1, mark(world, world.store(1).id)
        assert not isinstance(world.take_out(), Drained)
        assert world.pd.evicting == {world.store(0).id}

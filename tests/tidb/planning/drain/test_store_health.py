"""The preconditions of taking a store out, read fresh before PD is called: enough others, all well, and room."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.tidb.planning.drain.store_health import ObservedStore, RegionHealth, find_blocker
from plimsoll.tidb.planning.drain.types import Blocked, Drained, DrainInProgress
from tests.tidb.actuation.drain_builders import DrainHarness

WELL = RegionHealth(needed=3, unhealthy={"miss-peer": 0, "pending-peer": 0, "down-peer": 0})
GIB = 1024**3


def store(number: int, **more: Any) -> ObservedStore:
    known = {"capacity_bytes": 100 * GIB, "used_bytes": 30 * GIB}
    return ObservedStore(id=number, pod=f"db-tikv-{number}", namespace="prod", **{**known, **more})


def hot(number: int, **more: Any) -> ObservedStore:
    return store(number, is_special=True, **{"capacity_bytes": 10 * GIB, "used_bytes": 2 * GIB, **more})


def code(leaving: ObservedStore, *others: ObservedStore, health: RegionHealth = WELL, **more: Any) -> str:
    reason = find_blocker(leaving, (leaving, *others), health=health, **{"highest_usage": Fraction(4, 5), **more})
    return reason.code if reason else ""


# ---- T25, the part of it that is the drainer's


def test_t25_three_normal_stores_remain() -> None:
    with DrainHarness() as world:
        assert isinstance(world.take_out(), DrainInProgress)
        assert world.pd.evicting == {4}


def test_t25_with_one_base_store_down_nothing_is_sent_to_pd() -> None:
    with DrainHarness() as world:
        world.pd.stores[2].heard = "Down"
        blocked = world.take_out()
        assert isinstance(blocked, Blocked)
        assert (blocked.reason.facts["up"], blocked.reason.facts["needed"]) == (2, 3)
        assert str(blocked.reason) == "without store 4, 2 normal stores are Up and 3 are needed"
        assert (world.pd.wrote, world.mark) == ([], None)


def test_t25_with_five_replicas() -> None:
    with DrainHarness() as world:
        world.pd.max_replicas = 5
        blocked = world.take_out()
        assert isinstance(blocked, Blocked)
        assert (blocked.reason.facts["up"], blocked.reason.facts["needed"]) == (3, 5)
        assert world.pd.wrote == []


# ---- one by one


def test_it_may_leave() -> None:
    assert code(hot(4), store(1), store(2), store(3)) == ""


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param((store(1), store(2), hot(3)), "TooFewStores", id="special ones take nothing"),
        pytest.param((store(1), store(2), store(3, is_tiflash=True)), "TooFewStores", id="nor does TiFlash"),
        pytest.param((store(1), store(2), store(3, state="Disconnected")), "TooFewStores", id="disconnected"),
        pytest.param((store(1), store(2), store(3), hot(5, state="Offline")), "AnotherLeaves", id="another leaves"),
        pytest.param((store(1), store(2), store(3), store(5, state="Down")), "StoreDown", id="one is down"),
        pytest.param((store(1), store(2), store(3, used_bytes=181 * GIB)), "TooLittleSpace", id="too full"),
        pytest.param((store(1), store(2), store(3, capacity_bytes=None)), "SpaceNotKnown", id="capacity unknown"),
        pytest.param((store(1), store(2), store(3), hot(5, used_bytes=None)), "SpaceNotKnown", id="usage unknown"),
    ],
)
def test_it_may_not(others: tuple[ObservedStore, ...], expected: str) -> None:
    assert code(hot(4), *others) == expected


def test_a_normal_store_does_not_count_itself() -> None:
    assert code(store(3), store(1), store(2)) == "TooFewStores"


def test_the_threshold_of_a_storage_rule_takes_the_place_of_pds() -> None:
    others = store(1), store(2), store(3)
    assert code(hot(4), *others, highest_usage=Fraction(92, 300)) == "TooLittleSpace"
    assert code(hot(4), *others, highest_usage=Fraction(93, 300)) == ""


@pytest.mark.parametrize("what", ["miss-peer", "pending-peer", "down-peer"])
def test_regions_that_are_not_well(what: str) -> None:
    health = RegionHealth(needed=3, unhealthy={**WELL.unhealthy, what: 2})
    others = store(1), store(2), store(3)
    assert code(hot(4), *others, health=health) == "RegionsNotHealthy"
    assert code(hot(4), *others, health=health, peer_tolerance=2) == ""


def test_a_lost_store_may_leave_once_it_holds_nothing() -> None:
    others = store(1), store(2), store(3)
    assert code(hot(4, state="Down", regions=3), *others) == "StoreDown"
    assert code(hot(4, state="Down", regions=0), *others) == ""


def test_placement_rules_may_need_more_stores() -> None:
    with DrainHarness() as world:
        world.pd.rules = [{"group_id": "pd", "id": "a", "count": 3}, {"group_id": "pd", "id": "b", "count": 1}]
        blocked = world.take_out()
        assert isinstance(blocked, Blocked)
        assert blocked.reason.facts["needed"] == 4


def test_what_pd_refuses_is_reported_in_its_words_and_tried_again() -> None:
    with DrainHarness(leaders_per_s=float("inf")) as world:
        # PD counts stores by its own setting, which may have been raised since we asked.
        with mock.patch.object(world.pd, "_store", return_value=(400, "not enough stores")):
            blocked = world.take_out()
        assert isinstance(blocked, Blocked)
        assert blocked.reason.code == "PdRefuses"
        assert "not enough stores" in str(blocked.reason)
        assert (world.replicas, world.pd.offline) == (1, [])
        world.take_out()
        assert world.pd.offline == [4]


# ---- what changes on the way


def test_a_passing_trouble_does_not_let_leaders_come_back() -> None:
    with DrainHarness() as world:
        world.take_out()
        world.pd.wrong["pending-peer"] = 1
        world.run.advance_by(10)
        assert isinstance(world.take_out(), Blocked)
        assert (world.pd.evicting, world.pd.offline) == ({4}, [])
        world.pd.wrong["pending-peer"] = 0
        world.take_out()
        assert world.pd.offline == [4]


def test_a_lasting_trouble_does() -> None:
    with DrainHarness() as world:
        world.take_out()
        world.pd.stores[1].heard = "Down"
        world.run.advance_by(600)
        assert isinstance(world.take_out(), Blocked)
        assert (world.pd.evicting, world.mark) == (set(), None)


# ---- guarding


def test_a_guard_lets_replicas_fall_and_sends_pd_nothing() -> None:
    with DrainHarness(replicas=2, is_active=False) as world:
        assert isinstance(world.take_out(), Drained)
        assert world.pd.wrote == []


def test_a_guard_waits_for_the_operator_before_the_next() -> None:
    with DrainHarness(replicas=2, is_active=False) as world:
        world.take_out()
        second = world.store(1)
        for second.state in (0, 1):
            assert isinstance(world.take_out(), DrainInProgress)
        second.state = 2
        assert isinstance(world.take_out(), Drained)
        assert world.pd.wrote == []


def test_a_guard_is_as_strict() -> None:
    with DrainHarness(is_active=False) as world:
        world.pd.stores[1].heard = "Down"
        assert isinstance(world.take_out(), Blocked)


def test_a_guard_ends_the_eviction_that_an_active_one_began() -> None:
    with DrainHarness() as world:
        world.take_out()
        world.is_active = False
        world.take_out()
        assert (world.pd.evicting, world.mark) == (set(), None)


# ---- whatever there is


STORES = st.lists(
    st.builds(
        store,
        st.integers(1, 9),
        state=st.sampled_from(["Up", "Disconnected", "Down", "Offline"]),
        is_special=st.booleans(),
        is_tiflash=st.booleans(),
        used_bytes=st.none() | st.integers(0, 100 * GIB),
        regions=st.integers(0, 3),
    ),
    max_size=7,
    unique_by=lambda store_seen: store_seen.id,
)


@settings(max_examples=300, deadline=None)
@given(others=STORES, needed=st.integers(1, 5), used=st.integers(0, 100 * GIB))
def test_a_store_only_leaves_if_the_rest_can_take_what_it_holds(
    others: list[ObservedStore], needed: int, used: int
) -> None:
    leaving = hot(10, used_bytes=used)
    if code(leaving, *others, health=msgspec.structs.replace(WELL, needed=needed)):
        return
    takers = [
        store_seen
        for store_seen in others
        if store_seen.state == "Up" and not store_seen.is_special and not store_seen.is_tiflash
    ]
    assert len(takers) >= needed
    assert not any(store_seen.state in {"Down", "Offline"} for store_seen in others)
    held = used + sum(store_seen.used_bytes or 0 for store_seen in others if not store_seen.is_tiflash)
    assert held * 5 < 4 * sum(store_seen.capacity_bytes or 0 for store_seen in takers)

"""A list of stores that is empty, incomplete, duplicated or old lets no pod go, whoever removes the stores."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from plimsoll.tidb.planning.drain.types import Blocked, Drained, DrainInProgress, Unknown
from tests.tidb.actuation.drain_builders import DrainHarness, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.tidb.pd.simulated_pd import SimulatedPd

MODES = pytest.mark.parametrize("is_active", [True, False], ids=["active", "guard"])


def no_pod_names(pd: SimulatedPd) -> None:
    """The store of the group has an address that names no pod."""
    pd.stores[4].pod, pd.stores[4].namespace = "10.0.0.4", "nowhere"


def empty(pd: SimulatedPd) -> None:
    pd.stores.clear()


def pass_for(world: DrainHarness, seconds: int) -> Outcome:
    for _ in range(0, seconds, 10):
        outcome = world.take_out()
        world.run.advance_by(10)
    return outcome


@MODES
@pytest.mark.parametrize(
    ("lie", "code"), [(no_pod_names, "StoreNotKnown"), (empty, "NoStores")], ids=["no pod", "empty list"]
)
def test_a_store_without_a_pod_and_an_empty_list_hold_the_pod(
    lie: Callable[[SimulatedPd], None], code: str, is_active: bool
) -> None:
    with DrainHarness(is_active=is_active) as world:
        lie(world.pd)
        outcome = pass_for(world, 900)
        assert isinstance(outcome, Blocked)
        assert (outcome.reason.code, world.replicas, world.lost) == (code, 1, [])


@MODES
def test_a_pod_that_never_registered_goes_after_the_same_time_in_both_modes(is_active: bool) -> None:
    with DrainHarness(replicas=0, is_active=is_active) as world:
        world.scale(1, registers=False)
        assert isinstance(pass_for(world, 150), DrainInProgress)
        assert isinstance(world.take_out(), Drained)


@MODES
def test_a_store_that_the_list_lacks_is_read_by_its_number(is_active: bool) -> None:
    """The status of the TidbCluster names it."""
    with DrainHarness(is_active=is_active) as world:
        world.known_stores = frozenset({1, 4})
        world.pd.hidden = {4}
        outcome = pass_for(world, 900)
        assert isinstance(outcome, Blocked)
        assert outcome.reason.code == "StoresIncomplete"
        assert "store 4" in outcome.reason.message
        world.pd.hidden = {1}
        assert isinstance(world.take_out(), Blocked)
        assert (world.pd.offline, world.pd.evicting) == ([], set())
        world.pd.hidden = set()
        world.take_out_all() if is_active else world.take_out()
        assert world.replicas == 0


@MODES
def test_a_pod_that_is_ready_has_a_store(is_active: bool) -> None:
    with DrainHarness(is_active=is_active) as world:
        world.ready_pods = frozenset({"auto-x-tikv-0"})
        world.pd.hidden = {4}
        outcome = pass_for(world, 900)
        assert isinstance(outcome, Blocked)
        assert (outcome.reason.code, world.replicas) == ("StoreNotListed", 1)


@MODES
def test_a_list_with_a_store_twice_is_not_believed(is_active: bool) -> None:
    with DrainHarness(is_active=is_active) as world:
        world.pd.doubled = {2}
        outcome = world.take_out()
        assert isinstance(outcome, Unknown)
        assert outcome.problem == "PD's list of stores is not believed: it lists store 2 twice"


@MODES
@pytest.mark.parametrize("hours", [-24, 24])
def test_an_old_answer_or_a_wrong_clock_removes_no_store(hours: int, is_active: bool) -> None:
    with DrainHarness(is_active=is_active) as world:
        world.pd.heard_at = world.now + timedelta(hours=hours)
        outcome = world.take_out()
        assert isinstance(outcome, Blocked)
        assert (outcome.reason.code, world.pd.wrote) == ("StoresOutdated", [])


# ---- evictions of others


def test_an_eviction_that_is_not_ours_stays_when_the_store_is_brought_back() -> None:
    with DrainHarness() as world:
        world.pd.evicting.add(4)
        world.take_out()
        assert world.mark is not None
        assert not world.mark.owns_eviction
        world.run.advance_by(5)
        world.take_out()
        assert world.store(0).state == 1
        assert world.bring_back() is None
        assert (world.store(0).state, world.pd.evicting, world.mark) == (0, {4}, None)


def test_an_eviction_that_pd_did_not_list_is_not_ours() -> None:
    with DrainHarness() as world:
        world.pd.is_old, world.pd.lists_evictions = True, False
        world.pd.evicting.add(4)
        world.take_out()
        assert world.mark is not None
        assert not world.mark.owns_eviction
        world.pd.lists_evictions = True
        assert world.bring_back() is None
        assert world.pd.evicting == {4}


def test_a_pass_whose_answer_was_lost_knows_its_own_eviction() -> None:
    with DrainHarness() as world:
        world.pd.loses = 1
        assert isinstance(world.take_out(), Unknown)
        assert world.pd.evicting == {4}
        world.take_out()
        assert world.bring_back() is None
        assert (world.pd.evicting, world.mark) == (set(), None)


def test_a_foreign_eviction_that_ended_is_followed_by_a_recorded_one() -> None:
    with DrainHarness() as world:
        world.pd.evicting.add(4)
        world.take_out()
        world.pd.evicting.clear()
        world.take_out()
        assert world.mark is not None
        assert (world.mark.owns_eviction, world.pd.evicting) == (True, {4})
        assert world.bring_back() is None
        assert world.pd.evicting == set()


def test_an_older_record_is_of_our_own_eviction() -> None:
    with DrainHarness() as world:
        world.take_out()
        assert world.mark is not None
        written = msgspec.json.decode(msgspec.json.encode(world.mark))
        del written["ownsEviction"]
        world.mark = msgspec.convert(written, type(world.mark))
        assert world.bring_back() is None
        assert world.pd.evicting == set()

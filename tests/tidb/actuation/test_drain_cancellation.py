"""A group that returns to the plan while it is drained: what was begun is undone, or finished if it is too late."""

from __future__ import annotations

from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.planning.drain.types import Drained
from tests.tidb.actuation.drain_builders import DrainHarness


def test_leaders_may_come_back() -> None:
    with DrainHarness() as world:
        world.take_out()
        assert world.bring_back() is None
        assert (world.pd.evicting, world.mark, world.replicas) == (set(), None, 1)


def test_an_offline_store_is_up_again() -> None:
    with DrainHarness() as world:
        world.take_out()
        world.run.advance_by(5)
        world.take_out()
        assert world.bring_back() is None
        assert (world.store(0).state, world.pd.evicting, world.mark) == (0, set(), None)
        assert "POST /store/4/state" in world.pd.wrote


def test_a_buried_one_cannot_and_its_pod_goes_before_another_comes() -> None:
    with DrainHarness() as world:
        world.take_out()
        world.run.advance_by(5)
        world.take_out()
        world.run.advance_by(20)
        assert isinstance(world.bring_back(), Drained)
        assert (world.replicas, world.mark, world.pd.evicting, world.lost) == (0, None, set(), [])


def test_nothing_begun_is_nothing_to_undo() -> None:
    with DrainHarness() as world:
        assert world.bring_back() is None
        assert world.pd.wrote == []


def test_what_cannot_be_undone_now_stays_marked() -> None:
    with DrainHarness() as world:
        world.take_out()
        world.pd.is_silent = True
        assert isinstance(world.bring_back(), PdFailed)
        assert world.mark is not None
        world.pd.is_silent = False
        assert world.bring_back() is None
        assert world.pd.evicting == set()


def test_a_lost_answer_on_the_way_back() -> None:
    with DrainHarness() as world:
        world.take_out()
        world.run.advance_by(5)
        world.take_out()
        world.pd.loses = 1
        assert isinstance(world.bring_back(), PdFailed)
        assert world.bring_back() is None
        assert (world.store(0).state, world.pd.evicting, world.mark) == (0, set(), None)


def test_a_pod_that_was_only_watched_for_its_store() -> None:
    with DrainHarness(replicas=0) as world:
        world.scale(1, registers=False)
        world.take_out()
        assert world.bring_back() is None
        assert (world.mark, world.pd.wrote) == (None, [])


def test_guarding_a_store_that_the_operator_takes_out_is_brought_back() -> None:
    """The operator does not do it when `replicas` rises again: the store would stay Offline (its issue 720)."""
    with DrainHarness(replicas=2, is_active=False) as world:
        world.replicas = 1
        world.store(1).state = 1
        assert world.bring_back(wanted=2) is None
        assert world.store(1).state == 0

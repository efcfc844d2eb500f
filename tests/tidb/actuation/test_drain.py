"""Taking a store out: evict, take Offline, wait until it is buried, stop evicting, and only then a pod less."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.kube.errors import Conflict, Status
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.planning.drain.types import Blocked, Drained, DrainInProgress, Unknown
from tests.tidb.actuation.drain_builders import GROUP, DrainHarness

if TYPE_CHECKING:
    from plimsoll.tidb.model.reconcile_types import DrainRecord

AT_ONCE = float("inf")


def test_with_a_pd_that_is_quick_one_pass_does_all_of_it() -> None:
    with DrainHarness(leaders_per_s=AT_ONCE, regions_per_s=AT_ONCE) as world:
        assert world.take_out() == Drained(store_id=4, message="store 4 is a Tombstone")
        assert world.pd.wrote == [
            "POST /schedulers",
            "DELETE /store/4",
            "DELETE /schedulers/evict-leader-scheduler-4",
        ]
        assert (world.replicas, world.mark, world.lost) == (0, None, [])


def test_leaders_move_first_then_regions_then_the_pod_goes() -> None:
    with DrainHarness() as world:
        first = world.take_out()
        assert isinstance(first, DrainInProgress)
        assert first.reason.code == "Draining"
        assert first.reason.facts == {"store": 4, "leaders": 5, "regions": 20}
        assert world.pd.evicting == {4}
        world.run.advance_by(5)
        second = world.take_out()
        assert isinstance(second, DrainInProgress)
        assert second.reason.code == "Draining"
        assert second.reason.facts == {"store": 4, "leaders": 0, "regions": 20}
        assert world.pd.offline == [4]
        world.run.advance_by(19)
        assert isinstance(world.take_out(), DrainInProgress)
        assert world.replicas == 1
        world.run.advance_by(1)
        assert isinstance(world.take_out(), Drained)
        assert (world.replicas, world.mark, world.pd.evicting, world.lost) == (0, None, set(), [])


def test_a_pass_that_finds_nothing_new_writes_nothing() -> None:
    with DrainHarness(leaders_per_s=0) as world:
        world.take_out()
        before, mark = list(world.pd.wrote), world.mark
        world.run.advance_by(10)
        assert isinstance(world.take_out(), DrainInProgress)
        assert (world.pd.wrote, world.mark) == (before, mark)


def test_no_store_is_removed_while_the_record_cannot_be_written() -> None:
    """The TidbCluster was changed since it was read, so that its replicas may be others by now."""

    async def refuse(_record: DrainRecord | None, /) -> None:
        raise Conflict(Status(code=409))

    with DrainHarness() as world:
        world.take_out()
        before = list(world.pd.wrote)
        world.run.advance_by(5)
        with pytest.raises(Conflict):
            world.do(world.drainer.take_out(world.leaving, now=world.now, write_record=refuse))
        assert (world.pd.wrote, world.pd.offline) == (before, [])


def test_leaders_that_stay_are_waited_for_ten_minutes() -> None:
    with DrainHarness(leaders_per_s=0) as world:
        world.take_out()
        world.run.advance_by(599)
        world.take_out()
        assert world.pd.offline == []
        world.run.advance_by(1)
        world.take_out()
        assert world.pd.offline == [4]


def test_the_highest_ordinal_leaves() -> None:
    with DrainHarness(replicas=3) as world:
        world.take_out()
        assert world.pd.evicting == {world.store(2).id}


def test_two_stores_leave_one_after_the_other() -> None:
    with DrainHarness(replicas=3) as world:
        world.take_out_all()
        assert world.pd.together == 1
        assert (world.lost, world.pd.evicting) == ([], set())
        assert [world.store(ordinal).state for ordinal in range(3)] == [2, 2, 2]


def test_regions_that_do_not_move_for_half_an_hour_are_reported_and_waited_for() -> None:
    with DrainHarness(regions_per_s=0) as world:
        world.take_out()
        world.run.advance_by(5)
        world.take_out()
        world.run.advance_by(1799)
        assert isinstance(world.take_out(), DrainInProgress)
        world.run.advance_by(1)
        blocked = world.take_out()
        assert isinstance(blocked, Blocked)
        assert blocked.reason.code == "Stalled"
        assert world.pd.offline == [4]
        world.store(0).regions = 0
        assert isinstance(world.take_out(), Drained)


def test_an_older_pd_with_a_scheduler_for_each_store() -> None:
    with DrainHarness(replicas=2) as world:
        world.pd.is_old = True
        world.take_out_all()
        assert (world.lost, world.pd.evicting) == ([], set())


def test_a_pd_without_schedulers_costs_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    with DrainHarness() as world:
        monkeypatch.setattr(world.pd, "_schedulers", lambda *_: (404, "404 page not found"))
        world.take_out()
        world.run.advance_by(590)
        assert world.pd.offline == []
        world.take_out_all()
        assert world.lost == []


def test_a_store_that_pd_forgot_counts_as_buried() -> None:
    with DrainHarness() as world:
        world.take_out()
        world.run.advance_by(5)
        world.take_out()
        del world.pd.stores[4]
        assert isinstance(world.take_out(), Drained)
        assert world.pd.evicting == set()


# ---- pods without a store


def test_a_pod_that_registers_late_does_not_go_before_its_store_is_out() -> None:
    with DrainHarness(replicas=0) as world:
        world.scale(1, registers=False)
        assert isinstance(world.take_out(), DrainInProgress)
        world.run.advance_by(140)
        assert isinstance(world.take_out(), DrainInProgress)
        world.scale(1)
        world.take_out_all()
        assert world.lost == []
        assert world.store(0).state == 2


def test_a_pod_that_never_had_a_store_goes_after_a_while() -> None:
    with DrainHarness(replicas=0) as world:
        world.scale(1, registers=False)
        world.take_out()
        world.run.advance_by(150)
        assert world.take_out() == Drained(store_id=None, message="its pod has had no store for 150 s")


def test_a_store_whose_address_names_no_pod_may_be_the_one() -> None:
    with DrainHarness(replicas=0) as world:
        world.scale(1, registers=False)
        world.pd.register("").namespace = ""
        for _ in range(3):
            outcome = world.take_out()
            assert isinstance(outcome, Blocked)
            assert outcome.reason.code == "StoreNotKnown"
            world.run.advance_by(200)


# ---- when PD says nothing


def test_silence_changes_nothing() -> None:
    with DrainHarness() as world:
        world.pd.is_silent = True
        assert isinstance(world.take_out(), Unknown)
        assert isinstance(world.bring_back(), PdFailed)
        assert (world.replicas, world.mark) == (1, None)


@pytest.mark.parametrize("lost", range(1, 4))
def test_lost_answers_are_made_good_in_a_later_pass(lost: int) -> None:
    with DrainHarness(replicas=2) as world:
        world.pd.loses = lost
        world.take_out_all()
        assert (world.lost, world.pd.evicting, world.pd.together) == ([], set(), 1)


# ---- other writers


def test_stores_beyond_the_replicas_are_taken_out_before_the_cluster_goes() -> None:
    with DrainHarness(replicas=2) as world:
        world.replicas = 0
        for _ in range(12):
            outcome = world.clear()
            world.run.advance_by(10)
        assert isinstance(outcome, Drained)
        assert [world.store(ordinal).state for ordinal in range(2)] == [2, 2]
        assert (world.pd.together, world.pd.evicting) == (1, set())


def test_replicas_raised_by_hand_bring_the_begun_one_back() -> None:
    with DrainHarness() as world:
        world.take_out()
        world.run.advance_by(5)
        world.take_out()
        assert world.pd.offline == [4]
        world.scale(2)
        world.take_out()
        assert (world.store(0).state, world.pd.evicting) == (0, {world.store(1).id})
        world.take_out_all()
        assert (world.lost, world.pd.together, world.pd.evicting) == ([], 1, set())


def test_of_two_that_were_removed_at_once_one_steps_back() -> None:
    with DrainHarness(base=4) as world:
        world.take_out()
        world.run.advance_by(5)
        world.take_out()
        world.pd.stores[1].state = 1
        blocked = world.take_out()
        assert isinstance(blocked, Blocked)
        assert blocked.reason.code == "AnotherLeaves"
        assert world.pd.offline == [1]


def test_while_leaders_are_moved_away_from_another_store_none_begins() -> None:
    with DrainHarness() as world:
        world.pd.evicting.add(2)
        outcome = world.take_out()
        assert isinstance(outcome, Blocked)
        assert outcome.reason.code == "AnotherLeaves"
        assert (world.pd.evicting, world.mark) == ({2}, None)


def test_delete_slots_say_which_pod_is_the_last() -> None:
    with DrainHarness(replicas=3) as world:
        leaving = type(world.leaving)(
            namespace="prod", cluster=GROUP, replicas=2, delete_slots=frozenset({1}), record=None
        )
        world.store(1).state = 2
        assert leaving.list_ordinals(2) == {0, 2}
        world.do(world.drainer.take_out(leaving, now=world.now, write_record=world.remember))
        assert world.pd.evicting == {world.store(2).id}

"""The work queue, rule by rule, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import math
from typing import TYPE_CHECKING

import pytest

from plimsoll.kube.controller.workqueue import QueueSettings, WorkQueue
from plimsoll.kube.errors import Status, TooManyRequests
from plimsoll.runtime.backoff import Backoff
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun

if TYPE_CHECKING:
    from collections.abc import Iterator

STEADY = Backoff(initial_s=1, factor=2, cap_s=60, jitter=0)


class QueueHarness:
    """A queue, and the time it lives in."""

    def __init__(self, settings: QueueSettings) -> None:
        self.run = VirtualRun()
        self.queue: WorkQueue[str] = WorkQueue(clock=self.run.clock, entropy=SeededEntropy("desk"), settings=settings)

    @property
    def now_s(self) -> float:
        return self.run.clock.monotonic_s()

    def take(self) -> str | None:
        """What `get` gives now; it must not have to wait."""
        getting = self.run.spawn(self.queue.get())
        self.run.settle()
        if not getting.done():
            getting.cancel()
            self.run.settle()
            return "(nothing)"
        return getting.result()

    def take_all(self) -> list[str]:
        return [str(key) for key in itertools.takewhile(lambda key: key != "(nothing)", iter(self.take, None))]


@pytest.fixture
def desk() -> Iterator[QueueHarness]:
    desk = QueueHarness(QueueSettings(backoff=STEADY, retries_per_s=0))
    with desk.run:
        yield desk


def test_keys_come_in_the_order_they_were_added(desk: QueueHarness):
    for key in ("c", "a", "b"):
        desk.queue.add(key)
    assert desk.take_all() == ["c", "a", "b"]


def test_a_key_added_twice_is_worked_once(desk: QueueHarness):
    for key in ("a", "b", "a"):
        desk.queue.add(key)
    assert desk.take_all() == ["a", "b"]


def test_a_key_that_is_worked_is_given_to_nobody_else(desk: QueueHarness):
    desk.queue.add("a")
    desk.take()
    desk.queue.add("a")
    assert desk.take() == "(nothing)"


def test_a_key_added_while_it_is_worked_comes_again_when_it_is_done(desk: QueueHarness):
    desk.queue.add("a")
    desk.take()
    desk.queue.add("a")
    desk.queue.add("a")
    desk.queue.mark_done("a")
    assert desk.take_all() == ["a"]
    desk.queue.mark_done("a")
    assert desk.take() == "(nothing)"


def test_a_busy_key_goes_to_the_end_of_the_line(desk: QueueHarness):
    desk.queue.add("busy")
    desk.take()
    desk.queue.add("busy")
    desk.queue.add("other")
    desk.queue.mark_done("busy")
    assert desk.take_all() == ["other", "busy"]


def test_letting_go_of_a_key_one_does_not_have_is_a_mistake(desk: QueueHarness):
    with pytest.raises(ValueError, match="no worker has taken 'a'"):
        desk.queue.mark_done("a")


def test_get_waits_for_a_key(desk: QueueHarness):
    getting = desk.run.spawn(desk.queue.get())
    desk.run.settle()
    assert not getting.done()
    desk.queue.add("a")
    desk.run.settle()
    assert getting.result() == "a"


def test_a_delayed_key_comes_when_it_is_due_and_not_before(desk: QueueHarness):
    getting = desk.run.spawn(desk.queue.get())
    desk.queue.add_after("a", 10)
    desk.run.advance_by(9.999)
    assert not getting.done()
    desk.run.advance_by(0.001)
    assert getting.result() == "a"


@pytest.mark.parametrize("waits", [(10, 3), (3, 10)])
def test_the_earliest_of_two_due_times_counts_and_the_other_is_forgotten(desk: QueueHarness, waits: tuple[int, int]):
    for wait_s in waits:
        desk.queue.add_after("a", wait_s)
    desk.run.advance_by(3)
    assert desk.take_all() == ["a"]
    desk.queue.mark_done("a")
    desk.run.advance_by(100)
    assert desk.take() == "(nothing)"


def test_an_earlier_due_time_wakes_who_waits_for_a_later_one(desk: QueueHarness):
    desk.queue.add_after("late", 100)
    getting = desk.run.spawn(desk.queue.get())
    desk.run.settle()
    desk.queue.add_after("early", 5)
    desk.run.advance_by(5)
    assert getting.result() == "early"


def test_a_delayed_key_that_is_added_at_once_is_looked_at_both_times(desk: QueueHarness):
    desk.queue.add_after("a", 10)
    desk.queue.add("a")
    assert desk.take() == "a"
    desk.queue.mark_done("a")
    desk.run.advance_by(10)
    assert desk.take() == "a"


def test_a_key_that_falls_due_while_it_is_worked_comes_again(desk: QueueHarness):
    desk.queue.add("a")
    desk.take()
    desk.queue.add_after("a", 5)
    desk.run.advance_by(5)
    desk.queue.mark_done("a")
    assert desk.take() == "a"


def test_keys_that_fall_due_unseen_come_in_the_order_of_their_due_times(desk: QueueHarness):
    desk.queue.add_after("second", 2)
    desk.queue.add_after("first", 1)
    desk.run.advance_by(3)
    desk.queue.add("third")
    assert desk.take_all() == ["first", "second", "third"]


@pytest.mark.parametrize("wait_s", [0, -1, math.nan])
def test_a_wait_that_is_none_means_now(desk: QueueHarness, wait_s: float):
    desk.queue.add_after("a", wait_s)
    assert desk.take() == "a"


def test_while_one_worker_works_another_watches_the_due_times(desk: QueueHarness):
    first, second = desk.run.spawn(desk.queue.get()), desk.run.spawn(desk.queue.get())
    desk.run.settle()
    desk.queue.add_after("late", 5)
    desk.run.settle()
    desk.queue.add("now")
    desk.run.advance_by(5)
    assert {first.result(), second.result()} == {"now", "late"}


# ---- cancellation


def test_a_get_that_is_cancelled_takes_nothing(desk: QueueHarness):
    getting = desk.run.spawn(desk.queue.get())
    desk.run.settle()
    desk.queue.add("a")
    getting.cancel()
    desk.run.settle()
    assert getting.cancelled()
    assert desk.take() == "a"


def test_a_wake_up_that_meets_a_cancelled_get_goes_to_the_next(desk: QueueHarness):
    first, second = desk.run.spawn(desk.queue.get()), desk.run.spawn(desk.queue.get())
    desk.run.settle()
    desk.queue.add("a")
    first.cancel()
    desk.run.settle()
    assert second.result() == "a"


def test_the_watch_over_the_next_due_time_survives_its_watcher(desk: QueueHarness):
    first, second = desk.run.spawn(desk.queue.get()), desk.run.spawn(desk.queue.get())
    desk.run.settle()
    desk.queue.add_after("a", 5)
    desk.run.settle()
    first.cancel()
    desk.run.advance_by(5)
    assert second.result() == "a"


# ---- retries


def test_failures_in_a_row_wait_longer_and_longer(desk: QueueHarness):
    waits = []
    for _ in range(8):
        waits.append(desk.queue.add_rate_limited("a"))
        desk.run.advance_by(waits[-1])
        assert desk.take() == "a"
        desk.queue.mark_done("a")
    assert waits == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])


def test_what_went_well_starts_afresh(desk: QueueHarness):
    desk.queue.add_rate_limited("a")
    desk.queue.add_rate_limited("a")
    assert desk.queue.count_failures("a") == 2
    desk.queue.forget("a")
    assert desk.queue.add_rate_limited("a") == pytest.approx(1)


def test_keys_back_off_by_themselves(desk: QueueHarness):
    desk.queue.add_rate_limited("a")
    desk.queue.add_rate_limited("a")
    assert desk.queue.add_rate_limited("b") == pytest.approx(1)


def test_the_servers_retry_after_is_waited_for(desk: QueueHarness):
    busy = TooManyRequests(Status(code=429), retry_after_s=30)
    assert desk.queue.add_rate_limited("a", because=busy) == pytest.approx(30)
    desk.run.advance_by(29)
    assert desk.take() == "(nothing)"
    desk.run.advance_by(1)
    assert desk.take() == "a"


def test_retries_of_all_keys_together_are_limited():
    desk = QueueHarness(QueueSettings(backoff=STEADY, retries_per_s=0.5, retry_burst=2))
    with desk.run:
        waits = [desk.queue.add_rate_limited(key) for key in "abcdef"]
    assert waits == pytest.approx([1, 1, 2, 4, 6, 8])


def test_a_refusal_backs_off_and_is_no_failure(desk: QueueHarness):
    looked_at_s = []
    for _ in range(4):
        desk.queue.add_refused("a")
        assert desk.run.run_until(desk.queue.get()) == "a"
        desk.queue.mark_done("a")
        looked_at_s.append(desk.now_s)
    assert looked_at_s == pytest.approx([1, 3, 7, 15])
    assert desk.queue.count_failures("a") == 0
    desk.queue.forget("a")
    desk.queue.add_refused("a")
    desk.run.advance_by(1)
    assert desk.take() == "a"


def test_who_is_refused_before_its_time_keeps_its_turn_and_takes_no_other():
    desk = QueueHarness(QueueSettings(backoff=STEADY, retries_per_s=0.5, retry_burst=1))
    with desk.run:
        for _ in range(100):
            desk.queue.add_refused("a")
        desk.queue.add_refused("b")
        assert desk.queue.add_rate_limited("failing") == pytest.approx(1), "a budget of its own"
        desk.run.advance_by(2)
        assert {desk.take(), desk.take(), desk.take()} == {"a", "b", "failing"}


def test_who_is_refused_at_an_earlier_look_is_looked_at_again(desk: QueueHarness):
    desk.queue.add_refused("a")
    desk.queue.add_after("a", 0.5)
    desk.run.advance_by(0.5)
    assert desk.take() == "a"
    desk.queue.add_refused("a")
    desk.queue.mark_done("a")
    desk.run.advance_by(0.5)
    assert desk.take() == "a"


# ---- the end


def test_a_closed_queue_gives_what_is_ready_and_then_ends(desk: QueueHarness):
    desk.queue.add("a")
    desk.queue.add_after("never", 5)
    desk.queue.close()
    assert desk.take() == "a"
    assert desk.take() is None
    desk.run.advance_by(10)
    assert desk.take() is None


def test_a_key_added_while_worked_outlives_the_close(desk: QueueHarness):
    desk.queue.add("a")
    desk.take()
    desk.queue.add("a")
    desk.queue.close()
    desk.queue.mark_done("a")
    assert desk.take() == "a"


def test_nothing_is_taken_after_the_close(desk: QueueHarness):
    desk.queue.close()
    desk.queue.add("a")
    desk.queue.add_after("b", 1)
    desk.queue.add_rate_limited("c")
    desk.run.advance_by(5)
    assert desk.take() is None


def test_closing_ends_everybody_who_waits(desk: QueueHarness):
    getting = [desk.run.spawn(desk.queue.get()) for _ in range(3)]
    desk.run.settle()
    desk.queue.close()
    desk.run.settle()
    assert [task.result() for task in getting] == [None] * 3


# ---- telling


def test_the_status_tells_depth_and_ages(desk: QueueHarness):
    desk.queue.add("a")
    desk.queue.add("b")
    desk.take()
    desk.run.advance_by(7)
    desk.queue.add_after("c", 10)
    desk.queue.add_rate_limited("d")
    status = desk.queue.status
    assert (status.depth, status.working, status.delayed, status.retries) == (1, 1, 2, 1)
    assert (status.oldest_age_s, status.longest_work_s) == (7, 7)


def test_due_times_that_were_overtaken_do_not_pile_up(desk: QueueHarness):
    for _ in range(1_000):
        desk.queue.add_after("a", 1_000)
        desk.queue.add_after("a", 0.001)
        desk.run.advance_by(0.001)
        desk.take()
        desk.queue.mark_done("a")
    assert len(desk.queue._timetable) < 100


def test_a_wait_that_binary_fractions_cannot_hold_does_not_turn_the_loop_for_ever(desk: QueueHarness):
    async def main() -> None:
        for wait_s in (0.1, 1e-7, 1 / 3, 1e-9, 0.7):
            desk.queue.add_after("a", wait_s)
            key = await desk.queue.get()
            assert key == "a"
            desk.queue.mark_done(key)
            await asyncio.sleep(1e-3)

    desk.run.run_until(main())


def test_a_wait_longer_than_any_timer_harms_nobody(desk: QueueHarness):
    desk.queue.add_after("a", 1e299)
    desk.queue.add_after("b", math.inf)
    getting = desk.run.spawn(desk.queue.get())
    desk.run.advance_by(200_000)
    desk.queue.add("c")
    desk.run.settle()
    assert getting.result() == "c"

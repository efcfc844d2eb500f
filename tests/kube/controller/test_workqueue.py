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
def harness() -> Iterator[QueueHarness]:
    harness = QueueHarness(QueueSettings(backoff=STEADY, retries_per_s=0))
    with harness.run:
        yield harness


def test_keys_come_in_the_order_they_were_added(harness: QueueHarness):
    for key in ("c", "a", "b"):
        harness.queue.add(key)
    assert harness.take_all() == ["c", "a", "b"]


def test_a_key_added_twice_is_worked_once(harness: QueueHarness):
    for key in ("a", "b", "a"):
        harness.queue.add(key)
    assert harness.take_all() == ["a", "b"]


def test_a_key_in_progress_is_given_to_no_other_worker(harness: QueueHarness):
    harness.queue.add("a")
    harness.take()
    harness.queue.add("a")
    assert harness.take() == "(nothing)"


def test_a_key_added_while_it_is_worked_comes_again_when_it_is_done(harness: QueueHarness):
    harness.queue.add("a")
    harness.take()
    harness.queue.add("a")
    harness.queue.add("a")
    harness.queue.mark_done("a")
    assert harness.take_all() == ["a"]
    harness.queue.mark_done("a")
    assert harness.take() == "(nothing)"


def test_a_busy_key_goes_to_the_end_of_the_line(harness: QueueHarness):
    harness.queue.add("busy")
    harness.take()
    harness.queue.add("busy")
    harness.queue.add("other")
    harness.queue.mark_done("busy")
    assert harness.take_all() == ["other", "busy"]


def test_letting_go_of_a_key_one_does_not_have_is_a_mistake(harness: QueueHarness):
    with pytest.raises(ValueError, match="no worker has taken 'a'"):
        harness.queue.mark_done("a")


def test_get_waits_for_a_key(harness: QueueHarness):
    getting = harness.run.spawn(harness.queue.get())
    harness.run.settle()
    assert not getting.done()
    harness.queue.add("a")
    harness.run.settle()
    assert getting.result() == "a"


def test_a_delayed_key_comes_when_it_is_due_and_not_before(harness: QueueHarness):
    getting = harness.run.spawn(harness.queue.get())
    harness.queue.add_after("a", 10)
    harness.run.advance_by(9.999)
    assert not getting.done()
    harness.run.advance_by(0.001)
    assert getting.result() == "a"


@pytest.mark.parametrize("waits", [(10, 3), (3, 10)])
def test_the_earliest_of_two_due_times_counts_and_the_other_is_forgotten(harness: QueueHarness, waits: tuple[int, int]):
    for wait_s in waits:
        harness.queue.add_after("a", wait_s)
    harness.run.advance_by(3)
    assert harness.take_all() == ["a"]
    harness.queue.mark_done("a")
    harness.run.advance_by(100)
    assert harness.take() == "(nothing)"


def test_an_earlier_due_time_wakes_a_worker_that_waits_for_a_later_one(harness: QueueHarness):
    harness.queue.add_after("late", 100)
    getting = harness.run.spawn(harness.queue.get())
    harness.run.settle()
    harness.queue.add_after("early", 5)
    harness.run.advance_by(5)
    assert getting.result() == "early"


def test_a_delayed_key_that_is_added_at_once_is_looked_at_both_times(harness: QueueHarness):
    harness.queue.add_after("a", 10)
    harness.queue.add("a")
    assert harness.take() == "a"
    harness.queue.mark_done("a")
    harness.run.advance_by(10)
    assert harness.take() == "a"


def test_a_key_that_falls_due_while_it_is_worked_comes_again(harness: QueueHarness):
    harness.queue.add("a")
    harness.take()
    harness.queue.add_after("a", 5)
    harness.run.advance_by(5)
    harness.queue.mark_done("a")
    assert harness.take() == "a"


def test_keys_that_fall_due_unseen_come_in_the_order_of_their_due_times(harness: QueueHarness):
    harness.queue.add_after("second", 2)
    harness.queue.add_after("first", 1)
    harness.run.advance_by(3)
    harness.queue.add("third")
    assert harness.take_all() == ["first", "second", "third"]


@pytest.mark.parametrize("wait_s", [0, -1, math.nan])
def test_a_wait_that_is_none_means_now(harness: QueueHarness, wait_s: float):
    harness.queue.add_after("a", wait_s)
    assert harness.take() == "a"


def test_while_one_worker_works_another_watches_the_due_times(harness: QueueHarness):
    first, second = harness.run.spawn(harness.queue.get()), harness.run.spawn(harness.queue.get())
    harness.run.settle()
    harness.queue.add_after("late", 5)
    harness.run.settle()
    harness.queue.add("now")
    harness.run.advance_by(5)
    assert {first.result(), second.result()} == {"now", "late"}


# ---- cancellation


def test_a_get_that_is_cancelled_takes_nothing(harness: QueueHarness):
    getting = harness.run.spawn(harness.queue.get())
    harness.run.settle()
    harness.queue.add("a")
    getting.cancel()
    harness.run.settle()
    assert getting.cancelled()
    assert harness.take() == "a"


def test_a_wake_up_that_meets_a_cancelled_get_goes_to_the_next(harness: QueueHarness):
    first, second = harness.run.spawn(harness.queue.get()), harness.run.spawn(harness.queue.get())
    harness.run.settle()
    harness.queue.add("a")
    first.cancel()
    harness.run.settle()
    assert second.result() == "a"


def test_the_watch_over_the_next_due_time_survives_its_watcher(harness: QueueHarness):
    first, second = harness.run.spawn(harness.queue.get()), harness.run.spawn(harness.queue.get())
    harness.run.settle()
    harness.queue.add_after("a", 5)
    harness.run.settle()
    first.cancel()
    harness.run.advance_by(5)
    assert second.result() == "a"


# ---- retries


def test_failures_in_a_row_wait_longer_and_longer(harness: QueueHarness):
    waits = []
    for _ in range(8):
        waits.append(harness.queue.add_rate_limited("a"))
        harness.run.advance_by(waits[-1])
        assert harness.take() == "a"
        harness.queue.mark_done("a")
    assert waits == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])


def test_what_went_well_starts_afresh(harness: QueueHarness):
    harness.queue.add_rate_limited("a")
    harness.queue.add_rate_limited("a")
    assert harness.queue.count_failures("a") == 2
    harness.queue.forget("a")
    assert harness.queue.add_rate_limited("a") == pytest.approx(1)


def test_keys_back_off_by_themselves(harness: QueueHarness):
    harness.queue.add_rate_limited("a")
    harness.queue.add_rate_limited("a")
    assert harness.queue.add_rate_limited("b") == pytest.approx(1)


def test_the_servers_retry_after_is_waited_for(harness: QueueHarness):
    busy = TooManyRequests(Status(code=429), retry_after_s=30)
    assert harness.queue.add_rate_limited("a", because=busy) == pytest.approx(30)
    harness.run.advance_by(29)
    assert harness.take() == "(nothing)"
    harness.run.advance_by(1)
    assert harness.take() == "a"


def test_retries_of_all_keys_together_are_limited():
    harness = QueueHarness(QueueSettings(backoff=STEADY, retries_per_s=0.5, retry_burst=2))
    with harness.run:
        waits = [harness.queue.add_rate_limited(key) for key in "abcdef"]
    assert waits == pytest.approx([1, 1, 2, 4, 6, 8])


def test_a_refusal_backs_off_and_is_no_failure(harness: QueueHarness):
    looked_at_s = []
    for _ in range(4):
        harness.queue.add_refused("a")
        assert harness.run.run_until(harness.queue.get()) == "a"
        harness.queue.mark_done("a")
        looked_at_s.append(harness.now_s)
    assert looked_at_s == pytest.approx([1, 3, 7, 15])
    assert harness.queue.count_failures("a") == 0
    harness.queue.forget("a")
    harness.queue.add_refused("a")
    harness.run.advance_by(1)
    assert harness.take() == "a"


def test_a_key_that_is_refused_early_keeps_its_due_time_and_takes_no_other():
    harness = QueueHarness(QueueSettings(backoff=STEADY, retries_per_s=0.5, retry_burst=1))
    with harness.run:
        for _ in range(100):
            harness.queue.add_refused("a")
        harness.queue.add_refused("b")
        assert harness.queue.add_rate_limited("failing") == pytest.approx(1), "a budget of its own"
        harness.run.advance_by(2)
        assert {harness.take(), harness.take(), harness.take()} == {"a", "b", "failing"}


def test_a_key_that_was_refused_is_tried_again(harness: QueueHarness):
    harness.queue.add_refused("a")
    harness.queue.add_after("a", 0.5)
    harness.run.advance_by(0.5)
    assert harness.take() == "a"
    harness.queue.add_refused("a")
    harness.queue.mark_done("a")
    harness.run.advance_by(0.5)
    assert harness.take() == "a"


# ---- the end


def test_a_closed_queue_gives_what_is_ready_and_then_ends(harness: QueueHarness):
    harness.queue.add("a")
    harness.queue.add_after("never", 5)
    harness.queue.close()
    assert harness.take() == "a"
    assert harness.take() is None
    harness.run.advance_by(10)
    assert harness.take() is None


def test_a_key_added_while_worked_outlives_the_close(harness: QueueHarness):
    harness.queue.add("a")
    harness.take()
    harness.queue.add("a")
    harness.queue.close()
    harness.queue.mark_done("a")
    assert harness.take() == "a"


def test_nothing_is_taken_after_the_close(harness: QueueHarness):
    harness.queue.close()
    harness.queue.add("a")
    harness.queue.add_after("b", 1)
    harness.queue.add_rate_limited("c")
    harness.run.advance_by(5)
    assert harness.take() is None


def test_closing_ends_all_waiting_workers(harness: QueueHarness):
    getting = [harness.run.spawn(harness.queue.get()) for _ in range(3)]
    harness.run.settle()
    harness.queue.close()
    harness.run.settle()
    assert [task.result() for task in getting] == [None] * 3


# ---- status


def test_the_status_shows_depth_and_ages(harness: QueueHarness):
    harness.queue.add("a")
    harness.queue.add("b")
    harness.take()
    harness.run.advance_by(7)
    harness.queue.add_after("c", 10)
    harness.queue.add_rate_limited("d")
    status = harness.queue.status
    assert (status.depth, status.working, status.delayed, status.retries) == (1, 1, 2, 1)
    assert (status.oldest_age_s, status.longest_work_s) == (7, 7)


def test_due_times_that_were_overtaken_do_not_pile_up(harness: QueueHarness):
    for _ in range(1_000):
        harness.queue.add_after("a", 1_000)
        harness.queue.add_after("a", 0.001)
        harness.run.advance_by(0.001)
        harness.take()
        harness.queue.mark_done("a")
    assert len(harness.queue._due_heap) < 100


def test_a_wait_that_binary_fractions_cannot_hold_does_not_turn_the_loop_for_ever(harness: QueueHarness):
    async def main() -> None:
        for wait_s in (0.1, 1e-7, 1 / 3, 1e-9, 0.7):
            harness.queue.add_after("a", wait_s)
            key = await harness.queue.get()
            assert key == "a"
            harness.queue.mark_done(key)
            await asyncio.sleep(1e-3)

    harness.run.run_until(main())


def test_a_wait_longer_than_any_timer_is_harmless(harness: QueueHarness):
    harness.queue.add_after("a", 1e299)
    harness.queue.add_after("b", math.inf)
    getting = harness.run.spawn(harness.queue.get())
    harness.run.advance_by(200_000)
    harness.queue.add("c")
    harness.run.settle()
    assert getting.result() == "c"

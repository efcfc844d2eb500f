"""The loop of a controller: what becomes of a key, and how the loop ends."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.errors import InvalidInput, NotEnoughData
from plimsoll.kube.controller.controller import Again, AlreadyReported, Controller, ControllerSettings, Done
from plimsoll.kube.controller.workqueue import QueueSettings
from plimsoll.kube.errors import Conflict, NotAllowed, NotFound, Status, TooManyRequests
from plimsoll.runtime.backoff import Backoff
from plimsoll.runtime.cooperative_yield import OBJECTS_AT_ONCE
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun
from tests.faults import Crashed

if TYPE_CHECKING:
    from collections.abc import Iterator

STEADY = QueueSettings(backoff=Backoff(initial_s=1, factor=2, cap_s=60, jitter=0), retries_per_s=0)


class ControllerHarness:
    """A controller whose reconcile follows a script for each key; without one it is done at once."""

    def __init__(self, *, keys: tuple[str, ...] = (), takes_s: float = 0.0, **more: Any) -> None:
        self.run = VirtualRun()
        self.script: dict[str, list[Any]] = {}
        self.takes_s = takes_s
        self.story: list[tuple[float, str]] = []
        self.finished: list[str] = []
        self.keys = keys
        self.controller: Controller[str] = Controller(
            "desk",
            self.reconcile,
            clock=self.run.clock,
            entropy=SeededEntropy("desk"),
            all_keys=lambda: self.keys,
            settings=ControllerSettings(**{"queue": STEADY, "resync_s": 0, **more}),
        )

    def start(self) -> asyncio.Task[None]:
        self.running = self.run.spawn(self.controller.run())
        self.run.settle()
        return self.running

    def stop(self) -> None:
        self.running.cancel()
        self.run.settle()

    def add(self, *keys: str) -> None:
        for key in keys:
            self.controller.queue.add(key)
        self.run.settle()

    async def reconcile(self, key: str) -> Done | Again:
        self.story.append((self.run.clock.monotonic_s(), key))
        if self.takes_s:
            await asyncio.sleep(self.takes_s)
        script = self.script.get(key)
        step = script.pop(0) if script else Done()
        if isinstance(step, BaseException):
            raise step
        self.finished.append(key)
        return step

    def times(self, key: str) -> list[float]:
        return [round(at, 6) for at, reconciled in self.story if reconciled == key]

    @property
    def turns(self) -> dict[str, int]:
        return self.controller.status.results


@pytest.fixture
def harness() -> Iterator[ControllerHarness]:
    harness = ControllerHarness()
    # Captured, because drawing the traceback of a bug takes longer than everything else here.
    with harness.run, structlog.testing.capture_logs():
        harness.start()
        yield harness


# ---- what becomes of a key


def test_a_key_that_is_done_rests(harness: ControllerHarness):
    harness.add("a")
    harness.run.advance_by(1_000)
    assert harness.times("a") == [0]


def test_a_key_is_looked_at_again_when_it_asked_for_it(harness: ControllerHarness):
    harness.script["a"] = [Again(after_s=30), Again(after_s=5)]
    harness.add("a")
    harness.run.advance_by(1_000)
    assert harness.times("a") == [0, 30, 35]


def test_a_conflict_is_tried_again_soon(harness: ControllerHarness):
    harness.script["a"] = [Conflict(Status(code=409))]
    harness.add("a")
    harness.run.advance_by(1)
    assert harness.times("a") == [0, 1]
    assert harness.turns == {"conflict": 1, "done": 1}


@pytest.mark.parametrize("error", [NotFound(Status(code=404)), NotEnoughData("no metrics"), ValueError("a bug")])
def test_failures_back_off_until_it_goes_well(harness: ControllerHarness, error: Exception):
    harness.script["a"] = [error, error, error]
    harness.add("a")
    harness.run.advance_by(1_000)
    assert harness.times("a") == [0, 1, 3, 7]
    harness.script["a"] = [error]
    harness.add("a")
    harness.run.advance_by(1)
    assert harness.times("a")[-2:] == [1000, 1001]


def test_the_servers_retry_after_is_honoured(harness: ControllerHarness):
    harness.script["a"] = [TooManyRequests(Status(code=429), retry_after_s=42)]
    harness.add("a")
    harness.run.advance_by(100)
    assert harness.times("a") == [0, 42]


def test_a_controller_that_may_not_act_for_a_moment_retries_without_a_log_line(harness: ControllerHarness):
    harness.script["a"] = [NotAllowed("the lease is made anew"), NotAllowed("held for another 0.3 s only")]
    with structlog.testing.capture_logs() as logs:
        harness.add("a")
        harness.run.advance_by(1_000)
    assert harness.times("a") == [0, 1, 3]
    assert harness.turns == {"done": 1, "not allowed": 2}
    assert {log_entry["log_level"] for log_entry in logs} <= {"debug"}


def test_having_been_a_follower_is_no_failure(harness: ControllerHarness):
    harness.script["a"] = [*[NotAllowed("not leading")] * 20, NotEnoughData("no metrics")]
    harness.add("a")
    harness.run.advance_by(2_000)
    *_, failed_at_s, done_at_s = harness.times("a")
    assert done_at_s - failed_at_s == pytest.approx(1)


def test_a_follower_looks_seldom_and_holds_up_no_retry_of_another():
    harness = ControllerHarness(queue=QueueSettings(backoff=STEADY.backoff, retries_per_s=1, retry_burst=1))
    with harness.run, structlog.testing.capture_logs():
        keys = [f"k{number}" for number in range(500)]
        harness.script = {key: [NotAllowed("not leading")] * 1_000 for key in keys}
        harness.start()
        harness.add(*keys)
        harness.run.advance_by(1_000)
        assert len(keys) < harness.turns["not allowed"] <= len(keys) + 1_001
        harness.script["failing"] = [NotEnoughData("no metrics")]
        harness.add("failing")
        harness.run.advance_by(1)
        assert harness.times("failing") == [1_000, 1_001]


def test_a_bug_with_one_key_does_not_stop_the_others(harness: ControllerHarness):
    harness.script["bad"] = [ZeroDivisionError()] * 1_000
    harness.add("bad", "good")
    harness.run.advance_by(100)
    harness.add("good")
    assert harness.times("good") == [0, 100]
    assert not harness.running.done()


def test_an_unrequested_cancellation_does_not_cost_a_worker(harness: ControllerHarness):
    harness.script["a"] = [asyncio.CancelledError()]
    harness.add("a")
    harness.run.advance_by(1)
    assert harness.times("a") == [0, 1]


def test_a_crash_is_not_taken_for_an_error():
    harness = ControllerHarness(workers=2)
    with harness.run:
        harness.start()
        harness.script["a"] = [Crashed()]
        with pytest.raises(BaseExceptionGroup) as caught:
            harness.add("a")
        assert caught.group_contains(Crashed)


def test_what_happens_while_a_key_is_looked_at_is_looked_at():
    harness = ControllerHarness(takes_s=10)
    with harness.run:
        harness.start()
        harness.add("a")
        harness.run.advance_by(5)
        harness.add("a", "a")
        harness.run.advance_by(100)
        assert harness.times("a") == [0, 10]


def test_workers_look_at_different_keys_at_the_same_time():
    harness = ControllerHarness(workers=3, takes_s=10)
    with harness.run:
        harness.start()
        harness.add("a", "b", "c", "d")
        harness.run.advance_by(100)
        assert harness.story == [(0, "a"), (0, "b"), (0, "c"), (10, "d")]


def test_a_controller_without_workers_is_refused():
    with pytest.raises(InvalidInput, match=r"^workers: "):
        ControllerSettings(workers=0)


def test_every_reconcile_logs_its_summary(harness: ControllerHarness):
    harness.script["a"] = [Done(summary="added 3 machines for 41 pods")]
    with structlog.testing.capture_logs() as logs:
        harness.add("a")
    assert [(log_entry["event"], log_entry["key"], log_entry["summary"]) for log_entry in logs] == [
        ("reconcile.done", "a", "added 3 machines for 41 pods")
    ]


def test_a_failure_is_reported_with_its_error_and_the_next_try(harness: ControllerHarness):
    harness.script["a"] = [NotEnoughData("no metrics")]
    with structlog.testing.capture_logs() as logs:
        harness.add("a")
    (reported,) = logs
    assert reported["event"] == "reconcile.failed"
    assert (reported["error"], reported["tries"], reported["again_s"]) == ("NotEnoughData: no metrics", 1, 1)


def test_a_failure_that_was_reported_already_is_logged_at_debug_level(harness: ControllerHarness):
    harness.script["a"] = [AlreadyReported("no metrics")]
    with structlog.testing.capture_logs() as logs:
        harness.add("a")
    assert [(log_entry["log_level"], log_entry["event"]) for log_entry in logs] == [("debug", "reconcile.failed")]


# ---- start and resync


class FakeSource:
    def __init__(self) -> None:
        self.ready = asyncio.Event()

    async def wait_until_synced(self) -> None:
        await self.ready.wait()


def test_work_starts_when_all_informers_are_in_sync():
    harness = ControllerHarness(keys=("a",))
    with harness.run:
        sources = [FakeSource(), FakeSource()]
        for source in sources:
            harness.controller.add_source(source)
        harness.start()
        harness.add("b")
        sources[0].ready.set()
        harness.run.advance_by(10)
        assert not harness.story
        assert not harness.controller.status.has_started
        sources[1].ready.set()
        harness.run.settle()
        assert {key for _, key in harness.story} == {"a", "b"}
        assert harness.controller.status.has_started


def test_everything_is_looked_at_from_time_to_time():
    harness = ControllerHarness(keys=("a", "b"), resync_s=600, resync_jitter=0.1)
    with harness.run:
        harness.start()
        harness.run.advance_by(6_000)
        times = harness.times("a")
        waits = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert len(times) >= 11
        assert all(540 <= wait_s <= 600 for wait_s in waits)
        assert len(set(waits)) > 1
        assert harness.times("b") == times


def test_a_new_leader_can_ask_for_everything(harness: ControllerHarness):
    harness.keys = ("a", "b")
    harness.controller.resync()
    harness.run.settle()
    assert harness.finished == ["a", "b"]


def test_resyncing_all_objects_during_a_resync_reconciles_all_of_them(harness: ControllerHarness):
    def keys() -> Iterator[str]:
        known = harness.keys
        yield "a"
        if not known:
            harness.keys = ("b",)
            harness.controller.resync()
        yield from known

    harness.controller._all_keys = keys
    harness.controller.resync()
    harness.run.settle()
    assert harness.finished == ["a", "b"]


def test_looking_at_everything_lets_others_run():
    harness = ControllerHarness(keys=tuple(map(str, range(20_000))))
    queue = harness.controller.queue

    async def greatest_step(*, before: int) -> int:
        """The most keys that were added between two steps of another task, until all were."""
        greatest, goal = 0, before + len(harness.keys)
        while before < goal:
            greatest, before = max(greatest, queue.status.adds - before), queue.status.adds
            await asyncio.sleep(0)
        return greatest

    with harness.run:
        harness.run.spawn(harness.controller.run())
        assert harness.run.run_until(greatest_step(before=0)) <= OBJECTS_AT_ONCE
        harness.controller.resync()
        assert harness.run.run_until(greatest_step(before=len(harness.keys))) <= OBJECTS_AT_ONCE


# ---- the end


def test_stopping_an_idle_controller_takes_no_time(harness: ControllerHarness):
    harness.stop()
    assert harness.running.cancelled()
    assert harness.run.clock.monotonic_s() == 0


def test_what_is_under_way_may_finish_and_nothing_new_is_begun():
    harness = ControllerHarness(takes_s=5, grace_s=8)
    with harness.run:
        harness.start()
        harness.add("a", "b")
        harness.stop()
        assert not harness.running.done()
        harness.run.advance_by(5)
        assert harness.running.cancelled()
        assert harness.finished == ["a"]
        assert harness.controller.queue.status.depth == 1


def test_what_takes_longer_than_the_grace_is_cut_off():
    harness = ControllerHarness(takes_s=100, grace_s=8)
    with harness.run:
        harness.start()
        harness.add("a")
        harness.stop()
        harness.run.advance_by(7.9)
        assert not harness.running.done()
        harness.run.advance_by(0.2)
        assert harness.running.cancelled()
        assert harness.finished == []


def test_stopping_twice_does_not_wait_for_the_grace():
    harness = ControllerHarness(takes_s=100, grace_s=8)
    with harness.run:
        harness.start()
        harness.add("a")
        harness.stop()
        harness.stop()
        assert harness.running.cancelled()


def test_a_controller_that_is_started_again_takes_up_what_was_cut_off():
    harness = ControllerHarness(takes_s=100, grace_s=1)
    with harness.run:
        harness.start()
        harness.add("a", "b")
        harness.stop()
        harness.run.advance_by(1)
        harness.takes_s = 0
        harness.start()
        assert sorted(harness.finished) == ["a", "b"]


def test_a_closed_queue_ends_the_controller_after_the_last_key(harness: ControllerHarness):
    harness.controller.queue.add("a")
    harness.controller.queue.close()
    harness.run.settle()
    assert harness.finished == ["a"]
    assert harness.running.result() is None


# ---- whatever happens


OUTCOMES = st.sampled_from(
    [Done(), Again(after_s=3), Conflict(Status(code=409)), NotEnoughData("none"), KeyError("bug"), NotAllowed("no")]
)


@settings(max_examples=60, deadline=None)
@given(
    script=st.dictionaries(st.sampled_from("abcd"), st.lists(OUTCOMES, max_size=6)),
    workers=st.integers(1, 3),
    stops=st.lists(st.integers(1, 20), max_size=3),
)
def test_every_key_comes_to_its_end_through_errors_and_restarts(
    script: dict[str, list[Any]], workers: int, stops: list[int]
):
    harness = ControllerHarness(workers=workers, takes_s=2, grace_s=1, keys=tuple(script))
    with harness.run, structlog.testing.capture_logs():
        harness.script = {key: list(steps) for key, steps in script.items()}
        harness.start()
        for after_s in stops:
            harness.run.advance_by(after_s)
            harness.stop()
            harness.run.advance_by(1)
            assert harness.running.cancelled()
            harness.start()
        harness.run.advance_by(2_000)
        status = harness.controller.queue.status
        assert (status.depth, status.working, status.delayed) == (0, 0, 0)
        for key, steps in script.items():
            left = harness.script[key]
            taken = steps[: len(steps) - len(left)]
            # A key rests when it is done; everything else leads to another look.
            assert not left or isinstance(taken[-1], Done)

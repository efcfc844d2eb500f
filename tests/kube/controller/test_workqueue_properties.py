"""Random schedules against what the queue promises: nothing is lost, no key is shared, nothing comes too late."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.controller.workqueue import QueueSettings, WorkQueue
from plimsoll.runtime.backoff import Backoff
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun

# Retries that come at once keep the model simple: what it says about time, it says about add_after.
QUICK = QueueSettings(backoff=Backoff(initial_s=0.25, factor=2, cap_s=4, jitter=0.5), retries_per_s=0)
KEYS = st.sampled_from("abc")
MOMENTS = st.integers(0, 12).map(lambda quarters: quarters / 4)


class Add(NamedTuple):
    key: str
    after_s: float = 0.0


class Retry(NamedTuple):
    key: str


class AdvanceTime(NamedTuple):
    seconds: float


class CancelWorker(NamedTuple):
    """One worker is cancelled, if it waits, and replaced."""

    worker: int


STEPS = st.lists(
    st.one_of(
        st.builds(Add, KEYS, st.just(0.0)),
        st.builds(Add, KEYS, MOMENTS),
        st.builds(Retry, KEYS),
        st.builds(AdvanceTime, MOMENTS),
        st.builds(CancelWorker, st.integers(0, 2)),
    ),
    max_size=40,
)


class Model:
    """Workers at a queue, and what was asked of it."""

    def __init__(self, *, workers: int, work_s: float) -> None:
        self.run = VirtualRun()
        self.queue: WorkQueue[str] = WorkQueue(clock=self.run.clock, entropy=SeededEntropy("m"), settings=QUICK)
        self.work_s = work_s
        self.at_work: set[str] = set()
        self.starts: dict[str, list[float]] = defaultdict(list)
        self.wanted: dict[str, list[float]] = defaultdict(list)
        self.idle: set[int] = set()
        self.workers = [self.run.spawn(self.work(number)) for number in range(workers)]

    @property
    def now_s(self) -> float:
        return self.run.clock.monotonic_s()

    async def work(self, number: int) -> None:
        while True:
            self.idle.add(number)
            try:
                key = await self.queue.get()
            finally:
                self.idle.discard(number)
            if key is None:
                return
            assert key not in self.at_work, "two workers have one key"
            self.at_work.add(key)
            self.starts[key].append(self.now_s)
            if self.work_s:
                await asyncio.sleep(self.work_s)
            self.at_work.discard(key)
            self.queue.mark_done(key)

    def take(self, step: Add | Retry | AdvanceTime | CancelWorker) -> None:
        match step:
            case Add(key, after_s):
                self.wanted[key].append(self.now_s + after_s)
                self.queue.add_after(key, after_s)
            case Retry(key):
                self.wanted[key].append(self.now_s + self.queue.add_rate_limited(key))
            case AdvanceTime(seconds):
                self.run.advance_by(seconds)
            case CancelWorker(worker) if worker < len(self.workers) and worker in self.idle:
                self.workers[worker].cancel()
                self.workers[worker] = self.run.spawn(self.work(worker))

    def finish(self) -> None:
        self.run.advance_by(60 + 100 * self.work_s)
        assert not self.at_work
        assert self.queue.status.depth == self.queue.status.delayed == 0


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, workers=st.integers(1, 3), work_s=st.sampled_from([0, 0.25, 1.1]))
def test_every_request_is_followed_by_a_look_and_no_key_is_shared(steps: list, workers: int, work_s: float):
    model = Model(workers=workers, work_s=work_s)
    with model.run:
        for step in steps:
            model.take(step)
        model.finish()
        for key, moments in model.wanted.items():
            # The earliest of several due times stands for all that were asked for before it came.
            first = min(moments)
            assert model.starts[key], f"{key} was lost"
            assert model.starts[key][-1] >= first - 1e-6
        assert set(model.starts) == set(model.wanted), "a key came that nobody added"


@settings(max_examples=100, deadline=None)
@given(steps=STEPS, work_s=st.sampled_from([0, 0.25, 1.1]))
def test_an_immediate_request_is_always_followed_by_a_look_that_starts_later(steps: list, work_s: float):
    model = Model(workers=2, work_s=work_s)
    with model.run:
        last_add: dict[str, tuple[float, int]] = {}
        for step in steps:
            if isinstance(step, Add) and not step.after_s:
                last_add[step.key] = (model.now_s, len(model.starts[step.key]))
            model.take(step)
        model.finish()
        for key, (added_s, seen) in last_add.items():
            later = model.starts[key][seen:]
            assert later, f"{key}: added at {added_s}, not looked at afterwards"
            assert later[0] >= added_s


@settings(max_examples=100, deadline=None)
@given(waits=st.lists(MOMENTS.filter(bool), min_size=1, max_size=6))
def test_of_many_due_times_set_at_once_exactly_the_earliest_counts(waits: list[float]):
    model = Model(workers=1, work_s=0)
    with model.run:
        for wait_s in waits:
            model.take(Add("a", wait_s))
        model.finish()
        assert model.starts["a"] == [min(waits)]


@settings(max_examples=100, deadline=None)
@given(failures=st.integers(1, 12), seed=st.integers(0, 1_000))
def test_waits_of_one_key_never_shrink_but_for_jitter(failures: int, seed: int):
    run = VirtualRun()
    with run:
        steady = QueueSettings(backoff=Backoff(initial_s=0.1, cap_s=50, jitter=0.5), retries_per_s=0)
        queue: WorkQueue[str] = WorkQueue(clock=run.clock, entropy=SeededEntropy(seed), settings=steady)
        waits = [queue.add_rate_limited("a") for _ in range(failures)]
    for number, wait_s in enumerate(waits):
        nominal_s = min(50, 0.1 * 2**number)
        assert nominal_s / 2 - 1e-9 <= wait_s <= nominal_s + 1e-9


def test_two_runs_of_one_schedule_are_the_same():
    steps = [
        Add("a"),
        Add("b", 1),
        Retry("c"),
        AdvanceTime(0.5),
        Retry("c"),
        Add("a", 0.25),
        CancelWorker(0),
        AdvanceTime(3),
        Add("b"),
    ]

    def story() -> dict[str, list[float]]:
        model = Model(workers=2, work_s=0.3)
        with model.run:
            for step in steps:
                model.take(step)  # type: ignore[arg-type]
            model.finish()
            return dict(model.starts)

    assert story() == story()

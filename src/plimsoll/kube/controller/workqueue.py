"""The work queue of a controller: keys of changed objects, not the changes themselves.

Informer handlers, timers and failed reconciles add keys; workers take them. The queue guarantees:

* A key waits in it once, however often it is added, and in the order in which keys became ready.
* No two workers have the same key. A key that is added while a worker has it becomes ready again when the worker is
  done, so no change is missed.
* `add_after` keeps the earliest of several due times for a key. A plain `add` does not touch them: a key that
  was added for noon becomes ready at noon.
* `get` that is cancelled has taken nothing.

There is no task and no thread in it: due keys become ready with any call of the queue, and a caller of `get`
sleeps until the next due time. Retries back off from 0.1 s, doubling to 5 minutes, with a little jitter (client-go:
5 ms to 1000 s without): our reconciles plan, so 200 retries per second would only waste cpu, and a
quarter of an hour is too long for a user who has corrected an object.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from bisect import bisect_left
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from plimsoll.core.values import Value
from plimsoll.kube.requests.rate_limiter import TokenBucket
from plimsoll.runtime.backoff import Backoff, BackoffTable

if TYPE_CHECKING:
    from collections.abc import Hashable

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy

K = TypeVar("K", bound="Hashable")

RETRIES: Final = Backoff(initial_s=0.1, factor=2.0, cap_s=300.0, jitter=0.1)

# Loop and clock may round a moment differently; a wait shorter than this would only spin the loop.
_SAME_INSTANT_S: Final = 1e-6
# Timers of an event loop overflow; a waiter that wakes early waits again.
_LONGEST_TIMER_S: Final = 86_400.0
# Not worth tidying up.
_FEW: Final = 64


class QueueSettings(Value):
    """The pace of retries: `backoff` per key, and `retries_per_s` over all keys (0: no limit)."""

    backoff: Backoff = RETRIES
    retries_per_s: float = 10.0
    retry_burst: int = 100


DURATION_BUCKETS_S: Final = tuple(10.0**exponent for exponent in range(-8, 4))
"""The upper bounds of client-go's histograms of queues."""


class Durations(Value):
    """A histogram: how many were at most as long as each bound of `DURATION_BUCKETS_S`, or longer than all of them."""

    counts: tuple[int, ...] = (0,) * (len(DURATION_BUCKETS_S) + 1)
    sum_s: float = 0.0


class _DurationCounter:
    """Counts durations by bucket."""

    def __init__(self) -> None:
        self._counts = [0] * (len(DURATION_BUCKETS_S) + 1)
        self._sum_s = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(DURATION_BUCKETS_S, seconds)] += 1
        self._sum_s += seconds

    def get_status(self) -> Durations:
        return Durations(counts=tuple(self._counts), sum_s=self._sum_s)


class QueueStatus(Value):
    """The queue at one moment, and how often it was used so far: what metrics show."""

    depth: int
    """Ready, and no worker has them."""
    working: int
    delayed: int
    """Not due yet."""
    oldest_age_s: float
    """How long the first key of the queue has been ready."""
    longest_work_s: float
    adds: int
    retries: int
    is_closed: bool
    unfinished_work_s: float = 0.0
    """How long all workers together have had their keys."""
    queued: Durations = Durations()
    """How long keys were ready before a worker got them."""
    worked: Durations = Durations()
    """How long workers had their keys."""


class WorkQueue(Generic[K]):
    """Keys to reconcile. `None` cannot be a key: `get` returns it when the queue is closed and empty."""

    def __init__(self, *, clock: Clock, entropy: Entropy, settings: QueueSettings | None = None) -> None:
        settings = settings or QueueSettings()
        self._clock = clock
        self._failures = _Spacing(settings, entropy)
        self._refusals = _Spacing(settings, entropy)
        self._ready: OrderedDict[K, float] = OrderedDict()  # since when
        self._working: dict[K, float] = {}  # since when
        self._again: set[K] = set()  # added while worked
        self._due: dict[K, float] = {}
        self._due_heap: list[tuple[float, int, K]] = []  # may hold entries that _due has forgotten
        self._numbers = itertools.count()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._is_closed = False
        self._adds = self._retries = 0
        self._queued, self._worked = _DurationCounter(), _DurationCounter()

    # ---- putting in

    def add(self, key: K) -> None:
        """Add `key`, for the next free worker. Ignored after `close`."""
        if self._is_closed:
            return
        now_s = self._become_due()
        self._adds += 1
        self._make_ready(key, now_s)

    def add_after(self, key: K, seconds: float) -> None:
        """Add `key` in `seconds`, or at the earlier time for which it was already added."""
        if not seconds > 0:
            self.add(key)
            return
        if self._is_closed:
            return
        due_s = self._become_due() + seconds
        if due_s >= self._due.get(key, float("inf")):
            return
        self._due[key] = due_s
        entry = (due_s, next(self._numbers), key)
        heapq.heappush(self._due_heap, entry)
        if len(self._due_heap) > 2 * len(self._due) + _FEW:
            self._due_heap = [entry for entry in self._due_heap if self._due.get(entry[2]) == entry[0]]
            heapq.heapify(self._due_heap)
        if self._due_heap[0] is entry:
            # All waiters wait for a later key.
            self._wake_one()

    def add_rate_limited(self, key: K, *, because: object = None) -> float:
        """Add `key` again after a failure. Returns the delay in seconds.

        The delay is at least the `retry_after_s` of the error (`kube.errors.ApiError`).
        """
        now_s = self._clock.monotonic_s()
        self._retries += 1
        wait_s = self._failures.wait_s(key, now_s, because=because)
        self.add_after(key, wait_s)
        return wait_s

    def add_refused(self, key: K) -> None:
        """Add `key` again after an action was not allowed: with a back-off, but without counting a failure.

        With a budget of its own, so that a follower's many refusals hold up no retry. A key that is
        refused again early, because something changed, keeps its due time.
        """
        now_s = self._clock.monotonic_s()
        due_s = self._refusals.table.get_state(key).ready_at
        if due_s <= now_s + _SAME_INSTANT_S:
            due_s = now_s + self._refusals.wait_s(key, now_s)
        self.add_after(key, due_s - now_s)

    def forget(self, key: K) -> None:
        """Reset the failures of `key` after a success."""
        self._failures.table.record_success(key)
        self._refusals.table.record_success(key)

    def count_failures(self, key: K) -> int:
        """The number of consecutive failures of `key`."""
        return self._failures.table.get_state(key).failures

    # ---- taking out

    async def get(self) -> K | None:
        """The next key, exclusive to the caller until `mark_done`. None: the queue is closed, and nothing is ready."""
        while True:
            now_s = self._become_due()
            if self._ready:
                key, ready_s = self._ready.popitem(last=False)
                self._queued.add(max(0.0, now_s - ready_s))
                self._working[key] = now_s
                if self._ready or self._due_heap:
                    self._wake_one()
                return key
            if self._is_closed:
                return None
            await self._wait_for_change(now_s)

    def mark_done(self, key: K) -> None:
        """The worker let go of `key`."""
        began_s = self._working.pop(key, None)
        if began_s is None:
            raise ValueError(f"no worker has taken {key!r}")
        self._worked.add(max(0.0, self._clock.monotonic_s() - began_s))
        if key in self._again:
            self._again.discard(key)
            self._make_ready(key, self._clock.monotonic_s())

    def close(self) -> None:
        """Accept no more keys and drop those that are not due. Ready keys are still returned, then `get` ends."""
        self._become_due()
        self._is_closed = True
        self._due.clear()
        self._due_heap.clear()
        for waiter in self._waiters:
            _wake(waiter)

    # ---- status

    @property
    def status(self) -> QueueStatus:
        now_s = self._become_due()
        return QueueStatus(
            depth=len(self._ready),
            working=len(self._working),
            delayed=len(self._due),
            oldest_age_s=now_s - next(iter(self._ready.values()), now_s),
            longest_work_s=now_s - min(self._working.values(), default=now_s),
            adds=self._adds,
            retries=self._retries,
            is_closed=self._is_closed,
            unfinished_work_s=sum(now_s - began_s for began_s in self._working.values()),
            queued=self._queued.get_status(),
            worked=self._worked.get_status(),
        )

    # ---- inside

    def _make_ready(self, key: K, now_s: float) -> None:
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = now_s
            self._wake_one()

    def _become_due(self) -> float:
        """Make due keys ready, in the order of their due times. Returns the current time."""
        now_s = self._clock.monotonic_s()
        while self._due_heap and self._due_heap[0][0] <= now_s + _SAME_INSTANT_S:
            due_s, _, key = heapq.heappop(self._due_heap)
            if self._due.get(key) == due_s:
                del self._due[key]
                self._adds += 1
                self._make_ready(key, min(due_s, now_s))
        return now_s

    async def _wait_for_change(self, now_s: float) -> None:
        """Wait until a key becomes ready, one falls due, or the queue is closed."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        alarm = None
        if self._due_heap:
            wait_s = min(self._due_heap[0][0] - now_s, _LONGEST_TIMER_S)
            alarm = asyncio.get_running_loop().call_later(wait_s, _wake, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # The wake-up, or the watch over the next due time, may have been this waiter's: another waiter takes over.
            self._waiters.remove(waiter)
            self._wake_one()
            raise
        finally:
            if alarm is not None:
                alarm.cancel()
        self._waiters.remove(waiter)

    def _wake_one(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                _wake(waiter)
                return


class _Spacing:
    """The delays of retries: per key by its number of retries, and over all keys within a budget."""

    def __init__(self, settings: QueueSettings, entropy: Entropy) -> None:
        self.table = BackoffTable(settings.backoff, entropy)
        self._policy = settings.backoff
        per_s, burst = settings.retries_per_s, settings.retry_burst
        self._bucket = TokenBucket(per_s=per_s, burst=burst) if per_s else None

    def wait_s(self, key: Hashable, now_s: float, *, because: object = None) -> float:
        turn_s = self._bucket.reserve_s(now_s) if self._bucket is not None else 0.0
        at_least_s = max(self._policy.read_retry_after_s(because), turn_s)
        return self.table.record_failure(key, now_s, at_least_s=at_least_s).ready_at - now_s


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)

"""An event loop whose time jumps to the next timer as soon as nothing is ready: hours pass in milliseconds.

Tests, scenarios and what-ifs run on it, through `plimsoll.runtime.virtual_run`. It promises four things.

* **Nothing leaves its thread.** Executors, sockets, processes, signals and threads raise `LeftVirtualTime`, which names
  the caller. The run then ends with that error even if the caller swallows it.
* **Errors come out.** What a bare callback raises ends the run, instead of going to a log as in other loops.
* **It never hangs.** Nothing ready and no timer set is a `Deadlock`, which lists the waiting tasks and where they wait;
callbacks that
  call each other without time passing are a `Runaway`. (One callback that never returns cannot be caught.)
* **It repeats.** Timers of one instant fire in the order they were set; tasks hash by the order they were made in, so
  that asyncio's own sets of tasks (a TaskGroup cancelling its children) are walked in the same order in every run.

Time is a whole number of nanoseconds since the loop was made. `call_later` adds whole nanoseconds, so a thousand sleeps
of 0.1 s are exactly 100 s; `call_at(t)` fires at the nanosecond nearest to t, with `time() == t`.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import Counter
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from plimsoll.core.errors import Deadlock, LeftVirtualTime, Runaway
from plimsoll.core.values import Value
from plimsoll.runtime.clocks import VirtualClock
from plimsoll.runtime.deadlocks import build_deadlock, build_runaway, describe_callback_place, describe_task_place
from plimsoll.runtime.thread_isolation import find_calling_place, forbid_outside_calls
from plimsoll.runtime.virtual_handles import VirtualHandle, VirtualTask, VirtualTimer

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Coroutine
    from contextvars import Context
    from datetime import datetime

    from plimsoll.runtime.virtual_handles import Callback

T = TypeVar("T")

_NS = 1_000_000_000
_FEW_TIMERS = 1_000
_TURNS_WATCHED_IN_A_RUNAWAY = 1_000


class Limits(Value):
    """What a run may cost before it counts as a runaway. Counted, not timed, so that every machine agrees."""

    turns_at_one_instant: int = 1_000_000


class VirtualLoop(asyncio.BaseEventLoop):
    """The event loop of virtual time. It overrides `_run_once`, as asyncio requires of derived loops."""

    # What the base class keeps and typeshed does not declare. (_VARIADIC below: typeshed ties a callback to its
    # arguments by type; doing the same would say `*args: *Ts` four times over and check nothing here.)
    _ready: deque[VirtualHandle | VirtualTimer]
    _closed: bool = True  # until super().__init__ opens it: a loop that could not be made has nothing to close
    _stopping: bool

    def __init__(self, *, start: datetime, limits: Limits | None = None) -> None:
        self.clock = VirtualClock(self, start=start)
        super().__init__()
        self._limits = limits or Limits()
        self._now_ns = 0
        self._now_s = 0.0
        self._timers: dict[int, list[VirtualTimer]] = {}
        self._instants: list[int] = []
        self._timers_cancelled = 0
        self._sweep_after = _FEW_TIMERS
        self._tasks_made = 0
        self._iterations = 0
        self._owner = threading.get_ident()
        self._horizon_ns = math.inf
        self._may_idle = False
        self._idle = False
        self._busiest: Counter[str] = Counter()
        self._outside_call: LeftVirtualTime | None = None

    # -- time and timers

    def time(self) -> float:
        return self._now_s

    def get_elapsed_ns(self) -> int:
        return self._now_ns

    def call_soon(self, callback: Callback, *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]  # _VARIADIC
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = VirtualHandle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]  # _VARIADIC
        self, delay: float, callback: Callback, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if delay == math.inf:
            return self.call_at(delay, callback, *args, context=context)
        when_ns = self._now_ns + round(delay * _NS)
        return self._hold(when_ns, VirtualTimer(when_ns / _NS, callback, args, context, self))

    def call_at(  # type: ignore[override]  # _VARIADIC
        self, when: float, callback: Callback, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = VirtualTimer(when, callback, args, context, self)
        if when == math.inf:
            # Never due, so it is not stored: a task that waits for this alone is reported as a deadlock.
            timer.held = False
            return timer
        return self._hold(round(when * _NS), timer)

    def _hold(self, when_ns: int, timer: VirtualTimer) -> VirtualTimer:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        # Appending keeps the order of one instant, and leaves the heap to plain numbers, which compare fast.
        timers = self._timers.get(when_ns)
        if timers is None:
            self._timers[when_ns] = [timer]
            heappush(self._instants, when_ns)
        else:
            timers.append(timer)
        return timer

    def on_timer_cancelled(self) -> None:
        """Count a cancelled timer, and remove cancelled ones in bulk: long timeouts would pile up."""
        self._timers_cancelled += 1
        if self._timers_cancelled > self._sweep_after:
            self._sweep()

    def _sweep(self) -> None:
        kept = {when_ns: [timer for timer in timers if timer.held] for when_ns, timers in self._timers.items()}
        self._timers = {when_ns: timers for when_ns, timers in kept.items() if timers}
        # In place: _run_once has it at hand.
        self._instants[:] = self._timers
        heapify(self._instants)
        self._timers_cancelled = 0
        # A sweep looks at every timer, so the next one waits for as many cancellations as timers were left.
        self._sweep_after = max(_FEW_TIMERS, sum(map(len, self._timers.values())))

    def _collect(self) -> float:
        """Make the timers of the earliest instant ready, and return that instant as its first timer has it."""
        timers = self._timers.pop(heappop(self._instants))
        for timer in timers:
            if timer.held:
                timer.held = False
                self._ready.append(timer)
        return timers[0].when_s

    # -- running

    def _run_once(self) -> None:
        """Run iterations until the loop is stopped: one per call, as in asyncio, would cost a third of the speed."""
        ready, instants = self._ready, self._instants
        take = ready.popleft
        while True:
            while instants and instants[0] <= self._now_ns:
                self._collect()
            if not ready and not self._stopping:
                self._jump()
            self._iterations += 1
            if self._iterations > self._limits.turns_at_one_instant:
                self._watch_the_runaway()
            # What these callbacks make ready waits for the next iteration, as in every asyncio loop.
            for _ in range(len(ready)):
                handle = take()
                if not handle.dropped:
                    handle.context.run(handle.callback, *handle.args)
            if self._stopping:
                return

    def _jump(self) -> None:
        """Advance time to the next timer. Without one the loop is deadlocked."""
        instants, horizon_ns = self._instants, self._horizon_ns
        while instants and (instant_ns := instants[0]) <= horizon_ns:
            now_s = self._collect()
            if self._ready:
                self._now_ns, self._now_s, self._iterations = instant_ns, now_s, 0
                return
        if not self._may_idle:
            raise build_deadlock(self.list_unfinished_tasks())
        self._idle = True
        self.stop()

    def _watch_the_runaway(self) -> None:
        """Count the callbacks of some more iterations, so that the error can name the busiest."""
        self._busiest.update(describe_callback_place(handle.callback) for handle in self._ready)
        if self._iterations >= self._limits.turns_at_one_instant + _TURNS_WATCHED_IN_A_RUNAWAY:
            error = build_runaway(self._busiest, iterations=self._iterations)
            # The end of the run still needs iterations, to clean up.
            self._iterations, self._busiest = 0, Counter()
            raise error

    def run_forever(self) -> None:
        self._owner = threading.get_ident()
        try:
            with forbid_outside_calls(self):
                super().run_forever()
        except (Deadlock, Runaway):
            self._raise_outside_call()
            raise
        self._raise_outside_call()

    def run_up_to(self, horizon_ns: float) -> bool:
        """Fire every timer up to and including the horizon; False when `stop()` came in between."""
        self._horizon_ns, self._may_idle, self._idle = horizon_ns, True, False
        try:
            self.run_forever()
        finally:
            self._horizon_ns, self._may_idle = math.inf, False
        return self._idle

    def advance_to(self, now_ns: int) -> None:
        """Advance time to a moment before which no timer is left."""
        if now_ns > self._now_ns:
            self._now_ns, self._now_s, self._iterations = now_ns, now_ns / _NS, 0

    def has_timers(self) -> bool:
        return any(timer.held for timers in self._timers.values() for timer in timers)

    # -- tasks

    def create_task(self, coro: Coroutine[Any, Any, T], **options: Any) -> asyncio.Task[T]:  # type: ignore[override]  # options differ by Python version
        if self.is_closed() or self.get_task_factory() is not None:
            return super().create_task(coro, **options)
        self._tasks_made = number = self._tasks_made + 1
        return VirtualTask(coro, number=number, inside=_RUN_ONCE, loop=self, **options)

    def list_unfinished_tasks(self) -> list[asyncio.Task[Any]]:
        """Unfinished tasks in the order of their creation."""
        return sorted(asyncio.all_tasks(self), key=hash)

    # -- calls that are refused

    def record_violation(self, what: str) -> LeftVirtualTime:
        """Record that `what` was called. The run ends with the returned error, even if the caller catches it."""
        error = LeftVirtualTime(
            f"{what} was called at {self._describe_violation_place()}; "
            "nothing may leave the loop's thread in virtual time"
        )
        if self._outside_call is None:
            self._outside_call = error
        self.stop()
        return error

    def _describe_violation_place(self) -> str:
        place = find_calling_place(inside=_RUN_ONCE)
        if place is not None:
            return str(place)
        if threading.get_ident() != self._owner:
            return f"thread {threading.current_thread().name}"
        task = asyncio.current_task(self)
        if task is None:
            return "a callback of the loop"
        return str(getattr(task, "origin", None) or describe_task_place(task))

    def _raise_outside_call(self) -> None:
        outside_call, self._outside_call = self._outside_call, None
        if outside_call is not None:
            raise outside_call

    def call_soon_threadsafe(  # type: ignore[override]  # _VARIADIC
        self, callback: Callback, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if threading.get_ident() != self._owner:
            raise self.record_violation("loop.call_soon_threadsafe, from another thread,")
        return self.call_soon(callback, *args, context=context)


_RUN_ONCE = VirtualLoop._run_once.__code__  # noqa: SLF001 -- our own

_SHUT = (
    "add_reader",
    "add_signal_handler",
    "add_writer",
    "connect_accepted_socket",
    "connect_read_pipe",
    "connect_write_pipe",
    "create_connection",
    "create_datagram_endpoint",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "getaddrinfo",
    "getnameinfo",
    "remove_reader",
    "remove_signal_handler",
    "remove_writer",
    "run_in_executor",
    "sendfile",
    "set_default_executor",
    "sock_accept",
    "sock_connect",
    "sock_recv",
    "sock_recv_into",
    "sock_recvfrom",
    "sock_recvfrom_into",
    "sock_sendall",
    "sock_sendfile",
    "sock_sendto",
    "start_tls",
    "subprocess_exec",
    "subprocess_shell",
)


def _shut(name: str) -> Callable[..., NoReturn]:
    # Plain functions, also where asyncio has coroutines: the caller's frame is there when they are called, and may be
    # gone when they are awaited.
    def refuse(self: VirtualLoop, *_args: object, **_options: object) -> NoReturn:
        raise self.record_violation(f"loop.{name}")

    return refuse


for _name in _SHUT:
    setattr(VirtualLoop, _name, _shut(_name))

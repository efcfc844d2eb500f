"""The loop of every controller: take a key, compare the observed state with the desired state, and act.

A subsystem implements `reconcile(key)`, the supervisor runs `Controller.run`, and `enqueue` adds keys when objects
change. A controller stores no state of the cluster: a key names an object, and a restarted run reconciles everything.

An exception ends this reconcile. Expected are:

* `Conflict`: another writer was first, or the cache is behind. Retried soon, without a log line.
* `NotAllowed`: this process is not leading, or not at the moment (a lease that is created again or about to end), or
  actions are paused. Retried without a log line, with a back-off and a budget of its own (`WorkQueue.add_refused`):
  many keys of a follower cost little. A new leader calls `resync`.
* any other `PlimsollError`: logged as a warning, retried with back-off, not before the server's Retry-After. An
  `AlreadyReported` is not logged again.
* any other `Exception` is a bug, and this module catches it, which only the supervisor does elsewhere: one object that
  triggers a bug would otherwise restart its controller for ever, and no other object would be reconciled. It is logged
  as an error with its traceback, counted, and retried with back-off. `BaseException` passes.

Cancelling `run` is how it is stopped: no new key is taken, reconciles under way may finish within `grace_s`, which
should be shorter than the supervisor's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Generic, Protocol

import structlog

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.core.values import Value
from plimsoll.kube.controller.workqueue import K, QueueSettings, QueueStatus, WorkQueue
from plimsoll.kube.errors import Conflict, NotAllowed
from plimsoll.runtime.cooperative_yield import CooperativeYield

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_ERROR_TEXT_LENGTH = 500


class AlreadyReported(PlimsollError):
    """The reconcile cannot go on, and it has already reported the reason, now or in an earlier reconcile."""


class Done(Value):
    """There is nothing to do until something changes. `summary`: a sentence about what was done, or why nothing was."""

    summary: str = ""


class Again(Value):
    """Look again in `after_s`, or earlier if something changes."""

    after_s: float
    summary: str = ""


class ControllerSettings(Value):
    """The settings of a controller. All keys are reconciled every `resync_s`, less up to a share of `resync_jitter`."""

    workers: int = 1
    resync_s: float = 600.0
    """0: never."""
    resync_jitter: float = 0.1
    grace_s: float = 8.0
    queue: QueueSettings = QueueSettings()

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InvalidInput(f"must be at least 1, is {self.workers}", path="workers")


class ControllerStatus(Value):
    """The state of a controller. `results` counts by result: done, again, conflict, not allowed, failed, bug."""

    name: str
    has_started: bool
    """Its caches are in sync and its workers work."""
    results: dict[str, int]
    queue: QueueStatus


class Syncable(Protocol):
    """The part of an informer that a controller needs."""

    async def wait_until_synced(self) -> None:
        """Return once its cache holds what the server had."""
        ...


class Controller(Generic[K]):
    """Reconciles keys with a number of workers, each key with one worker at a time."""

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[Done | Again]],
        *,
        clock: Clock,
        entropy: Entropy,
        all_keys: Callable[[], Iterable[K]] = tuple,
        settings: ControllerSettings | None = None,
    ) -> None:
        """`all_keys` may be a generator. Other tasks run in between, so it must not iterate over changing data."""
        self.name = name
        self.settings = settings or ControllerSettings()
        self.queue: WorkQueue[K] = WorkQueue(clock=clock, entropy=entropy, settings=self.settings.queue)
        self._reconcile = reconcile
        self._all_keys = all_keys
        self._clock = clock
        self._entropy = entropy
        self._sources: list[Syncable] = []
        self._busy: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._has_started = False
        self._resync_wanted = asyncio.Event()
        self._yielder = CooperativeYield()
        self._results: Counter[str] = Counter()

    @property
    def status(self) -> ControllerStatus:
        results = dict(sorted(self._results.items()))
        return ControllerStatus(name=self.name, has_started=self._has_started, results=results, queue=self.queue.status)

    def add_source(self, source: Syncable) -> None:
        """Start only when the cache of this informer is complete."""
        self._sources.append(source)

    def resync(self) -> None:
        """Reconcile everything soon, as a new leader must. `run` also does so periodically."""
        self._resync_wanted.set()

    async def run(self) -> None:
        """Work until cancelled, or until the queue is closed and empty."""
        for source in self._sources:
            await source.wait_until_synced()
        log.info("controller.started", controller=self.name, workers=self.settings.workers)
        self._is_stopping = False
        await self._add_everything()
        async with asyncio.TaskGroup() as group:
            resyncing = group.create_task(self._resync_periodically(), name=f"{self.name}: resync")
            names = [f"{self.name}: worker {number}" for number in range(self.settings.workers)]
            workers = [group.create_task(self._run_worker(), name=name) for name in names]
            self._has_started = True
            try:
                await asyncio.wait(workers)
            finally:
                self._has_started = False
                resyncing.cancel()
                await self._let_finish(workers)

    # ---- inside

    async def _resync_periodically(self) -> None:
        while True:
            await self._wait_until_resync()
            await self._add_everything()

    async def _wait_until_resync(self) -> None:
        """Wait until the next resync is due or requested."""
        longest_s = self.settings.resync_s
        shortest_s = longest_s * (1 - self.settings.resync_jitter)
        try:
            async with asyncio.timeout(self._entropy.draw_uniform(shortest_s, longest_s) if longest_s > 0 else None):
                await self._resync_wanted.wait()
        except TimeoutError:
            return

    async def _add_everything(self) -> None:
        # Cleared before the first key: a later request may concern more keys.
        self._resync_wanted.clear()
        for key in self._all_keys():
            self.queue.add(key)
            await self._yielder.count_and_yield()

    async def _let_finish(self, workers: list[asyncio.Task[None]]) -> None:
        self._is_stopping = True
        for worker in workers:
            if worker not in self._busy:
                worker.cancel()
        _, late = await asyncio.wait(workers, timeout=self.settings.grace_s)
        for worker in late:
            log.warning("controller.stop_overdue", controller=self.name, grace_s=self.settings.grace_s)
            worker.cancel()

    async def _run_worker(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while not self._is_stopping:
            key = await self.queue.get()
            if key is None:
                return
            self._busy.add(task)
            try:
                await self._reconcile_key(key, task)
            finally:
                self._busy.discard(task)
                self.queue.mark_done(key)

    async def _reconcile_key(self, key: K, task: asyncio.Task[None]) -> None:
        try:
            outcome = await self._reconcile(key)
        except asyncio.CancelledError as error:
            if task.cancelling():
                # Interrupted: the next run starts with this key.
                self.queue.add(key)
                raise
            # This task was not cancelled: something that the reconcile awaited was. Otherwise the worker would end.
            self._is_a_bug(key, error)
        except NotAllowed as error:
            self._is_not_allowed(key, error)
        except Conflict as error:
            self._is_too_late(key, error)
        except PlimsollError as error:
            self._has_failed(key, error)
        except Exception as error:  # noqa: BLE001 -- one object's bug must not stop the others: see above
            self._is_a_bug(key, error)
        else:
            self._record_success(key, outcome)

    def _record_success(self, key: K, outcome: Done | Again) -> None:
        self.queue.forget(key)
        if isinstance(outcome, Again):
            self._results["again"] += 1
            self.queue.add_after(key, outcome.after_s)
        else:
            self._results["done"] += 1
        if outcome.summary:
            log.info("reconcile.done", controller=self.name, key=str(key), summary=outcome.summary)

    def _is_not_allowed(self, key: K, error: NotAllowed) -> None:
        self._results["not allowed"] += 1
        self.queue.add_refused(key)
        log.debug("reconcile.not_allowed", controller=self.name, key=str(key), error=_format_error(error))

    def _is_too_late(self, key: K, error: Conflict) -> None:
        self._results["conflict"] += 1
        wait_s = self.queue.add_rate_limited(key, because=error)
        log.debug("reconcile.conflict", controller=self.name, key=str(key), again_s=wait_s, error=_format_error(error))

    def _has_failed(self, key: K, error: PlimsollError) -> None:
        self._results["failed"] += 1
        wait_s = self.queue.add_rate_limited(key, because=error)
        tries = self.queue.count_failures(key)
        text = _format_error(error)
        write = log.debug if isinstance(error, AlreadyReported) else log.warning
        write("reconcile.failed", controller=self.name, key=str(key), error=text, tries=tries, again_s=round(wait_s, 3))

    def _is_a_bug(self, key: K, error: BaseException) -> None:
        self._results["bug"] += 1
        wait_s = self.queue.add_rate_limited(key)
        text = _format_error(error)
        log.error(
            "reconcile.crashed",
            controller=self.name,
            key=str(key),
            error=text,
            again_s=round(wait_s, 3),
            exc_info=error,
        )


def _format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_ERROR_TEXT_LENGTH]

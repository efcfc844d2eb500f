"""Lists, watches, resumes, and lists again where necessary. The cache updater receives what the server sends.

    list ──→ watch from the list's version ──→ ends or breaks ──→ watch from the last version received
      ↑                                                                      │
      └── the version is gone (410), the server went back, an event was unreadable ──┘

A failure never ends the reflector and never empties the cache: the reflector waits and tries again, and `progress` has
the reason. A list is always a consistent read (no resourceVersion), so it is never older than the cache, unless the
server was restored from a backup. Before every watch that does not follow a list, the reflector reads the server's
version with the smallest list possible: a restored server accepts a watch from a version that it has not reached yet,
and would be silent until then.

A watch may be silent because nothing changes: servers need not send bookmarks. So silence is not a failure. After
`silence_s` of it the reflector proves that the server answers (the same smallest list) and opens the watch again at its
position: a server sends at once what a dead connection lost. A server that does not answer is a failure then. If the
renewed watch is silent too although the server counts other objects than the cache holds, everything is listed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Generic

import structlog

from plimsoll.kube.errors import (
    AnswerLost,
    ApiError,
    BadRequest,
    Expired,
    Forbidden,
    Invalid,
    ServerFailed,
    ServerTrouble,
    TooManyRequests,
    Unauthorized,
)
from plimsoll.kube.informer.events import V
from plimsoll.kube.informer.reflector.idle_timeout import IdleTimeout
from plimsoll.kube.informer.reflector.lister import Lister
from plimsoll.kube.informer.reflector.watch_decoder import (
    Bookmark,
    FrameReader,
    FrameSplitter,
    Present,
    UnreadableFrame,
    WatchDeleted,
    WatchError,
)
from plimsoll.kube.informer.reflector.watch_list import InitialEvents, NoInitialEvents
from plimsoll.kube.informer.store.cache_updater import is_restored
from plimsoll.runtime.backoff import BackoffState
from plimsoll.runtime.cooperative_yield import CooperativeYield

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.informer.reflector.lister_watcher import ListerWatcher
    from plimsoll.kube.informer.settings import InformerSettings
    from plimsoll.kube.informer.store.cache_updater import CacheUpdater
    from plimsoll.kube.transport import Stream

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# After these errors a watch can resume from the current position.
_TRANSIENT: Final = (Unauthorized, Forbidden, TooManyRequests, ServerFailed)


class Reflector(Generic[V]):
    """The reflector of one kind and selection. `on_synced` is called after each complete list."""

    def __init__(
        self,
        lister_watcher: ListerWatcher,
        updater: CacheUpdater[V],
        *,
        settings: InformerSettings,
        clock: Clock,
        entropy: Entropy,
        on_synced: Callable[[], None],
    ) -> None:
        self._lister_watcher = lister_watcher
        self._progress = lister_watcher.progress
        self._updater = updater
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._on_synced = on_synced
        self._frames: FrameReader[V] = FrameReader(lister_watcher.struct, keep_raw=lister_watcher.keep_raw)
        self._lister: Lister[V] = Lister(lister_watcher, updater, settings=settings, progress=lister_watcher.progress)
        self._yielder = CooperativeYield()
        self._must_list = True
        self._may_stream_initial = settings.uses_watch_list
        self._last_suspicion_s: float | None = None
        self._was_silent = False
        """The last watch was ended because it was silent."""
        self._has_other_count = False
        """The server counted other objects than the cache held when that watch was renewed."""

    async def run(self) -> None:
        """Run until cancelled. Starts with a list, also after an earlier run."""
        self._must_list = True
        backoff = BackoffState(policy=self._settings.backoff)
        while True:
            try:
                await self._list_and_watch()
            except NoInitialEvents as error:
                self._may_stream_initial = False
                log.info("informer.no_watch_list", resource=self._lister_watcher.name, why=str(error))
            except ServerTrouble as error:
                self._handle_failure(error)
                now_s = self._clock.monotonic_s()
                at_least_s = self._settings.backoff.read_retry_after_s(error)
                backoff = backoff.with_failure(now_s, self._entropy, at_least_s=at_least_s)
                await self._clock.sleep(backoff.ready_at - now_s)

    async def _list_and_watch(self) -> None:
        if self._must_list and self._may_stream_initial:
            await self._watch(InitialEvents(self._updater))
            return
        if not self._must_list:
            self._must_list = await self._find_missed_changes()
        if self._must_list:
            await self._lister.list()
            self._finish_list()
        await self._watch(None)

    async def _find_missed_changes(self) -> bool:
        """Whether a watch from the position would not show all changes. Raises `ServerTrouble` without an answer."""
        newest = await self._lister.get_newest_state()
        has_other_count = self._was_silent and newest.objects not in {None, self._updater.count_objects()}
        is_stalled = has_other_count and self._has_other_count
        self._has_other_count = has_other_count
        return is_stalled or is_restored(newest.version, self._updater.position)

    def _finish_list(self) -> None:
        """Record that a list is complete."""
        self._must_list = self._has_other_count = False
        if not self._updater.is_suspect:
            self._progress.suspect_since_s = math.inf
        self._note_suspect()
        self._note_contact()
        self._progress.lists += 1
        if self._progress.synced_at is None:
            self._progress.synced_at = self._clock.now()
        self._on_synced()

    # ---- watching

    async def _watch(self, initial: InitialEvents[V] | None) -> None:
        """Run one watch to its end. Returns if the next may be opened at once."""
        opened_s = self._clock.monotonic_s()
        stream = await self._open(initial)
        # The server accepted the position: nothing is known to be missing.
        self._note_contact()
        self._was_silent = False
        try:
            received_data = await self._read(stream, initial)
        finally:
            await stream.aclose()
        if self._must_list:
            return
        self._progress.reconnects += 1
        if self._was_silent:
            return
        lived_s = self._clock.monotonic_s() - opened_s
        if lived_s < self._settings.reopen_after_s:
            if not received_data:
                raise AnswerLost("the watch ended as soon as it was opened")
            await self._clock.sleep(self._settings.reopen_after_s - lived_s)

    async def _open(self, initial: InitialEvents[V] | None) -> Stream:
        settings = self._settings
        seconds = int(self._entropy.draw_uniform(settings.shortest_watch_s, settings.longest_watch_s + 1))
        if initial is None:
            return await self._lister_watcher.watch(
                self._updater.position, timeout_seconds=seconds, bookmarks=settings.wants_bookmarks
            )
        try:
            return await self._lister_watcher.watch_list(timeout_seconds=seconds)
        except (BadRequest, Invalid) as error:
            raise NoInitialEvents(str(error)) from error

    async def _read(self, stream: Stream, initial: InitialEvents[V] | None) -> bool:
        settings = self._settings
        timeout_s = settings.silence_s if initial is None else settings.watch_list_patience_s
        try:
            async with IdleTimeout(timeout_s) as idle_timeout:
                return await self._read_frames(stream, initial, idle_timeout)
        except TimeoutError:
            if initial is not None and self._must_list:
                patience_s = settings.watch_list_patience_s
                raise NoInitialEvents(f"the initial events did not end within {patience_s:g} s") from None
            # Not even a bookmark: nothing changed, or the connection is dead without having been closed.
            self._was_silent = True
            return False

    async def _read_frames(self, stream: Stream, initial: InitialEvents[V] | None, idle_timeout: IdleTimeout) -> bool:
        splitter = FrameSplitter()
        received_data = False
        while (chunk := await anext(stream, None)) is not None:
            received_data = True
            self._has_other_count = False
            idle_timeout.reset()
            self._note_contact()
            self._progress.bytes_read += len(chunk)
            for frame in splitter.feed(chunk):
                if initial is None:
                    self._apply_frame(frame)
                elif (initial := await self._apply_initial_frame(frame, initial)) is None:
                    idle_timeout.set_limit(self._settings.silence_s)
                if self._yielder.is_due(size_bytes=len(frame)):
                    await self._yielder.yield_now()
            if initial is None and self._must_list_suspect():
                self._must_list = True
                break
        if initial is not None:
            raise NoInitialEvents("the watch ended before the initial events were complete")
        return received_data

    def _apply_frame(self, frame: bytes) -> None:
        match self._frames.read(frame):
            case Present(value):
                self._updater.update(value)
            case WatchDeleted(value):
                self._updater.delete(value)
            case Bookmark(version):
                self._updater.advance_to(version)
            case WatchError(error):
                raise error
            case UnreadableFrame(problem):
                self._updater.note_unreadable(problem)
        self._note_suspect()

    async def _apply_initial_frame(self, frame: bytes, initial: InitialEvents[V]) -> InitialEvents[V] | None:
        """Apply a frame of the initial events. Returns None when they are complete."""
        if not initial.apply(self._frames.read(frame)):
            return initial
        await self._lister.conclude(initial.version)
        self._finish_list()
        return None

    def _note_suspect(self) -> None:
        if self._updater.is_suspect:
            self._progress.suspect_since_s = min(self._progress.suspect_since_s, self._clock.monotonic_s())

    def _must_list_suspect(self) -> bool:
        """Whether to list again because something was unreadable or a list not believed; not again and again."""
        if not self._updater.is_suspect and not self._updater.contradiction:
            return False
        now_s = self._clock.monotonic_s()
        pause_s = self._settings.contradiction_s if self._updater.contradiction else self._settings.suspicion_s
        if self._last_suspicion_s is not None and now_s - self._last_suspicion_s < pause_s:
            return False
        self._last_suspicion_s = now_s
        return True

    # ---- progress

    def _note_contact(self) -> None:
        self._progress.last_received_s = self._clock.monotonic_s()
        if self._progress.trouble:
            log.info("informer.recovered", resource=self._lister_watcher.name, from_trouble=self._progress.trouble)
            self._progress.trouble = ""

    def _handle_failure(self, error: Exception) -> None:
        """Record a failure and decide whether a list is needed."""
        if isinstance(error, ApiError) and not isinstance(error, _TRANSIENT):
            self._must_list = True
        self._progress.reconnects += 1
        if isinstance(error, Expired):
            log.info("informer.expired", resource=self._lister_watcher.name, version=self._updater.position)
            return
        trouble = f"{type(error).__name__}: {error}"[:500]
        if trouble != self._progress.trouble:
            self._progress.trouble = trouble
            log.warning("informer.trouble", resource=self._lister_watcher.name, problem=trouble)

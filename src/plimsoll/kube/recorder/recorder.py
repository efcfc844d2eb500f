"""Records events of controllers and writes them in the background.

Controllers call `record` in the middle of their work: it neither waits nor fails, whatever state the server is in. The
supervisor runs `run`, which writes one event after the other. Reports must never delay actions, so everything
here is bounded and every dropped event is counted: the queue of different events (see `queue`), the attempts per event,
the grace period on shutdown. A namespace we may not write to is reported once.

It needs a client with a rate limit of its own and without the leader's guard: followers report events too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.errors import GaveUp, PlimsollError
from plimsoll.core.values import Value
from plimsoll.kube.errors import (
    AlreadyExists,
    Forbidden,
    NotFound,
    NotSent,
    ServerFailed,
    ServerUnreachable,
    TooManyRequests,
)
from plimsoll.kube.recorder.correlation import CorrelationSettings, Correlator, Entry, Written
from plimsoll.kube.recorder.event_objects import (
    ACTION_BYTES,
    MESSAGE_BYTES,
    REASON_BYTES,
    EventType,
    Occurrence,
    build_count_patch,
    build_event_body,
    build_event_name,
    cut,
    to_unix_ns,
)
from plimsoll.kube.recorder.queue import EventQueue, QueuedEvent
from plimsoll.objects.api.events import Event, EventSource
from plimsoll.objects.api.meta import format_time
from plimsoll.runtime.backoff import Backoff

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import ObjectReference

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_PASSING: Final = (ServerUnreachable, TooManyRequests, ServerFailed)
# The number of namespaces and reasons for which a reported failure is remembered.
CHATTER: Final = "chatter"
_REPORTS: Final = 1_000
_NAMES_TRIED: Final = 16


class RecorderSettings(Value):
    """Sizes and retry limits, with client-go's numbers."""

    queued: int = 1_000
    """Different ones: the same again takes no place of its own."""
    retry: Backoff = Backoff(initial_s=10.0, factor=1.0, cap_s=10.0, jitter=0.2, max_attempts=12)
    grace_s: float = 5.0
    correlation: CorrelationSettings = CorrelationSettings()


class RecorderStatus(Value):
    """Counters of all recorded events, including combined ones; the event being written is in none of them.

    `dropped` is by cause: overflow, chatter, refused, unreachable, stopped.
    """

    recorded: int
    written: int
    pending: int
    dropped: dict[str, int]


class EventRecorder:
    """Events of one component (`plimsoll-nodes`) on one host or in one pod."""

    def __init__(
        self,
        client: Client,
        source: EventSource,
        *,
        clock: Clock,
        entropy: Entropy,
        settings: RecorderSettings | None = None,
    ) -> None:
        self._client = client
        self._source = source
        self._clock = clock
        self._entropy = entropy
        self._settings = settings or RecorderSettings()
        self._correlator = Correlator(self._settings.correlation)
        self._pending = EventQueue(capacity=self._settings.queued, similar=self._settings.correlation.similar)
        self._has_news = asyncio.Event()
        self._is_stopping = False
        self._last_name_ns = 0
        self._recorded = self._written = 0
        self._dropped: Counter[str] = Counter()
        self._reported: set[tuple[str, str]] = set()

    def record(
        self, about: ObjectReference, event_type: EventType, *, reason: str, message: str, action: str = ""
    ) -> None:
        """Record an event of an object. Never waits, never fails; long texts are truncated."""
        self._recorded += 1
        occurrence = Occurrence(
            about=about,
            type=event_type,
            reason=cut(reason, REASON_BYTES),
            message=cut(message, MESSAGE_BYTES),
            action=cut(action, ACTION_BYTES),
            at=self._clock.now(),
        )
        pushed_out = self._pending.add(occurrence)
        if pushed_out is not None:
            self._drop(pushed_out, "overflow")
        self._has_news.set()

    @property
    def status(self) -> RecorderStatus:
        dropped = dict(sorted(self._dropped.items()))
        return RecorderStatus(
            recorded=self._recorded, written=self._written, pending=self._pending.events, dropped=dropped
        )

    async def run(self) -> None:
        """Write events until cancelled; then write the queued ones within the grace period."""
        self._is_stopping = False
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(self._write_all(), name=f"events of {self._source.component}")
            try:
                await asyncio.wait((writing,))
            finally:
                self._is_stopping = True
                self._has_news.set()
                await asyncio.wait((writing,), timeout=self._settings.grace_s)
                writing.cancel()

    # ---- inside

    async def _write_all(self) -> None:
        try:
            while self._pending or not self._is_stopping:
                while self._pending:
                    await self._write_one(self._pending.take())
                self._has_news.clear()
                if not self._is_stopping:
                    await self._has_news.wait()
        except asyncio.CancelledError:
            while self._pending:
                self._drop(self._pending.take(), "stopped")
            raise

    async def _write_one(self, folded: QueuedEvent) -> None:
        now_s = self._clock.monotonic_s()
        entry = self._correlator.build_entry(folded.last, now_s, is_combined=folded.is_combined)
        if entry is None:
            self._drop(folded, CHATTER)
            return
        try:
            written = await self._send_with_retries(_PendingEvent(folded, entry, self._generate_name(folded.last)))
        except asyncio.CancelledError:
            self._drop(folded, "stopped")
            raise
        except _PASSING as error:
            self._drop(folded, "unreachable", error)
        except PlimsollError as error:
            self._drop(folded, "refused", error)
        else:
            self._written += folded.times
            self._correlator.record_write(entry, written, self._clock.monotonic_s())

    async def _send_with_retries(self, pending: _PendingEvent) -> Written:
        """Write it, and retry temporary failures. A repeated write leaves one event with one count."""
        policy = self._settings.retry
        failures = 0
        while True:
            try:
                return await self._send(pending)
            except _PASSING as error:
                pending.may_be_there |= not isinstance(error, NotSent)
                failures += 1
                if policy.is_used_up(failures):
                    raise
                wait_s = max(policy.draw_delay_s(failures, self._entropy), policy.read_retry_after_s(error))
            await self._clock.sleep(wait_s)

    async def _send(self, pending: _PendingEvent) -> Written:
        occurrence, times, before = pending.occurrence, pending.folded.times, pending.entry.before
        if before is None:
            return await self._create(
                pending, Written(name=pending.name, count=times, first_at=pending.folded.first_at)
            )
        now = Written(name=before.name, count=before.count + times, first_at=before.first_at)
        patch = build_count_patch(message=pending.entry.message, count=now.count, last_at=occurrence.at)
        try:
            await self._client.merge_patch(Event, now.name, patch, namespace=occurrence.namespace)
        except NotFound:
            # Servers forget events after an hour.
            return await self._create(pending, now)
        return now

    async def _create(self, pending: _PendingEvent, new: Written) -> Written:
        for _ in range(_NAMES_TRIED):
            try:
                await self._client.create(
                    Event, pending.build_body(new, self._source), namespace=pending.occurrence.namespace
                )
            except AlreadyExists:
                if pending.may_be_there:
                    return new
                # An event of another recorder, of the same nanosecond: in virtual time many are recorded in one
                # instant.
                pending.name = self._generate_name(pending.occurrence)
                new = Written(name=pending.name, count=new.count, first_at=new.first_at)
            else:
                return new
        raise GaveUp(f"{_NAMES_TRIED} names for an event about {pending.occurrence.about.name} were taken")

    def _generate_name(self, occurrence: Occurrence) -> str:
        """Generate a unique name, also while the clock does not advance."""
        self._last_name_ns = max(to_unix_ns(occurrence.at), self._last_name_ns + 1)
        return build_event_name(occurrence.about.name, self._last_name_ns, self._entropy)

    def _drop(self, folded: QueuedEvent, cause: str, error: PlimsollError | None = None) -> None:
        self._dropped[cause] += folded.times
        occurrence = folded.last
        report = (occurrence.namespace, cause)
        if report in self._reported or len(self._reported) >= _REPORTS:
            return
        self._reported.add(report)
        text = "" if error is None else str(error)
        is_expected = cause == CHATTER or _is_of_ended_namespace(error)
        write = log.debug if is_expected else log.warning
        write("event.dropped", namespace=occurrence.namespace, cause=cause, reason=occurrence.reason, error=text)


def _is_of_ended_namespace(error: PlimsollError | None) -> bool:
    """Whether the namespace is terminating or gone: events about its last objects cannot be stored."""
    match error:
        case NotFound():
            return True
        case Forbidden():
            return any(cause.reason == "NamespaceTerminating" for cause in error.causes)
        case _:
            return False


class _PendingEvent:
    """An event that is being written to the server."""

    def __init__(self, folded: QueuedEvent, entry: Entry, name: str) -> None:
        self.folded = folded
        self.occurrence = folded.last
        self.entry = entry
        self.name = name
        self.may_be_there = False

    def build_body(self, new: Written, source: EventSource) -> dict[str, Any]:
        return {
            **build_event_body(self.occurrence, source),
            **build_count_patch(message=self.entry.message, count=new.count, last_at=self.occurrence.at),
            "metadata": {"name": new.name, "namespace": self.occurrence.namespace},
            "firstTimestamp": format_time(new.first_at),
        }

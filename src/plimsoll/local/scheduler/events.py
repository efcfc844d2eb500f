"""The scheduler's Events, in the newer API (`events.k8s.io/v1`) that kube-scheduler uses.

The recorder in `kube.recorder` writes the older API, which every other component uses; readers and recordings
distinguish the two (`eventTime`, `action`, no counts). A repeated Event about the same version of an object becomes a
series: the second one is written, further ones are counted and written at most every six minutes.

Recording never delays scheduling: the buffer is bounded, what cannot be written is dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from plimsoll.core.errors import PlimsollError, Unreachable
from plimsoll.core.values import Value
from plimsoll.kube.errors import AlreadyExists, ServerFailed, TooManyRequests
from plimsoll.kube.recorder.event_objects import EventType, build_event_name, to_unix_ns
from plimsoll.objects.api.events import EventsV1Event
from plimsoll.objects.api.meta import ObjectReference

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.local.components import Component
    from plimsoll.local.scheduler.settings import SchedulerSettings
    from plimsoll.objects.api.pods import Pod

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

NOTE_CHARACTERS: Final = 1024
_ELLIPSIS: Final = " ..."
_QUEUED: Final = 10_000
_SERIES: Final = 4_096
_SERIES_WRITTEN_EVERY_S: Final = 360.0
_TRIES: Final = 12
_RETRY_S: Final = 10.0
_PASSING: Final = (Unreachable, TooManyRequests, ServerFailed)


class SchedulerEvent(Value, frozen=True):
    """Something that happened to a pod."""

    about: ObjectReference
    type: EventType
    reason: str
    action: str
    note: str
    related: ObjectReference | None = None


def build_reference(pod: Pod) -> ObjectReference:
    meta = pod.metadata
    return ObjectReference(
        api_version="v1",
        kind="Pod",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def build_failed_scheduling(pod: Pod, message: str) -> SchedulerEvent:
    return SchedulerEvent(
        about=build_reference(pod), type=EventType.WARNING, reason="FailedScheduling", action="Scheduling", note=message
    )


def build_scheduled(pod: Pod, node: str) -> SchedulerEvent:
    note = f"Successfully assigned {pod.metadata.namespace}/{pod.metadata.name} to {node}"
    return SchedulerEvent(
        about=build_reference(pod), type=EventType.NORMAL, reason="Scheduled", action="Binding", note=note
    )


def build_preempted(victim: Pod, preemptor: Pod, node: str) -> SchedulerEvent:
    return SchedulerEvent(
        about=build_reference(victim),
        type=EventType.NORMAL,
        reason="Preempted",
        action="Preempting",
        note=f"Preempted by pod {preemptor.metadata.uid} on node {node}",
        related=build_reference(preemptor),
    )


class _Series:
    """An event that is on the server, and how often it has happened."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 1
        self.written_s = -_SERIES_WRITTEN_EVERY_S


class SchedulerEventRecorder:
    """Takes announcements at any time, and writes them while `run` runs or when `flush` is called."""

    def __init__(self, component: Component, settings: SchedulerSettings) -> None:
        self._client = component.client
        self._clock = component.clock
        self._entropy = component.entropy
        self._reporter = settings.name
        self._instance = f"{settings.name}-{settings.host}"
        self._pending: deque[tuple[SchedulerEvent, datetime]] = deque()
        self._has_news = asyncio.Event()
        self._series: OrderedDict[tuple[object, ...], _Series] = OrderedDict()
        self._last_name_ns = 0
        self.dropped: Counter[str] = Counter()

    def record(self, announcement: SchedulerEvent) -> None:
        """Never waits, never fails."""
        if len(self._pending) >= _QUEUED:
            self._drop(self._pending.popleft()[0], "overflow")
        self._pending.append((announcement, self._clock.now()))
        self._has_news.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            while self._pending:
                await self._write(*self._pending.popleft(), tries=_TRIES)

    async def flush(self) -> None:
        """Write what waits, once: for worlds that stand still between two steps."""
        while self._pending:
            await self._write(*self._pending.popleft(), tries=1)

    # ---- inside

    async def _write(self, announcement: SchedulerEvent, at: datetime, *, tries: int) -> None:
        key = _get_series_key(announcement)
        series = self._series.get(key)
        name = self._build_name(announcement, at) if series is None else series.name
        for attempt in range(1, tries + 1):
            try:
                if series is None:
                    await self._create(announcement, at, name)
                    self._remember(key, _Series(name))
                else:
                    await self._count_up(series, announcement, at)
            except _PASSING as error:
                if attempt == tries:
                    self._drop(announcement, "unreachable", error)
                else:
                    await self._clock.sleep(_RETRY_S)
            except PlimsollError as error:
                self._drop(announcement, "refused", error)
                return
            else:
                return

    async def _create(self, announcement: SchedulerEvent, at: datetime, name: str) -> None:
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": announcement.about.namespace},
            "eventTime": _format_micro_time(at),
            "reportingController": self._reporter,
            "reportingInstance": self._instance,
            "action": announcement.action,
            "reason": announcement.reason,
            "regarding": msgspec.to_builtins(announcement.about),
            "note": truncate_note(announcement.note),
            "type": announcement.type.value,
        }
        if announcement.related is not None:
            body["related"] = msgspec.to_builtins(announcement.related)
        try:
            await self._client.create(EventsV1Event, body, namespace=announcement.about.namespace)
        except AlreadyExists:
            # Names hold the time to the nanosecond and the pod: it is ours, and only the answer was lost.
            log.debug("event.was_there", name=name)

    async def _count_up(self, series: _Series, announcement: SchedulerEvent, at: datetime) -> None:
        series.count += 1
        if self._clock.monotonic_s() - series.written_s < _SERIES_WRITTEN_EVERY_S:
            return
        body = {"series": {"count": series.count, "lastObservedTime": _format_micro_time(at)}}
        await self._client.merge_patch(EventsV1Event, series.name, body, namespace=announcement.about.namespace)
        series.written_s = self._clock.monotonic_s()

    def _remember(self, key: tuple[object, ...], series: _Series) -> None:
        self._series[key] = series
        if len(self._series) > _SERIES:
            self._series.popitem(last=False)

    def _build_name(self, announcement: SchedulerEvent, at: datetime) -> str:
        """No two alike: a clock that stands still is helped on."""
        self._last_name_ns = max(to_unix_ns(at), self._last_name_ns + 1)
        return build_event_name(announcement.about.name, self._last_name_ns, self._entropy)

    def _drop(self, announcement: SchedulerEvent, cause: str, error: PlimsollError | None = None) -> None:
        self.dropped[cause] += 1
        if self.dropped[cause] == 1:
            text = "" if error is None else str(error)
            log.warning("event.dropped", cause=cause, about=announcement.about.name, error=text)


def truncate_note(note: str) -> str:
    """kube-scheduler's way of shortening what is too long."""
    return note if len(note) <= NOTE_CHARACTERS else note[: NOTE_CHARACTERS - len(_ELLIPSIS)] + _ELLIPSIS


def _get_series_key(scheduler_event: SchedulerEvent) -> tuple[object, ...]:
    about, related = scheduler_event.about, scheduler_event.related
    return (
        scheduler_event.type,
        scheduler_event.reason,
        scheduler_event.action,
        about.uid,
        about.resource_version,
        related.uid if related else "",
    )


def _format_micro_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

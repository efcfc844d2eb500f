"""Builds the Events of a loop and emits them through the recorder.

The same Event is emitted once per five minutes unless `--record-duplicated-events` is set. Beyond that, the recorder
aggregates equal Events within its window.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import structs

from plimsoll.nodes.model.reasons import CLUSTER_UNHEALTHY
from plimsoll.nodes.reporting.events.messages import WARNING, EventMessage, build_status_map_reference
from plimsoll.nodes.reporting.events.requests import build_request_events
from plimsoll.nodes.reporting.events.scale_down import build_scale_down_events
from plimsoll.nodes.reporting.events.scale_up import build_scale_up_events
from plimsoll.operator.pause import OTHER_AUTOSCALER

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from datetime import datetime

    from plimsoll.kube.recorder import EventType
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.objects.api.meta import ObjectReference


_AGAIN_AFTER: Final = timedelta(minutes=5)
_ANY_MESSAGE: Final = frozenset({"ConsumingPodsUnschedulable", "ProvisioningRequestMissing"})
"""Reasons emitted once per object even if the message differs: their messages count pods, which come and go."""


def build_events(loop: LoopResult, recent: Container[EventMessage] = ()) -> tuple[EventMessage, ...]:
    """All Events of a loop, in the order in which things happened. `recent`: Events that need no repetition."""
    return (
        *_build_health_events(loop),
        *build_scale_up_events(loop, recent),
        *build_request_events(loop),
        *build_scale_down_events(loop),
    )


def _build_health_events(loop: LoopResult) -> Iterator[EventMessage]:
    ended = loop.ended_early
    if ended is not None and ended.code == CLUSTER_UNHEALTHY:
        message = f"Cluster is unhealthy: {ended.message}"
        yield EventMessage(
            about=build_status_map_reference(loop.policy), type=WARNING, reason=CLUSTER_UNHEALTHY, message=message
        )
    held_back = loop.held_back
    if held_back is not None and held_back.code == OTHER_AUTOSCALER:
        about = build_status_map_reference(loop.policy)
        yield EventMessage(about=about, type=WARNING, reason=OTHER_AUTOSCALER, message=f"Nothing is done: {held_back}")


class Recorder(Protocol):
    """The part of `kube.recorder.EventRecorder` that an emitter needs."""

    def record(self, about: ObjectReference, event_type: EventType, *, reason: str, message: str) -> None: ...


class EventEmitter:
    """Emits Events and remembers recent ones, by the times of loops."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lately: dict[EventMessage, datetime] = {}
        self.status_uid = ""
        """The uid of the status ConfigMap, once known: `kubectl describe` shows only Events with the object's uid."""

    def emit(self, loop: LoopResult) -> None:
        status = build_status_map_reference(loop.policy)
        with_uid = structs.replace(status, uid=self.status_uid)
        for message in self._select_new(loop):
            about = with_uid if message.about == status else message.about
            self._recorder.record(about, message.type, reason=message.reason, message=message.message)

    def _select_new(self, loop: LoopResult) -> list[EventMessage]:
        if loop.policy.operation.duplicated_events:
            return list(build_events(loop))
        self._lately = {event_message: at for event_message, at in self._lately.items() if loop.at - at < _AGAIN_AFTER}
        news: list[EventMessage] = []
        for message in build_events(loop, self._lately):
            if (key := _get_deduplication_key(message)) not in self._lately:
                self._lately[key] = loop.at
                news.append(message)
        return news


def _get_deduplication_key(event: EventMessage) -> EventMessage:
    """The key under which an Event is not repeated."""
    return replace(event, message="") if event.reason in _ANY_MESSAGE else event

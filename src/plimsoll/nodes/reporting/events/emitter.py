"""Everything a turn tells as Events: `build_events(turn)`, pure; and who hands it to the recorder.

The same thing is told once in five minutes, unless the operator wants every one (`--record-duplicated-events`); beyond
that the recorder counts up what is the same within its window, as every controller's does.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import structs

from plimsoll.nodes.model.reasons import CLUSTER_UNHEALTHY
from plimsoll.nodes.reporting.events.messages import WARNING, EventMessage, status_config_map
from plimsoll.nodes.reporting.events.requests import build_request_events
from plimsoll.nodes.reporting.events.scale_down import build_scale_down_events
from plimsoll.nodes.reporting.events.scale_up import build_scale_up_events

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from datetime import datetime

    from plimsoll.kube.recorder import EventType
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.objects.api.meta import ObjectReference


_AGAIN_AFTER: Final = timedelta(minutes=5)
_WHATEVER_IS_SAID: Final = frozenset({"ConsumingPodsUnschedulable", "ProvisioningRequestMissing"})
"""Told once of the same thing even if the words differ: they count pods, which come and go."""


def build_events(turn: LoopResult, recent: Container[EventMessage] = ()) -> tuple[EventMessage, ...]:
    """In the order in which things happened. `recent`: what need not be among the few that one turn tells."""
    return (
        *_health(turn),
        *build_scale_up_events(turn, recent),
        *build_request_events(turn),
        *build_scale_down_events(turn),
    )


def _health(turn: LoopResult) -> Iterator[EventMessage]:
    ended = turn.ended_early
    if ended is not None and ended.code == CLUSTER_UNHEALTHY:
        message = f"Cluster is unhealthy: {ended.message}"
        yield EventMessage(
            about=status_config_map(turn.policy), type=WARNING, reason=CLUSTER_UNHEALTHY, message=message
        )


class Recorder(Protocol):
    """What an emitter needs of `kube.recorder.EventRecorder`."""

    def record(self, about: ObjectReference, event_type: EventType, *, reason: str, message: str) -> None: ...


class EventEmitter:
    """Remembers what was told lately. Times are those of turns."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lately: dict[EventMessage, datetime] = {}
        self.status_uid = ""
        """Of the status ConfigMap, once it is known: `kubectl describe` shows Events of this very object only."""

    def emit(self, turn: LoopResult) -> None:
        status = status_config_map(turn.policy)
        with_uid = structs.replace(status, uid=self.status_uid)
        for message in self._news(turn):
            about = with_uid if message.about == status else message.about
            self._recorder.record(about, message.type, reason=message.reason, message=message.message)

    def _news(self, turn: LoopResult) -> list[EventMessage]:
        if turn.policy.operation.duplicated_events:
            return list(build_events(turn))
        self._lately = {event_message: at for event_message, at in self._lately.items() if turn.at - at < _AGAIN_AFTER}
        news: list[EventMessage] = []
        for message in build_events(turn, self._lately):
            if (key := _same(message)) not in self._lately:
                self._lately[key] = turn.at
                news.append(message)
        return news


def _same(one: EventMessage) -> EventMessage:
    """What is not told twice."""
    return replace(one, message="") if one.reason in _WHATEVER_IS_SAID else one

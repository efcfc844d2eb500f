"""Events, under their two names: the core/v1 kind, and the events.k8s.io/v1 view of it.

The server stores one object and serves both; the field names differ (`involvedObject`/`regarding`, `message`/`note`).
"""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from typing import ClassVar

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import MicroTime, ObjectReference, Time, WireObject


class EventSource(Wire):
    component: str = ""
    host: str = ""


class EventSeries(Wire):
    count: Int64 = 0
    last_observed_time: MicroTime | None = None


class Event(WireObject):
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    action: str = ""
    count: Int64 = 0
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    event_time: MicroTime | None = None
    series: EventSeries | None = None
    source: EventSource = EventSource()
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""


class EventsV1Event(WireObject):
    """`events.k8s.io/v1`."""

    KIND: ClassVar[str] = "Event"

    regarding: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    note: str = ""
    action: str = ""
    event_time: MicroTime | None = None
    series: EventSeries | None = None
    related: ObjectReference | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    deprecated_count: Int64 = 0
    deprecated_first_timestamp: Time | None = None
    deprecated_last_timestamp: Time | None = None
    deprecated_source: EventSource = EventSource()

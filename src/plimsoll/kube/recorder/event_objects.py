"""Event objects on the wire: names, limits, fields. Pure.

Events are core/v1 objects in the older style (count, first and last timestamp; no `eventTime`), as controllers still
write them: it is the style that can be counted up by a patch, and the one `kubectl describe` folds into "x12 over 5m".
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.names import find_subdomain_problems
from plimsoll.core.values import Value
from plimsoll.objects.api.events import EventSource  # noqa: TC001 -- msgspec resolves the annotations of Values at run time
from plimsoll.objects.api.meta import ObjectReference, WireObject, format_time

if TYPE_CHECKING:
    from plimsoll.core.entropy import Entropy
    from plimsoll.objects.api.resource import Resource

# The limits of the API server's validation (pkg/apis/core/validation/events.go).
MESSAGE_BYTES: Final = 1024
REASON_BYTES: Final = 128
ACTION_BYTES: Final = 128

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class EventType(StrEnum):
    """The two types of Events."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Occurrence(Value):
    """Something happened to an object. Texts are within their limits."""

    about: ObjectReference
    type: EventType
    reason: str
    message: str
    action: str
    at: datetime

    @property
    def namespace(self) -> str:
        """The namespace of the event: `default` for an object without a namespace."""
        return self.about.namespace or "default"


def build_reference(resource: Resource, value: WireObject) -> ObjectReference:
    """The reference of an event to its object. Objects of a list do not carry their kind."""
    return ObjectReference(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=value.metadata.namespace,
        name=value.metadata.name,
        uid=value.metadata.uid,
        resource_version=value.metadata.resource_version,
    )


def cut(text: str, limit_bytes: int) -> str:
    """Truncate to a number of bytes of UTF-8, between characters; what UTF-8 cannot express becomes `?`."""
    return text.encode(errors="replace")[:limit_bytes].decode(errors="ignore")


def to_unix_ns(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1_000


def build_event_name(about: str, at_ns: int, entropy: Entropy) -> str:
    """`<object>.<time in hex>`; a random name if the object's name is not valid for an Event (`system:node`)."""
    name = f"{about}.{at_ns:x}"
    return f"{entropy.generate_uid()}.{at_ns:x}" if find_subdomain_problems(name) else name


def build_event_body(occurrence: Occurrence, source: EventSource) -> dict[str, Any]:
    """A new event, without name, message, count and times."""
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": msgspec.to_builtins(occurrence.about),
        "type": occurrence.type.value,
        "reason": occurrence.reason,
        "source": msgspec.to_builtins(source),
        "reportingComponent": source.component,
        "reportingInstance": source.host,
    }
    return {**body, "action": occurrence.action} if occurrence.action else body


def build_count_patch(*, message: str, count: int, last_at: datetime) -> dict[str, Any]:
    """The patch for one more occurrence."""
    return {"message": message, "count": count, "lastTimestamp": format_time(last_at)}

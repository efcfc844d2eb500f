"""Event is one stored resource with two API versions: core/v1, as it is stored, and events.k8s.io/v1.

Conversion renames fields; validation depends on the version of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import find_qualified_name_problems
from plimsoll.local.apiserver.strategies.go_serialization import as_go_writes
from plimsoll.objects.builtin.defaults import defaults
from plimsoll.objects.schema import field_errors as fields

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

CORE: Final = "v1"
EVENTS: Final = "events.k8s.io/v1"
NEW_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OLD_NAMES: Final = {new: old for old, new in NEW_NAMES.items()}
_COMPONENTS: Final = {CORE: "io.k8s.api.core.v1.Event", EVENTS: "io.k8s.api.events.v1.Event"}
_TYPES: Final = ("Normal", "Warning")
_LONGEST: Final = 128
_LONGEST_MESSAGE: Final = 1024


def convert(obj: Json, api_version: str) -> Json:
    """The event in the other version, written as Go writes it there."""
    names = _OLD_NAMES if api_version == CORE else NEW_NAMES
    renamed = {names.get(name, name): value for name, value in obj.items() if value is not None}
    renamed["apiVersion"] = api_version
    return as_go_writes(defaults.copy_spelled_out(renamed), _COMPONENTS[api_version])


def validate_event(obj: Json, api_version: str) -> list[FieldError]:
    """Paths are those of core/v1 whatever the request's version is, as in the real server."""
    event = obj if api_version == CORE else {_OLD_NAMES.get(name, name): value for name, value in obj.items()}
    errors = _validate_events_event(event) if event.get("eventTime") else _validate_core_event(event)
    if api_version == CORE:
        return errors
    if not event.get("eventTime"):
        errors.append(fields.required("eventTime"))
    if event.get("type") not in _TYPES:
        errors.append(fields.invalid("type", "", f"has invalid value: {event.get('type') or ''}"))
    source = event.get("source") or {}
    unwanted = (
        ("firstTimestamp", event.get("firstTimestamp")),
        ("lastTimestamp", event.get("lastTimestamp")),
        ("count", event.get("count")),
        ("source", source.get("component") or source.get("host")),
    )
    return errors + [fields.invalid(name, "", "needs to be unset") for name, value in unwanted if value]


def _validate_core_event(event: Json) -> list[FieldError]:
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    own = event["metadata"].get("namespace") or ""
    agree = own in ("", "default") if not about else own == about
    return [] if agree else [_mismatch(about)]


def _validate_events_event(event: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    if not about and event["metadata"].get("namespace") not in ("default", "kube-system"):
        errors.append(_mismatch(about))
    controller = event.get("reportingComponent") or ""
    if not controller:
        errors.append(fields.required("reportingController"))
    errors += [
        fields.invalid("reportingController", controller, text) for text in find_qualified_name_problems(controller)
    ]
    for name in ("reportingInstance", "action", "reason"):
        text = event.get(name) or ""
        if not text:
            errors.append(fields.required(name))
        elif len(text.encode()) > _LONGEST:
            errors.append(fields.invalid(name, "", f"can have at most {_LONGEST} characters"))
    if len((event.get("message") or "").encode()) > _LONGEST_MESSAGE:
        errors.append(fields.invalid("message", "", f"can have at most {_LONGEST_MESSAGE} characters"))
    return errors


def _mismatch(about: str) -> FieldError:
    return fields.invalid("involvedObject.namespace", about, "does not match event.namespace")

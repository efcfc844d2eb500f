"""Objects as Go serialises them: zero values of optional fields left out, times in UTC.

Built-in kinds are read into Go structs and written out of them, which loses an empty list and a `false` that is the
zero value, but not one behind a pointer (`protobuf.presence` has the table of those). Works on decoded objects.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, NamedTuple

from plimsoll.objects.api.meta import format_time
from plimsoll.objects.builtin.decoding import openapi
from plimsoll.objects.builtin.decoding.go_types import get_struct_name
from plimsoll.objects.protobuf.presence import list_significant_zeros

Json = dict[str, Any]

_SECONDS: Final = "2006-01-02T15:04:05Z"
_MICROSECONDS: Final = "2006-01-02T15:04:05.000000Z"


# Fields that are written although they are empty: times that are not behind a pointer, and two plain texts.
_ALWAYS_WRITTEN: Final[dict[str, Json]] = {
    "ContainerStateRunning": {"startedAt": None},
    "ContainerStateTerminated": {"startedAt": None, "finishedAt": None},
    "CustomResourceDefinitionCondition": {"lastTransitionTime": None},
    "DaemonSetCondition": {"lastTransitionTime": None},
    "DeploymentCondition": {"lastUpdateTime": None, "lastTransitionTime": None},
    "JobCondition": {"lastProbeTime": None, "lastTransitionTime": None},
    "NamespaceCondition": {"lastTransitionTime": None},
    "NodeCondition": {"lastHeartbeatTime": None, "lastTransitionTime": None},
    "PersistentVolumeClaimCondition": {"lastProbeTime": None, "lastTransitionTime": None},
    "PodCondition": {"lastProbeTime": None, "lastTransitionTime": None},
    "ReplicaSetCondition": {"lastTransitionTime": None},
    "ReplicationControllerCondition": {"lastTransitionTime": None},
    "StatefulSetCondition": {"lastTransitionTime": None},
    "StatefulSetSpec": {"serviceName": ""},
    "StatefulSetStatus": {"availableReplicas": 0},
    "io.k8s.api.core.v1.Event": {
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "io.k8s.api.events.v1.Event": {
        "eventTime": None,
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    },
}


class _Field(NamedTuple):
    is_plain: bool
    """Whether values are written as they are, unless they are left out."""
    component: str
    """The component of the struct, or of the items of a list or map; empty for plain values."""
    is_collection: bool
    is_droppable: bool
    time: str
    """How a time is written; empty for what is none."""


def as_go_writes(obj: Json, component: str) -> Json:
    """A new object of the kind that the component describes; what has not to change is shared."""
    fields, always = _load_fields(component)
    result = dict(obj)
    for name, item in obj.items():
        if name not in fields:
            continue
        field = fields[name]
        if not item and field.is_droppable and item is not None and not isinstance(item, float):
            del result[name]
        elif not field.is_plain:
            result[name] = _convert_value(item, field)
    for name, item in always.items():
        if name not in result:
            result[name] = item
    return result


@cache
def _build_always_written(component: str) -> Json:
    return _ALWAYS_WRITTEN.get(component) or _ALWAYS_WRITTEN.get(get_struct_name(component), {})


def _convert_value(item: Any, field: _Field) -> Any:
    component = field.component
    if field.time and isinstance(item, str):
        # Most come as Go writes them.
        return item if item[-1:] == "Z" and len(item) == len(field.time) else _format_utc(item, field.time)
    if not component:
        return item
    if not field.is_collection:
        return as_go_writes(item, component) if isinstance(item, dict) else item
    if isinstance(item, list):
        return [as_go_writes(element, component) if isinstance(element, dict) else element for element in item]
    if isinstance(item, dict):
        return {
            name: as_go_writes(element, component) if isinstance(element, dict) else element
            for name, element in item.items()
        }
    return item


@cache
def _load_fields(component: str) -> tuple[dict[str, _Field], Json]:
    """The declared fields that are not always written as they are, and those that are written although empty."""
    schema = openapi.load_component(component)
    kept = list_significant_zeros(_get_message_name(component))
    required = frozenset(schema.get("required", ()))
    written = _build_always_written(component)
    fields = {
        name: _build_field(declared, is_kept=name in kept or name in required or name in written)
        for name, declared in schema.get("properties", {}).items()
    }
    return {name: field for name, field in fields.items() if field.is_droppable or not field.is_plain}, written


def _build_field(declared: Json, *, is_kept: bool) -> _Field:
    name = openapi.find_reference(declared)
    if name is not None:
        short = get_struct_name(name)
        time = _SECONDS if short == "Time" else _MICROSECONDS if short == "MicroTime" else ""
        struct = openapi.find_struct(declared)
        # A struct is written even if it is empty: it stands behind a pointer, or is never left out.
        return _Field(not (struct or time), struct or "", is_collection=False, is_droppable=False, time=time)
    inner = declared.get("items") or declared.get("additionalProperties")
    struct = openapi.find_struct(inner) if isinstance(inner, dict) else None
    return _Field(struct is None, struct or "", is_collection=inner is not None, is_droppable=not is_kept, time="")


def _get_message_name(component: str) -> str:
    """The protobuf name of a component: its first two parts change places, dashes become underscores."""
    first, second, *rest = component.split(".")
    return ".".join((second, first, *rest)).replace("-", "_")


def _format_utc(text: str, layout: str) -> str:
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return text  # before the year 1, or after 9999, in UTC
    return format_time(moment) if layout == _SECONDS else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

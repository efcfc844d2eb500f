"""Table rows of nodes, namespaces and cluster configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.presentation.durations import age, instant, since
from plimsoll.local.apiserver.presentation.field_access import (
    NONE,
    UNKNOWN,
    Json,
    amount,
    count,
    flag,
    items,
    mapping,
    name_of,
    text,
    value,
    whole,
)

if TYPE_CHECKING:
    from datetime import datetime

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"


def node_cells(obj: Json, now: datetime) -> list[Any]:
    info = mapping(obj, "status", "nodeInfo")
    return [
        name_of(obj),
        _node_status(obj),
        ",".join(_node_roles(obj)) or NONE,
        age(obj, now),
        text(info, "kubeletVersion"),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        text(info, "osImage") or UNKNOWN,
        text(info, "kernelVersion") or UNKNOWN,
        text(info, "containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(node: Json) -> str:
    status = "Unknown"
    for item in items(node, "status", "conditions"):
        if item.get("type") == "Ready":
            status = "Ready" if item.get("status") == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if flag(node, "spec", "unschedulable") else status


def _node_roles(node: Json) -> list[str]:
    roles = set()
    for key, given in mapping(node, "metadata", "labels").items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL and isinstance(given, str):
            roles.add(given)
    return sorted(roles - {""})


def _address(node: Json, kind: str) -> str:
    found = (text(item, "address") for item in items(node, "status", "addresses") if item.get("type") == kind)
    return next(found, NONE)


def namespace_cells(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), text(obj, "status", "phase"), age(obj, now)]


def config_map_cells(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), count(obj, "data") + count(obj, "binaryData"), age(obj, now)]


def secret_cells(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), text(obj, "type"), count(obj, "data"), age(obj, now)]


def service_account_cells(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), count(obj, "secrets"), age(obj, now)]


def lease_cells(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), text(obj, "spec", "holderIdentity"), age(obj, now)]


def priority_class_cells(obj: Json, now: datetime) -> list[Any]:
    policy = text(obj, "preemptionPolicy")
    return [name_of(obj), whole(obj, "value"), flag(obj, "globalDefault"), age(obj, now), policy]


def quota_cells(obj: Json, now: datetime) -> list[Any]:
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(mapping(obj, "status", "hard")):
        used, hard = amount(obj, "status", "used", resource), amount(obj, "status", "hard", resource)
        (limits if resource.startswith("limits.") else requests).append(f"{resource}: {used}/{hard}")
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj, now)]


def binding_cells(obj: Json, now: datetime) -> list[Any]:
    """RoleBindings and ClusterRoleBindings."""
    subjects = items(obj, "subjects")

    def of_kind(kind: str) -> list[Json]:
        return [subject for subject in subjects if subject.get("kind") == kind]

    accounts = (f"{text(item, 'namespace')}/{text(item, 'name')}" for item in of_kind("ServiceAccount"))
    return [
        name_of(obj),
        f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}",
        age(obj, now),
        ", ".join(text(item, "name") for item in of_kind("User")),
        ", ".join(text(item, "name") for item in of_kind("Group")),
        ", ".join(accounts),
    ]


def event_cells(obj: Json, now: datetime) -> list[Any]:
    """An Event of either group: events.k8s.io names the same fields otherwise."""
    about = mapping(obj, "involvedObject") or mapping(obj, "regarding")
    first = _first_stamp(obj, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
    last = _first_stamp(obj, "lastTimestamp", "deprecatedLastTimestamp") or first
    number = whole(obj, "count") or whole(obj, "deprecatedCount") or 1
    series = value(obj, "series")
    if isinstance(series, dict):
        last, number = series.get("lastObservedTime"), whole(series, "count")
    target = text(about, "kind").lower()
    return [
        since(last, now),
        text(obj, "type"),
        text(obj, "reason"),
        f"{target}/{text(about, 'name')}" if text(about, "name") else target,
        text(about, "fieldPath"),
        _event_source(obj),
        (text(obj, "message") or text(obj, "note")).strip(),
        since(first, now),
        number,
        name_of(obj),
    ]


def _first_stamp(event: Json, *names: str) -> Any:
    return next((event[name] for name in names if instant(event.get(name)) is not None), None)


def _event_source(event: Json) -> str:
    source = mapping(event, "source") or mapping(event, "deprecatedSource")
    reporter = text(event, "reportingComponent") or text(event, "reportingController")
    component = text(source, "component") or reporter
    instance = text(source, "host") or text(event, "reportingInstance")
    return f"{component}, {instance}" if instance else component

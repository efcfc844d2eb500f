"""Table rows of nodes, namespaces and cluster configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.presentation.durations import format_age, format_since, parse_timestamp
from plimsoll.local.apiserver.presentation.field_access import (
    NONE,
    UNKNOWN,
    Json,
    count,
    format_amount,
    get_flag,
    get_int,
    get_items,
    get_mapping,
    get_name,
    get_text,
    get_value,
)

if TYPE_CHECKING:
    from datetime import datetime

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"


def build_node_cells(obj: Json, now: datetime) -> list[Any]:
    info = get_mapping(obj, "status", "nodeInfo")
    return [
        get_name(obj),
        _format_node_status(obj),
        ",".join(_list_node_roles(obj)) or NONE,
        format_age(obj, now),
        get_text(info, "kubeletVersion"),
        _find_address(obj, "InternalIP"),
        _find_address(obj, "ExternalIP"),
        get_text(info, "osImage") or UNKNOWN,
        get_text(info, "kernelVersion") or UNKNOWN,
        get_text(info, "containerRuntimeVersion") or UNKNOWN,
    ]


def _format_node_status(node: Json) -> str:
    status = "Unknown"
    for item in get_items(node, "status", "conditions"):
        if item.get("type") == "Ready":
            status = "Ready" if item.get("status") == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if get_flag(node, "spec", "unschedulable") else status


def _list_node_roles(node: Json) -> list[str]:
    roles = set()
    for key, given in get_mapping(node, "metadata", "labels").items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL and isinstance(given, str):
            roles.add(given)
    return sorted(roles - {""})


def _find_address(node: Json, kind: str) -> str:
    found = (get_text(item, "address") for item in get_items(node, "status", "addresses") if item.get("type") == kind)
    return next(found, NONE)


def build_namespace_cells(obj: Json, now: datetime) -> list[Any]:
    return [get_name(obj), get_text(obj, "status", "phase"), format_age(obj, now)]


def build_config_map_cells(obj: Json, now: datetime) -> list[Any]:
    return [get_name(obj), count(obj, "data") + count(obj, "binaryData"), format_age(obj, now)]


def build_secret_cells(obj: Json, now: datetime) -> list[Any]:
    return [get_name(obj), get_text(obj, "type"), count(obj, "data"), format_age(obj, now)]


def build_service_account_cells(obj: Json, now: datetime) -> list[Any]:
    return [get_name(obj), count(obj, "secrets"), format_age(obj, now)]


def build_lease_cells(obj: Json, now: datetime) -> list[Any]:
    return [get_name(obj), get_text(obj, "spec", "holderIdentity"), format_age(obj, now)]


def build_priority_class_cells(obj: Json, now: datetime) -> list[Any]:
    policy = get_text(obj, "preemptionPolicy")
    return [get_name(obj), get_int(obj, "value"), get_flag(obj, "globalDefault"), format_age(obj, now), policy]


def build_quota_cells(obj: Json, now: datetime) -> list[Any]:
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(get_mapping(obj, "status", "hard")):
        used, hard = format_amount(obj, "status", "used", resource), format_amount(obj, "status", "hard", resource)
        (limits if resource.startswith("limits.") else requests).append(f"{resource}: {used}/{hard}")
    return [get_name(obj), ", ".join(requests), ", ".join(limits), format_age(obj, now)]


def build_binding_cells(obj: Json, now: datetime) -> list[Any]:
    """RoleBindings and ClusterRoleBindings."""
    subjects = get_items(obj, "subjects")

    def select_kind(kind: str) -> list[Json]:
        return [subject for subject in subjects if subject.get("kind") == kind]

    accounts = (f"{get_text(item, 'namespace')}/{get_text(item, 'name')}" for item in select_kind("ServiceAccount"))
    return [
        get_name(obj),
        f"{get_text(obj, 'roleRef', 'kind')}/{get_text(obj, 'roleRef', 'name')}",
        format_age(obj, now),
        ", ".join(get_text(item, "name") for item in select_kind("User")),
        ", ".join(get_text(item, "name") for item in select_kind("Group")),
        ", ".join(accounts),
    ]


def build_event_cells(obj: Json, now: datetime) -> list[Any]:
    """An Event of either group: events.k8s.io names the same fields otherwise."""
    about = get_mapping(obj, "involvedObject") or get_mapping(obj, "regarding")
    first = _find_first_stamp(obj, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
    last = _find_first_stamp(obj, "lastTimestamp", "deprecatedLastTimestamp") or first
    number = get_int(obj, "count") or get_int(obj, "deprecatedCount") or 1
    series = get_value(obj, "series")
    if isinstance(series, dict):
        last, number = series.get("lastObservedTime"), get_int(series, "count")
    target = get_text(about, "kind").lower()
    return [
        format_since(last, now),
        get_text(obj, "type"),
        get_text(obj, "reason"),
        f"{target}/{get_text(about, 'name')}" if get_text(about, "name") else target,
        get_text(about, "fieldPath"),
        _format_event_source(obj),
        (get_text(obj, "message") or get_text(obj, "note")).strip(),
        format_since(first, now),
        number,
        get_name(obj),
    ]


def _find_first_stamp(event: Json, *names: str) -> Any:
    return next((event[name] for name in names if parse_timestamp(event.get(name)) is not None), None)


def _format_event_source(event: Json) -> str:
    source = get_mapping(event, "source") or get_mapping(event, "deprecatedSource")
    reporter = get_text(event, "reportingComponent") or get_text(event, "reportingController")
    component = get_text(source, "component") or reporter
    instance = get_text(source, "host") or get_text(event, "reportingInstance")
    return f"{component}, {instance}" if instance else component

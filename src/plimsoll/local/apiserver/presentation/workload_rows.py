"""Table rows of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs, templates and revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.presentation.durations import format_age, format_duration, format_since, parse_timestamp
from plimsoll.local.apiserver.presentation.field_access import (
    NONE,
    UNSET,
    Json,
    count,
    find_condition,
    format_amount,
    format_labels,
    format_selector,
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

_MOST_METRICS = 2


def build_deployment_cells(obj: Json, now: datetime) -> list[Any]:
    return [
        get_name(obj),
        f"{get_int(obj, 'status', 'readyReplicas')}/{get_int(obj, 'spec', 'replicas')}",
        get_int(obj, "status", "updatedReplicas"),
        get_int(obj, "status", "availableReplicas"),
        format_age(obj, now),
        *_format_containers(obj, "spec", "template"),
        format_selector(obj, "spec", "selector", empty="", unreadable="<invalid>"),
    ]


def build_replica_set_cells(obj: Json, now: datetime) -> list[Any]:
    return [*_build_replica_cells(obj, now), format_selector(obj, "spec", "selector")]


def build_replication_controller_cells(obj: Json, now: datetime) -> list[Any]:
    return [*_build_replica_cells(obj, now), format_labels(get_mapping(obj, "spec", "selector"))]


def _build_replica_cells(obj: Json, now: datetime) -> list[Any]:
    return [
        get_name(obj),
        get_int(obj, "spec", "replicas"),
        get_int(obj, "status", "replicas"),
        get_int(obj, "status", "readyReplicas"),
        format_age(obj, now),
        *_format_containers(obj, "spec", "template"),
    ]


def build_stateful_set_cells(obj: Json, now: datetime) -> list[Any]:
    ready = f"{get_int(obj, 'status', 'readyReplicas')}/{get_int(obj, 'spec', 'replicas')}"
    return [get_name(obj), ready, format_age(obj, now), *_format_containers(obj, "spec", "template")]


def build_daemon_set_cells(obj: Json, now: datetime) -> list[Any]:
    status = get_mapping(obj, "status")
    return [
        get_name(obj),
        get_int(status, "desiredNumberScheduled"),
        get_int(status, "currentNumberScheduled"),
        get_int(status, "numberReady"),
        get_int(status, "updatedNumberScheduled"),
        get_int(status, "numberAvailable"),
        format_labels(get_mapping(obj, "spec", "template", "spec", "nodeSelector")),
        format_age(obj, now),
        *_format_containers(obj, "spec", "template"),
        format_selector(obj, "spec", "selector"),
    ]


def build_job_cells(obj: Json, now: datetime) -> list[Any]:
    return [
        get_name(obj),
        _format_job_status(obj),
        _format_completions(obj),
        _format_job_duration(obj, now),
        format_age(obj, now),
        *_format_containers(obj, "spec", "template"),
        format_selector(obj, "spec", "selector"),
    ]


def _format_job_status(job: Json) -> str:
    def holds(kind: str) -> bool:
        return get_text(find_condition(job, kind), "status") == "True"

    if holds("Complete"):
        return "Complete"
    if holds("Failed"):
        return "Failed"
    if get_text(job, "metadata", "deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in ("Suspended", "FailureTarget") if holds(kind)), "Running")


def _format_completions(job: Json) -> str:
    succeeded, parallelism = get_int(job, "status", "succeeded"), get_int(job, "spec", "parallelism")
    if get_value(job, "spec", "completions") is not None:
        return f"{succeeded}/{get_int(job, 'spec', 'completions')}"
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _format_job_duration(job: Json, now: datetime) -> str:
    start = parse_timestamp(get_value(job, "status", "startTime"))
    return (
        ""
        if start is None
        else format_duration((parse_timestamp(get_value(job, "status", "completionTime")) or now) - start)
    )


def build_cron_job_cells(obj: Json, now: datetime) -> list[Any]:
    last, suspend = get_value(obj, "status", "lastScheduleTime"), get_value(obj, "spec", "suspend")
    return [
        get_name(obj),
        get_text(obj, "spec", "schedule"),
        get_text(obj, "spec", "timeZone") or NONE,
        UNSET if suspend is None else str(get_flag(obj, "spec", "suspend")),
        count(obj, "status", "active"),
        NONE if last is None else format_since(last, now),
        format_age(obj, now),
        *_format_containers(obj, "spec", "jobTemplate", "spec", "template"),
        format_selector(obj, "spec", "jobTemplate", "spec", "selector"),
    ]


def build_pod_template_cells(obj: Json, _now: datetime) -> list[Any]:
    return [
        get_name(obj),
        *_format_containers(obj, "template"),
        format_labels(get_mapping(obj, "template", "metadata", "labels")),
    ]


def build_controller_revision_cells(obj: Json, now: datetime) -> list[Any]:
    owners = (item for item in get_items(obj, "metadata", "ownerReferences") if get_flag(item, "controller"))
    owner = next(owners, None)
    return [
        get_name(obj),
        NONE if owner is None else _format_owner(owner),
        get_int(obj, "revision"),
        format_age(obj, now),
    ]


def _format_owner(reference: Json) -> str:
    group = get_text(reference, "apiVersion").rpartition("/")[0]
    kind = f"{get_text(reference, 'kind')}.{group}" if group else get_text(reference, "kind")
    return f"{kind.lower()}/{get_text(reference, 'name')}"


def build_disruption_budget_cells(obj: Json, now: datetime) -> list[Any]:
    def format_bound(name: str) -> str:
        found = get_value(obj, "spec", name)
        return "N/A" if found is None else str(found)

    allowed = get_int(obj, "status", "disruptionsAllowed")
    return [get_name(obj), format_bound("minAvailable"), format_bound("maxUnavailable"), allowed, format_age(obj, now)]


def build_autoscaler_cells(obj: Json, now: datetime) -> list[Any]:
    least = get_value(obj, "spec", "minReplicas")
    return [
        get_name(obj),
        f"{get_text(obj, 'spec', 'scaleTargetRef', 'kind')}/{get_text(obj, 'spec', 'scaleTargetRef', 'name')}",
        _format_metrics(obj),
        UNSET if least is None else str(get_int(obj, "spec", "minReplicas")),
        get_int(obj, "spec", "maxReplicas"),
        get_int(obj, "status", "currentReplicas"),
        format_age(obj, now),
    ]


def _format_metrics(autoscaler: Json) -> str:
    wanted, observed = get_items(autoscaler, "spec", "metrics"), get_items(autoscaler, "status", "currentMetrics")
    if not wanted:
        return NONE
    shown = [
        _format_target_metric(item, observed[position] if position < len(observed) else {})
        for position, item in enumerate(wanted)
    ]
    more = f" + {len(shown) - _MOST_METRICS} more..." if len(shown) > _MOST_METRICS else ""
    return ", ".join(shown[:_MOST_METRICS]) + more


def _format_target_metric(wanted: Json, observed: Json) -> str:
    kind = get_text(wanted, "type")
    field = kind[:1].lower() + kind[1:]
    if kind not in {"External", "Pods", "Object", "Resource", "ContainerResource"}:
        return "<unknown type>"
    target, current = get_mapping(wanted, field, "target"), get_mapping(observed, field, "current")
    averaged = "averageValue" in target
    if kind in {"Resource", "ContainerResource"}:
        name = get_text(wanted, field, "name")
        if averaged:
            return f"{name}: {_format_metric(current, 'averageValue')}/{format_amount(target, 'averageValue')}"
        goal = _format_percent(target, otherwise="<auto>")
        return f"{name}: {_format_percent(current, otherwise='<unknown>')}/{goal}"
    which = "averageValue" if averaged or kind == "Pods" else "value"
    mark = " (avg)" if averaged and kind != "Pods" else ""
    return f"{_format_metric(current, which)}/{format_amount(target, which)}{mark}"


def _format_metric(current: Json, which: str) -> str:
    return format_amount(current, which) if which in current else "<unknown>"


def _format_percent(metric: Json, *, otherwise: str) -> str:
    return f"{get_int(metric, 'averageUtilization')}%" if "averageUtilization" in metric else otherwise


def _format_containers(obj: Json, *template: str) -> tuple[str, str]:
    """Names and images of the containers of a pod template."""
    containers = get_items(obj, *template, "spec", "containers")
    return ",".join(get_text(container, "name") for container in containers), ",".join(
        get_text(item, "image") for item in containers
    )

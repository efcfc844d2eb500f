"""Table rows of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs, templates and revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.presentation.durations import age, human, instant, since
from plimsoll.local.apiserver.presentation.field_access import (
    NONE,
    UNSET,
    Json,
    amount,
    condition,
    count,
    flag,
    items,
    labels,
    mapping,
    name_of,
    selector,
    text,
    value,
    whole,
)

if TYPE_CHECKING:
    from datetime import datetime

_MOST_METRICS = 2


def deployment_cells(obj: Json, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        f"{whole(obj, 'status', 'readyReplicas')}/{whole(obj, 'spec', 'replicas')}",
        whole(obj, "status", "updatedReplicas"),
        whole(obj, "status", "availableReplicas"),
        age(obj, now),
        *_containers(obj, "spec", "template"),
        selector(obj, "spec", "selector", empty="", unreadable="<invalid>"),
    ]


def replica_set_cells(obj: Json, now: datetime) -> list[Any]:
    return [*_replicas(obj, now), selector(obj, "spec", "selector")]


def replication_controller_cells(obj: Json, now: datetime) -> list[Any]:
    return [*_replicas(obj, now), labels(mapping(obj, "spec", "selector"))]


def _replicas(obj: Json, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        whole(obj, "spec", "replicas"),
        whole(obj, "status", "replicas"),
        whole(obj, "status", "readyReplicas"),
        age(obj, now),
        *_containers(obj, "spec", "template"),
    ]


def stateful_set_cells(obj: Json, now: datetime) -> list[Any]:
    ready = f"{whole(obj, 'status', 'readyReplicas')}/{whole(obj, 'spec', 'replicas')}"
    return [name_of(obj), ready, age(obj, now), *_containers(obj, "spec", "template")]


def daemon_set_cells(obj: Json, now: datetime) -> list[Any]:
    status = mapping(obj, "status")
    return [
        name_of(obj),
        whole(status, "desiredNumberScheduled"),
        whole(status, "currentNumberScheduled"),
        whole(status, "numberReady"),
        whole(status, "updatedNumberScheduled"),
        whole(status, "numberAvailable"),
        labels(mapping(obj, "spec", "template", "spec", "nodeSelector")),
        age(obj, now),
        *_containers(obj, "spec", "template"),
        selector(obj, "spec", "selector"),
    ]


def job_cells(obj: Json, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        _job_status(obj),
        _completions(obj),
        _job_duration(obj, now),
        age(obj, now),
        *_containers(obj, "spec", "template"),
        selector(obj, "spec", "selector"),
    ]


def _job_status(job: Json) -> str:
    def holds(kind: str) -> bool:
        return text(condition(job, kind), "status") == "True"

    if holds("Complete"):
        return "Complete"
    if holds("Failed"):
        return "Failed"
    if text(job, "metadata", "deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in ("Suspended", "FailureTarget") if holds(kind)), "Running")


def _completions(job: Json) -> str:
    succeeded, parallelism = whole(job, "status", "succeeded"), whole(job, "spec", "parallelism")
    if value(job, "spec", "completions") is not None:
        return f"{succeeded}/{whole(job, 'spec', 'completions')}"
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Json, now: datetime) -> str:
    start = instant(value(job, "status", "startTime"))
    return "" if start is None else human((instant(value(job, "status", "completionTime")) or now) - start)


def cron_job_cells(obj: Json, now: datetime) -> list[Any]:
    last, suspend = value(obj, "status", "lastScheduleTime"), value(obj, "spec", "suspend")
    return [
        name_of(obj),
        text(obj, "spec", "schedule"),
        text(obj, "spec", "timeZone") or NONE,
        UNSET if suspend is None else str(flag(obj, "spec", "suspend")),
        count(obj, "status", "active"),
        NONE if last is None else since(last, now),
        age(obj, now),
        *_containers(obj, "spec", "jobTemplate", "spec", "template"),
        selector(obj, "spec", "jobTemplate", "spec", "selector"),
    ]


def pod_template_cells(obj: Json, _now: datetime) -> list[Any]:
    return [name_of(obj), *_containers(obj, "template"), labels(mapping(obj, "template", "metadata", "labels"))]


def controller_revision_cells(obj: Json, now: datetime) -> list[Any]:
    owners = (item for item in items(obj, "metadata", "ownerReferences") if flag(item, "controller"))
    owner = next(owners, None)
    return [name_of(obj), NONE if owner is None else _owner(owner), whole(obj, "revision"), age(obj, now)]


def _owner(reference: Json) -> str:
    group = text(reference, "apiVersion").rpartition("/")[0]
    kind = f"{text(reference, 'kind')}.{group}" if group else text(reference, "kind")
    return f"{kind.lower()}/{text(reference, 'name')}"


def disruption_budget_cells(obj: Json, now: datetime) -> list[Any]:
    def bound(name: str) -> str:
        found = value(obj, "spec", name)
        return "N/A" if found is None else str(found)

    allowed = whole(obj, "status", "disruptionsAllowed")
    return [name_of(obj), bound("minAvailable"), bound("maxUnavailable"), allowed, age(obj, now)]


def autoscaler_cells(obj: Json, now: datetime) -> list[Any]:
    least = value(obj, "spec", "minReplicas")
    return [
        name_of(obj),
        f"{text(obj, 'spec', 'scaleTargetRef', 'kind')}/{text(obj, 'spec', 'scaleTargetRef', 'name')}",
        _metrics(obj),
        UNSET if least is None else str(whole(obj, "spec", "minReplicas")),
        whole(obj, "spec", "maxReplicas"),
        whole(obj, "status", "currentReplicas"),
        age(obj, now),
    ]


def _metrics(autoscaler: Json) -> str:
    wanted, observed = items(autoscaler, "spec", "metrics"), items(autoscaler, "status", "currentMetrics")
    if not wanted:
        return NONE
    shown = [
        _metric(item, observed[position] if position < len(observed) else {}) for position, item in enumerate(wanted)
    ]
    more = f" + {len(shown) - _MOST_METRICS} more..." if len(shown) > _MOST_METRICS else ""
    return ", ".join(shown[:_MOST_METRICS]) + more


def _metric(wanted: Json, observed: Json) -> str:
    kind = text(wanted, "type")
    field = kind[:1].lower() + kind[1:]
    if kind not in {"External", "Pods", "Object", "Resource", "ContainerResource"}:
        return "<unknown type>"
    target, current = mapping(wanted, field, "target"), mapping(observed, field, "current")
    averaged = "averageValue" in target
    if kind in {"Resource", "ContainerResource"}:
        name = text(wanted, field, "name")
        if averaged:
            return f"{name}: {_format_metric(current, 'averageValue')}/{amount(target, 'averageValue')}"
        goal = _percent(target, otherwise="<auto>")
        return f"{name}: {_percent(current, otherwise='<unknown>')}/{goal}"
    which = "averageValue" if averaged or kind == "Pods" else "value"
    mark = " (avg)" if averaged and kind != "Pods" else ""
    return f"{_format_metric(current, which)}/{amount(target, which)}{mark}"


def _format_metric(current: Json, which: str) -> str:
    return amount(current, which) if which in current else "<unknown>"


def _percent(metric: Json, *, otherwise: str) -> str:
    return f"{whole(metric, 'averageUtilization')}%" if "averageUtilization" in metric else otherwise


def _containers(obj: Json, *template: str) -> tuple[str, str]:
    """Names and images of the containers of a pod template."""
    containers = items(obj, *template, "spec", "containers")
    return ",".join(text(container, "name") for container in containers), ",".join(
        text(item, "image") for item in containers
    )
